"""The values of one named state, and what changed since they were last written down."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from typing import Any, Final, TypeAlias

__all__ = ["VOID", "HeapTables", "StateTable", "TableDelta", "TableSource"]

VOID: Final = ""
"""Namespace of state that belongs to a key alone; windows are the other namespaces."""

TableDelta: TypeAlias = tuple[list[Hashable] | None, dict[Hashable, tuple[dict[Any, Any], list[Any]]]]
"""(dropped namespaces, {namespace: ({key: value}, [removed keys])}); `None` as dropped: all that was there before.

Keys are removed before values are put: a key may be in both, and then moves to the end."""


class StateTable:
    """The values of one named state: namespace -> key -> value; knows what changed since the last delta.

    Operators in hot loops work on `pane()` and `touched()` directly. Values are handed over as they are, not copied:
    turn a delta into bytes before the next record is processed, and give an applied delta to one table only.

    >>> table = StateTable("count")
    >>> table.pane(VOID)["a"] = 1
    >>> table.touched(VOID).add("a")
    >>> table.delta()
    ([], {'': ({'a': 1}, ['a'])})
    >>> table.delta()
    ([], {})
    """

    __slots__ = ("changed", "dropped", "name", "panes")

    def __init__(self, name: str) -> None:
        self.name = name
        # Both VOID objects live as long as the table: handles keep them and skip a look-up per record.
        self.panes: dict[Hashable, dict[Any, Any]] = {VOID: {}}
        self.changed: dict[Hashable, set[Any]] = {VOID: set()}
        self.dropped: dict[Hashable, None] = {}

    def __len__(self) -> int:
        return sum(map(len, self.panes.values()))

    def __repr__(self) -> str:
        return f"StateTable({self.name!r}, {len(self)} entries)"

    def pane(self, namespace: Hashable) -> dict[Any, Any]:
        """Key -> value of one namespace, created on demand. That of VOID is never replaced, so it may be kept."""
        pane = self.panes.get(namespace)
        if pane is None:
            pane = self.panes[namespace] = {}
        return pane

    def touched(self, namespace: Hashable) -> set[Any]:
        """The keys of a namespace written or removed since the last delta; whoever writes to a pane adds to it.

        Ask again after `delta()` or `drop()`: only the set of VOID stays the same object.
        """
        keys = self.changed.get(namespace)
        if keys is None:
            keys = self.changed[namespace] = set()
        return keys

    def drop(self, namespace: Hashable) -> None:
        """Remove a whole namespace without a look at its keys."""
        if namespace == VOID:
            self.panes[VOID].clear()
            self.changed[VOID].clear()
        elif self.panes.pop(namespace, None) is None:
            return  # what was removed key by key is in `changed` and must stay there
        else:
            self.changed.pop(namespace, None)
        self.dropped[namespace] = None

    def delta(self) -> TableDelta:
        """What changed since the last delta, as plain values; the next one starts from here."""
        dropped = list(self.dropped)
        changes: dict[Hashable, tuple[dict[Any, Any], list[Any]]] = {}
        panes = self.panes
        for namespace, keys in self.changed.items():
            if not keys:
                continue
            pane = panes.get(namespace)
            if not pane:
                changes[namespace] = ({}, list(keys))
                if namespace != VOID:
                    panes.pop(namespace, None)
            else:
                newest = _newest(pane, keys)
                values = {key: pane[key] for key in keys if key in pane and key not in newest}
                removed = [key for key in keys if key not in pane]
                changes[namespace] = (values | newest, [*removed, *newest])
        self._forget_changes()
        return dropped, changes

    def full(self) -> TableDelta:
        """Everything, in the shape of a delta; does not touch change tracking, so it may be taken at any time."""
        return None, {namespace: (dict(pane), []) for namespace, pane in self.panes.items() if pane}

    def apply(self, delta: TableDelta) -> None:
        """Take over a delta or a full; nothing of it counts as changed."""
        dropped, changes = delta
        panes = self.panes
        for namespace in list(panes) if dropped is None else dropped:
            if namespace == VOID:
                panes[VOID].clear()
            else:
                panes.pop(namespace, None)
        if dropped is None:
            self._forget_changes()
        for namespace, (values, removed) in changes.items():
            pane = self.pane(namespace)
            for key in removed:
                pane.pop(key, None)
            pane.update(values)
            if not pane and namespace != VOID:
                del panes[namespace]

    def retain(self, keep: Callable[[Any], bool]) -> None:
        """Keep only the entries of these keys. Nothing counts as changed: after rescaling, write a full."""
        for namespace in list(self.panes):
            pane = self.panes[namespace]
            for key in [key for key in pane if not keep(key)]:
                del pane[key]
            if not pane and namespace != VOID:
                del self.panes[namespace]

    def _forget_changes(self) -> None:
        void_changes = self.changed[VOID]
        void_changes.clear()
        self.changed = {VOID: void_changes}
        self.dropped = {}


class TableSource(ABC):
    """Makes the tables of a task: the choice of a state backend."""

    @abstractmethod
    def table(self, name: str) -> StateTable:
        """A new table."""

    def settle(self) -> None:
        """Called when no record is being processed and nobody holds a value: the time to write to disk."""
        return

    def close(self) -> None:
        """The task is over."""
        return


class HeapTables(TableSource):
    """Tables in memory.

    >>> HeapTables().table("count")
    StateTable('count', 0 entries)
    """

    def table(self, name: str) -> StateTable:
        """A new table."""
        return StateTable(name)


def _newest(pane: dict[Any, Any], changed: set[Any]) -> dict[Any, Any]:
    """The entries at the end of a pane that are all changed, in their order.

    New keys stand at the end. Listed as removed and then added again, they end up in the same order in a restored pane
    as in the live one, and results that are made key by key come in the same order after a restore.
    """
    newest = []
    for key in reversed(pane):
        if key not in changed:
            break
        newest.append(key)
    newest.reverse()
    return {key: pane[key] for key in newest}
