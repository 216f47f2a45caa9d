from __future__ import annotations

import array
import datetime
import json
import math
import pickle
from collections import namedtuple
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from millrace.common.cloudpickles import by_value
from millrace.common.row import Row, RowKind
from millrace.common.time import Instant
from millrace.common.typeinfo import RowTypeInfo, TupleTypeInfo, TypeInformation, Types, infer_type
from millrace.errors import RestoreError

BASIC = [
    Types.STRING(),
    Types.BYTE(),
    Types.BOOLEAN(),
    Types.SHORT(),
    Types.INT(),
    Types.LONG(),
    Types.FLOAT(),
    Types.DOUBLE(),
    Types.CHAR(),
    Types.BIG_INT(),
    Types.BIG_DEC(),
    Types.INSTANT(),
    Types.SQL_DATE(),
    Types.SQL_TIME(),
    Types.SQL_TIMESTAMP(),
]
COMPOSITE = [
    Types.PICKLED_BYTE_ARRAY(),
    Types.ROW([Types.INT(), Types.STRING()]),
    Types.ROW_NAMED(["a", "b"], [Types.INT(), Types.LIST(Types.STRING())]),
    Types.TUPLE([Types.CHAR(), Types.INT()]),
    Types.PRIMITIVE_ARRAY(Types.INT()),
    Types.BASIC_ARRAY(Types.INT()),
    Types.OBJECT_ARRAY(Types.SQL_DATE()),
    Types.MAP(Types.INT(), Types.STRING()),
    Types.LIST(Types.INT()),
]


@pytest.mark.parametrize("type_info", BASIC + COMPOSITE)
def test_every_type_round_trips(type_info: TypeInformation) -> None:
    stored = json.dumps(type_info.to_json())
    twins = [
        TypeInformation.from_json(json.loads(stored)),
        pickle.loads(pickle.dumps(type_info)),
        pickle.loads(by_value(type_info)),
        eval(repr(type_info), {"Types": Types}),
    ]
    assert twins == [type_info] * 4
    assert {hash(twin) for twin in twins} == {hash(type_info)}
    assert type_info.name == repr(type_info)


def test_types_differ() -> None:
    assert len({*BASIC, *COMPOSITE}) == len(BASIC) + len(COMPOSITE)
    assert Types.INT() != "Types.INT()"


@pytest.mark.parametrize("type_info", BASIC + COMPOSITE)
def test_none_stays_none(type_info: TypeInformation) -> None:
    assert type_info.coerce(None) is None


@pytest.mark.parametrize(
    ("type_info", "value", "expected"),
    [
        (Types.BYTE(), 127, 127),
        (Types.BYTE(), 128, -128),
        (Types.BYTE(), -129, 127),
        (Types.SHORT(), 32_767, 32_767),
        (Types.SHORT(), 32_768, -32_768),
        (Types.SHORT(), 43_878, -21_658),
        (Types.INT(), 2**31 - 1, 2**31 - 1),
        (Types.INT(), 2**31, -(2**31)),
        (Types.INT(), -(2**31) - 1, 2**31 - 1),
        (Types.LONG(), 2**63 - 1, 2**63 - 1),
        (Types.LONG(), 2**63, -(2**63)),
        (Types.LONG(), 2**64 + 5, 5),
        (Types.BIG_INT(), 2**70, 2**70),
        (Types.FLOAT(), 110.1, 110.0999984741211),
        (Types.FLOAT(), 1, 1.0),
        (Types.FLOAT(), 1e40, math.inf),
        (Types.FLOAT(), -1e40, -math.inf),
        (Types.DOUBLE(), 110.1, 110.1),
        (Types.DOUBLE(), 10**400, math.inf),
        (Types.DOUBLE(), -(10**400), -math.inf),
        (Types.BOOLEAN(), True, True),
        (Types.BOOLEAN(), np.bool_(False), False),
        (Types.STRING(), "ab", "ab"),
        (Types.CHAR(), "a", "a"),
        (Types.BIG_DEC(), Decimal("1.10"), Decimal("1.10")),
        (Types.BIG_DEC(), 2, Decimal(2)),
        (Types.INSTANT(), Instant(1, 2), Instant(1, 2)),
        (Types.SQL_DATE(), datetime.date(2020, 1, 2), datetime.date(2020, 1, 2)),
        (Types.SQL_DATE(), datetime.datetime(2020, 1, 2, 3, tzinfo=datetime.UTC), datetime.date(2020, 1, 2)),
        (Types.SQL_TIME(), datetime.time(1, 2, 3, 4_567), datetime.time(1, 2, 3, 4_000)),
        (
            Types.SQL_TIMESTAMP(),
            datetime.datetime(2020, 1, 2, 3, 4, 5, 6, tzinfo=datetime.UTC),
            datetime.datetime(2020, 1, 2, 3, 4, 5, 6, tzinfo=datetime.UTC),
        ),
    ],
)
def test_basic_narrowing(type_info: TypeInformation, value: Any, expected: Any) -> None:
    result = type_info.coerce(value)
    assert result == expected
    assert type(result) is type(expected)


