"""Which task owns a key: key -> hash code -> key group -> task.

The hash code is Java's wherever Java has a counterpart of the Python type, so that keys live in the same key groups as
in Apache Flink, and never Python's `hash()`, which is salted anew in every process.
"""

from __future__ import annotations

import dataclasses
import pickle
import struct
from collections.abc import Callable
from hashlib import blake2b
from io import BytesIO
from itertools import chain
from math import isnan
from typing import Any, Final

__all__ = [
    "KeyRouter",
    "default_max_parallelism",
    "group_range",
    "java_hash",
    "key_group",
    "murmur_hash",
    "subtask_of_group",
]

_MASK: Final = 0xFFFFFFFF
_MIN_DEFAULT: Final = 128
_MAX_DEFAULT: Final = 32768
_INT_MIN, _INT_MAX = -(2**31), 2**31 - 1
_LONG_MIN, _LONG_MAX = -(2**63), 2**63 - 1


def _signed(code: int) -> int:
    code &= _MASK
    return code - 0x100000000 if code & 0x80000000 else code


def _hash_long(value: int) -> int:
    return _signed(value ^ (value >> 32))


def _hash_int(value: int, long: bool) -> int:
    if not long and _INT_MIN <= value <= _INT_MAX:
        return value
    if _LONG_MIN <= value <= _LONG_MAX:
        return _hash_long(value)
    return _hash_str(str(value))


def _hash_float(value: float) -> int:
    # 0.0 == -0.0 in Python, so they are one key and must have one hash; so must all NaNs, as in Java.
    bits = 0x7FF8000000000000 if isnan(value) else struct.unpack(">q", struct.pack(">d", value + 0.0))[0]
    return _hash_long(bits)


def _hash_str(value: str) -> int:
    code = 0
    if value.isascii():
        units: Any = value.encode("ascii")
    else:
        encoded = value.encode("utf-16-le", "surrogatepass")
        units = struct.unpack(f"<{len(encoded) // 2}H", encoded)
    for unit in units:
        code = (31 * code + unit) & _MASK
    return _signed(code)


def _hash_bytes(value: bytes) -> int:
    code = 1
    for byte in value:
        code = (31 * code + (byte - 256 if byte > 127 else byte)) & _MASK
    return _signed(code)


def _hash_sequence(values: Any, long: bool) -> int:
    code = 1
    for value in values:
        code = (31 * code + java_hash(value, long)) & _MASK
    return _signed(code)


def _hash_pickled(key: Any) -> int:
    buffer = BytesIO()
    pickler = pickle.Pickler(buffer, 4)
    # Without the memo: it gives other bytes for an object that holds one part twice than for one with two equal parts.
    pickler.fast = True
    pickler.dump(key)
    return int.from_bytes(blake2b(buffer.getvalue()).digest()[:4], "big", signed=True)


def _require_hashable(key: Any) -> None:
    try:
        hash(key)
    except TypeError:
        fix = "make it @dataclass(frozen=True)" if dataclasses.is_dataclass(key) else "use a tuple instead"
        message = f"a key must be hashable, got {type(key).__name__} {key!r:.80}: {fix} in the key selector of key_by()"
        raise TypeError(message) from None


def _hash_other(key: Any, long: bool) -> int:
    _require_hashable(key)
    if isinstance(key, frozenset):
        return _signed(sum(java_hash(element, long) for element in key))
    if dataclasses.is_dataclass(key):
        values = (getattr(key, field.name) for field in dataclasses.fields(key) if field.compare)
        return _hash_sequence(chain((type(key).__qualname__,), values), long)
    if hasattr(key, "as_dict") and hasattr(key, "__iter__"):  # a Row: named or not, its values in order
        return _hash_sequence(key, long)
    if type(key).__module__ == "numpy" and hasattr(key, "item"):
        plain = key.item()
        if type(plain) is not type(key):
            return java_hash(plain, long)
    return _hash_pickled(key)


def java_hash(key: Any, long: bool = False) -> int:
    """The signed 32-bit hash code of a key, the one Java gives to its counterpart.

    An int that fits 32 bits is hashed as an Integer unless `long` says that the key's type is a 64-bit one.

    >>> java_hash("hello"), java_hash(-1), java_hash(-1, long=True), java_hash((1, "a"))
    (99162322, -1, 0, 1089)
    """
    if key is None:
        return 0
    if isinstance(key, str):
        return _hash_str(key)
    if isinstance(key, bool):
        return 1231 if key else 1237
    if isinstance(key, int):
        return _hash_int(int(key), long)
    if isinstance(key, float):
        return _hash_float(key)
    if isinstance(key, bytes):
        return _hash_bytes(key)
    if isinstance(key, tuple):
        return _hash_sequence(key, long)
    return _hash_other(key, long)


