"""Keyed state in memory: each handle reads and writes the table of its state at the current key."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, Final

from millrace.errors import StateError
from millrace.state._context import KeyContext
from millrace.state.descriptors import StateDescriptor
from millrace.state.handles import AggregatingState, ListState, MapState, ReducingState, State, ValueState
from millrace.state.table import VOID, StateTable

__all__ = [
    "ABSENT",
    "HeapAggregatingState",
    "HeapListState",
    "HeapMapState",
    "HeapReducingState",
    "HeapState",
    "HeapValueState",
    "fixed_in_void",
]

ABSENT: Final[Any] = object()
_NOTHING: Final[dict[Any, Any]] = {}


class HeapState(State):
    """Base of all handles.

    `_pane` is for reading, `_target` the same thing for writing, `_touched` takes the keys that were written. Here
    they look for the namespace on every use, because a window's pane may be dropped while a function holds the handle.
    In VOID nothing is ever replaced: there, the classes made by `fixed_in_void` keep the three as attributes.
    """

    __slots__ = ("_coerce", "_context", "_namespace", "_table")

    def __init__(
        self, context: KeyContext, table: StateTable, descriptor: StateDescriptor, namespace: Hashable
    ) -> None:
        self._context = context
        self._table = table
        self._namespace = namespace
        self._coerce: Callable[[Any], Any] | None = descriptor.coerce

    @property
    def _pane(self) -> dict[Any, Any]:
        return self._table.panes.get(self._namespace, _NOTHING)

    @property
    def _target(self) -> dict[Any, Any]:
        pane = self._table.panes.get(self._namespace)
        return self._table.pane(self._namespace) if pane is None else pane

    @property
    def _touched(self) -> set[Any]:
        keys = self._table.changed.get(self._namespace)
        return self._table.touched(self._namespace) if keys is None else keys

    def clear(self) -> None:
        """Remove what is stored for the current key."""
        key = self._context.current_key
        pane = self._pane
        if key in pane:
            del pane[key]
            self._touched.add(key)

    def _store(self, stored: Any) -> None:
        key = self._context.current_key
        self._target[key] = stored
        self._touched.add(key)

    def _narrowed(self, values: Iterable[Any]) -> list[Any]:
        return list(values) if self._coerce is None else list(map(self._coerce, values))

    def _combine(self, first: Any, second: Any) -> Any:
        message = (
            f"state {self._table.name!r} cannot be merged when windows merge: "
            "use reducing, aggregating or list state instead"
        )
        raise StateError(message)

    def merge_from(self, sources: Iterable[Hashable]) -> None:
        """Move what the current key has in other namespaces into this one."""
        key = self._context.current_key
        merged = ABSENT
        for source in sources:
            pane = self._table.panes.get(source, _NOTHING)
            if source == self._namespace or key not in pane:
                continue
            self._table.touched(source).add(key)
            found = pane.pop(key)
            merged = found if merged is ABSENT else self._combine(merged, found)
        if merged is not ABSENT:
            existing = self._pane.get(key, ABSENT)
            self._store(merged if existing is ABSENT else self._combine(existing, merged))


class HeapValueState(HeapState, ValueState[Any]):
    """Stores the value itself."""

    __slots__ = ()

    def value(self) -> Any:
        """The value of the current key, or None."""
        return self._pane.get(self._context.current_key)

    def update(self, value: Any) -> None:
        """Set the value of the current key."""
        if value is None:
            self.clear()
            return
        if self._coerce is not None:
            value = self._coerce(value)
        key = self._context.current_key
        self._target[key] = value
        self._touched.add(key)


class HeapListState(HeapState, ListState[Any]):
    """Stores a list, never an empty one."""

    __slots__ = ()

    def get(self) -> list[Any]:
        """A copy of the list."""
        elements = self._pane.get(self._context.current_key)
        return [] if elements is None else elements.copy()

    def add(self, value: Any) -> None:
        """Append one element."""
        if self._coerce is not None:
            value = self._coerce(value)
        key = self._context.current_key
        elements = self._pane.get(key)
        if elements is None:
            self._target[key] = [value]
        else:
            elements.append(value)
        self._touched.add(key)

    def update(self, values: Iterable[Any]) -> None:
        """Replace the list."""
        elements = self._narrowed(values)
        if elements:
            self._store(elements)
        else:
            self.clear()

    def add_all(self, values: Iterable[Any]) -> None:
        """Append several elements."""
        elements = self._narrowed(values)
        held = self._pane.get(self._context.current_key)
        if held is not None:
            held.extend(elements)
            self._touched.add(self._context.current_key)
        elif elements:
            self._store(elements)

    def _combine(self, first: Any, second: Any) -> Any:
        first.extend(second)
        return first


class HeapReducingState(HeapState, ReducingState[Any]):
    """Stores the value reduced so far."""

    __slots__ = ("_reduce",)

    def __init__(self, context: KeyContext, table: StateTable, descriptor: Any, namespace: Hashable) -> None:
        super().__init__(context, table, descriptor, namespace)
        self._reduce: Callable[[Any, Any], Any] = descriptor.reduce

    def get(self) -> Any:
        """The reduced value, or None."""
        return self._pane.get(self._context.current_key)

    def add(self, value: Any) -> None:
        """Fold one element into the value."""
        key = self._context.current_key
        held = self._pane.get(key, ABSENT)
        if held is not ABSENT:
            value = self._reduce(held, value)
        if self._coerce is not None:
            value = self._coerce(value)
        self._target[key] = value
        self._touched.add(key)

    def _combine(self, first: Any, second: Any) -> Any:
        return self._reduce(first, second)


class HeapAggregatingState(HeapState, AggregatingState[Any, Any]):
    """Stores the accumulator."""

    __slots__ = ("_function",)

    def __init__(self, context: KeyContext, table: StateTable, descriptor: Any, namespace: Hashable) -> None:
        super().__init__(context, table, descriptor, namespace)
        self._function: Any = descriptor.agg_function

    def get(self) -> Any:
        """The result of the accumulator, or None."""
        accumulator = self._pane.get(self._context.current_key, ABSENT)
        return None if accumulator is ABSENT else self._function.get_result(accumulator)

    def add(self, value: Any) -> None:
        """Add one element to the accumulator."""
        key = self._context.current_key
        accumulator = self._pane.get(key, ABSENT)
        if accumulator is ABSENT:
            accumulator = self._function.create_accumulator()
        accumulator = self._function.add(value, accumulator)
        if self._coerce is not None:
            accumulator = self._coerce(accumulator)
        self._target[key] = accumulator
        self._touched.add(key)

    def _combine(self, first: Any, second: Any) -> Any:
        return self._function.merge(first, second)


class HeapMapState(HeapState, MapState[Any, Any]):
    """Stores a dict, never an empty one."""

    __slots__ = ("_coerce_key",)

    def __init__(self, context: KeyContext, table: StateTable, descriptor: Any, namespace: Hashable) -> None:
        super().__init__(context, table, descriptor, namespace)
        self._coerce_key: Callable[[Any], Any] | None = descriptor.coerce_key

    def get(self, key: Any) -> Any:
        """The value of a map key, or None."""
        if self._coerce_key is not None:
            key = self._coerce_key(key)
        return self._pane.get(self._context.current_key, _NOTHING).get(key)

    def put(self, key: Any, value: Any) -> None:
        """Set the value of a map key."""
        if self._coerce_key is not None:
            key = self._coerce_key(key)
        if self._coerce is not None:
            value = self._coerce(value)
        current = self._context.current_key
        entries = self._pane.get(current)
        if entries is None:
            self._target[current] = {key: value}
        else:
            entries[key] = value
        self._touched.add(current)

    def put_all(self, dict_value: Mapping[Any, Any]) -> None:
        """Set the values of several map keys."""
        for key, value in dict_value.items():
            self.put(key, value)

    def remove(self, key: Any) -> None:
        """Remove a map key."""
        if self._coerce_key is not None:
            key = self._coerce_key(key)
        current = self._context.current_key
        entries = self._pane.get(current)
        if entries is not None and entries.pop(key, ABSENT) is not ABSENT:
            self._touched.add(current)
            if not entries:
                del self._pane[current]

    def contains(self, key: Any) -> bool:
        """Whether the map has this key."""
        if self._coerce_key is not None:
            key = self._coerce_key(key)
        return key in self._pane.get(self._context.current_key, _NOTHING)

    def items(self) -> list[tuple[Any, Any]]:
        """All entries, as they are now."""
        return list(self._pane.get(self._context.current_key, _NOTHING).items())

    def keys(self) -> list[Any]:
        """All map keys, as they are now."""
        return list(self._pane.get(self._context.current_key, _NOTHING))

    def values(self) -> list[Any]:
        """All values, as they are now."""
        return list(self._pane.get(self._context.current_key, _NOTHING).values())

    def is_empty(self) -> bool:
        """Whether the map has no entry."""
        return self._context.current_key not in self._pane


def fixed_in_void(handle_class: type[HeapState]) -> type[HeapState]:
    """The class of the same handles for VOID only, without the look-up of the namespace."""

    def __init__(self: Any, context: KeyContext, table: StateTable, descriptor: Any) -> None:
        handle_class.__init__(self, context, table, descriptor, VOID)
        self._pane = self._target = table.pane(VOID)
        self._touched = table.touched(VOID)

    body = {"__slots__": ("_pane", "_target", "_touched"), "__init__": __init__, "__doc__": handle_class.__doc__}
    return type(f"Void{handle_class.__name__}", (handle_class,), body)
