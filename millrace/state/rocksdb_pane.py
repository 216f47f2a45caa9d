"""Key -> value of one namespace of a state, in a database; in memory what was used lately."""

from __future__ import annotations

import pickle
from collections.abc import ItemsView, Iterable, Iterator, MutableMapping, ValuesView
from typing import Any, Final

from millrace.common.cloudpickles import by_value
from millrace.state.rocksdb_database import RocksDatabase
from millrace.state.rocksdb_keys import slot_of

__all__ = ["RocksPane", "Spill"]

_ABSENT: Final[Any] = object()
_UNKNOWN: Final[Any] = object()
_SIMPLE: Final = frozenset({int, float, complex, str, bytes, bool, type(None)})
_SIZE_IN_MEMORY: Final = 3
"""Python objects take about this many times the bytes of their pickle."""
_SIZE_OF_ENTRY: Final = 300
"""About what a key and its places in the tables of a pane take."""
_CHUNK: Final = 256

_Row = tuple[bytes, bytes]
"""(slot of the key, number of the row)"""


class Spill:
    """Where the panes of a task go, and about how many bytes they hold in memory."""

    __slots__ = ("cached", "database")

    def __init__(self, database: RocksDatabase) -> None:
        self.database = database
        self.cached = 0

    def next_number(self) -> bytes:
        """A number larger than all before, of panes and of rows."""
        return next(self.database.numbers).to_bytes(8, "big")


