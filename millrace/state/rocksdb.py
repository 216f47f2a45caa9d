"""State that may be larger than memory: tables whose values live in RocksDB, for all operators of one task."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from millrace.errors import ConfigurationError
from millrace.state.rocksdb_database import RocksDatabase
from millrace.state.rocksdb_pane import RocksPane, Spill
from millrace.state.table import VOID, StateTable, TableDelta, TableSource

__all__ = ["RocksDBSettings", "RocksTable", "RocksTables"]

LOCAL_DIR: Final = "state.backend.rocksdb.localdir"
MEMORY: Final = "state.backend.rocksdb.memory.fixed-per-slot"

_IN_MEMORY: Final = "-sessions"
"""How the names of tables end whose values the operator refers to between records (see adoption.SESSIONS): it holds
all of them in memory by itself, and they must stay the same objects."""

_UNITS: Final = {"": 0, "b": 0, "k": 10, "kb": 10, "m": 20, "mb": 20, "g": 30, "gb": 30}


@dataclass(frozen=True)
class RocksDBSettings:
    """Where the databases are, and how much memory a task may use for what it holds of them.

    >>> RocksDBSettings.of({"state.backend.rocksdb.memory.fixed-per-slot": "64 mb"})
    RocksDBSettings(directories=(), memory=67108864)
    """

    directories: tuple[str, ...] = ()
    memory: int = 128 << 20

    @staticmethod
    def of(config: Mapping[str, str]) -> RocksDBSettings:
        """What the configuration says."""
        directories = [path.strip() for path in re.split("[,|]", config.get(LOCAL_DIR, "")) if path.strip()]
        memory = config.get(MEMORY)
        return RocksDBSettings(tuple(directories), 128 << 20 if memory is None else _bytes(memory))


class RocksTables(TableSource):
    """The tables of one task, in one database. Half of the memory is for values in use, half for RocksDB.

    >>> tables = RocksTables()
    >>> count = tables.table("count")
    >>> count.pane(VOID)["a"] = 1
    >>> count.touched(VOID).add("a")
    >>> count.delta()
    ([], {'': ({'a': 1}, ['a'])})
    >>> tables.close()
    """

    def __init__(
        self, settings: RocksDBSettings | None = None, task: int = 0, database: RocksDatabase | None = None
    ) -> None:
        settings = settings or RocksDBSettings()
        directories = settings.directories or (None,)
        # Tasks take turns with the directories, so that several disks share the work.
        self.database = database or RocksDatabase(directories[task % len(directories)], settings.memory // 2)
        self._limit = settings.memory // 2
        self._spill = Spill(self.database)
        self._tables: list[RocksTable] = []

    def table(self, name: str) -> StateTable:
        """A new table."""
        if name.endswith(_IN_MEMORY):
            return StateTable(name)
        table = RocksTable(name, self._spill, self.settle)
        self._tables.append(table)
        return table

    def settle(self) -> None:
        """No record is being processed: if too much is in memory, write it to the database and let it go."""
        if self._spill.cached > self._limit:
            for table in self._tables:
                table.flush()
                table.evict()
            self._spill.cached = 0

    def close(self) -> None:
        """Remove the database."""
        self.database.close()


class RocksTable(StateTable):
    """A table as StateTable is, whose panes are in a database. Its deltas and fulls are the same as there.

    The namespaces, and the keys changed since the last delta, are in memory.

    >>> table = RocksTable("count", Spill(RocksDatabase()))
    >>> table.apply((None, {VOID: ({"a": 1, "b": 2}, [])}))
    >>> table.flush()
    >>> table.evict()
    >>> table.full()
    (None, {'': ({'a': 1, 'b': 2}, [])})
    """

    __slots__ = ("_settle",)

    def __init__(self, name: str, spill: Spill, settle: Callable[[], None] = lambda: None) -> None:
        super().__init__(name)
        self._settle = settle
        self.panes = _Panes(spill)
        self.pane(VOID)

    def __repr__(self) -> str:
        return f"RocksTable({self.name!r}, {len(self)} entries)"

    def pane(self, namespace: Hashable) -> dict[Any, Any]:
        """Key -> value of one namespace, created on demand."""
        panes = self.panes
        if namespace not in panes:
            panes[namespace] = {}
        return panes[namespace]

    def delta(self) -> TableDelta:
        """What changed since the last delta; it is written to the database as well."""
        panes = cast("dict[Hashable, RocksPane]", self.panes)
        unwritten: dict[Hashable, set[Any]] = {}
        for namespace, keys in self.changed.items():
            if keys and namespace in panes:
                unwritten[namespace] = panes[namespace].in_memory(keys)
                panes[namespace].load(keys)
        delta = super().delta()
        for namespace, pane in panes.items():
            pane.flush(unwritten.get(namespace))
        return delta

    def full(self) -> TableDelta:
        """Everything. What it takes from the database does not stay in memory longer than the answer."""
        panes = cast("dict[Hashable, RocksPane]", self.panes)
        return None, {namespace: (dict(pane.entries()), []) for namespace, pane in panes.items() if pane}

    def apply(self, delta: TableDelta) -> None:
        """Take over a delta or a full of a table of any kind."""
        super().apply(delta)
        self._settle()

    def retain(self, keep: Callable[[Any], bool]) -> None:
        """Keep only the entries of these keys."""
        super().retain(keep)
        self._settle()

    def flush(self) -> None:
        """Write all that is only in memory to the database."""
        for namespace, pane in self.panes.items():
            cast(RocksPane, pane).flush(self.changed.get(namespace))

    def evict(self) -> None:
        """Let go of all values in memory; only after `flush()`."""
        for pane in self.panes.values():
            cast(RocksPane, pane).evict()


class _Panes(dict[Hashable, dict[Any, Any]]):
    """The panes of a table. What is put here becomes a RocksPane, and what is taken out leaves the database.

    Panes are no dicts, but used as such; the type of StateTable's panes stays what the fast operators need.
    """

    __slots__ = ("_spill", "_token")

    def __init__(self, spill: Spill) -> None:
        super().__init__()
        self._spill = spill
        self._token = object()

    def __setitem__(self, namespace: Hashable, pane: dict[Any, Any]) -> None:
        self.pop(namespace)
        if not isinstance(pane, RocksPane):
            content, pane = pane, cast("dict[Any, Any]", RocksPane(self._spill))
            pane.update(content)
        # An operator may hand the pane of one table to another one, and then drop it in the first.
        cast(RocksPane, pane).owner = self._token
        super().__setitem__(namespace, pane)

    def __delitem__(self, namespace: Hashable) -> None:
        if self.pop(namespace) is None:
            raise KeyError(namespace)

    def pop(self, namespace: Hashable, default: Any = None) -> Any:
        pane = super().pop(namespace, default)
        if isinstance(pane, RocksPane) and pane.owner is self._token:
            pane.clear()
        return pane


def _bytes(text: str) -> int:
    found = re.fullmatch(r"(\d+) ?([a-z]*)", text.strip().lower())
    if found is None or found[2] not in _UNITS:
        message = f"{MEMORY}: {text!r} is not a size; use for example 128mb"
        raise ConfigurationError(message)
    return int(found[1]) << _UNITS[found[2]]
