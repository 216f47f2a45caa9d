from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millrace.state import (
    KeyRouter,
    default_max_parallelism,
    group_range,
    java_hash,
    key_group,
    murmur_hash,
    subtask_of_group,
)


@dataclass(frozen=True)
class Point:
    x: int
    label: str


@dataclass
class Mutable:
    x: int


class Plain:
    def __init__(self, first: str, second: str) -> None:
        self.first = first
        self.second = second


@pytest.mark.parametrize(
    ("key", "group"),
    [(0, 94), (1, 86), (42, 29), (-1, 80), ("a", 81), ("key1", 41), ("key2", 27), ("hello", 35), ("flink", 98)],
)
def test_key_groups_are_those_of_flink(key: object, group: int) -> None:
    assert key_group(key, 128) == group


def test_key_groups_of_long_keys_are_those_of_flink() -> None:
    assert [key_group(key, 128, long=True) for key in (1, -1)] == [86, 94]


@pytest.mark.parametrize(
    ("key", "code"),
    [
        (None, 0),
        (True, 1231),
        (False, 1237),
        (2147483647, 2147483647),
        (2147483648, -2147483648),
        (-2147483648, -2147483648),
        (-2147483649, -2147483648),
        (1 << 32, 1),
        (1 << 40, 256),
        (1.5, 1073217536),
        (0.1, -1507852285),
        (0.0, 0),
        (-0.0, 0),
        (float("nan"), 2146959360),
        ("", 0),
        ("hello", 99162322),
        ("\u00e9", 233),
        ("\U0001f600", 1772899),
        (b"", 1),
        (b"\xff", 30),
        (b"\x01\x02", 994),
        ((), 1),
        ((1, "a"), 1089),
        ((None, (1,)), 993),
        (frozenset({1, 2, 3}), 6),
        (np.int64(7), 7),
        (np.bool_(True), 1231),
        (np.float32(1.5), 1073217536),
        (np.str_("hello"), 99162322),
    ],
)
def test_hash_codes_are_those_of_java(key: object, code: int) -> None:
    assert java_hash(key) == code


def test_an_integer_beyond_64_bits_is_hashed_as_its_digits() -> None:
    assert java_hash(10**30) == java_hash("1" + "0" * 30)


def test_a_frozen_dataclass_is_hashed_by_its_name_and_values() -> None:
    assert java_hash(Point(1, "a")) == java_hash(("Point", 1, "a"))


def test_the_hash_of_other_objects_is_the_same_in_every_process() -> None:
    assert java_hash(Decimal("1.50")) == -1891966803


def test_equal_objects_have_equal_hashes_whether_or_not_they_share_their_parts() -> None:
    text = "ab"
    other = "".join(["a", "b"])
    assert java_hash(Plain(text, text)) == java_hash(Plain(text, other))


@pytest.mark.parametrize("key", [[1], {"a": 1}, {1}, bytearray(b"a")])
def test_a_key_that_cannot_be_hashed_is_refused_with_the_fix(key: object) -> None:
    with pytest.raises(TypeError, match="use a tuple instead"):
        java_hash(key)


def test_a_mutable_dataclass_is_refused_with_the_fix() -> None:
    with pytest.raises(TypeError, match=r"frozen=True"):
        KeyRouter(2, 128).route([Mutable(1)])


def test_murmur_is_never_negative() -> None:
    assert [murmur_hash(code) for code in (0, 1, -1, 2147483647, -2147483648)] == [
        593689054,
        68075478,
        1982413648,
        1653689534,
        1718298732,
    ]


def test_ranges_and_subtasks_are_those_of_flink() -> None:
    assert [group_range(subtask, 3, 128) for subtask in range(3)] == [range(0, 43), range(43, 86), range(86, 128)]
    assert [subtask_of_group(key_group(key, 128), 3, 128) for key in ("a", "key1", "flink")] == [1, 0, 2]


@given(st.integers(1, 300), st.integers(0, 300))
def test_every_group_is_in_the_range_of_its_subtask(parallelism: int, more: int) -> None:
    groups = parallelism + more
    owners = [subtask for subtask in range(parallelism) for _ in group_range(subtask, parallelism, groups)]
    assert owners == [subtask_of_group(group, parallelism, groups) for group in range(groups)]


@pytest.mark.parametrize(
    ("parallelism", "groups"),
    [(1, 128), (85, 128), (86, 256), (128, 256), (200, 512), (1000, 2048), (30000, 32768)],
)
def test_default_max_parallelism(parallelism: int, groups: int) -> None:
    assert default_max_parallelism(parallelism) == groups


def test_route_of_one_task_does_not_look_at_the_keys() -> None:
    assert KeyRouter(1, 128).route(["a", "b"]) == [0, 0]


_SCALARS = (
    st.none() | st.booleans() | st.integers(-3, 3) | st.integers() | st.sampled_from([0.0, -0.0, 1.0, 2.5]) | st.text()
)
_KEYS = _SCALARS | st.binary() | st.tuples(_SCALARS, _SCALARS) | st.sampled_from([Decimal("1.0"), Decimal("1.00")])


@given(st.lists(st.lists(_KEYS)))
def test_routes_do_not_depend_on_the_keys_seen_before(batches: list[list[object]]) -> None:
    router = KeyRouter(5, 128)
    for batch in batches:
        assert router.route(batch) == [subtask_of_group(key_group(key, 128), 5, 128) for key in batch]


def test_equal_keys_of_different_types_have_their_own_routes() -> None:
    assert KeyRouter(128, 128).route([1, True, 1.0]) == [key_group(1, 128), key_group(True, 128), key_group(1.0, 128)]