class RocksPane(MutableMapping[Any, Any]):
    """What operators and handles use like a dict, in the order of insertion like a dict.

    A value that was read or written stays in memory, the very same object, until `evict()`; so it may be changed in
    place. `flush()` writes what has changed; both only when no record is being processed.

    In the database a value is under (pane, slot of its key), with the number of its row; the key is under (pane,
    number), which gives the order. New rows get their numbers when they are flushed.

    >>> pane = RocksPane(Spill(RocksDatabase()))
    >>> pane["b"], pane["a"] = [1], [2]
    >>> pane.flush()
    >>> pane.evict()
    >>> pane["b"].append(3)
    >>> pane.flush({"b"})
    >>> pane.evict()
    >>> pane
    RocksPane({'b': [1, 3], 'a': [2]})
    """

    __slots__ = (
        "_gone",
        "_held",
        "_keys",
        "_new",
        "_overflow",
        "_rows",
        "_spill",
        "_stored",
        "_values",
        "_written",
        "owner",
    )

    def __init__(self, spill: Spill) -> None:
        self._spill = spill
        number = spill.next_number()
        self._values = b"v" + number
        self._keys = b"k" + number
        # Values by key, _ABSENT for keys known not to be there; and the rows of those of them that have one.
        self._held: dict[Any, Any] = {}
        self._rows: dict[Any, _Row] = {}
        # Keys without a row, in order, and keys whose row is to be deleted. In both: removed and put again.
        self._new: dict[Any, None] = {}
        self._gone: set[Any] = set()
        self._written: set[Any] = set()
        self._overflow: dict[Any, bytes] = {}
        self._stored = 0
        self.owner: object = None

    def __len__(self) -> int:
        return self._stored - len(self._gone) + len(self._new)

    def __repr__(self) -> str:
        return f"RocksPane({dict(self.entries())})"

    def get(self, key: Any, default: Any = None) -> Any:
        """The value of a key, or the default."""
        value = self._held.get(key, _UNKNOWN)
        if value is _UNKNOWN:
            value = self._load(key)
        return default if value is _ABSENT else value

    def __getitem__(self, key: Any) -> Any:
        value = self._held.get(key, _UNKNOWN)
        if value is _UNKNOWN:
            value = self._load(key)
        if value is _ABSENT:
            raise KeyError(key)
        return value

    def __contains__(self, key: object) -> bool:
        return self.get(key, _ABSENT) is not _ABSENT

    def __setitem__(self, key: Any, value: Any) -> None:
        held = self._held
        known = held.get(key, _UNKNOWN)
        if known is _UNKNOWN:
            known = self._load(key)
        if known is _ABSENT:
            self._new[key] = None
        held[key] = value
        self._written.add(key)

    def __delitem__(self, key: Any) -> None:
        if self.pop(key, _ABSENT) is _ABSENT:
            raise KeyError(key)

    def pop(self, key: Any, *default: Any) -> Any:
        """Remove a key; its value, or the default."""
        value = self.get(key, _ABSENT)
        if value is _ABSENT:
            if default:
                return default[0]
            raise KeyError(key)
        self._held[key] = _ABSENT
        if key in self._new:
            del self._new[key]
        else:
            self._gone.add(key)
        return value

    def clear(self) -> None:
        """Remove everything, without a look at the keys."""
        if self._stored:
            database = self._spill.database
            database.delete_prefix(self._values, self._stored)
            database.delete_prefix(self._keys, self._stored)
            self._stored = 0
        for part in (self._held, self._rows, self._new, self._gone, self._written, self._overflow):
            part.clear()

    def __iter__(self) -> Iterator[Any]:
        for key in self._stored_keys(backwards=False):
            if key not in self._gone:
                yield key
        yield from list(self._new)

    def __reversed__(self) -> Iterator[Any]:
        yield from list(reversed(self._new))
        for key in self._stored_keys(backwards=True):
            if key not in self._gone:
                yield key

    def items(self) -> ItemsView[Any, Any]:
        """Keys and values; values that can be changed in place stay in memory."""
        return _Items(self)

    def values(self) -> ValuesView[Any]:
        """The values; those that can be changed in place stay in memory."""
        return _Values(self)

    def entries(self, *, keep: bool = False) -> Iterator[tuple[Any, Any]]:
        """Keys and values; with ``keep`` as in `items()`, without it only to be read."""
        chunk: list[Any] = []
        for key in self:
            chunk.append(key)
            if len(chunk) == _CHUNK:
                yield from self.read(chunk, keep=keep)
                chunk = []
        yield from self.read(chunk, keep=keep)

    def read(self, keys: Iterable[Any], *, keep: bool = False) -> Iterator[tuple[Any, Any]]:
        """Those of the keys that are there, with their values."""
        held = self._held
        wanted = list(keys)
        loaded: dict[Any, Any] = {}
        for key, value, row, raw in self._fetch(key for key in wanted if key not in held):
            loaded[key] = value
            if keep and not _is_simple(value):
                self._hold(key, value, row, raw)
        for key in wanted:
            value = held.get(key, _UNKNOWN)
            if value is _UNKNOWN:
                value = loaded.get(key, _ABSENT)
            if value is not _ABSENT:
                yield key, value

    def in_memory(self, keys: set[Any]) -> set[Any]:
        """Those of the keys whose values are in memory, and may have been changed there."""
        return set(_both(keys, self._held))

    def load(self, keys: Iterable[Any]) -> None:
        """Bring the values of these keys into memory, faster than one by one."""
        missing = [key for key in keys if key not in self._held]
        for start in range(0, len(missing), _CHUNK):
            for key, value, row, raw in self._fetch(missing[start : start + _CHUNK]):
                self._hold(key, value, row, raw)

    def stored_after(self, row: bytes, limit: int) -> tuple[list[Any], bytes]:
        """Some keys of the database behind a row, in order, and the row of the last; for walks in several steps."""
        keys: list[Any] = []
        start = len(self._keys)
        for index, raw in self._spill.database.scan(self._keys, start=row) if self._stored else ():
            if index[start:] > row:
                keys.append(pickle.loads(raw))
                row = index[start:]
            if len(keys) >= limit:
                break
        return keys, row

    def flush(self, touched: set[Any] | None = None) -> None:
        """Write what was put and removed, and the values of the keys in ``touched`` that are in memory."""
        if self._gone or self._new or self._written or touched:
            size = self._spill.database.write(self._changes(touched or set()))
            self._spill.cached += size * _SIZE_IN_MEMORY
            self._gone.clear()
            self._new.clear()
            self._written.clear()

    def evict(self) -> None:
        """Let go of what is in memory; only after `flush()`."""
        self._held.clear()
        self._rows.clear()

    def _changes(self, touched: set[Any]) -> Iterator[tuple[bytes, bytes | None]]:
        held, rows, new = self._held, self._rows, self._new
        freed: set[bytes] = set()
        for key in self._gone:
            slot, number = rows.pop(key)
            self._overflow.pop(key, None)
            self._stored -= 1
            freed.add(slot)
            yield self._values + slot, None
            yield self._keys + number, None
        taken: set[bytes] = set()
        for key in new:
            slot, exact = slot_of(key)
            if not exact:
                slot = self._free_slot(key, slot, freed, taken)
            row = rows[key] = (slot, self._spill.next_number())
            self._stored += 1
            yield self._keys + row[1], _dump(key)
            yield self._values + slot, row[1] + _dump(held[key] if exact else (key, held[key]))
        self._written.update(_both(touched, held))
        for key in self._written:
            value = held.get(key, _ABSENT)
            if key not in new and value is not _ABSENT:
                slot, number = rows[key]
                yield self._values + slot, number + _dump(value if _is_exact(slot) else (key, value))

    def _free_slot(self, key: Any, slot: bytes, freed: set[bytes], taken: set[bytes]) -> bytes:
        """The slot for a key that shares its bytes with others: the first of them gets it, the others a longer one."""
        if slot in taken or (slot not in freed and self._spill.database.get(self._values + slot) is not None):
            slot += self._spill.next_number()
            self._overflow[key] = slot
        taken.add(slot)
        return slot

    def _slot(self, key: Any) -> tuple[bytes, bool]:
        slot, exact = slot_of(key)
        return (slot, True) if exact else (self._overflow.get(key, slot), False)

    def _load(self, key: Any) -> Any:
        """Find out about a key that nothing is known of."""
        if not self._stored:
            self._held[key] = _ABSENT
            self._spill.cached += _SIZE_OF_ENTRY
            return _ABSENT
        slot, exact = self._slot(key)
        raw = self._spill.database.get(self._values + slot)
        value, row = self._decode(key, slot, exact, raw)
        self._hold(key, value, row, raw)
        return value

    def _fetch(self, keys: Iterable[Any]) -> Iterator[tuple[Any, Any, _Row | None, bytes | None]]:
        missing = list(keys) if self._stored else []
        slots = [self._slot(key) for key in missing]
        found = self._spill.database.get_many([self._values + slot for slot, _ in slots])
        for key, (slot, exact), raw in zip(missing, slots, found, strict=True):
            yield key, *self._decode(key, slot, exact, raw), raw

    def _hold(self, key: Any, value: Any, row: _Row | None, raw: bytes | None) -> None:
        self._held[key] = value
        if row is not None:
            self._rows[key] = row
        self._spill.cached += _SIZE_OF_ENTRY + _SIZE_IN_MEMORY * len(raw or b"")

    def _decode(self, key: Any, slot: bytes, exact: bool, raw: bytes | None) -> tuple[Any, _Row | None]:
        if raw is None:
            return _ABSENT, None
        value = pickle.loads(memoryview(raw)[8:])
        if not exact:
            owner, value = value
            if owner != key:
                return _ABSENT, None
        return value, (slot, raw[:8])

    def _stored_keys(self, *, backwards: bool) -> Iterator[Any]:
        if self._stored:
            for _, raw in self._spill.database.scan(self._keys, backwards=backwards):
                yield pickle.loads(raw)


class _Items(ItemsView[Any, Any]):
    _mapping: RocksPane

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        return self._mapping.entries(keep=True)


class _Values(ValuesView[Any]):
    _mapping: RocksPane

    def __iter__(self) -> Iterator[Any]:
        return (value for _, value in self._mapping.entries(keep=True))


def _both(touched: set[Any], held: dict[Any, Any]) -> list[Any]:
    """The keys in both, by a walk over the smaller one: in a long epoch, far more is touched than held."""
    if len(touched) < len(held):
        return [key for key in touched if key in held]
    return [key for key in held if key in touched]


def _is_exact(slot: bytes) -> bool:
    return slot[:1] != b"h"


def _is_simple(value: Any) -> bool:
    """Whether nobody can change the value in place."""
    kind = type(value)
    return kind in _SIMPLE or value is _ABSENT or (kind is tuple and all(type(item) in _SIMPLE for item in value))


def _dump(value: Any) -> bytes:
    try:
        return pickle.dumps(value, protocol=5)
    except (pickle.PicklingError, AttributeError, TypeError):
        # Of a class that cannot be imported by name, as in millrace.runtime.codec.
        return by_value(value)
