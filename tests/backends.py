"""Runs the same tests on every state backend: a module says `pytestmark = pytest.mark.usefixtures("each_backend")`."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

import millrace.state.backend
from millrace.state.rocksdb import RocksDBSettings, RocksTables
from millrace.state.rocksdb_database import RocksDatabase
from millrace.state.table import HeapTables, TableSource


@pytest.fixture(scope="module", params=["heap", "rocksdb"])
def each_backend(request: pytest.FixtureRequest) -> Iterator[Callable[[], TableSource]]:
    """What makes tables, there as everywhere where nothing else is said; for RocksDB, no memory at all is allowed."""
    if request.param == "heap":
        yield HeapTables
        return
    database = RocksDatabase(memory=1 << 20)
    with pytest.MonkeyPatch.context() as patch:

        def source() -> TableSource:
            return RocksTables(RocksDBSettings(memory=0), database=database)

        patch.setattr(millrace.state.backend, "HeapTables", source)
        yield source
    database.close()
