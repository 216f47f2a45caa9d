"""The kinds of state as user functions see them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from typing import Generic, TypeVar

__all__ = [
    "AggregatingState",
    "AppendingState",
    "BroadcastState",
    "ListState",
    "MapState",
    "MergingState",
    "ReadOnlyBroadcastState",
    "ReducingState",
    "State",
    "ValueState",
]

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")
IN = TypeVar("IN")
OUT = TypeVar("OUT")


class State(ABC):
    """What all kinds of state have in common: they can be emptied.

    >>> issubclass(ValueState, State)
    True
    """

    __slots__ = ()

    @abstractmethod
    def clear(self) -> None:
        """Remove what is stored for the current key."""


class ValueState(State, Generic[T]):
    """One value per key.

    >>> from millrace.state import KeyedState, ValueStateDescriptor
    >>> backend = KeyedState(clock=lambda: 0)
    >>> backend.current_key = "a"
    >>> last = backend.get_state(ValueStateDescriptor("last"))
    >>> last.update(3)
    >>> last.value()
    3
    """

    __slots__ = ()

    @abstractmethod
    def value(self) -> T | None:
        """The value of the current key, or None."""

    @abstractmethod
    def update(self, value: T | None) -> None:
        """Set the value of the current key; None is the same as `clear()`."""


class AppendingState(State, Generic[IN, OUT]):
    """State to which elements are added one by one.

    >>> issubclass(ListState, AppendingState)
    True
    """

    __slots__ = ()

    @abstractmethod
    def get(self) -> OUT | None:
        """What the elements added so far amount to."""

    @abstractmethod
    def add(self, value: IN) -> None:
        """Add one element."""


class MergingState(AppendingState[IN, OUT]):
    """State of which two can become one, as windows that merge need it.

    >>> issubclass(ReducingState, MergingState)
    True
    """

    __slots__ = ()


class ListState(MergingState[T, Iterable[T]]):
    """A list of elements per key.

    >>> from millrace.state import KeyedState, ListStateDescriptor
    >>> backend = KeyedState(clock=lambda: 0)
    >>> backend.current_key = "a"
    >>> seen = backend.get_state(ListStateDescriptor("seen"))
    >>> seen.add(1)
    >>> seen.add_all([2, 3])
    >>> list(seen)
    [1, 2, 3]
    """

    __slots__ = ()

    @abstractmethod
    def get(self) -> Iterable[T]:
        """The elements, in the order they were added; changing what this returns changes no state."""

    @abstractmethod
    def update(self, values: Iterable[T]) -> None:
        """Replace all elements."""

    @abstractmethod
    def add_all(self, values: Iterable[T]) -> None:
        """Add several elements."""

    def __iter__(self) -> Iterator[T]:
        return iter(self.get())


class ReducingState(MergingState[T, T]):
    """One value per key: all elements added, combined by a reduce function.

    >>> from millrace.state import KeyedState, ReducingStateDescriptor
    >>> backend = KeyedState(clock=lambda: 0)
    >>> backend.current_key = "a"
    >>> total = backend.get_state(ReducingStateDescriptor("total", lambda a, b: a + b))
    >>> total.add(1)
    >>> total.add(2)
    >>> total.get()
    3
    """

    __slots__ = ()


class AggregatingState(MergingState[IN, OUT]):
    """One result per key, computed by an aggregate function from the elements added; its accumulator is what is stored.

    >>> class Count:
    ...     def create_accumulator(self): return 0
    ...     def add(self, value, accumulator): return accumulator + 1
    ...     def get_result(self, accumulator): return f"{accumulator} seen"
    >>> from millrace.state import AggregatingStateDescriptor, KeyedState
    >>> backend = KeyedState(clock=lambda: 0)
    >>> backend.current_key = "a"
    >>> seen = backend.get_state(AggregatingStateDescriptor("seen", Count()))
    >>> seen.add("x")
    >>> seen.get()
    '1 seen'
    """

    __slots__ = ()


class _ReadableMap(State, Generic[K, V]):
    __slots__ = ()

    @abstractmethod
    def get(self, key: K) -> V | None:
        """The value of a map key, or None."""

    @abstractmethod
    def contains(self, key: K) -> bool:
        """Whether the map has this key."""

    @abstractmethod
    def items(self) -> Iterable[tuple[K, V]]:
        """All entries, as they are now: the map may be changed while you go through them."""

    @abstractmethod
    def keys(self) -> Iterable[K]:
        """All keys, as they are now."""

    @abstractmethod
    def values(self) -> Iterable[V]:
        """All values, as they are now."""

    @abstractmethod
    def is_empty(self) -> bool:
        """Whether the map has no entry."""

    def __getitem__(self, key: K) -> V | None:
        return self.get(key)

    def __contains__(self, key: K) -> bool:
        return self.contains(key)

    def __iter__(self) -> Iterator[K]:
        return iter(self.keys())


class _WritableMap(_ReadableMap[K, V]):
    __slots__ = ()

    @abstractmethod
    def put(self, key: K, value: V) -> None:
        """Set the value of a map key."""

    @abstractmethod
    def put_all(self, dict_value: Mapping[K, V]) -> None:
        """Set the values of several map keys."""

    @abstractmethod
    def remove(self, key: K) -> None:
        """Remove a map key; one that is not there is no error."""

    def __setitem__(self, key: K, value: V) -> None:
        self.put(key, value)

    def __delitem__(self, key: K) -> None:
        self.remove(key)


class MapState(_WritableMap[K, V]):
    """A map per key. A map key that is not there reads as None.

    >>> from millrace.state import KeyedState, MapStateDescriptor
    >>> backend = KeyedState(clock=lambda: 0)
    >>> backend.current_key = "a"
    >>> prices = backend.get_state(MapStateDescriptor("prices"))
    >>> prices["tea"] = 3
    >>> prices["tea"], "rum" in prices, list(prices)
    (3, False, ['tea'])
    """

    __slots__ = ()


class ReadOnlyBroadcastState(_ReadableMap[K, V]):
    """A map that is the same in all tasks, as functions see it that must not change it.

    >>> issubclass(BroadcastState, ReadOnlyBroadcastState)
    True
    """

    __slots__ = ()


class BroadcastState(ReadOnlyBroadcastState[K, V], _WritableMap[K, V]):
    """A map of which every task holds a copy, written by the elements of a broadcast stream.

    >>> from millrace.state import MapStateDescriptor, OperatorState
    >>> rules = OperatorState().broadcast_state(MapStateDescriptor("rules"))
    >>> rules.put("limit", 3)
    >>> rules["limit"]
    3
    """

    __slots__ = ()
