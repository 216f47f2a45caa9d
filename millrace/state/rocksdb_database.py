"""One RocksDB database in a folder of its own, which goes when its owner goes.

Nothing in it outlives the process: what survives a failure is in the snapshots. So there is no write-ahead log and no
sync; the database is only where state is that does not fit in memory.
"""

from __future__ import annotations

import importlib
import os
import shutil
import tempfile
import time
import weakref
from collections.abc import Iterable, Iterator
from itertools import count, islice
from pathlib import Path
from typing import IO, Any, Final

from millrace.errors import ConfigurationError, MissingDependencyError

__all__ = ["RocksDatabase", "load_rocksdict"]

_PREFIX: Final = "millrace-rocksdb-"
_LOCK: Final = "in-use"
_ORPHANED_AFTER_SECONDS: Final = 60
_BATCH_BYTES: Final = 4 << 20
_FEW_ROWS: Final = 1000
"""Up to this many rows are deleted one by one: every range that was deleted makes all later reads slower."""


def load_rocksdict() -> Any:
    """The package rocksdict, or an error that says how to get it."""
    try:
        return importlib.import_module("rocksdict")
    except ImportError as error:
        message = "the state backend rocksdb needs the package rocksdict: pip install 'millrace[rocksdb]'"
        raise MissingDependencyError(message) from error


class RocksDatabase:
    """Bytes by bytes; opened when first used.

    >>> database = RocksDatabase()
    >>> database.write([(b"a", b"1"), (b"b", b"2"), (b"a", None)])
    2
    >>> database.get(b"a"), database.get_many([b"a", b"b"]), list(database.scan(b""))
    (None, [None, b'2'], [(b'b', b'2')])
    >>> database.close()
    """

    def __init__(self, directory: str | None = None, memory: int = 32 << 20) -> None:
        self._directory = directory
        self._memory = memory
        self._rocksdict: Any = None
        self._rdict: Any = None
        self._write_options: Any = None
        self._cleanup: Any = None
        self.folder: Path | None = None
        self.numbers = count(1)

    @property
    def _open(self) -> Any:
        if self._rdict is None:
            self._rocksdict = rocksdict = load_rocksdict()
            self.folder, lock = _new_folder(self._directory)
            self._rdict = rocksdict.Rdict(str(self.folder / "db"), _options(rocksdict, self._memory))
            self._write_options = rocksdict.WriteOptions()
            self._write_options.disable_wal = True
            self._cleanup = weakref.finalize(self, _remove, self._rdict, self.folder, lock, os.getpid())
        return self._rdict

    def get(self, row: bytes) -> bytes | None:
        """What stands in a row, if there is one."""
        found: bytes | None = self._open.get(row)
        return found

    def get_many(self, rows: list[bytes]) -> list[bytes | None]:
        """What stands in several rows."""
        found: list[bytes | None] = self._open.get(rows) if rows else []
        return found

    def write(self, changes: Iterable[tuple[bytes, bytes | None]]) -> int:
        """Put rows, or delete those that come with None, in order; answers how many bytes were put."""
        rdict, size = self._open, 0
        batch, pending = self._rocksdict.WriteBatch(raw_mode=True), 0
        for row, value in changes:
            if value is None:
                batch.delete(row)
                pending += len(row)
            else:
                batch.put(row, value)
                size += len(value)
                pending += len(row) + len(value)
            if pending > _BATCH_BYTES:
                rdict.write(batch, self._write_options)
                batch, pending = self._rocksdict.WriteBatch(raw_mode=True), 0
        if pending:
            rdict.write(batch, self._write_options)
        return size

    def scan(self, prefix: bytes, *, start: bytes = b"", backwards: bool = False) -> Iterator[tuple[bytes, bytes]]:
        """The rows whose keys begin with a prefix, in the order of their keys, from ``prefix + start`` on.

        Reads ahead a little and holds nothing open in between, so that the database can be written to meanwhile.
        """
        position = prefix + (start or (b"\xff" * 16 if backwards else b""))
        many, passed = 16, b""
        while True:
            part = list(islice(self._open.items(backwards=backwards, from_key=position), many))
            for row, value in part:
                if row == passed:
                    continue
                if not row.startswith(prefix):
                    return
                yield row, value
            if len(part) < many:
                return
            position = passed = part[-1][0]
            many = 512

    def delete_prefix(self, prefix: bytes, rows: int) -> None:
        """Delete the rows, about so many, whose keys begin with a prefix."""
        if rows <= _FEW_ROWS:
            self.write([(row, None) for row, _ in self.scan(prefix)])
        else:
            self._open.delete_range(prefix, prefix + b"\xff" * 16, self._write_options)

    def close(self) -> None:
        """Close the database and remove its folder. It may be used again, and is empty then."""
        if self._cleanup is not None:
            self._cleanup()
        self._rdict = self._cleanup = self.folder = None


def _options(rocksdict: Any, memory: int) -> Any:
    options = rocksdict.Options(raw_mode=True)
    options.create_if_missing(True)
    options.set_write_buffer_size(max(memory // 4, 64 << 10))
    options.set_max_write_buffer_number(2)
    options.set_max_background_jobs(2)
    options.set_max_open_files(256)
    options.set_keep_log_file_num(1)
    blocks = rocksdict.BlockBasedOptions()
    blocks.set_block_cache(rocksdict.Cache(max(memory // 2, 64 << 10)))
    blocks.set_bloom_filter(10, False)
    # Else filters and indexes come on top of the cache, and grow with the state; in parts, because a whole one may be
    # too large to stay in the cache, and then is read again for every key.
    blocks.set_cache_index_and_filter_blocks(True)
    blocks.set_index_type(rocksdict.BlockBasedIndexType.two_level_index_search())
    blocks.set_partition_filters(True)
    blocks.set_pin_top_level_index_and_filter(True)
    options.set_block_based_table_factory(blocks)
    return options


def _new_folder(directory: str | None) -> tuple[Path, IO[bytes]]:
    """A folder for one database, and its lock: held open, it tells others that the owner lives."""
    import fcntl  # not on every system: keep it out of the way of those who never come here

    parent = Path(directory or tempfile.gettempdir())
    try:
        parent.mkdir(parents=True, exist_ok=True)
        _remove_orphans(parent)
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
        lock = (folder / _LOCK).open("wb")
        fcntl.flock(lock, fcntl.LOCK_EX)
    except OSError as error:
        message = (
            f"no folder for RocksDB can be made in {parent}: {error}. Set state.backend.rocksdb.localdir to a "
            "directory that the workers can write to"
        )
        raise ConfigurationError(message) from error
    return folder, lock


def _remove_orphans(parent: Path) -> None:
    """Remove what killed processes have left behind."""
    import fcntl

    for folder in parent.glob(_PREFIX + "*"):
        try:
            with (folder / _LOCK).open("rb") as lock:
                # A folder this young may be one whose owner is about to take the lock.
                if os.fstat(lock.fileno()).st_mtime > time.time() - _ORPHANED_AFTER_SECONDS:
                    continue
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
        except OSError:
            continue  # in use, or somebody else removes it


def _remove(rdict: Any, folder: Path, lock: IO[bytes], owner: int) -> None:
    if os.getpid() == owner:
        rdict.close()
        shutil.rmtree(folder, ignore_errors=True)
        lock.close()
