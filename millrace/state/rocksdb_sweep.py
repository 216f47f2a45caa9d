"""The dead that nobody reads, removed from tables in RocksDB."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Final, cast

from millrace.state._heap import ABSENT
from millrace.state._heap_ttl import Sweep, live_part
from millrace.state.rocksdb import RocksTable
from millrace.state.rocksdb_pane import RocksPane
from millrace.state.table import StateTable
from millrace.state.ttl import StateTtlConfig

__all__ = ["RocksSweep", "sweep_of"]

_AT_LEAST: Final = 1000


class RocksSweep(Sweep):
    """Does what Sweep does, without a list of all keys: it remembers a row, and goes on from there."""

    __slots__ = ("_namespaces", "_row")

    def __init__(self, table: StateTable, kind: str, ttl: StateTtlConfig, size: int) -> None:
        super().__init__(table, kind, ttl, size)
        self._namespaces: list[Hashable] = []
        self._row = b""

    def run(self, now: int) -> None:
        """Do as much as the changes since the last delta allow."""
        table = cast(RocksTable, self._table)
        budget = max(_AT_LEAST, self._size * sum(map(len, table.changed.values())))
        table.flush()
        if not self._namespaces:
            self._namespaces, self._row = list(table.panes), b""
        while self._namespaces and budget > 0:
            namespace = self._namespaces[-1]
            pane = cast("RocksPane | None", table.panes.get(namespace))
            keys: list[Any] = []
            if pane is not None:
                limit = min(budget, 1000)
                keys, self._row = pane.stored_after(self._row, limit)
                self._look_at(namespace, pane, keys, now)
                budget -= len(keys)
                if len(keys) == limit:
                    continue
            self._namespaces.pop()
            self._row = b""

    def _look_at(self, namespace: Hashable, pane: RocksPane, keys: list[Any], now: int) -> None:
        for key, stored in list(pane.read(keys)):
            live = live_part(self._kind, stored, self._ttl, now)
            if live is not stored:
                self._table.touched(namespace).add(key)
                if live is ABSENT:
                    del pane[key]
                else:
                    pane[key] = live


def sweep_of(table: StateTable, kind: str, ttl: StateTtlConfig, size: int) -> Sweep:
    """The sweep that fits a table."""
    return (RocksSweep if isinstance(table, RocksTable) else Sweep)(table, kind, ttl, size)
