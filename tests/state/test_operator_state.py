from __future__ import annotations

import pickle
from typing import Any

import pytest

from millrace.errors import RestoreError, StateError
from millrace.state import BroadcastView, ListStateDescriptor, MapStateDescriptor, OperatorState


def copied(parts: Any) -> Any:
    return pickle.loads(pickle.dumps(parts))


def test_list_state_is_written_whole_when_it_changed() -> None:
    state = OperatorState()
    buffer = state.list_state(ListStateDescriptor("buffer"))
    state.list_state(ListStateDescriptor("other")).add(0)
    buffer.add(1)
    buffer.add_all([2])
    assert state.delta() == {("list", "buffer"): [1, 2], ("list", "other"): [0]}
    assert state.delta() == {}
    buffer.update([3])
    assert list(buffer) == [3]
    assert state.delta() == {("list", "buffer"): [3]}
    buffer.clear()
    assert state.delta() == {("list", "buffer"): []}


def test_broadcast_state_and_its_read_only_view() -> None:
    state = OperatorState()
    rules = state.broadcast_state(MapStateDescriptor("rules"))
    view = BroadcastView(rules)
    rules.put("a", 1)
    rules["b"] = 2
    rules.put_all({"c": 3})
    rules.remove("a")
    del rules["missing"]
    assert (view.get("b"), view["c"], "a" in view, view.contains("b"), view.is_empty()) == (2, 3, False, True, False)
    assert (list(view.items()), list(view), list(view.values())) == ([("b", 2), ("c", 3)], ["b", "c"], [2, 3])
    assert state.delta() == {("broadcast", "rules"): {"b": 2, "c": 3}}
    rules.clear()
    assert view.is_empty()


@pytest.mark.parametrize(
    "write",
    [
        lambda view: view.put("a", 1),
        lambda view: view.put_all({}),
        lambda view: view.remove("a"),
        lambda view: view.clear(),
        lambda view: view.__setitem__("a", 1),
        lambda view: view.__delitem__("a"),
    ],
)
def test_the_view_says_where_to_write(write: Any) -> None:
    view = BroadcastView(OperatorState().broadcast_state(MapStateDescriptor("rules")))
    with pytest.raises(StateError, match=r"write to it in process_broadcast_element\(\)"):
        write(view)


def test_cells_tell_by_themselves_whether_they_changed() -> None:
    state = OperatorState()
    watermark = state.per_task("watermark", lambda: 1000)
    assert state.per_task("watermark", lambda: 0) is watermark
    assert state.delta() == {("per task", "watermark"): 1000}
    watermark.value = 999 + int("1")
    assert state.delta() == {}
    watermark.value = 1001
    assert state.delta() == {("per task", "watermark"): 1001}
    watermark.value = True
    assert state.delta() == {("per task", "watermark"): True}


def test_apply_before_and_after_the_states_are_asked_for() -> None:
    source = OperatorState()
    source.list_state(ListStateDescriptor("buffer")).add(1)
    source.broadcast_state(MapStateDescriptor("rules")).put("a", 1)
    source.per_task("watermark", lambda: 0).value = 5
    for parts in (copied(source.full()), copied(source.delta())):
        before, after = OperatorState(), OperatorState()
        buffer = before.list_state(ListStateDescriptor("buffer"))
        rules = before.broadcast_state(MapStateDescriptor("rules"))
        watermark = before.per_task("watermark", lambda: 0)
        before.apply(copied(parts))
        assert (list(buffer), rules["a"], watermark.value) == ([1], 1, 5)
        assert before.delta() == {}
        after.apply(copied(parts))
        assert after.full() == parts
        assert after.per_task("watermark", lambda: 0).value == 5
        assert list(after.list_state(ListStateDescriptor("buffer"))) == [1]
        assert after.delta() == {}


def test_one_name_has_one_kind_but_cells_have_names_of_their_own() -> None:
    state = OperatorState()
    state.list_state(ListStateDescriptor("s")).add(1)
    state.per_task("s", lambda: 0)
    with pytest.raises(StateError, match="'s' is list state and cannot be union list state too"):
        state.union_list_state(ListStateDescriptor("s"))
    with pytest.raises(RestoreError, match="'s' is list state and cannot be broadcast state too"):
        state.apply({("broadcast", "s"): {}})


def test_reset_empties_everything_and_handles_stay_valid() -> None:
    state = OperatorState()
    buffer = state.list_state(ListStateDescriptor("buffer"))
    watermark = state.per_task("watermark", lambda: 7)
    buffer.add(1)
    watermark.value = 9
    state.apply({("per task", "unknown"): 1})
    state.reset()
    assert (list(buffer), watermark.value) == ([], 7)
    assert state.full() == {("per task", "watermark"): 7}


def full_of(task: int) -> Any:
    state = OperatorState()
    state.list_state(ListStateDescriptor("list")).add_all([f"{task}{letter}" for letter in "abc"])
    state.union_list_state(ListStateDescriptor("union")).add(task)
    state.broadcast_state(MapStateDescriptor("rules")).put("from", task)
    state.per_task("watermark", lambda: 0).value = task
    return state.full()


def contents(parts: list[Any], kind: str, name: str) -> list[Any]:
    return [part.get((kind, name)) for part in parts]


def test_redistribute_to_more_tasks() -> None:
    parts = OperatorState.redistribute([full_of(0), full_of(1)], 3)
    assert contents(parts, "list", "list") == [["0a", "1a"], ["0b", "1b"], ["0c", "1c"]]
    assert contents(parts, "union list", "union") == [[0, 1], [0, 1], [0, 1]]
    assert contents(parts, "broadcast", "rules") == [{"from": 0}, {"from": 1}, {"from": 0}]
    assert contents(parts, "per task", "watermark") == [None, None, None]


def test_redistribute_to_fewer_tasks() -> None:
    parts = OperatorState.redistribute([full_of(0), full_of(1), full_of(2)], 2)
    assert contents(parts, "list", "list") == [["0a", "0c", "1b", "2a", "2c"], ["0b", "1a", "1c", "2b"]]
    assert contents(parts, "union list", "union") == [[0, 1, 2], [0, 1, 2]]
    assert contents(parts, "broadcast", "rules") == [{"from": 0}, {"from": 1}]
    assert contents(parts, "per task", "watermark") == [None, None]


def test_redistribute_to_as_many_tasks_keeps_what_each_has() -> None:
    parts = OperatorState.redistribute([full_of(0), full_of(1)], 2)
    assert contents(parts, "list", "list") == [["0a", "0b", "0c"], ["1a", "1b", "1c"]]
    assert contents(parts, "union list", "union") == [[0, 1], [0, 1]]
    assert contents(parts, "broadcast", "rules") == [{"from": 0}, {"from": 1}]
    assert contents(parts, "per task", "watermark") == [0, 1]
