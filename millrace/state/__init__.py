"""State: what operators remember, by key or by task, how long, and how it moves between tasks."""

from __future__ import annotations

from millrace.state.backend import NO_KEY, KeyedState
from millrace.state.descriptors import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    ValueStateDescriptor,
)
from millrace.state.handles import (
    AggregatingState,
    AppendingState,
    BroadcastState,
    ListState,
    MapState,
    MergingState,
    ReadOnlyBroadcastState,
    ReducingState,
    State,
    ValueState,
)
from millrace.state.key_groups import (
    KeyRouter,
    default_max_parallelism,
    group_range,
    java_hash,
    key_group,
    murmur_hash,
    subtask_of_group,
)
from millrace.state.operator_state import BroadcastView, Cell, OperatorState
from millrace.state.store import OperatorStore
from millrace.state.table import VOID, StateTable
from millrace.state.timers import TimerQueue
from millrace.state.ttl import StateTtlConfig, is_expired

__all__ = [
    "NO_KEY",
    "VOID",
    "AggregatingState",
    "AggregatingStateDescriptor",
    "AppendingState",
    "BroadcastState",
    "BroadcastView",
    "Cell",
    "KeyRouter",
    "KeyedState",
    "ListState",
    "ListStateDescriptor",
    "MapState",
    "MapStateDescriptor",
    "MergingState",
    "OperatorState",
    "OperatorStore",
    "ReadOnlyBroadcastState",
    "ReducingState",
    "ReducingStateDescriptor",
    "State",
    "StateDescriptor",
    "StateTable",
    "StateTtlConfig",
    "TimerQueue",
    "ValueState",
    "ValueStateDescriptor",
    "default_max_parallelism",
    "group_range",
    "is_expired",
    "java_hash",
    "key_group",
    "murmur_hash",
    "subtask_of_group",
]
