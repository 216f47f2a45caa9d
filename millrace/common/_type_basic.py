"""Types of single values: numbers, text, times, and the type that stands for any Python object."""

from __future__ import annotations

import datetime
import math
import numbers
import operator
import struct
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

from millrace.common._type_base import Coercer, TypeInformation, wrong_kind
from millrace.common.time import Instant

__all__ = ["BasicTypeInfo", "PickledBytesTypeInfo"]

_FLOAT: Final = struct.Struct("f")

_DISPLAY_NAMES: Final = {
    "STRING": "String",
    "BYTE": "Byte",
    "BOOLEAN": "Boolean",
    "SHORT": "Short",
    "INT": "Integer",
    "LONG": "Long",
    "FLOAT": "Float",
    "DOUBLE": "Double",
    "CHAR": "Character",
    "BIG_INT": "BigInteger",
    "BIG_DEC": "BigDecimal",
    "INSTANT": "Instant",
    "SQL_DATE": "Date",
    "SQL_TIME": "Time",
    "SQL_TIMESTAMP": "Timestamp",
}


class BasicTypeInfo(TypeInformation):
    """The type of a single value, such as a number or a text.

    >>> BasicTypeInfo("FLOAT").coerce(110.1)
    110.0999984741211
    >>> str(BasicTypeInfo("INT"))
    'Integer'
    """

    type_codes = tuple(_DISPLAY_NAMES)

    def __init__(self, code: str) -> None:
        if code not in _DISPLAY_NAMES:
            raise ValueError(f"{code!r} is no basic type; the basic types are {', '.join(_DISPLAY_NAMES)}")
        self.code = code
        self._coercer = _make_coercer(code)

    def coercer(self) -> Coercer:
        """A function that does what `coerce` does."""
        return self._coercer

    def to_json(self) -> dict[str, Any]:
        """A description of this type that can be stored as JSON."""
        return {"type": self.code}

    @classmethod
    def _from_description(cls, description: Mapping[str, Any]) -> BasicTypeInfo:
        return cls(description["type"])

    def _constructor_arguments(self) -> tuple[Any, ...]:
        return (self.code,)

    def __repr__(self) -> str:
        return f"Types.{self.code}()"

    def __str__(self) -> str:
        return _DISPLAY_NAMES[self.code]


class PickledBytesTypeInfo(TypeInformation):
    """The type of any Python object: values pass as they are. It is the type of a stream that declares none.

    >>> PickledBytesTypeInfo().coerce({1, 2})
    {1, 2}
    """

    type_codes = ("PICKLED_BYTE_ARRAY",)

    def coercer(self) -> None:
        """None, for every value stays as it is."""
        return

    def to_json(self) -> dict[str, Any]:
        """A description of this type that can be stored as JSON."""
        return {"type": "PICKLED_BYTE_ARRAY"}

    @classmethod
    def _from_description(cls, description: Mapping[str, Any]) -> PickledBytesTypeInfo:
        return cls()

    def _constructor_arguments(self) -> tuple[Any, ...]:
        return ()

    def __repr__(self) -> str:
        return "Types.PICKLED_BYTE_ARRAY()"

    def __str__(self) -> str:
        return "PickledByteArrayTypeInfo"


def _make_coercer(code: str) -> Coercer:
    if code in _INTEGER_BITS:
        return _integer_coercer(code, _INTEGER_BITS[code])
    if code in _EXACT_CLASSES:
        return _class_coercer(code, *_EXACT_CLASSES[code])
    return _SPECIAL_COERCERS[code]


def _integer_coercer(code: str, bits: int) -> Coercer:
    """Keeps the lowest `bits` bits, the highest of them being the sign."""
    highest = 2 ** (bits - 1) - 1
    lowest = -highest - 1
    mask = 2**bits - 1

    def coerce(value: Any) -> int | None:
        if value.__class__ is int and lowest <= value <= highest:
            return value
        if value is None:
            return None
        narrowed: int = ((_index(code, value) - lowest) & mask) + lowest
        return narrowed

    return coerce


def _class_coercer(code: str, wanted: type, description: str) -> Coercer:
    def coerce(value: Any) -> Any:
        if value is None or isinstance(value, wanted):
            return value
        raise wrong_kind(BasicTypeInfo(code), value, description)

    return coerce


def _index(code: str, value: Any) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise wrong_kind(BasicTypeInfo(code), value, "whole numbers") from None


def _coerce_big_int(value: Any) -> int | None:
    return None if value is None else _index("BIG_INT", value)


def _coerce_boolean(value: Any) -> bool | None:
    if value is None or value is True or value is False:
        return value
    # numpy's own truth value is no bool, though it comes out of every comparison of numpy numbers.
    if getattr(getattr(value, "dtype", None), "kind", None) == "b":
        return bool(value)
    raise wrong_kind(BasicTypeInfo("BOOLEAN"), value, "True or False")


def _coerce_char(value: Any) -> str | None:
    if value is None or (isinstance(value, str) and len(value) == 1):
        return value
    raise wrong_kind(BasicTypeInfo("CHAR"), value, "a single character")


def _as_float(code: str, value: Any) -> float:
    if not isinstance(value, numbers.Real):
        raise wrong_kind(BasicTypeInfo(code), value, "numbers")
    try:
        return float(value)
    except OverflowError:
        return -math.inf if operator.lt(value, 0) else math.inf


def _coerce_double(value: Any) -> float | None:
    if value.__class__ is float or value is None:
        return value
    return _as_float("DOUBLE", value)


def _coerce_float(value: Any) -> float | None:
    if value is None:
        return None
    number = value if value.__class__ is float else _as_float("FLOAT", value)
    try:
        narrowed: float = _FLOAT.unpack(_FLOAT.pack(number))[0]
    except OverflowError:
        return math.copysign(math.inf, number)
    return narrowed


def _coerce_big_dec(value: Any) -> Decimal | None:
    if value is None or isinstance(value, Decimal):
        return value
    if isinstance(value, int):
        return Decimal(value)
    raise wrong_kind(BasicTypeInfo("BIG_DEC"), value, "decimal.Decimal")


def _coerce_date(value: Any) -> datetime.date | None:
    if isinstance(value, datetime.datetime):
        return value.date()
    if value is None or isinstance(value, datetime.date):
        return value
    raise wrong_kind(BasicTypeInfo("SQL_DATE"), value, "datetime.date")


def _coerce_time(value: Any) -> datetime.time | None:
    if value is None:
        return None
    if not isinstance(value, datetime.time):
        raise wrong_kind(BasicTypeInfo("SQL_TIME"), value, "datetime.time")
    below_millis = value.microsecond % 1_000
    return value.replace(microsecond=value.microsecond - below_millis) if below_millis else value


_INTEGER_BITS: Final = {"BYTE": 8, "SHORT": 16, "INT": 32, "LONG": 64}
_EXACT_CLASSES: Final[dict[str, tuple[type, str]]] = {
    "STRING": (str, "text"),
    "INSTANT": (Instant, "millrace.common.Instant"),
    "SQL_TIMESTAMP": (datetime.datetime, "datetime.datetime"),
}
_SPECIAL_COERCERS: Final[dict[str, Coercer]] = {
    "BOOLEAN": _coerce_boolean,
    "CHAR": _coerce_char,
    "FLOAT": _coerce_float,
    "DOUBLE": _coerce_double,
    "BIG_INT": _coerce_big_int,
    "BIG_DEC": _coerce_big_dec,
    "SQL_DATE": _coerce_date,
    "SQL_TIME": _coerce_time,
}
