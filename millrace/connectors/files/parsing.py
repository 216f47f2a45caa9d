"""From the text of a file to typed values: cells of CSV, and what JSON makes of a line."""

from __future__ import annotations

import base64
import datetime
import json
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

from millrace.common.row import make_row
from millrace.common.time import Instant
from millrace.common.typeinfo import (
    BasicTypeInfo,
    MapTypeInfo,
    PickledBytesTypeInfo,
    PrimitiveArrayTypeInfo,
    RowTypeInfo,
    TupleTypeInfo,
    TypeInformation,
    Types,
)

__all__ = ["Parser", "cell_parser", "json_parser"]

Parser = Callable[[Any], Any]

_WHOLE_NUMBERS: Final = frozenset({"BYTE", "SHORT", "INT", "LONG", "BIG_INT"})
_TEXTS: Final = frozenset({"STRING", "CHAR"})
_BYTES: Final[TypeInformation] = PrimitiveArrayTypeInfo(BasicTypeInfo("BYTE"))
_INSTANT: Final = re.compile(r"(?P<second>[^.]+?)(?:\.(?P<fraction>\d{1,9}))?(?P<zone>Z|[+-]\d\d:?\d\d)?")


def cell_parser(type_info: TypeInformation) -> Callable[[str], Any]:
    """Reads a cell of a CSV file. An empty one is None, unless it is text; what has parts is JSON.

    >>> cell_parser(Types.INT())("12"), cell_parser(Types.INT())(""), cell_parser(Types.LIST(Types.INT()))("[1, 2]")
    (12, None, [1, 2])
    """
    if isinstance(type_info, PickledBytesTypeInfo) or type_info == Types.STRING():
        return str
    parse = json_parser(type_info)
    if isinstance(type_info, BasicTypeInfo) or type_info == _BYTES:
        return lambda text: parse(text) if text else None
    return lambda text: parse(json.loads(text)) if text else None


def json_parser(type_info: TypeInformation, *, fail_on_missing: bool = False) -> Parser:
    """Turns what ``json.loads`` gives into a value of the type. A field that an object lacks is None, or an error.

    >>> json_parser(Types.ROW_NAMED(["day"], [Types.SQL_DATE()]))({"day": "2024-02-29"})
    Row(day=datetime.date(2024, 2, 29))
    """
    if isinstance(type_info, BasicTypeInfo):
        return _basic_parser(type_info)
    if isinstance(type_info, PickledBytesTypeInfo):
        return lambda value: value
    if isinstance(type_info, RowTypeInfo):
        return _row_parser(type_info, fail_on_missing)
    if isinstance(type_info, TupleTypeInfo):
        fields = [json_parser(field, fail_on_missing=fail_on_missing) for field in type_info.field_types]
        return _or_none(lambda value: tuple(f(item) for f, item in zip(fields, _list(value), strict=True)))
    if isinstance(type_info, MapTypeInfo):
        key, item = json_parser(type_info.key_type), json_parser(type_info.value_type, fail_on_missing=fail_on_missing)
        return _or_none(lambda value: {key(name): item(content) for name, content in value.items()})
    if type_info == _BYTES:
        return _or_none(lambda value: base64.b64decode(value, validate=True))
    element_type = getattr(type_info, "element_type", None)
    if element_type is None:
        message = f"{type_info!r} cannot be read from a file: use the types that Types makes"
        raise TypeError(message)
    element = json_parser(element_type, fail_on_missing=fail_on_missing)
    return _or_none(lambda value: [element(item) for item in _list(value)])


def _row_parser(type_info: RowTypeInfo, fail_on_missing: bool) -> Parser:
    names = type_info.field_names
    row_names = names if type_info.is_named else None
    parsers = [json_parser(field, fail_on_missing=fail_on_missing) for field in type_info.field_types]

    def parse(value: Any) -> Any:
        if isinstance(value, dict):
            if fail_on_missing and not value.keys() >= set(names):
                missing = ", ".join(name for name in names if name not in value)
                raise ValueError(f"the field {missing} is missing")
            return make_row([p(value.get(name)) for p, name in zip(parsers, names, strict=True)], row_names)
        return make_row([p(item) for p, item in zip(parsers, _list(value), strict=True)], row_names)

    return _or_none(parse)


def _or_none(parse: Parser) -> Parser:
    return lambda value: None if value is None else parse(value)


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError(f"{value!r} is not a list")
    return value


def _basic_parser(type_info: BasicTypeInfo) -> Parser:
    code = type_info.code
    coerce = type_info.coercer()
    if code in _TEXTS:
        return coerce
    read = _TEXT_READERS[code]

    def parse(value: Any) -> Any:
        if value.__class__ is str:
            value = read(value)
        elif code == "BIG_DEC" and isinstance(value, float):
            value = Decimal(str(value))
        elif code in _WHOLE_NUMBERS and isinstance(value, bool):
            raise ValueError(f"{value!r} is not a whole number")
        result = coerce(value)
        if code in _WHOLE_NUMBERS and result != value:
            raise ValueError(f"{value!r} does not fit {type_info!r}")
        return result

    return parse


def _boolean(text: str) -> bool:
    lowered = text.strip().lower()
    if lowered not in {"true", "false", "1", "0"}:
        raise ValueError(f"{text!r} is neither true nor false")
    return lowered in {"true", "1"}


def _decimal(text: str) -> Decimal:
    try:
        return Decimal(text)
    except ArithmeticError:
        raise ValueError(f"{text!r} is not a decimal number") from None


def _instant(text: str) -> Instant:
    match = _INSTANT.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is no point in time such as 2024-02-29T12:00:00.5Z")
    second = datetime.datetime.fromisoformat(match["second"] + (match["zone"] or "Z"))
    return Instant(int(second.timestamp()), int((match["fraction"] or "").ljust(9, "0")))


_TEXT_READERS: Final[dict[str, Callable[[str], Any]]] = {
    **dict.fromkeys(_WHOLE_NUMBERS, int),
    "BOOLEAN": _boolean,
    "FLOAT": float,
    "DOUBLE": float,
    "BIG_DEC": _decimal,
    "INSTANT": _instant,
    "SQL_DATE": datetime.date.fromisoformat,
    "SQL_TIME": datetime.time.fromisoformat,
    "SQL_TIMESTAMP": datetime.datetime.fromisoformat,
}
