"""Changing the stored state of one operator in one task."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, Self

from millrace.common._type_base import TypeInformation
from millrace.errors import StateError
from millrace.state.descriptors import ListStateDescriptor, MapStateDescriptor, StateDescriptor
from millrace.state.evolution import Form
from millrace.state.reader import TIMERS
from millrace.state.store import OperatorStore
from millrace.state.table import VOID

__all__ = ["Change", "rewritten"]

_QUEUES: Final = tuple(TIMERS.values())
_KEY_OF: Final = {"keyed": 0, **{queue: 1 for queue in _QUEUES}}


@dataclass(frozen=True)
class Change:
    """What happens to one named state: ``place`` is keyed, list, union list, broadcast or one of the timer queues.

    Its items are, for keyed state, (key, window, position, map key, value, last access); for timers (time, key,
    window); for broadcast state (map key, value); for lists the elements themselves.

    >>> Change.of("list", "buffer", replace=True).name
    'buffer'
    """

    place: str
    name: str = ""
    descriptor: StateDescriptor | None = None
    form: Form | None = None
    """Of keyed state that is given by its name only."""
    replace: bool = True

    @classmethod
    def of(cls, place: str, state: StateDescriptor | str, replace: bool) -> Self:
        """A change of operator state, given by descriptor or name."""
        if isinstance(state, str):
            return cls(place, state, replace=replace)
        wanted = MapStateDescriptor if place == "broadcast" else ListStateDescriptor
        if not isinstance(state, wanted):
            raise StateError(f"{place} state {state.name!r} is described by a {wanted.__name__}, not by {state!r}")
        return cls(place, state.name, state, replace=replace)

    @property
    def key_index(self) -> int | None:
        """Where the key is in an item; None for state without keys."""
        return _KEY_OF.get(self.place)

    @property
    def kind(self) -> str:
        """Of keyed state: value, list, map, reducing, aggregating, or table for that of window operators."""
        if self.descriptor is not None:
            return self.descriptor.kind
        return "table" if self.form is None else str(self.form[0])

    def narrower(self) -> Callable[[Any], Any]:
        """What narrows the values of an item to the declared type, as the state's handles do it."""
        narrow, narrow_key = self._coercers()
        if narrow_key is None or (self.place == "keyed" and self.kind != "map"):
            narrow_key = _as_it_is
        if narrow is None:
            narrow = _as_it_is
        if self.place == "keyed":
            return lambda item: (*item[:3], narrow_key(item[3]), narrow(item[4]), item[5])
        if self.place == "broadcast":
            return lambda item: (narrow_key(item[0]), narrow(item[1]))
        return _as_it_is if self.place in _QUEUES else narrow

    def _coercers(self) -> tuple[Callable[[Any], Any] | None, Callable[[Any], Any] | None]:
        if self.descriptor is not None:
            return self.descriptor.coerce, getattr(self.descriptor, "coerce_key", None)
        if self.form is None or len(self.form) < 5:
            return None, None
        types = {role: TypeInformation.from_json(text).coercer() for role, text in json.loads(self.form[4]).items()}
        return types.get("value"), types.get("key")


def rewritten(full: dict[str, Any] | None, shares: Iterable[tuple[Change, list[Any]]], now: int) -> dict[str, Any]:
    """All state of an operator in one task, with this task's share of each change.

    Descriptors bring what is there to their own type and version first, as they do when a program starts.

    >>> from millrace.state.descriptors import ValueStateDescriptor
    >>> count = Change("keyed", "count", ValueStateDescriptor("count"))
    >>> rewritten(None, [(count, [("a", None, None, None, 5, None)])], 0)["keyed"]
    {'count': (('value', 'any', False), (None, {'': ({'a': 5}, [])}))}
    """
    shares = list(shares)
    store = OperatorStore(lambda: now)
    store.apply(full)
    for change, _ in shares:
        descriptor = change.descriptor
        if change.place == "keyed" and descriptor is not None:
            store.keyed.get_state(descriptor)
        elif isinstance(descriptor, ListStateDescriptor):
            (store.operator.list_state if change.place == "list" else store.operator.union_list_state)(descriptor)
        elif isinstance(descriptor, MapStateDescriptor):
            store.operator.broadcast_state(descriptor)
    result = store.full()
    for change, items in shares:
        if change.place == "keyed":
            _put_keyed(result["keyed"], change, items, now)
        elif change.place in _QUEUES:
            kept = [] if change.replace else result[change.place][1]
            added = [(time, key, VOID if window is None else window) for time, key, window in items]
            result[change.place] = (None, sorted(dict.fromkeys([*kept, *added]), key=lambda timer: timer[0]))
        else:
            _put_operator(result["operator"], change, items)
    return result


def _as_it_is(item: Any) -> Any:
    return item


def _put_operator(operator: dict[tuple[str, str], Any], change: Change, items: list[Any]) -> None:
    address = (change.place, change.name)
    if change.place == "broadcast":
        operator[address] = ({} if change.replace else operator.get(address, {})) | dict(items)
    else:
        operator[address] = [*([] if change.replace else operator.get(address, [])), *items]


def _put_keyed(keyed: dict[str, Any], change: Change, items: list[Any], now: int) -> None:
    form, (_, held) = keyed.get(change.name, (change.form, (None, {})))
    panes: dict[Any, dict[Any, Any]] = {}
    if not change.replace:
        panes = {namespace: dict(values) for namespace, (values, _) in held.items()}
    kind, timed = ("table", False) if form is None else (form[0], form[2])
    for (namespace, key), parts in _by_key(items).items():
        pane = panes.setdefault(namespace, {})
        stored = _folded(kind, timed, parts, now)
        if stored is None:
            pane.pop(key, None)
        else:
            pane[key] = stored
    changes: dict[Any, Any] = {namespace: (pane, []) for namespace, pane in panes.items() if pane}
    keyed[change.name] = (form, (None, changes))


def _by_key(items: list[Any]) -> dict[tuple[Any, Any], list[Any]]:
    grouped: dict[tuple[Any, Any], list[Any]] = {}
    for key, window, *rest in items:
        grouped.setdefault((VOID if window is None else window, key), []).append(rest)
    return grouped


def _folded(kind: str, timed: bool, parts: list[Any], now: int) -> Any:
    """What is stored for one key; None for nothing. ``parts`` are (position, map key, value, last access)."""

    def held(value: Any, last_access: int | None) -> Any:
        return (value, now if last_access is None else last_access) if timed else value

    if kind == "list":
        if all(part[0] is not None for part in parts):
            parts = sorted(parts, key=lambda part: part[0])
        return [held(value, last_access) for _, _, value, last_access in parts]
    if kind == "map":
        return {map_key: held(value, last_access) for _, map_key, value, last_access in parts}
    _, _, value, last_access = parts[-1]
    return None if value is None else held(value, last_access)
