"""The way to keyed state, as functions see it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from millrace.runtime.context import RuntimeContext
from millrace.runtime.windows.functions import WindowStateStore
from millrace.state.descriptors import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from millrace.state.handles import AggregatingState, ListState, MapState, ReducingState, ValueState

__all__ = ["KeyedStateStore"]


class KeyedStateStore(ABC):
    """Gives handles on keyed state; a handle always speaks of the key of the record at hand.

    >>> from millrace.runtime.context import RuntimeContext
    >>> issubclass(RuntimeContext, KeyedStateStore)
    True
    """

    @abstractmethod
    def get_state(self, state_descriptor: ValueStateDescriptor) -> ValueState[Any]:
        """One value per key."""

    @abstractmethod
    def get_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        """A list per key."""

    @abstractmethod
    def get_map_state(self, state_descriptor: MapStateDescriptor) -> MapState[Any, Any]:
        """A map per key."""

    @abstractmethod
    def get_reducing_state(self, state_descriptor: ReducingStateDescriptor) -> ReducingState[Any]:
        """A value per key that each add() is folded into."""

    @abstractmethod
    def get_aggregating_state(self, state_descriptor: AggregatingStateDescriptor) -> AggregatingState[Any, Any]:
        """An accumulator per key."""


KeyedStateStore.register(RuntimeContext)
KeyedStateStore.register(WindowStateStore)
