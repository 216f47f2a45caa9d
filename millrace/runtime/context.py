"""What a rich function gets in ``open``: the runtime context."""

from __future__ import annotations

from typing import Any, NoReturn

from millrace.errors import StateError
from millrace.metrics import MetricGroup
from millrace.runtime.operator import OperatorContext
from millrace.state.descriptors import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    ValueStateDescriptor,
)
from millrace.state.handles import AggregatingState, ListState, MapState, ReducingState, State, ValueState

__all__ = ["RuntimeContext", "refuse_unkeyed"]


class RuntimeContext:
    """Where a function runs, and the way to its keyed state.

    >>> from millrace.state.store import OperatorStore
    >>> context = RuntimeContext(OperatorContext("count", "count-1", OperatorStore(lambda: 0), lambda: 0, keyed=True))
    >>> context.get_task_name_with_subtasks()
    'count (1/1)'
    """

    def __init__(self, context: OperatorContext) -> None:
        self._context = context

    def get_task_name(self) -> str:
        """The operator's name."""
        return self._context.name

    def get_number_of_parallel_subtasks(self) -> int:
        """How many tasks run this operator."""
        return self._context.parallelism

    def get_max_number_of_parallel_subtasks(self) -> int:
        """The number of key groups: how far this operator can ever be scaled."""
        return self._context.max_parallelism

    def get_index_of_this_subtask(self) -> int:
        """This task's index, from 0."""
        return self._context.subtask

    def get_attempt_number(self) -> int:
        """How often this task has been tried before."""
        return self._context.attempt

    def get_task_name_with_subtasks(self) -> str:
        """For messages: ``count (1/4)``."""
        return f"{self._context.name} ({self._context.subtask + 1}/{self._context.parallelism})"

    def get_job_parameter(self, key: str, default_value: str) -> str:
        """A global job parameter."""
        return self._context.parameters.get(key, default_value)

    def get_metrics_group(self) -> MetricGroup:
        """Where the function registers its own counters and gauges."""
        return self._context.metrics

    def get_metric_group(self) -> MetricGroup:
        """Another name of get_metrics_group()."""
        return self._context.metrics

    def get_state(self, state_descriptor: ValueStateDescriptor) -> ValueState[Any]:
        """One value per key."""
        return self._keyed(state_descriptor)  # type: ignore[return-value]

    def get_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        """A list per key."""
        return self._keyed(state_descriptor)  # type: ignore[return-value]

    def get_map_state(self, state_descriptor: MapStateDescriptor) -> MapState[Any, Any]:
        """A map per key."""
        return self._keyed(state_descriptor)  # type: ignore[return-value]

    def get_reducing_state(self, state_descriptor: ReducingStateDescriptor) -> ReducingState[Any]:
        """A value per key that each add() is folded into."""
        return self._keyed(state_descriptor)  # type: ignore[return-value]

    def get_aggregating_state(self, state_descriptor: AggregatingStateDescriptor) -> AggregatingState[Any, Any]:
        """An accumulator per key."""
        return self._keyed(state_descriptor)  # type: ignore[return-value]

    def _keyed(self, descriptor: StateDescriptor) -> State:
        if not self._context.keyed:
            refuse_unkeyed(self._context, f"state {descriptor.get_name()!r}")
        return self._context.store.keyed.get_state(descriptor)


def refuse_unkeyed(context: OperatorContext, what: str) -> NoReturn:
    """Keyed state or timers without a key: say what to change."""
    message = (
        f"{context.name} (uid {context.uid}) uses {what} on a stream without keys. Keyed state and timers "
        "belong to a key: "
        "call key_by(...) before this operator"
    )
    raise StateError(message)
