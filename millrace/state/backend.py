"""The keyed state of one operator in one task."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any, Final, NamedTuple, TypeAlias

from millrace.errors import RestoreError, StateError
from millrace.state._context import NO_KEY, KeyContext
from millrace.state._heap import (
    ABSENT,
    HeapAggregatingState,
    HeapListState,
    HeapMapState,
    HeapReducingState,
    HeapState,
    HeapValueState,
    fixed_in_void,
)
from millrace.state._heap_ttl import (
    Sweep,
    TimedAggregatingState,
    TimedListState,
    TimedMapState,
    TimedReducingState,
    TimedValueState,
    live_part,
    with_time,
    without_time,
)
from millrace.state.descriptors import StateDescriptor
from millrace.state.evolution import Form, convert_stored, form_of, form_version, upgrade
from millrace.state.handles import State
from millrace.state.rocksdb_sweep import sweep_of
from millrace.state.table import VOID, HeapTables, StateTable, TableDelta, TableSource

__all__ = ["NO_KEY", "Form", "KeyedDelta", "KeyedState"]

_PLAIN: Final[dict[str, type[HeapState]]] = {
    "value": HeapValueState,
    "list": HeapListState,
    "map": HeapMapState,
    "reducing": HeapReducingState,
    "aggregating": HeapAggregatingState,
}
_TIMED: Final[dict[str, type[HeapState]]] = {
    "value": TimedValueState,
    "list": TimedListState,
    "map": TimedMapState,
    "reducing": TimedReducingState,
    "aggregating": TimedAggregatingState,
}
_IN_VOID: Final[dict[type[HeapState], Callable[[KeyContext, StateTable, StateDescriptor], HeapState]]] = {
    handle_class: fixed_in_void(handle_class) for handle_class in (*_PLAIN.values(), *_TIMED.values())
}

KeyedDelta: TypeAlias = dict[str, tuple[Form | None, TableDelta]]
"""State name -> (form, what changed); no form for tables that an operator looks after by itself."""


class _Registered(NamedTuple):
    """A state that the running program has asked for."""

    descriptor: StateDescriptor
    handle_class: type[HeapState]
    sweep: Sweep | None


class KeyedState(KeyContext):
    """The state of one operator in one task, by key; handles work on the current key.

    >>> from millrace.state.descriptors import ValueStateDescriptor
    >>> backend = KeyedState(clock=lambda: 0)
    >>> count = backend.get_state(ValueStateDescriptor("count"))
    >>> backend.current_key = "a"
    >>> count.update(1)
    >>> backend.current_key = "b"
    >>> print(count.value(), backend.keys("count"))
    None ['a']
    """

    __slots__ = ("_forms", "_in_void", "_registered", "_source", "_tables")

    def __init__(self, clock: Callable[[], int], source: TableSource | None = None) -> None:
        super().__init__(clock)
        self._source = source or HeapTables()
        self._tables: dict[str, StateTable] = {}
        self._forms: dict[str, Form] = {}
        self._registered: dict[str, _Registered] = {}
        self._in_void: dict[str, HeapState] = {}

    def get_state(self, descriptor: StateDescriptor, namespace: Hashable = VOID) -> State:
        """The handle for a descriptor. The handles of VOID are made once."""
        registered = self._registered.get(descriptor.name)
        if registered is None:
            registered = self._register(descriptor)
        elif registered.descriptor is not descriptor:
            _check_same(registered.descriptor, descriptor)
        if namespace == VOID:
            return self._in_void[descriptor.name]
        return registered.handle_class(self, self._tables[descriptor.name], registered.descriptor, namespace)

    def table(self, name: str) -> StateTable:
        """The values of a state, for operators that know what they do; created on demand."""
        table = self._tables.get(name)
        if table is None:
            table = self._tables[name] = self._source.table(name)
        return table

    def tables(self) -> dict[str, StateTable]:
        """All tables by name."""
        return dict(self._tables)

    def keys(self, name: str, namespace: Hashable = VOID) -> list[Any]:
        """The keys that have something in a state, expired or not."""
        table = self._tables.get(name)
        return [] if table is None else list(table.panes.get(namespace, ()))

    def merge_namespaces(self, descriptor: StateDescriptor, target: Hashable, sources: Iterable[Hashable]) -> None:
        """Move what the current key has in some windows into one: lists are joined, the others combined."""
        handle = self.get_state(descriptor, target)
        assert isinstance(handle, HeapState)
        handle.merge_from(sources)

    def clear_all_of_key(self, key: Any) -> None:
        """Remove a key from every state and namespace."""
        for table in self._tables.values():
            for namespace, pane in table.panes.items():
                if key in pane:
                    del pane[key]
                    table.touched(namespace).add(key)

    def delta(self) -> KeyedDelta:
        """The tables that changed since the last delta."""
        for registered in self._registered.values():
            if registered.sweep is not None:
                registered.sweep.run(self.clock())
        changed: KeyedDelta = {}
        for name, table in self._tables.items():
            dropped, changes = table.delta()
            if dropped or changes:
                changed[name] = (self._forms.get(name), (dropped, changes))
        self.settle()
        return changed

    def settle(self) -> None:
        """Nothing is being processed: the backend may write to disk what takes too much memory."""
        self._source.settle()

    def full(self) -> KeyedDelta:
        """All tables, in the shape of a delta; does not touch change tracking."""
        return {name: (self._forms.get(name), self._snapshot(name, table)) for name, table in self._tables.items()}

    def apply(self, delta: KeyedDelta) -> None:
        """Take over the tables of a delta or a full; handles stay valid.

        Nothing of it counts as changed, unless the type or version was changed, or time to live switched on or off
        meanwhile: then the values have to be written down again in their new form.
        """
        for name, (form, table_delta) in delta.items():
            table = self.table(name)
            known = self._forms.get(name)
            if form is None or known is None or known == form:
                self._forms.update({} if form is None else {name: form})
                table.apply(table_delta)
                continue
            if known[0] != form[0]:
                raise RestoreError(_two_kinds(name, form[0], known[0]))
            if name not in self._registered:
                if known[2] != form[2]:
                    self._convert(name, form[2])
                self._forms[name] = form
                table.apply(table_delta)
            else:
                table.apply(table_delta)
                turn = upgrade(form, self._registered[name].descriptor)
                for namespace, (values, _) in table_delta[1].items():
                    if turn is not None:
                        self._upgrade_pane(name, namespace, values, form[2], turn)
                    if known[2] != form[2]:
                        self._convert_pane(name, namespace, values, known[2])

    def merge(self, fulls: Iterable[KeyedDelta]) -> None:
        """Take over several fulls side by side, none of which has a key of another."""
        for full in fulls:
            for name, (form, (_, changes)) in full.items():
                known = self._forms.get(name)
                if form is not None and known is not None and changes and len(self._tables[name]):
                    _check_same_version(name, known, form)
            self.apply({name: (form, ([], changes)) for name, (form, (_, changes)) in full.items()})

    def reset(self) -> None:
        """Back to the beginning: no values. Handles stay valid."""
        for table in self._tables.values():
            table.apply((None, {}))
        for name in [name for name in self._forms if name not in self._registered]:
            del self._forms[name]

    def retain(self, keep: Callable[[Any], bool]) -> None:
        """Keep only what belongs to these keys. Nothing counts as changed: after rescaling, write a full."""
        for table in self._tables.values():
            table.retain(keep)

    def state_info(self) -> list[tuple[str, str, str, int]]:
        """(name, kind, type, number of entries) of every state, for inspection."""
        return [
            (name, *self._forms.get(name, ("table", "any", False))[:2], len(table))
            for name, table in sorted(self._tables.items())
        ]

    def _register(self, descriptor: StateDescriptor) -> _Registered:
        name, kind, timed = descriptor.name, descriptor.kind, _is_timed(descriptor)
        if kind not in _PLAIN:
            message = f"state {name!r}: {descriptor!r} does not say which kind; use ValueStateDescriptor or its kin"
            raise StateError(message)
        table = self.table(name)
        restored = self._forms.get(name)
        if restored is not None and restored[0] != kind:
            raise RestoreError(_two_kinds(name, restored[0], kind))
        turn = None if restored is None else upgrade(restored, descriptor)
        if restored is not None and turn is not None:
            for namespace, pane in table.panes.items():
                self._upgrade_pane(name, namespace, list(pane), restored[2], turn)
        self._forms[name] = form_of(descriptor, timed)
        if restored is not None and restored[2] != timed:
            self._convert(name, timed)
        handle_class = (_TIMED if timed else _PLAIN)[kind]
        registered = self._registered[name] = _Registered(descriptor, handle_class, _sweep(table, descriptor))
        self._in_void[name] = _IN_VOID[handle_class](self, table, descriptor)
        return registered

    def _convert(self, name: str, timed: bool) -> None:
        for namespace, pane in self._tables[name].panes.items():
            self._convert_pane(name, namespace, list(pane), timed)

    def _convert_pane(self, name: str, namespace: Hashable, keys: Iterable[Any], timed: bool) -> None:
        table, kind, now = self._tables[name], self._forms[name][0], self.clock()
        pane = table.pane(namespace)
        for key in keys:
            pane[key] = with_time(kind, pane[key], now) if timed else without_time(kind, pane[key])
        table.touched(namespace).update(keys)

    def _upgrade_pane(
        self, name: str, namespace: Hashable, keys: Iterable[Any], timed: bool, turn: Callable[[Any], Any]
    ) -> None:
        table, kind = self._tables[name], self._forms[name][0]
        pane = table.pane(namespace)
        for key in keys:
            pane[key] = convert_stored(kind, timed, pane[key], turn)
        table.touched(namespace).update(keys)

    def _snapshot(self, name: str, table: StateTable) -> TableDelta:
        registered = self._registered.get(name)
        ttl = None if registered is None else registered.descriptor.ttl
        full = table.full()
        if ttl is None or not ttl.is_enabled() or not ttl.get_cleanup_strategies().in_full_snapshot():
            return full
        kind, now = self._forms[name][0], self.clock()
        live_values = {}
        for namespace, (values, removed) in full[1].items():
            live = {key: live_part(kind, stored, ttl.get_ttl_millis(), now) for key, stored in values.items()}
            live_values[namespace] = ({key: stored for key, stored in live.items() if stored is not ABSENT}, removed)
        return None, live_values


def _is_timed(descriptor: StateDescriptor) -> bool:
    return descriptor.ttl is not None and descriptor.ttl.is_enabled()


def _sweep(table: StateTable, descriptor: StateDescriptor) -> Sweep | None:
    if descriptor.ttl is None or not descriptor.ttl.is_enabled():
        return None
    strategy = descriptor.ttl.get_cleanup_strategies().get_incremental_cleanup_strategy()
    return None if strategy is None else sweep_of(table, descriptor.kind, descriptor.ttl, strategy.get_cleanup_size())


def _check_same_version(name: str, one: Form, other: Form) -> None:
    if one[3:] != other[3:]:
        message = (
            f"state {name!r} has values of version {form_version(one)} ({one[1]}) in one task and of version "
            f"{form_version(other)} ({other[1]}) in another, and both would go to the same task: run the job with its "
            "old parallelism until every task has used this state, or get the state in open(), then rescale"
        )
        raise RestoreError(message)


def _two_kinds(name: str, one: str, other: str) -> str:
    return f"state {name!r} is {one} state and cannot be {other} state too: use another name for one of them"


def _check_same(existing: StateDescriptor, wanted: StateDescriptor) -> None:
    if existing.kind != wanted.kind:
        raise StateError(_two_kinds(wanted.name, existing.kind, wanted.kind))
    if existing.version != wanted.version:
        message = (
            f"state {wanted.name!r} is asked for in version {existing.version} and in version {wanted.version}: "
            "use the same descriptor everywhere"
        )
        raise StateError(message)
    if existing.ttl is not wanted.ttl and repr(existing.ttl) != repr(wanted.ttl):
        message = (
            f"state {wanted.name!r} is asked for with two times to live, {existing.ttl} and {wanted.ttl}: "
            "use the same settings everywhere, or another name"
        )
        raise StateError(message)
