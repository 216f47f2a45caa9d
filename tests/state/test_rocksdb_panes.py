"""Panes in RocksDB against dicts: any keys, any order of use, whatever is in memory and whatever is not."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millrace.state import VOID
from millrace.state.rocksdb import RocksDBSettings, RocksTables
from millrace.state.rocksdb_database import RocksDatabase
from millrace.state.rocksdb_keys import slot_of
from millrace.state.rocksdb_pane import RocksPane, Spill


class Point(NamedTuple):
    x: Any
    y: Any


@dataclass(frozen=True)
class User:
    name: str


class SameHash:
    """All of them have one hash."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __hash__(self) -> int:
        return 7

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SameHash) and self.number == other.number

    def __repr__(self) -> str:
        return f"SameHash({self.number})"


_SIMPLE_KEYS = st.one_of(
    st.integers(-3, 3),
    st.integers(),
    st.sampled_from([1.0, -0.0, 0.5, float("inf"), True, False, None, 10**20, 1e20, 2**61 - 1]),
    st.sampled_from([Decimal(1), Decimal("1.0"), Decimal("0.5"), Fraction(1, 2), Fraction(2)]),
    st.text(max_size=2),
    st.binary(max_size=2),
    st.builds(User, st.sampled_from("ab")),
    st.builds(SameHash, st.integers(0, 4)),
    st.frozensets(st.integers(0, 2)),
)
KEYS = st.one_of(
    _SIMPLE_KEYS,
    st.tuples(_SIMPLE_KEYS),
    st.tuples(_SIMPLE_KEYS, _SIMPLE_KEYS),
    st.builds(Point, _SIMPLE_KEYS, _SIMPLE_KEYS),
)


@pytest.fixture(scope="module")
def database() -> RocksDatabase:
    return RocksDatabase(memory=1 << 20)


@settings(deadline=None, max_examples=500)
@given(KEYS, KEYS)
def test_equal_keys_have_one_slot_and_exact_slots_one_key(one: Any, other: Any) -> None:
    (slot, exact), (other_slot, other_exact) = slot_of(one), slot_of(other)
    if one == other:
        assert (slot, exact) == (other_slot, other_exact)
    elif exact or other_exact:
        assert slot != other_slot


def test_equal_keys_whose_pickles_differ() -> None:
    text = "".join(["a", "b"])
    assert slot_of((text, text)) == slot_of((text, "".join(["a", "b"])))
    assert slot_of(Point(1, 2)) == slot_of((1.0, True + 1))


_STEPS = st.lists(
    st.tuples(
        st.sampled_from(["put", "put", "put", "get", "grow", "pop", "del", "flush", "evict", "clear", "items", "load"]),
        KEYS,
    ),
    max_size=40,
)


@settings(deadline=None, max_examples=300)
@given(steps=_STEPS)
def test_a_pane_is_a_dict(database: RocksDatabase, steps: list[tuple[str, Any]]) -> None:
    pane, model = RocksPane(Spill(database)), dict[Any, Any]()
    touched: set[Any] = set()
    for number, (step, key) in enumerate(steps):
        if step == "put":
            pane[key], model[key] = [number], [number]
        elif step == "get":
            assert pane.get(key, "none") == model.get(key, "none")
            assert (key in pane) == (key in model)
        elif step == "grow" and key in model:
            pane[key].append(number)
            model[key].append(number)
            touched.add(key)
        elif step == "pop":
            assert pane.pop(key, None) == model.pop(key, None)
        elif step == "del":
            for mapping in (pane, model):
                if key in mapping:
                    del mapping[key]
                else:
                    with pytest.raises(KeyError):
                        del mapping[key]
        elif step in ("flush", "evict"):
            pane.flush(touched)
            touched.clear()
            if step == "evict":
                pane.evict()
        elif step == "clear":
            pane.clear()
            model.clear()
        elif step == "items":
            assert list(pane.values()) == list(model.values())
        elif step == "load":
            pane.load([key, *model])
        assert len(pane) == len(model)
        assert list(pane) == list(model)
        assert list(reversed(pane)) == list(reversed(model))
    assert list(pane.items()) == list(model.items())
    assert pane == model
    pane.clear()


def test_what_was_read_stays_the_same_object_until_it_is_let_go(database: RocksDatabase) -> None:
    pane = RocksPane(Spill(database))
    pane["a"] = ["old"]
    pane.flush()
    pane.evict()
    held = pane["a"]
    held.append("new")
    assert pane["a"] is held
    ((_, seen),) = pane.items()
    assert seen is held
    pane.flush({"a"})
    pane.evict()
    assert pane["a"] == ["old", "new"]
    assert pane["a"] is not held


def test_values_changed_while_walking_over_them_are_kept(database: RocksDatabase) -> None:
    pane = RocksPane(Spill(database))
    for key in range(1000):
        pane[key] = [key]
    pane.flush()
    pane.evict()
    for _, value in pane.items():
        value.append("seen")
    pane.flush(set(range(1000)))
    pane.evict()
    assert all(value == [key, "seen"] for key, value in pane.items())


def test_a_pane_may_go_from_one_table_to_another() -> None:
    tables = RocksTables(RocksDBSettings(memory=0))
    open_windows, fired = tables.table("open"), tables.table("fired")
    open_windows.pane("w").update({"a": 1, "b": 2})
    open_windows.touched("w").update(["a", "b"])
    open_windows.delta()
    tables.settle()
    fired.panes["w"] = open_windows.panes["w"]
    fired.touched("w").update(["a", "b"])
    open_windows.drop("w")
    assert open_windows.delta() == (["w"], {})
    dropped, changes = fired.delta()
    assert (dropped, changes["w"][0]) == ([], {"a": 1, "b": 2})
    fired.drop("w")
    assert list(tables.database.scan(b"")) == []
    tables.close()


def test_a_dropped_namespace_leaves_nothing_behind_however_large_it_was() -> None:
    tables = RocksTables(RocksDBSettings(memory=0))
    table = tables.table("s")
    for namespace, size in (("small", 10), ("large", 5000), (VOID, 2000)):
        table.pane(namespace).update(dict.fromkeys(range(size), 1))
    tables.settle()
    assert sum(1 for _ in tables.database.scan(b"")) == 2 * 7010
    for namespace in ("small", "large", VOID):
        table.drop(namespace)
    assert list(tables.database.scan(b"")) == []
    assert (len(table), dict(table.pane(VOID))) == (0, {})
    tables.close()


def test_values_of_classes_that_cannot_be_imported() -> None:
    class Local:
        def __init__(self, number: int) -> None:
            self.number = number

    pane = RocksPane(Spill(RocksDatabase()))
    pane["a"] = Local(5)
    pane.flush()
    pane.evict()
    assert type(pane["a"]) is Local
    assert pane["a"].number == 5