def murmur_hash(code: int) -> int:
    """MurmurHash3 of one 32-bit word, made non-negative.

    >>> murmur_hash(0) % 128
    94
    """
    code = (code * 0xCC9E2D51) & _MASK
    code = ((code << 15) | (code >> 17)) & _MASK
    code = (code * 0x1B873593) & _MASK
    code = ((code << 13) | (code >> 19)) & _MASK
    code = (code * 5 + 0xE6546B64) & _MASK
    code ^= 4
    code = ((code ^ (code >> 16)) * 0x85EBCA6B) & _MASK
    code = ((code ^ (code >> 13)) * 0xC2B2AE35) & _MASK
    code ^= code >> 16
    if code & 0x80000000:
        code = (-code) & _MASK
        return 0 if code == 0x80000000 else code
    return code


def key_group(key: Any, max_parallelism: int, long: bool = False) -> int:
    """The key group of a key: the unit in which keyed state and timers move between tasks.

    >>> key_group("a", 128), key_group(42, 128)
    (81, 29)
    """
    return murmur_hash(java_hash(key, long)) % max_parallelism


def subtask_of_group(group: int, parallelism: int, max_parallelism: int) -> int:
    """The task that owns a key group.

    >>> subtask_of_group(81, 3, 128)
    1
    """
    return group * parallelism // max_parallelism


def group_range(subtask: int, parallelism: int, max_parallelism: int) -> range:
    """The key groups that a task owns.

    >>> [group_range(subtask, 3, 128) for subtask in range(3)]
    [range(0, 43), range(43, 86), range(86, 128)]
    """
    start = -(-subtask * max_parallelism // parallelism)
    return range(start, ((subtask + 1) * max_parallelism - 1) // parallelism + 1)


def default_max_parallelism(parallelism: int) -> int:
    """The number of key groups when the program names none: room to grow by half, within 128 and 32768.

    >>> [default_max_parallelism(parallelism) for parallelism in (1, 85, 86, 200, 1000)]
    [128, 128, 256, 512, 2048]
    """
    wanted = parallelism + parallelism // 2
    return min(max(1 << (wanted - 1).bit_length(), _MIN_DEFAULT), _MAX_DEFAULT)


_CACHE_LIMIT: Final = 1 << 20
# Within these types equal keys are the same key. Across others they are not (True == 1 == 1.0, Decimal("1.0") ==
# Decimal("1.00")): a cache would give a key the task of whichever equal one came first, differently in every process.
_CACHEABLE: Final = frozenset({str, int, bool, float, bytes, type(None)})
_CACHEABLE_IN_TUPLE: Final = frozenset({str, int, bytes, type(None)})


class _Cache(dict[Any, int]):
    __slots__ = ("_target",)

    def __init__(self, target: Callable[[Any], int]) -> None:
        super().__init__()
        self._target = target

    def __missing__(self, key: Any) -> int:
        target = self[key] = self._target(key)
        return target


class KeyRouter:
    """Finds the target task of each key of a batch.

    >>> KeyRouter(3, 128).route(["a", "key1", "flink"])
    [1, 0, 2]
    """

    __slots__ = ("_caches", "_long", "max_parallelism", "parallelism")

    def __init__(self, parallelism: int, max_parallelism: int, long: bool = False) -> None:
        self.parallelism = parallelism
        self.max_parallelism = max_parallelism
        self._long = long
        self._caches: dict[type, _Cache] = {}

    def target(self, key: Any) -> int:
        """The target task of one key, computed anew."""
        return key_group(key, self.max_parallelism, self._long) * self.parallelism // self.max_parallelism

    def route(self, keys: list[Any]) -> list[int]:
        """The target task of each key, in order."""
        if self.parallelism == 1:
            return [0] * len(keys)
        types = set(map(type, keys))
        if len(types) == 1:
            return self._route_alike(types.pop(), keys)
        return [self._route_alike(type(key), [key])[0] for key in keys]

    def _route_alike(self, kind: type, keys: list[Any]) -> list[int]:
        if kind not in _CACHEABLE and not (
            kind is tuple and _CACHEABLE_IN_TUPLE.issuperset(map(type, chain.from_iterable(keys)))
        ):
            return [self.target(key) for key in keys]
        cache = self._caches.get(kind)
        if cache is None:
            cache = self._caches[kind] = _Cache(self.target)
        elif len(cache) >= _CACHE_LIMIT:
            cache.clear()
        return list(map(cache.__getitem__, keys))
