"""Keys as bytes: keys that Python calls equal must meet in one place of the database.

Pickle cannot do this: equal tuples have different pickles when one of them holds an object twice, and 1 == 1.0. So
strings, bytes, whole numbers, None and tuples of them are written out here, and all other keys go by their hash.
"""

from __future__ import annotations

from numbers import Number
from typing import Any

__all__ = ["slot_of"]


def slot_of(key: Any) -> tuple[bytes, bool]:
    """The bytes of a key, and whether only equal keys have them.

    If not, they are the key's hash: whoever finds something there must look which key it belongs to. Hashes of most
    types are not the same in another process, so neither are these bytes.

    >>> slot_of("a"), slot_of(1) == slot_of(1.0) == slot_of(True), slot_of(frozenset("a"))[1]
    ((b'sa', True), True, False)
    """
    kind = type(key)
    if kind is str:
        return b"s" + key.encode("utf-8", "surrogatepass"), True
    if kind is int:
        return _whole(key), True
    if kind is tuple:
        return _tuple(key)
    return _less_common(key)


def _whole(number: int) -> bytes:
    return b"i" + number.to_bytes(number.bit_length() // 8 + 1, "big", signed=True)


def _tuple(key: tuple[Any, ...]) -> tuple[bytes, bool]:
    parts = [b"t"]
    for item in key:
        slot, exact = slot_of(item)
        if not exact:
            return _hashed(key), False
        parts.append(len(slot).to_bytes(4, "big"))
        parts.append(slot)
    return b"".join(parts), True


def _less_common(key: Any) -> tuple[bytes, bool]:
    if key is None:
        return b"n", True
    # A subclass that compares as its base does is equal to instances of the base: named tuples to tuples.
    if _compares_as(key, bytes):
        return b"b" + bytes(key), True
    if _compares_as(key, str):
        return slot_of(str.__str__(key))
    if _compares_as(key, tuple):
        return _tuple(tuple(key))
    if isinstance(key, Number):
        try:
            whole = int(key)  # type: ignore[call-overload]
        except (TypeError, ValueError, OverflowError):
            return _hashed(key), False
        if whole == key and hash(whole) == hash(key):
            return _whole(whole), True
    return _hashed(key), False


def _compares_as(key: Any, base: type) -> bool:
    kind = type(key)
    return isinstance(key, base) and kind.__eq__ is base.__eq__ and kind.__hash__ is base.__hash__


def _hashed(key: Any) -> bytes:
    return b"h" + hash(key).to_bytes(8, "big", signed=True)
