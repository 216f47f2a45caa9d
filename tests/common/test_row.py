from __future__ import annotations

import copy
import pickle

import pytest

from millrace.common.row import Row, RowKind
from millrace.common.types import Row as RowOfTypesModule


def test_positional_row() -> None:
    row = Row(1, "a", None)
    assert list(row) == [1, "a", None]
    assert len(row) == 3
    assert (row[0], row[-1], row[0:2]) == (1, None, [1, "a"])
    assert repr(row) == "<Row(1, 'a', None)>"
    assert row._values == [1, "a", None]


def test_positional_row_answers_to_default_names() -> None:
    row = Row(1, "a")
    assert (row.f0, row["f1"]) == (1, "a")
    assert row.as_dict() == {"f0": 1, "f1": "a"}


def test_keyword_fields_keep_their_order() -> None:
    row = Row(name="Alice", age=11)
    assert list(row) == ["Alice", 11]
    assert repr(row) == "Row(name='Alice', age=11)"
    assert (row.name, row["age"], row[1]) == ("Alice", 11, 11)


def test_the_order_of_named_fields_does_not_matter_to_equality() -> None:
    assert Row(name="Alice", age=11) == Row(age=11, name="Alice")
    assert hash(Row(name="Alice", age=11)) == hash(Row(age=11, name="Alice"))
    assert Row(name="Alice", age=11) != Row(name=11, age="Alice")


def test_default_names_are_no_names() -> None:
    named = Row(*(f"f{i}" for i in range(12)))(*range(12))
    assert named == Row(*range(12))
    assert hash(named) == hash(Row(*range(12)))


def test_a_missing_field_is_a_key_error_and_a_value_error() -> None:
    for kind in (KeyError, ValueError):
        with pytest.raises(kind, match="no field 'b'; its fields are a"):
            Row(a=1)["b"]


def test_field_called_self() -> None:
    assert Row(self=1)["self"] == 1


def test_row_of_names_makes_rows() -> None:
    make = Row("n", "v")
    row = make(1, 2)
    assert repr(row) == "Row(n=1, v=2)"
    assert (row.n, row.v) == (1, 2)
    with pytest.raises(ValueError, match=r"Row with the fields n, v: 2 values are needed, got \(1, 2, 3\)"):
        make(1, 2, 3)


def test_both_ways_at_once_are_refused() -> None:
    with pytest.raises(ValueError, match="either by position or by name"):
        Row(1, a=2)


def test_unknown_fields_list_the_known_ones() -> None:
    row = Row(a=1, b=2)
    with pytest.raises(AttributeError, match="Row has no field 'c'; its fields are a, b"):
        _ = row.c
    with pytest.raises(KeyError, match="Row has no field 'c'; its fields are a, b"):
        _ = row["c"]
    with pytest.raises(KeyError, match="Row has no field 'c'"):
        row["c"] = 1
    with pytest.raises(IndexError):
        _ = row[2]


def test_fields_can_be_set() -> None:
    row = Row(a=1, b=2)
    row["a"] = 10
    row[1] = 20
    assert list(row) == [10, 20]


def test_contains_looks_at_names_if_there_are_any() -> None:
    assert "a" in Row(a=1)
    assert 1 not in Row(a=1)
    assert 1 in Row(1)


def test_row_kind() -> None:
    row = Row(1)
    assert row.get_row_kind() is RowKind.INSERT
    row.set_row_kind(RowKind.UPDATE_BEFORE)
    assert row.get_row_kind() is RowKind.UPDATE_BEFORE
    assert Row.of_kind(RowKind.DELETE, 1, 2) == Row.of_kind(RowKind.DELETE, 1, 2)
    assert Row.of_kind(RowKind.DELETE, 1) != Row(1)
    assert Row.of_kind(RowKind.DELETE, a=1).a == 1
    assert [kind.value for kind in RowKind] == [0, 1, 2, 3]


def test_set_field_names() -> None:
    row = Row(1, 2)
    row.set_field_names(["x", "y"])
    assert repr(row) == "Row(x=1, y=2)"
    with pytest.raises(ValueError, match="1 names"):
        row.set_field_names(["x"])


def test_get_fields_by_names() -> None:
    assert Row(a=1, b=2, c=3).get_fields_by_names(["c", "a"]) == [3, 1]
    assert Row(1, 2).get_fields_by_names(["x", "y"]) == [1, 2]
    with pytest.raises(KeyError, match="no field 'z'"):
        Row(a=1).get_fields_by_names(["z"])


def test_as_dict() -> None:
    row = Row(key=1, value=Row(a=2), more=[Row(b=3)], by={"k": Row(c=4)})
    assert row.as_dict() == {"key": 1, "value": Row(a=2), "more": [Row(b=3)], "by": {"k": Row(c=4)}}
    assert row.as_dict(recursive=True) == {"key": 1, "value": {"a": 2}, "more": [{"b": 3}], "by": {"k": {"c": 4}}}


def test_equality_and_hash() -> None:
    assert Row(1, 2) == Row(1, 2)
    assert hash(Row(1, 2)) == hash(Row(1, 2))
    assert Row(a=1) == Row(a=1)
    assert Row(a=1) != Row(b=1)
    assert Row(a=1) != Row(1)
    assert Row(1) != (1,)
    assert len({Row(1), Row(1), Row(2)}) == 2


def test_order_is_that_of_the_values() -> None:
    assert sorted([Row("b", 1), Row("a", 2), Row("a", 1)]) == [Row("a", 1), Row("a", 2), Row("b", 1)]
    assert Row(1) <= Row(1)
    assert Row(2) > Row(1)
    assert Row(2) >= Row(1)


@pytest.mark.parametrize("row", [Row(), Row(1, "a"), Row(a=1), Row.of_kind(RowKind.DELETE, a=[1, Row(2)])])
def test_pickles_and_copies(row: Row) -> None:
    for twin in (pickle.loads(pickle.dumps(row)), copy.deepcopy(row), copy.copy(row)):
        assert twin == row
        assert twin.get_row_kind() is row.get_row_kind()
        assert repr(twin) == repr(row)


def test_deep_copy_shares_no_values() -> None:
    row = Row(a=1)
    twin = copy.deepcopy(row)
    twin["a"] = 2
    assert row.a == 1


def test_pyflink_module_name() -> None:
    assert RowOfTypesModule is Row