def test_nan_stays_nan() -> None:
    assert math.isnan(Types.FLOAT().coerce(math.nan))


@pytest.mark.parametrize(
    ("type_info", "value", "kind"),
    [
        (Types.INT(), np.int64(5), int),
        (Types.LONG(), np.int32(5), int),
        (Types.DOUBLE(), np.float32(0.5), float),
        (Types.DOUBLE(), 1, float),
        (Types.FLOAT(), np.float64(0.5), float),
    ],
)
def test_numbers_become_pythons_own(type_info: TypeInformation, value: Any, kind: type) -> None:
    assert type(type_info.coerce(value)) is kind


@pytest.mark.parametrize(
    ("type_info", "value", "message"),
    [
        (Types.INT(), "1", r"Types.INT\(\) holds whole numbers, not '1' of type str"),
        (Types.LONG(), 1.5, r"Types.LONG\(\) holds whole numbers, not 1.5 of type float"),
        (Types.BIG_INT(), 1.5, r"Types.BIG_INT\(\) holds whole numbers"),
        (Types.STRING(), 1, r"Types.STRING\(\) holds text, not 1 of type int"),
        (Types.CHAR(), "ab", r"Types.CHAR\(\) holds a single character, not 'ab'"),
        (Types.BOOLEAN(), 1, r"Types.BOOLEAN\(\) holds True or False, not 1"),
        (Types.FLOAT(), "x", r"Types.FLOAT\(\) holds numbers"),
        (Types.DOUBLE(), Decimal(1), r"Types.DOUBLE\(\) holds numbers"),
        (Types.BIG_DEC(), 1.5, r"Types.BIG_DEC\(\) holds decimal.Decimal"),
        (Types.SQL_DATE(), "2020-01-01", r"Types.SQL_DATE\(\) holds datetime.date"),
        (Types.SQL_TIME(), 5, r"Types.SQL_TIME\(\) holds datetime.time"),
        (Types.SQL_TIMESTAMP(), datetime.date(2020, 1, 1), r"Types.SQL_TIMESTAMP\(\) holds datetime.datetime"),
        (Types.INSTANT(), 5, r"Types.INSTANT\(\) holds millrace.common.Instant"),
        (Types.LIST(Types.INT()), 5, r"Types.LIST\(Types.INT\(\)\) holds lists, tuples or arrays, not 5"),
        (Types.LIST(Types.INT()), "ab", r"holds lists, tuples or arrays, not 'ab'"),
        (Types.MAP(Types.INT(), Types.INT()), [1], r"holds dicts, not \[1\]"),
        (Types.TUPLE([Types.INT()]), (1, 2), r"Types.TUPLE\(\[Types.INT\(\)\]\) holds 1 fields, not \(1, 2\)"),
        (Types.TUPLE([Types.INT()]), 1, r"holds tuples, not 1"),
        (Types.ROW([Types.INT()]), (1, 2), r"Types.ROW\(\[Types.INT\(\)\]\) holds 1 fields"),
        (Types.ROW([Types.INT()]), 5, r"holds rows, tuples, lists or dicts, not 5"),
        (Types.ROW_NAMED(["a"], [Types.INT()]), Row(b=1), r"holds rows with the fields a, not Row\(b=1\)"),
        (Types.PRIMITIVE_ARRAY(Types.INT()), [None], r"holds no None; use Types.BASIC_ARRAY for that"),
    ],
)
def test_wrong_kind_names_type_and_value(type_info: TypeInformation, value: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        type_info.coerce(value)


def test_only_the_pickled_type_needs_no_coercer() -> None:
    assert Types.PICKLED_BYTE_ARRAY().coercer() is None
    value = object()
    assert Types.PICKLED_BYTE_ARRAY().coerce(value) is value
    for type_info in (*BASIC, *COMPOSITE[1:]):
        assert callable(type_info.coercer())


def test_row_takes_all_kinds_of_records() -> None:
    named = Types.ROW_NAMED(["name", "age"], [Types.STRING(), Types.BYTE()])
    expected = Row("name", "age")("Alice", -128)
    records = [
        ("Alice", 128),
        ["Alice", 128],
        {"age": 128, "name": "Alice"},
        Row("Alice", 128),
        Row("name", "age")("Alice", 128),
    ]
    assert [named.coerce(record) for record in records] == [expected] * 5


def test_row_with_names_is_matched_by_name() -> None:
    named = Types.ROW_NAMED(["name", "age"], [Types.STRING(), Types.INT()])
    assert named.coerce(Row(name="Alice", age=11)) == Row("name", "age")("Alice", 11)
    assert named.coerce(Row("f0", "f1")("Alice", 11)) == Row("name", "age")("Alice", 11)
    assert named.coerce({"name": "Alice"}) == Row("name", "age")("Alice", None)


def test_row_without_names_is_matched_by_position() -> None:
    row = Types.ROW([Types.STRING(), Types.INT()]).coerce(Row("x", "y")("Alice", 11))
    assert row == Row("Alice", 11)
    assert row.f1 == 11


def test_row_keeps_its_kind_and_leaves_the_original_alone() -> None:
    original = Row.of_kind(RowKind.DELETE, 1, "a")
    copy = Types.ROW([Types.PICKLED_BYTE_ARRAY(), Types.PICKLED_BYTE_ARRAY()]).coerce(original)
    assert copy == original
    copy[0] = 2
    assert original[0] == 1


def test_nested_types() -> None:
    nested = Types.ROW_NAMED(
        ["id", "tags", "pairs", "by"],
        [
            Types.SHORT(),
            Types.LIST(Types.STRING()),
            Types.OBJECT_ARRAY(Types.TUPLE([Types.BYTE(), Types.PICKLED_BYTE_ARRAY()])),
            Types.MAP(Types.STRING(), Types.ROW([Types.BYTE()])),
        ],
    )
    row = nested.coerce((43_878, ("a", None), [[200, {1}]], {"k": (200,)}))
    assert row == Row("id", "tags", "pairs", "by")(-21_658, ["a", None], [(-56, {1})], {"k": Row(-56)})


def test_lists_of_anything_are_still_lists() -> None:
    assert Types.LIST(Types.PICKLED_BYTE_ARRAY()).coerce((1, "a")) == [1, "a"]
    assert Types.LIST(Types.INT()).coerce(np.array([1, 2])) == [1, 2]
    assert Types.MAP(Types.PICKLED_BYTE_ARRAY(), Types.BYTE()).coerce({(1, 2): 128}) == {(1, 2): -128}


def test_arrays() -> None:
    assert Types.PRIMITIVE_ARRAY(Types.SHORT()).coerce((1, 43_878)) == [1, -21_658]
    assert Types.PRIMITIVE_ARRAY(Types.DOUBLE()).coerce(array.array("d", [0.5])) == [0.5]
    assert Types.PRIMITIVE_ARRAY(Types.BYTE()).coerce(bytearray(b"ab")) == b"ab"
    assert Types.PRIMITIVE_ARRAY(Types.BYTE()).coerce([1, -1, 255]) == b"\x01\xff\xff"
    assert Types.BASIC_ARRAY(Types.BYTE()).coerce([1, None, 128]) == [1, None, -128]


def test_row_type_names_and_types() -> None:
    assert RowTypeInfo([Types.STRING(), Types.STRING()]).get_field_names() == ["f0", "f1"]
    named = RowTypeInfo([Types.STRING(), Types.INT()], ["a", "b"])
    assert named.get_field_names() == ["a", "b"]
    assert named.get_field_types() == [Types.STRING(), Types.INT()]
    assert (named.get_field_index("b"), named.get_field_index("z")) == (1, -1)
    assert (named.field_names, named.field_types) == (("a", "b"), (Types.STRING(), Types.INT()))
    assert Types.ROW([Types.INT()]) == Types.ROW_NAMED(["f0"], [Types.INT()])
    assert TupleTypeInfo([Types.STRING(), Types.INT()]).get_field_types() == [Types.STRING(), Types.INT()]


def test_text_form() -> None:
    assert str(RowTypeInfo([Types.STRING(), Types.STRING()], ["a", "b"])) == "RowTypeInfo(a: String, b: String)"
    assert str(Types.TUPLE([Types.STRING(), Types.INT()])) == "TupleTypeInfo(String, Integer)"
    assert str(Types.MAP(Types.INT(), Types.LIST(Types.LONG()))) == "MapTypeInfo<Integer, ListTypeInfo<Long>>"
    assert str(Types.PICKLED_BYTE_ARRAY()) == "PickledByteArrayTypeInfo"


def test_declarations_are_checked() -> None:
    with pytest.raises(TypeError, match=r"Types.LIST: .* is no type made by Types; call it: Types.INT\(\)"):
        Types.LIST(Types.INT)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="Types.TUPLE: 'int' is no type made by Types"):
        Types.TUPLE(["int"])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="1 names for 2 types"):
        Types.ROW_NAMED(["a"], [Types.INT(), Types.INT()])
    with pytest.raises(ValueError, match="a name occurs twice"):
        Types.ROW_NAMED(["a", "a"], [Types.INT(), Types.INT()])


