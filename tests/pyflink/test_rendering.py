from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pytest

from millrace.common import Instant, Row, RowKind, Types
from millrace.common.rendering import renderer
from millrace.common.typeinfo import TypeInformation

UTC_NOON = datetime.datetime(2024, 2, 29, 12, 0, 0, tzinfo=datetime.UTC)


@pytest.mark.parametrize(
    ("type_info", "value", "text"),
    [
        (Types.STRING(), "a b", "a b"),
        (Types.STRING(), None, "null"),
        (Types.BOOLEAN(), True, "true"),
        (Types.LONG(), -5, "-5"),
        (Types.DOUBLE(), 1.0, "1.0"),
        (Types.DOUBLE(), 0.001, "0.001"),
        (Types.DOUBLE(), 0.0001, "1.0E-4"),
        (Types.DOUBLE(), 9_999_999.0, "9999999.0"),
        (Types.DOUBLE(), 1e7, "1.0E7"),
        (Types.DOUBLE(), -1.5e300, "-1.5E300"),
        (Types.DOUBLE(), -0.0, "-0.0"),
        (Types.DOUBLE(), float("nan"), "NaN"),
        (Types.DOUBLE(), float("-inf"), "-Infinity"),
        (Types.FLOAT(), Types.FLOAT().coerce(110.1), "110.1"),
        (Types.FLOAT(), Types.FLOAT().coerce(1 / 3), "0.33333334"),
        (Types.FLOAT(), Types.FLOAT().coerce(16_777_216.0), "1.6777216E7"),
        (Types.BIG_DEC(), Decimal("1.050"), "1.050"),
        (Types.SQL_DATE(), UTC_NOON.date(), "2024-02-29"),
        (Types.SQL_TIME(), datetime.time(1, 2, 3, 4000), "01:02:03"),
        (Types.SQL_TIMESTAMP(), UTC_NOON, "2024-02-29 12:00:00.0"),
        (Types.SQL_TIMESTAMP(), UTC_NOON.replace(microsecond=120_000), "2024-02-29 12:00:00.12"),
        (Types.INSTANT(), Instant(0, 0), "1970-01-01T00:00:00Z"),
        (Types.INSTANT(), Instant(1, 500_000_000), "1970-01-01T00:00:01.500Z"),
        (Types.TUPLE([Types.STRING(), Types.INT()]), ("a", None), "(a,null)"),
        (Types.LIST(Types.STRING()), ["a", None], "[a, null]"),
        (Types.BASIC_ARRAY(Types.BOOLEAN()), [True, None], "[true, null]"),
        (Types.PRIMITIVE_ARRAY(Types.BYTE()), b"a\xff", "[97, -1]"),
        (Types.MAP(Types.STRING(), Types.INT()), {"a": 1, "b": None}, "{a=1, b=null}"),
        (Types.ROW([Types.STRING(), Types.PICKLED_BYTE_ARRAY()]), Row("a", b"hi"), "+I[a, [104, 105]]"),
        (Types.ROW([Types.INT(), Types.ROW([Types.INT()])]), Row(1, Row(2)), "+I[1, +I[2]]"),
        (Types.ROW_NAMED(["n"], [Types.INT()]), Row.of_kind(RowKind.UPDATE_AFTER, n=1), "+U[1]"),
        (Types.PICKLED_BYTE_ARRAY(), Row("a", None), "<Row('a', None)>"),
        (Types.PICKLED_BYTE_ARRAY(), None, "None"),
    ],
)
def test_values_of_declared_types(type_info: TypeInformation, value: Any, text: str) -> None:
    assert renderer(type_info)(value) == text


def test_typed_rows_have_names() -> None:
    row = Types.ROW([Types.INT(), Types.SHORT()]).coerce((1, 43_878))
    assert repr(row) == "Row(f0=1, f1=-21658)"
    assert row.f1 == -21_658
    assert row == Row(1, -21_658)
