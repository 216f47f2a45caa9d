"""Between the values of state, which may be anything, and the columns of a DataFrame.

What the values of a state have in common is found by looking at all of them: each has a kind, and kinds are merged. A
kind is a name ("long"), or a tuple: ("array", element), ("map", key, value), ("struct", ((field, kind), ...)).
"""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from typing import Any, Final, NamedTuple

import pyarrow as pa
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_schema

from millrace.common.row import Row
from millrace.common.time import Instant
from millrace.state.codec import dump

__all__ = ["Column", "batches_of", "columns_of", "kinds_of", "merge_kinds", "schema_of"]

Kind = Any
ANY: Final = "any"
"""Has no Spark type: shown as text, and pickled."""
NOTHING: Final = "null"
PICKLED: Final = "_pickled"

_BASIC: Final[dict[type, str]] = {
    bool: "boolean",
    float: "double",
    str: "string",
    bytes: "binary",
    datetime.date: "date",
    Instant: "timestamp",
    type(None): NOTHING,
}
_SPARK: Final[dict[str, T.DataType]] = {
    "boolean": T.BooleanType(),
    "long": T.LongType(),
    "double": T.DoubleType(),
    "string": T.StringType(),
    "binary": T.BinaryType(),
    "date": T.DateType(),
    "timestamp": T.TimestampType(),
    "timestamp_ntz": T.TimestampNTZType(),
    NOTHING: T.StringType(),
}
_LONG: Final = range(-(2**63), 2**63)
_MAX_FIELDS: Final = 100
"""A dict of more fields than this is a map rather than a record."""
_ROWS: Final = 4096
_EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


class Column(NamedTuple):
    """A column of the DataFrame: from which part of an item, and from which field of it.

    ``pickled`` columns hold the bytes of what stands as text in the column before.
    """

    name: str
    part: int
    field: str | None
    kind: Kind
    pickled: bool = False


def kind_of(value: Any) -> Kind:
    """What a value is in Spark.

    >>> kind_of(3), kind_of([1.5, None]), kind_of(("a", 2**70))
    ('long', ('array', 'double'), ('struct', (('_1', 'string'), ('_2', 'any'))))
    """
    kind = type(value)
    basic = _BASIC.get(kind)
    if basic is not None:
        return basic
    if kind is int:
        return "long" if value in _LONG else ANY
    if kind is datetime.datetime:
        return "timestamp_ntz" if value.tzinfo is None else "timestamp"
    if kind is list:
        return "array", reduce(merge_kinds, map(kind_of, value), NOTHING)
    fields = _fields(value)
    if fields:
        return _settled(tuple((name, kind_of(held)) for name, held in fields.items()))
    if kind is dict:
        keys, values = (reduce(merge_kinds, map(kind_of, part), NOTHING) for part in (value, value.values()))
        # A map of Spark has no null as a key.
        return ANY if None in value else ("map", keys, values)
    return ANY


def merge_kinds(one: Kind, other: Kind) -> Kind:
    """What values of both kinds are in Spark.

    >>> merge_kinds("long", "double"), merge_kinds("long", "null"), merge_kinds("long", "string")
    ('double', 'long', 'any')
    """
    if other in (one, NOTHING):
        return one
    if one == NOTHING:
        return other
    if (one, other) in (("long", "double"), ("double", "long")):
        return "double"
    if isinstance(one, str) or isinstance(other, str):
        return ANY
    if one[0] == "struct" and other[0] == "map":
        one, other = other, one
    if one[0] == "map" and other[0] == "struct":
        other = _as_map(other[1])
    if one[0] != other[0]:
        return ANY
    if one[0] == "struct":
        fields = dict(one[1])
        for name, kind in other[1]:
            fields[name] = merge_kinds(fields.get(name, NOTHING), kind)
        return _settled(tuple(fields.items()))
    return (one[0], *(merge_kinds(*pair) for pair in zip(one[1:], other[1:], strict=True)))


def kinds_of(items: Iterable[Sequence[Any]], width: int) -> list[Kind]:
    """The kind of each part of many items."""
    kinds: list[Kind] = [NOTHING] * width
    for item in items:
        for index, value in enumerate(item):
            kind = kind_of(value)
            if kind != kinds[index]:
                kinds[index] = merge_kinds(kinds[index], kind)
    return kinds


