"""Between Millrace's types and those of Arrow, which Parquet files are written and read through."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, Final

import pyarrow as pa

from millrace.common.row import Row, make_row
from millrace.common.time import Instant
from millrace.common.typeinfo import (
    BasicTypeInfo,
    MapTypeInfo,
    PickledBytesTypeInfo,
    PrimitiveArrayTypeInfo,
    RowTypeInfo,
    TupleTypeInfo,
    TypeInformation,
)
from millrace.connectors.files.records import field_names, field_values
from millrace.errors import ConfigurationError

__all__ = ["arrow_type", "from_arrow", "to_arrow"]

_BASIC: Final = {
    "STRING": pa.string(),
    "CHAR": pa.string(),
    "BYTE": pa.int8(),
    "SHORT": pa.int16(),
    "INT": pa.int32(),
    "LONG": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "BOOLEAN": pa.bool_(),
    "BIG_INT": pa.decimal128(38, 0),
    "BIG_DEC": pa.decimal128(38, 18),
    "INSTANT": pa.timestamp("us", tz="UTC"),
    "SQL_DATE": pa.date32(),
    "SQL_TIME": pa.time32("ms"),
    "SQL_TIMESTAMP": pa.timestamp("us"),
}
_BYTES: Final[TypeInformation] = PrimitiveArrayTypeInfo(BasicTypeInfo("BYTE"))
_EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MICROSECOND: Final = datetime.timedelta(microseconds=1)


def arrow_type(type_info: TypeInformation) -> Any:
    """The Arrow type that holds a type's values. Instants keep microseconds, big decimals 18 digits after the point.

    >>> from millrace.common.typeinfo import Types
    >>> str(arrow_type(Types.LIST(Types.INT())))
    'list<item: int32>'
    """
    if isinstance(type_info, BasicTypeInfo):
        return _BASIC[type_info.code]
    if type_info == _BYTES:
        return pa.binary()
    if isinstance(type_info, RowTypeInfo | TupleTypeInfo):
        return pa.struct(list(zip(_names(type_info), map(arrow_type, type_info.field_types), strict=True)))
    if isinstance(type_info, MapTypeInfo):
        return pa.map_(arrow_type(type_info.key_type), arrow_type(type_info.value_type))
    element = getattr(type_info, "element_type", None)
    if isinstance(type_info, PickledBytesTypeInfo) or element is None:
        raise ConfigurationError(f"{type_info!r} has no form in a Parquet file: declare what the values are made of")
    return pa.list_(arrow_type(element))


def to_arrow(value: Any, kind: Any = None) -> Any:
    """A value as Arrow takes it for a type, or without one for inference: everything with named fields is a dict.

    >>> to_arrow(Row(word="a", pair=(1, "b")))
    {'word': 'a', 'pair': {'f0': 1, 'f1': 'b'}}
    """
    if value is None or value.__class__ in _UNCHANGED:
        return value
    if isinstance(value, list):
        element = kind.value_type if kind is not None and pa.types.is_list(kind) else None
        return [to_arrow(item, element) for item in value]
    if isinstance(value, Mapping) and kind is not None and pa.types.is_map(kind):
        return [(to_arrow(key, kind.key_type), to_arrow(item, kind.item_type)) for key, item in value.items()]
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Instant):
        return _EPOCH + datetime.timedelta(seconds=value.seconds, microseconds=value.nanos // 1_000)
    if not isinstance(value, Row | tuple | Mapping) and not dataclasses.is_dataclass(value):
        return value
    kinds = {} if kind is None or not pa.types.is_struct(kind) else {field.name: field.type for field in kind}
    names = tuple(kinds) or field_names(value)
    return {name: to_arrow(item, kinds.get(name)) for name, item in zip(names, field_values(value, names), strict=True)}


_UNCHANGED: Final = frozenset({str, int, float, bool, bytes, datetime.date, datetime.datetime, datetime.time})


def from_arrow(type_info: TypeInformation) -> Callable[[Any], Any]:
    """Turns what Arrow's ``to_pylist`` gives into values of the type."""
    convert = _converter(type_info)
    return lambda value: None if value is None else convert(value)


def _converter(type_info: TypeInformation) -> Callable[[Any], Any]:
    if isinstance(type_info, BasicTypeInfo):
        coerce = type_info.coercer()
        if type_info.code == "INSTANT":
            return _instant
        return (lambda value: coerce(int(value))) if type_info.code == "BIG_INT" else coerce
    if isinstance(type_info, RowTypeInfo | TupleTypeInfo):
        names = _names(type_info)
        fields = list(zip(names, map(from_arrow, type_info.field_types), strict=True))
        if isinstance(type_info, TupleTypeInfo):
            return lambda value: tuple(convert(value.get(name)) for name, convert in fields)
        row_names = names if type_info.is_named else None
        return lambda value: make_row([convert(value.get(name)) for name, convert in fields], row_names)
    if isinstance(type_info, MapTypeInfo):
        key, item = from_arrow(type_info.key_type), from_arrow(type_info.value_type)
        return lambda value: {key(name): item(content) for name, content in value}
    if type_info == _BYTES:
        return bytes
    element_type = getattr(type_info, "element_type", None)
    if element_type is None:
        return lambda value: value
    element = from_arrow(element_type)
    return lambda value: [element(item) for item in value]


def _instant(value: datetime.datetime) -> Instant:
    seconds, micros = divmod((value - _EPOCH) // _MICROSECOND, 1_000_000)
    return Instant(seconds, micros * 1_000)


def _names(type_info: RowTypeInfo | TupleTypeInfo) -> tuple[str, ...]:
    if isinstance(type_info, RowTypeInfo):
        return type_info.field_names
    return tuple(f"f{index}" for index in range(len(type_info.field_types)))
