from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millrace.state import VOID, StateTable
from millrace.state.table import TableSource

NewTable = Callable[[str], StateTable]


@pytest.fixture(scope="module")
def new_table(each_backend: Callable[[], TableSource]) -> NewTable:
    return lambda name: each_backend().table(name)


def write(table: StateTable, namespace: object, key: object, value: object) -> None:
    table.pane(namespace)[key] = value
    table.touched(namespace).add(key)


def test_the_objects_of_void_stay_the_same(new_table: NewTable) -> None:
    table = new_table("a")
    pane, touched = table.pane(VOID), table.touched(VOID)
    write(table, VOID, "k", 1)
    table.delta()
    table.drop(VOID)
    table.apply((None, {VOID: ({"k": 2}, [])}))
    table.apply(([VOID], {}))
    table.retain(lambda key: False)
    assert table.pane(VOID) is pane
    assert table.touched(VOID) is touched


def test_delta_holds_what_was_written_and_removed(new_table: NewTable) -> None:
    table = new_table("a")
    write(table, VOID, "k", 1)
    write(table, "w", "k", 2)
    assert table.delta() == ([], {VOID: ({"k": 1}, ["k"]), "w": ({"k": 2}, ["k"])})
    del table.pane("w")["k"]
    table.touched("w").add("k")
    assert table.delta() == ([], {"w": ({}, ["k"])})
    assert list(table.panes) == [VOID]


def test_a_dropped_namespace_is_one_entry_and_may_be_used_again(new_table: NewTable) -> None:
    table = new_table("a")
    for key in range(100):
        write(table, "w", key, key)
    table.delta()
    table.drop("w")
    write(table, "w", 7, "new")
    delta = table.delta()
    assert delta == (["w"], {"w": ({7: "new"}, [7])})
    copy = new_table("a")
    copy.apply((None, {"w": ({1: 1, 7: 7}, [])}))
    copy.apply(delta)
    assert copy.panes == {VOID: {}, "w": {7: "new"}}


def test_dropping_after_removing_key_by_key_keeps_the_removals(new_table: NewTable) -> None:
    table = new_table("a")
    write(table, "w", "k", 1)
    table.delta()
    del table.pane("w")["k"]
    table.touched("w").add("k")
    table.retain(lambda key: True)
    table.drop("w")
    assert table.delta() == ([], {"w": ({}, ["k"])})


def test_dropping_what_is_not_there_is_no_change(new_table: NewTable) -> None:
    table = new_table("a")
    table.drop("w")
    assert table.delta() == ([], {})


def test_full_does_not_end_a_delta_and_apply_does_not_count_as_change(new_table: NewTable) -> None:
    table = new_table("a")
    write(table, VOID, "k", 1)
    assert table.full() == (None, {VOID: ({"k": 1}, [])})
    assert table.delta() == ([], {VOID: ({"k": 1}, ["k"])})
    table.apply(([], {VOID: ({"l": 2}, ["k"])}))
    assert table.panes == {VOID: {"l": 2}}
    assert table.delta() == ([], {})


def test_a_full_replaces_what_was_there(new_table: NewTable) -> None:
    table = new_table("a")
    write(table, VOID, "k", 1)
    write(table, "w", "k", 1)
    table.apply((None, {VOID: ({"l": 2}, [])}))
    assert table.panes == {VOID: {"l": 2}}
    assert table.delta() == ([], {})


def test_retain_drops_keys_and_empty_namespaces(new_table: NewTable) -> None:
    table = new_table("a")
    write(table, VOID, 1, "a")
    write(table, VOID, 2, "b")
    write(table, "w", 2, "c")
    table.retain(lambda key: key == 1)
    assert table.panes == {VOID: {1: "a"}}


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["put", "remove", "delta"]), st.integers(0, 6)), max_size=60))
def test_a_pane_restored_from_deltas_has_the_order_of_the_live_one(
    new_table: NewTable, steps: list[tuple[str, int]]
) -> None:
    live, copy = new_table("s"), new_table("s")
    for step, key in steps:
        if step == "put":
            live.pane(VOID)[key] = step
            live.touched(VOID).add(key)
        elif step == "remove":
            live.pane(VOID).pop(key, None)
            live.touched(VOID).add(key)
        else:
            copy.apply(live.delta())
            assert list(copy.pane(VOID)) == list(live.pane(VOID))
