"""Keyed state in memory whose values die: each value, list element or map entry is stored as (value, last access)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, Final

from millrace.common.constants import LONG_MAX
from millrace.state._context import KeyContext
from millrace.state._heap import ABSENT, HeapState
from millrace.state.handles import AggregatingState, ListState, MapState, ReducingState, ValueState
from millrace.state.table import StateTable
from millrace.state.ttl import StateTtlConfig, is_expired

__all__ = [
    "Sweep",
    "TimedAggregatingState",
    "TimedListState",
    "TimedMapState",
    "TimedReducingState",
    "TimedValueState",
    "live_part",
    "with_time",
    "without_time",
]

_Stamped = tuple[Any, int]
_SWEEP_AT_LEAST: Final = 1000


def with_time(kind: str, stored: Any, now: int) -> Any:
    """What is stored without time to live, as it is stored with it: everything is as new."""
    if kind == "list":
        return [(element, now) for element in stored]
    if kind == "map":
        return {key: (value, now) for key, value in stored.items()}
    return (stored, now)


def without_time(kind: str, stored: Any) -> Any:
    """What is stored with time to live, as it is stored without."""
    if kind == "list":
        return [element for element, _ in stored]
    if kind == "map":
        return {key: value for key, (value, _) in stored.items()}
    return stored[0]


def live_part(kind: str, stored: Any, ttl: int, now: int) -> Any:
    """What of a stored value, list or map is not expired: the very same object if all of it, ABSENT if nothing."""
    if kind == "list":
        live = [stamped for stamped in stored if not is_expired(stamped[1], ttl, now)]
        return stored if len(live) == len(stored) else live or ABSENT
    if kind == "map":
        dead = {key for key, stamped in stored.items() if is_expired(stamped[1], ttl, now)}
        if not dead:
            return stored
        return {key: stamped for key, stamped in stored.items() if key not in dead} or ABSENT
    return ABSENT if is_expired(stored[1], ttl, now) else stored


class Sweep:
    """Removes the dead that nobody reads: a few entries for each change since the last time, round and round.

    Where expired values may be returned, they stay for a second time to live, so that they are there to be returned.
    """

    __slots__ = ("_kind", "_pending", "_size", "_table", "_ttl")

    def __init__(self, table: StateTable, kind: str, ttl: StateTtlConfig, size: int) -> None:
        relaxed = ttl.get_state_visibility() is StateTtlConfig.StateVisibility.ReturnExpiredIfNotCleanedUp
        self._table = table
        self._kind = kind
        self._ttl = min(ttl.get_ttl_millis() * (2 if relaxed else 1), LONG_MAX)
        self._size = size
        self._pending: list[tuple[Hashable, list[Any]]] = []

    def run(self, now: int) -> None:
        """Do as much as the changes since the last delta allow."""
        table, kind, ttl, pending = self._table, self._kind, self._ttl, self._pending
        if not pending:
            pending = self._pending = [(namespace, list(pane)) for namespace, pane in table.panes.items() if pane]
        budget = max(_SWEEP_AT_LEAST, self._size * sum(map(len, table.changed.values())))
        while pending and budget > 0:
            namespace, keys = pending[-1]
            pane = table.panes.get(namespace)
            if pane is not None:
                step = keys[-budget:]
                for key in step:
                    stored = pane.get(key, ABSENT)
                    live = stored if stored is ABSENT else live_part(kind, stored, ttl, now)
                    if live is not stored:
                        table.touched(namespace).add(key)
                        if live is ABSENT:
                            del pane[key]
                        else:
                            pane[key] = live
                del keys[-len(step) :]
                budget -= len(step)
            if pane is None or not keys:
                pending.pop()


class _TimedState(HeapState):
    __slots__ = ("_refresh", "_relaxed", "_ttl")

    def __init__(self, context: KeyContext, table: StateTable, descriptor: Any, namespace: Hashable) -> None:
        super().__init__(context, table, descriptor, namespace)
        ttl: StateTtlConfig = descriptor.ttl
        self._ttl = ttl.get_ttl_millis()
        self._refresh = ttl.get_update_type() is StateTtlConfig.UpdateType.OnReadAndWrite
        self._relaxed = ttl.get_state_visibility() is StateTtlConfig.StateVisibility.ReturnExpiredIfNotCleanedUp


class _TimedWhole(_TimedState):
    """Value, reducing and aggregating state: one (value, last access) per key."""

    __slots__ = ()

    def _read(self) -> Any:
        key = self._context.current_key
        stamped = self._pane.get(key)
        if stamped is None:
            return ABSENT
        value, last_access = stamped
        now = self._context.clock()
        if is_expired(last_access, self._ttl, now):
            self.clear()
            return value if self._relaxed else ABSENT
        if self._refresh and last_access != now:
            self._store((value, now))
        return value

    def _to_build_on(self, stamped: _Stamped | None, now: int) -> Any:
        if stamped is None or (not self._relaxed and is_expired(stamped[1], self._ttl, now)):
            return ABSENT
        return stamped[0]

    def _write(self, value: Any, now: int) -> None:
        self._store((value if self._coerce is None else self._coerce(value), now))


class TimedValueState(_TimedWhole, ValueState[Any]):
    """Stores (value, last access)."""

    __slots__ = ()

    def value(self) -> Any:
        """The value of the current key, or None."""
        value = self._read()
        return None if value is ABSENT else value

    def update(self, value: Any) -> None:
        """Set the value of the current key."""
        if value is None:
            self.clear()
        else:
            self._write(value, self._context.clock())


class TimedReducingState(_TimedWhole, ReducingState[Any]):
    """Stores (value reduced so far, last access)."""

    __slots__ = ("_reduce",)

    def __init__(self, context: KeyContext, table: StateTable, descriptor: Any, namespace: Hashable) -> None:
        super().__init__(context, table, descriptor, namespace)
        self._reduce: Callable[[Any, Any], Any] = descriptor.reduce

    def get(self) -> Any:
        """The reduced value, or None."""
        value = self._read()
        return None if value is ABSENT else value

    def add(self, value: Any) -> None:
        """Fold one element into the value; an expired one starts anew."""
        now = self._context.clock()
        held = self._to_build_on(self._pane.get(self._context.current_key), now)
        self._write(value if held is ABSENT else self._reduce(held, value), now)

    def _combine(self, first: Any, second: Any) -> Any:
        now = self._context.clock()
        one, other = self._to_build_on(first, now), self._to_build_on(second, now)
        if one is ABSENT or other is ABSENT:
            return second if one is ABSENT else first
        return (self._reduce(one, other), now)


class TimedAggregatingState(_TimedWhole, AggregatingState[Any, Any]):
    """Stores (accumulator, last access)."""

    __slots__ = ("_function",)

    def __init__(self, context: KeyContext, table: StateTable, descriptor: Any, namespace: Hashable) -> None:
        super().__init__(context, table, descriptor, namespace)
        self._function: Any = descriptor.agg_function

    def get(self) -> Any:
        """The result of the accumulator, or None."""
        accumulator = self._read()
        return None if accumulator is ABSENT else self._function.get_result(accumulator)

    def add(self, value: Any) -> None:
        """Add one element to the accumulator; an expired one starts anew."""
        now = self._context.clock()
        accumulator = self._to_build_on(self._pane.get(self._context.current_key), now)
        if accumulator is ABSENT:
            accumulator = self._function.create_accumulator()
        self._write(self._function.add(value, accumulator), now)

    def _combine(self, first: Any, second: Any) -> Any:
        now = self._context.clock()
        one, other = self._to_build_on(first, now), self._to_build_on(second, now)
        if one is ABSENT or other is ABSENT:
            return second if one is ABSENT else first
        return (self._function.merge(one, other), now)


class TimedListState(_TimedState, ListState[Any]):
    """Stores a list of (element, last access)."""

    __slots__ = ()

    def get(self) -> list[Any]:
        """The elements alive; those that are not are removed, and returned once if that is allowed."""
        stored = self._pane.get(self._context.current_key)
        if stored is None:
            return []
        now = self._context.clock()
        live = live_part("list", stored, self._ttl, now)
        if live is ABSENT:
            self.clear()
        elif self._refresh:
            self._store([(element, now) for element, _ in live])
        elif live is not stored:
            self._store(live)
        shown = stored if self._relaxed else () if live is ABSENT else live
        return [element for element, _ in shown]

    def add(self, value: Any) -> None:
        """Append one element."""
        self.add_all((value,))

    def update(self, values: Iterable[Any]) -> None:
        """Replace the list."""
        stamped = self._stamped(values)
        if stamped:
            self._store(stamped)
        else:
            self.clear()

    def add_all(self, values: Iterable[Any]) -> None:
        """Append several elements."""
        stamped = self._stamped(values)
        held = self._pane.get(self._context.current_key)
        if held is not None:
            held.extend(stamped)
            self._touched.add(self._context.current_key)
        elif stamped:
            self._store(stamped)

    def _stamped(self, values: Iterable[Any]) -> list[_Stamped]:
        now = self._context.clock()
        return [(value, now) for value in self._narrowed(values)]

    def _combine(self, first: Any, second: Any) -> Any:
        first.extend(second)
        return first


class TimedMapState(_TimedState, MapState[Any, Any]):
    """Stores a dict of map key -> (value, last access)."""

    __slots__ = ("_coerce_key",)

    def __init__(self, context: KeyContext, table: StateTable, descriptor: Any, namespace: Hashable) -> None:
        super().__init__(context, table, descriptor, namespace)
        self._coerce_key: Callable[[Any], Any] | None = descriptor.coerce_key

    def _key(self, key: Any) -> Any:
        return key if self._coerce_key is None else self._coerce_key(key)

    def _read(self, key: Any) -> Any:
        key = self._key(key)
        entries = self._pane.get(self._context.current_key)
        if entries is None or key not in entries:
            return ABSENT
        value, last_access = entries[key]
        now = self._context.clock()
        if is_expired(last_access, self._ttl, now):
            self.remove(key)
            return value if self._relaxed else ABSENT
        if self._refresh and last_access != now:
            entries[key] = (value, now)
            self._touched.add(self._context.current_key)
        return value

    def get(self, key: Any) -> Any:
        """The value of a map key, or None."""
        value = self._read(key)
        return None if value is ABSENT else value

    def contains(self, key: Any) -> bool:
        """Whether the map has this key; counts as reading it."""
        return self._read(key) is not ABSENT

    def put(self, key: Any, value: Any) -> None:
        """Set the value of a map key."""
        stamped = (value if self._coerce is None else self._coerce(value), self._context.clock())
        entries = self._pane.get(self._context.current_key)
        if entries is None:
            self._store({self._key(key): stamped})
        else:
            entries[self._key(key)] = stamped
            self._touched.add(self._context.current_key)

    def put_all(self, dict_value: Mapping[Any, Any]) -> None:
        """Set the values of several map keys."""
        for key, value in dict_value.items():
            self.put(key, value)

    def remove(self, key: Any) -> None:
        """Remove a map key."""
        entries = self._pane.get(self._context.current_key)
        if entries is not None and entries.pop(self._key(key), None) is not None:
            if not entries:
                self.clear()
            self._touched.add(self._context.current_key)

    def items(self) -> list[tuple[Any, Any]]:
        """The entries alive; those that are not are removed, and returned once if that is allowed."""
        stored = self._pane.get(self._context.current_key)
        if stored is None:
            return []
        now = self._context.clock()
        live = live_part("map", stored, self._ttl, now)
        if live is ABSENT:
            self.clear()
        elif self._refresh:
            self._store({key: (value, now) for key, (value, _) in live.items()})
        elif live is not stored:
            self._store(live)
        shown: Mapping[Any, _Stamped] = stored if self._relaxed else {} if live is ABSENT else live
        return [(key, value) for key, (value, _) in shown.items()]

    def keys(self) -> list[Any]:
        """The map keys alive."""
        return [key for key, _ in self.items()]

    def values(self) -> list[Any]:
        """The values alive."""
        return [value for _, value in self.items()]

    def is_empty(self) -> bool:
        """Whether there is no entry to be seen; does not count as reading."""
        stored = self._pane.get(self._context.current_key)
        if stored is None:
            return True
        return not self._relaxed and live_part("map", stored, self._ttl, self._context.clock()) is ABSENT
