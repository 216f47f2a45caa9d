"""Typed records as text, the way Flink shows them."""

from __future__ import annotations

import datetime
import math
import struct
from collections.abc import Callable, Sequence
from typing import Any, Final

from millrace.common._type_base import TypeInformation
from millrace.common._type_basic import BasicTypeInfo
from millrace.common._type_composite import (
    BasicArrayTypeInfo,
    ListTypeInfo,
    MapTypeInfo,
    ObjectArrayTypeInfo,
    PrimitiveArrayTypeInfo,
    RowTypeInfo,
    TupleTypeInfo,
)
from millrace.common.row import Row, RowKind
from millrace.common.time import Instant

__all__ = ["ROW_KIND_MARKS", "renderer"]

Renderer = Callable[[Any], str]

ROW_KIND_MARKS: Final = {
    RowKind.INSERT: "+I",
    RowKind.UPDATE_BEFORE: "-U",
    RowKind.UPDATE_AFTER: "+U",
    RowKind.DELETE: "-D",
}
"""How a line begins that shows a row."""

_SINGLE: Final = struct.Struct("<f")
_SEQUENCES: Final = (ListTypeInfo, BasicArrayTypeInfo, ObjectArrayTypeInfo, PrimitiveArrayTypeInfo)


def renderer(type_info: TypeInformation | None) -> Renderer:
    """The function that shows a record of the type; records without a declared type show as ``str()`` does.

    >>> from millrace.common.typeinfo import Types
    >>> renderer(Types.ROW([Types.STRING(), Types.FLOAT(), Types.BOOLEAN()]))(Row("a", 1.2300000190734863, None))
    '+I[a, 1.23, null]'
    >>> renderer(Types.TUPLE([Types.STRING(), Types.LIST(Types.INT())]))(("a", [1, 2]))
    '(a,[1, 2])'
    >>> renderer(None)(("a", 1))
    "('a', 1)"
    """
    if isinstance(type_info, BasicTypeInfo):
        return _or_null(_BASIC.get(type_info.code, str))
    if isinstance(type_info, RowTypeInfo):
        return _or_null(_row_renderer([_field_renderer(each) for each in type_info.field_types]))
    if isinstance(type_info, TupleTypeInfo):
        return _or_null(_joined("({})", ",", [_field_renderer(each) for each in type_info.field_types]))
    if isinstance(type_info, MapTypeInfo):
        return _or_null(_map_renderer(_field_renderer(type_info.key_type), _field_renderer(type_info.value_type)))
    if isinstance(type_info, _SEQUENCES):
        return _or_null(_sequence_renderer(_field_renderer(type_info.element_type)))
    return str


def _field_renderer(type_info: TypeInformation) -> Renderer:
    """As `renderer`, for a value inside of another one: there, what has no type can still be null, or bytes."""
    known = renderer(type_info)
    return known if known is not str else _or_null(_untyped)


def _untyped(value: Any) -> str:
    return _signed_bytes(value) if isinstance(value, bytes | bytearray) else str(value)


def _or_null(render: Renderer) -> Renderer:
    return lambda value: "null" if value is None else render(value)


def _row_renderer(fields: Sequence[Renderer]) -> Renderer:
    body = _joined("[{}]", ", ", fields)
    return lambda row: (ROW_KIND_MARKS[row.get_row_kind()] if isinstance(row, Row) else "+I") + body(row)


def _joined(form: str, separator: str, fields: Sequence[Renderer]) -> Renderer:
    def render(values: Any) -> str:
        return form.format(separator.join([field(value) for field, value in zip(fields, values, strict=True)]))

    return render


def _sequence_renderer(element: Renderer) -> Renderer:
    def render(values: Any) -> str:
        if isinstance(values, bytes | bytearray):
            return _signed_bytes(values)
        return "[" + ", ".join([element(value) for value in values]) + "]"

    return render


def _map_renderer(key: Renderer, value: Renderer) -> Renderer:
    return lambda entries: "{" + ", ".join([f"{key(k)}={value(v)}" for k, v in entries.items()]) + "}"


def _signed_bytes(value: bytes | bytearray) -> str:
    return str([byte - 256 if byte > 127 else byte for byte in value])


def _double(value: float) -> str:
    return _decimal_or_scientific(value, repr(value))


def _single(value: float) -> str:
    """The shortest text that names the same 32-bit number."""
    bits = _SINGLE.pack(value)
    shortest = next(text for digits in range(1, 18) if _SINGLE.pack(float(text := f"{value:.{digits}g}")) == bits)
    return _decimal_or_scientific(value, repr(float(shortest)))


def _decimal_or_scientific(value: float, text: str) -> str:
    """A number with its digits, written as the JVM writes it: from 0.001 to 10 million without an exponent."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    mantissa, _, exponent = text.partition("e")
    sign = "-" if mantissa.startswith("-") else ""
    whole, _, fraction = mantissa.lstrip("-").partition(".")
    digits = (whole + fraction).lstrip("0")
    point = len(whole) + int(exponent or 0) - (len(whole + fraction) - len(digits))
    digits = digits.rstrip("0") or "0"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        if value == 0:
            return f"{sign}0.0"
        padded = "0" * max(0, 1 - point) + digits + "0" * max(0, point + 1 - len(digits))
        split = max(point, 1)
        return f"{sign}{padded[:split]}.{padded[split:]}"
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{point - 1}"


def _time(value: datetime.time) -> str:
    return value.strftime("%H:%M:%S")


def _timestamp(value: datetime.datetime) -> str:
    fraction = f"{value.microsecond:06d}".rstrip("0") or "0"
    return f"{value:%Y-%m-%d %H:%M:%S}.{fraction}"


def _instant(value: Instant) -> str:
    moment = datetime.datetime.fromtimestamp(value.seconds, datetime.UTC)
    fraction = f".{value.nanos:09d}" if value.nanos else ""
    while fraction.endswith("000"):
        fraction = fraction[:-3]
    return f"{moment:%Y-%m-%dT%H:%M:%S}{fraction}Z"


_BASIC: Final[dict[str, Renderer]] = {
    "BOOLEAN": lambda value: "true" if value else "false",
    "FLOAT": _single,
    "DOUBLE": _double,
    "SQL_TIME": _time,
    "SQL_TIMESTAMP": _timestamp,
    "INSTANT": _instant,
}