def columns_of(names: Sequence[str], kinds: Sequence[Kind]) -> list[Column]:
    """The columns for items with these parts.

    The fields of values, and those of windows, become columns; positions, map keys, windows and last accesses that no
    item has become none.

    >>> window = ("struct", (("start", "long"), ("end", "long")))
    >>> [column.name for column in columns_of(["key", "namespace", "value"], ["string", window, "any"])]
    ['key', 'window_start', 'window_end', 'value', 'value_pickled']
    """
    columns: list[Column] = []
    taken = {*names, *(name + PICKLED for name in names), "window", "window_start", "window_end"}
    for index, (name, kind) in enumerate(zip(names, kinds, strict=True)):
        is_record = isinstance(kind, tuple) and kind[0] == "struct"
        if name == "namespace":
            name = "window"
            if is_record:
                columns += [_column(f"window_{field}", index, field, inner) for field, inner in kind[1]]
                continue
        if kind == NOTHING and name in ("window", "position", "map_key", "last_access"):
            continue
        if name == "value" and is_record:
            for field, inner in kind[1]:
                columns.append(_column(f"value_{field}" if field in taken else field, index, field, inner))
        else:
            columns.append(_column(name, index, None, kind))
    pickled = {
        id(column): Column(column.name + PICKLED, column.part, column.field, "binary", True)
        for column in columns
        if column.kind == ANY
    }
    return [made for column in columns for made in (column, pickled.get(id(column))) if made is not None]


def schema_of(columns: Sequence[Column]) -> T.StructType:
    """The columns as a schema."""
    return T.StructType([T.StructField(column.name, _spark_type(column.kind)) for column in columns])


def batches_of(columns: Sequence[Column], items: Iterable[Sequence[Any]]) -> Iterator[pa.RecordBatch]:
    """Items as columns."""
    schema = to_arrow_schema(schema_of(columns), timezone="UTC")
    cells = [_cell(column) for column in columns]
    rows: list[Sequence[Any]] = []

    def batch() -> pa.RecordBatch:
        arrays = [pa.array(map(cell, rows), field.type) for cell, field in zip(cells, schema, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    for item in items:
        rows.append(item)
        if len(rows) == _ROWS:
            yield batch()
            rows.clear()
    if rows:
        yield batch()


def _column(name: str, part: int, field: str | None, kind: Kind) -> Column:
    return Column(name, part, field, ANY if _has_any(kind) else kind)


def _has_any(kind: Kind) -> bool:
    if isinstance(kind, str):
        return kind == ANY
    inner = (held for _, held in kind[1]) if kind[0] == "struct" else kind[1:]
    return any(map(_has_any, inner))


def _fields(value: Any) -> dict[str, Any] | None:
    """The fields of a record by name; None for what is no record."""
    if isinstance(value, Row):
        return value.as_dict()
    if isinstance(value, tuple):
        names = getattr(value, "_fields", None) or [f"_{index + 1}" for index in range(len(value))]
        return dict(zip(names, value, strict=True))
    if type(value) is dict:
        return value if value and all(type(name) is str for name in value) else None
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name, None) for field in dataclasses.fields(value)}
    return None


def _settled(fields: tuple[tuple[str, Kind], ...]) -> Kind:
    return ("struct", fields) if len(fields) <= _MAX_FIELDS else _as_map(fields)


def _as_map(fields: tuple[tuple[str, Kind], ...]) -> Kind:
    return "map", "string", reduce(merge_kinds, (kind for _, kind in fields), NOTHING)


def _spark_type(kind: Kind) -> T.DataType:
    if kind == ANY:
        return T.StringType()
    if isinstance(kind, str):
        return _SPARK[kind]
    if kind[0] == "struct":
        return T.StructType([T.StructField(name, _spark_type(held)) for name, held in kind[1]])
    if kind[0] == "map":
        return T.MapType(_spark_type(kind[1]), _spark_type(kind[2]))
    return T.ArrayType(_spark_type(kind[1]))


def _cell(column: Column) -> Callable[[Sequence[Any]], Any]:
    """What gives the column's cell of an item."""
    part, field = column.part, column.field
    convert: Callable[[Any], Any] = dump if column.pickled else _converter(column.kind)

    def cell(item: Sequence[Any]) -> Any:
        value = item[part]
        if field is not None and value is not None:
            value = (_fields(value) or {}).get(field)
        return None if value is None else convert(value)

    return cell


def _converter(kind: Kind) -> Callable[[Any], Any]:
    """What turns a value into what Arrow takes for the kind."""
    if kind == ANY:
        return repr
    if kind == "double":
        return float
    if kind == "timestamp":
        return _timestamp
    if isinstance(kind, str):
        return lambda value: value
    if kind[0] == "struct":
        fields = [(name, _optional(held)) for name, held in kind[1]]

        def record(value: Any) -> dict[str, Any]:
            held = _fields(value) or {}
            return {name: convert(held.get(name)) for name, convert in fields}

        return record
    if kind[0] == "map":
        key, inner = _optional(kind[1]), _optional(kind[2])
        return lambda value: [(key(name), inner(held)) for name, held in (_fields(value) or value).items()]
    element = _optional(kind[1])
    return lambda value: [element(held) for held in value]


def _optional(kind: Kind) -> Callable[[Any], Any]:
    convert = _converter(kind)
    return lambda value: None if value is None else convert(value)


def _timestamp(value: Any) -> Any:
    if isinstance(value, Instant):
        return _EPOCH + datetime.timedelta(seconds=value.seconds, microseconds=value.nanos // 1000)
    return value
