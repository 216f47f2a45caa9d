from __future__ import annotations

import pickle
from typing import Any

import pytest

import millrace.state
from millrace.state import (
    VOID,
    KeyRouter,
    ListStateDescriptor,
    OperatorStore,
    ValueStateDescriptor,
)

pytestmark = pytest.mark.usefixtures("each_backend")


def copied(parts: Any) -> Any:
    return pickle.loads(pickle.dumps(parts))


def filled(keys: list[Any], task: int = 0) -> OperatorStore:
    store = OperatorStore()
    state: Any = store.keyed.get_state(ValueStateDescriptor("v"))
    for key in keys:
        store.keyed.current_key = key
        state.update(f"value of {key}")
        store.event_timers.register(10, key)
        store.processing_timers.register(20, key, "w")
    store.operator.list_state(ListStateDescriptor("l")).add(task)
    store.operator.per_task("watermark", lambda: 0).value = task
    return store


def test_no_change_no_delta() -> None:
    store = OperatorStore()
    assert store.delta() is None
    store.apply(None)
    filled(["a"]).delta()
    assert store.delta() is None


def test_a_delta_holds_only_the_parts_that_changed() -> None:
    store = filled(["a"])
    assert sorted(store.delta() or {}) == ["event_timers", "keyed", "operator", "processing_timers"]
    store.event_timers.delete(10, "a")
    assert store.delta() == {"event_timers": ([(10, "a", VOID)], [])}


def test_deltas_and_fulls_lead_to_the_same_store() -> None:
    store = filled(["a", "b"])
    chain = [copied(store.full())]
    assert store.delta() is not None
    store.keyed.current_key = "b"
    store.keyed.get_state(ValueStateDescriptor("v")).clear()
    store.event_timers.register(5, "c")
    chain.append(copied(store.delta()))
    copy = OperatorStore()
    for parts in chain:
        copy.apply(parts)
    assert copy.delta() is None
    assert copy.full() == store.full()


def test_a_full_replaces_what_was_there_and_handles_stay_valid() -> None:
    store = filled(["a"])
    state: Any = store.keyed.get_state(ValueStateDescriptor("v"))
    other: Any = store.keyed.get_state(ValueStateDescriptor("other"))
    store.keyed.current_key = "a"
    other.update(1)
    store.apply(copied(filled(["b"], task=7).full()))
    assert (state.value(), other.value()) == (None, None)
    assert list(store.event_timers) == [(10, "b", VOID)]
    assert store.operator.per_task("watermark", lambda: 0).value == 7
    assert store.delta() is None


def test_rescaling_moves_keys_and_timers_together() -> None:
    keys = [f"key{number}" for number in range(50)]
    before = [[key for key in keys if KeyRouter(2, 128).route([key]) == [task]] for task in range(2)]
    fulls = [filled(before[task], task).full() for task in range(2)]
    seen = []
    for task in range(3):
        store = OperatorStore()
        store.apply(copied(OperatorStore.rescale(copied(fulls), task, 3, 128)))
        own = store.keyed.keys("v")
        assert KeyRouter(3, 128).route(own) == [task] * len(own)
        assert [key for _, key, _ in store.event_timers] == own
        assert list(store.processing_timers) == [(20, key, "w") for key in own]
        assert store.operator.per_task("watermark", lambda: -1).value == -1
        seen += own
    assert sorted(seen) == sorted(keys)


def test_rescaling_to_the_same_parallelism_changes_nothing() -> None:
    keys = list(range(20))
    fulls = [filled([key for key in keys if KeyRouter(2, 128).route([key]) == [t]], t).full() for t in range(2)]
    assert [OperatorStore.rescale(copied(fulls), task, 2, 128) for task in range(2)] == fulls


def test_rescaling_long_keys() -> None:
    store = filled([-1, 1])
    owners = {
        key: task
        for task in range(2)
        for key in OperatorStore.rescale([copied(store.full())], task, 2, 128, long=True)["keyed"]["v"][1][1].get(
            VOID, ({},)
        )[0]
    }
    assert owners == {-1: 1, 1: 1}


def test_exported_names_exist_once() -> None:
    assert len(set(millrace.state.__all__)) == len(millrace.state.__all__)
    assert all(hasattr(millrace.state, name) for name in millrace.state.__all__)
