"""Records of any shape as columns and as text: rows, dicts, dataclasses, tuples and plain values."""

from __future__ import annotations

import base64
import dataclasses
import datetime
import json
import uuid
from collections.abc import Mapping, Sequence
from decimal import Decimal
from enum import Enum
from typing import Any, Final

from millrace.common.row import Row
from millrace.common.time import Instant

__all__ = ["cell_text", "field_names", "field_values", "json_text", "plain"]

PLAIN_VALUE = "value"
"""The column of records that have no fields."""


def field_names(record: Any) -> tuple[str, ...]:
    """The columns of a record; f0, f1, ... where the fields have no names.

    >>> field_names({"a": 1, "b": 2}), field_names(("x", 1)), field_names(7)
    (('a', 'b'), ('f0', 'f1'), ('value',))
    """
    if isinstance(record, Mapping):
        return tuple(map(str, record))
    if isinstance(record, Row):
        return tuple(record.as_dict())
    if isinstance(record, tuple | list):
        named: tuple[str, ...] | None = getattr(record, "_fields", None)
        return named or tuple(f"f{index}" for index in range(len(record)))
    if dataclasses.is_dataclass(record):
        return tuple(field.name for field in dataclasses.fields(record))
    return (PLAIN_VALUE,)


def field_values(record: Any, names: tuple[str, ...]) -> Sequence[Any]:
    """The values of a record for these columns, by name where it has names and by position where it has none.

    A column that a dict lacks is None. A field without a column is an error: it would be lost.

    >>> field_values({"b": 2}, ("a", "b"))
    [None, 2]
    """
    if isinstance(record, Row):
        named = getattr(record, "_fields", None)
        if named is None or named == names:
            return _checked(list(record), names, record)
        return _by_name(record.as_dict(), names, record)
    if isinstance(record, Mapping):
        return _by_name(record, names, record)
    if isinstance(record, tuple | list):
        named = getattr(record, "_fields", None)
        if named is None or named == names:
            return _checked(record, names, record)
        return _by_name(dict(zip(named, record, strict=True)), names, record)
    if dataclasses.is_dataclass(record):
        return _by_name(_dataclass_fields(record), names, record)
    return _checked([record], names, record)


def _dataclass_fields(record: Any) -> dict[str, Any]:
    return {field.name: getattr(record, field.name) for field in dataclasses.fields(record)}


def _checked(values: Sequence[Any], names: tuple[str, ...], record: Any) -> Sequence[Any]:
    if len(values) != len(names):
        message = f"{record!r} has {len(values)} fields, the file has the columns {', '.join(names)}"
        raise ValueError(message)
    return values


def _by_name(fields: Mapping[str, Any], names: tuple[str, ...], record: Any) -> list[Any]:
    if len(fields) == len(names):
        try:
            return [fields[name] for name in names]
        except KeyError:
            pass
    if not fields.keys() <= set(names):
        lost = [str(name) for name in fields if name not in names]
        message = (
            f"the field {lost[0]!r} of {record!r} has no column: the file has {', '.join(names)}. Give all columns "
            "when the sink is made, or send records of one shape"
        )
        raise ValueError(message)
    return [fields.get(name) for name in names]


def json_text(record: Any) -> str:
    """A record as one line of JSON: an object if it has named fields, else an array or a plain value.

    >>> json_text(Row(word="a", count=1)), json_text(("a", 1))
    ('{"word":"a","count":1}', '["a",1]')
    """
    if isinstance(record, tuple) and hasattr(record, "_asdict"):
        record = record._asdict()
    return _to_json(record)


def plain(value: Any) -> Any:
    """A value that JSON has no form for, as one that it has."""
    if isinstance(value, Row):
        return value.as_dict()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _dataclass_fields(value)
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, Instant):
        return _instant_text(value)
    if isinstance(value, Decimal | uuid.UUID):
        return str(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, Mapping):
        return dict(value)
    as_python = getattr(value, "tolist", None)  # numpy's numbers and arrays
    if as_python is not None:
        return as_python()
    kind = type(value).__name__
    message = f"{value!r} of type {kind} has no form in a file: map it to text, numbers, dicts or lists first"
    raise TypeError(message)


_to_json: Final = json.JSONEncoder(default=plain, ensure_ascii=False, separators=(",", ":")).encode


def cell_text(value: Any) -> str:
    """A value as the cell of a CSV file; None is empty, and what has parts is JSON.

    >>> cell_text(None), cell_text(True), cell_text(1.5), cell_text([1, "a"])
    ('', 'true', '1.5', '[1,"a"]')
    """
    if value.__class__ is str:
        return value
    if value is None:
        return ""
    if value is True or value is False:
        return "true" if value else "false"
    if isinstance(value, str | int | float) and not isinstance(value, Enum):
        return str(value)
    if isinstance(value, tuple | list | Mapping):
        return json_text(value)
    simple = plain(value)
    return json_text(simple) if isinstance(simple, list | dict) else cell_text(simple)


def _instant_text(instant: Instant) -> str:
    second = datetime.datetime.fromtimestamp(instant.seconds, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S")
    fraction = f".{instant.nanos:09d}".rstrip("0").rstrip(".")
    return f"{second}{fraction}Z"