def test_unknown_description_is_a_restore_error() -> None:
    with pytest.raises(RestoreError, match="'SET'.* describes no known type; known are BASIC_ARRAY, "):
        TypeInformation.from_json({"type": "SET"})


@dataclass
class Point:
    x: int


Named = namedtuple("Named", ["a"])


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (True, Types.BOOLEAN()),
        (1, Types.LONG()),
        (2**63, Types.BIG_INT()),
        (1.5, Types.DOUBLE()),
        ("a", Types.STRING()),
        (b"a", Types.PRIMITIVE_ARRAY(Types.BYTE())),
        (("a", 1), Types.TUPLE([Types.STRING(), Types.LONG()])),
        ([1, None, 2], Types.LIST(Types.LONG())),
        ([], Types.LIST(Types.PICKLED_BYTE_ARRAY())),
        ([1, "a"], Types.LIST(Types.PICKLED_BYTE_ARRAY())),
        ({"a": 1}, Types.MAP(Types.STRING(), Types.LONG())),
        (Row(1, "a"), Types.ROW([Types.LONG(), Types.STRING()])),
        (Row(a=1), Types.ROW_NAMED(["a"], [Types.LONG()])),
        (Point(1), Types.PICKLED_BYTE_ARRAY()),
        (Named(1), Types.PICKLED_BYTE_ARRAY()),
        ({1}, Types.PICKLED_BYTE_ARRAY()),
        (None, Types.PICKLED_BYTE_ARRAY()),
    ],
)
def test_infer_type(value: Any, expected: TypeInformation) -> None:
    assert infer_type(value) == expected
    assert infer_type(value).coerce(value) == value
