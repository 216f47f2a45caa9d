"""Which backend a job keeps its state in: the setting ``state.backend.type``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from millrace.errors import ConfigurationError
from millrace.state.rocksdb import RocksDBSettings, RocksTables
from millrace.state.rocksdb_database import load_rocksdict
from millrace.state.table import HeapTables, TableSource

__all__ = ["BACKEND", "backend_settings", "table_source"]

BACKEND: Final = "state.backend.type"


def backend_settings(config: Mapping[str, str]) -> dict[str, str]:
    """Those settings of a job that its tasks need to choose a backend, once they have been found good.

    >>> backend_settings({"state.backend.type": "hashmap", "pipeline.name": "counts"})
    {'state.backend.type': 'hashmap'}
    """
    settings = {key: value for key, value in config.items() if key.startswith("state.backend.")}
    kind = settings.get(BACKEND, "hashmap")
    if kind not in ("hashmap", "rocksdb"):
        message = f"{BACKEND}: there is no backend {kind!r}; use hashmap or rocksdb"
        raise ConfigurationError(message)
    if kind == "rocksdb":
        load_rocksdict()
        RocksDBSettings.of(settings)
    return settings


def table_source(settings: Mapping[str, str], task: int = 0) -> TableSource:
    """What makes the tables of a task.

    >>> type(table_source({"state.backend.type": "rocksdb"})).__name__
    'RocksTables'
    """
    if settings.get(BACKEND) == "rocksdb":
        return RocksTables(RocksDBSettings.of(settings), task)
    return HeapTables()
