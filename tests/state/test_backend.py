from __future__ import annotations

import pickle
from typing import Any

import pytest

from millrace.errors import RestoreError, StateError
from millrace.state import (
    NO_KEY,
    VOID,
    AggregatingStateDescriptor,
    KeyedState,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    ValueStateDescriptor,
)

pytestmark = pytest.mark.usefixtures("each_backend")


class Mean:
    def create_accumulator(self) -> tuple[int, int]:
        return (0, 0)

    def add(self, value: int, accumulator: tuple[int, int]) -> tuple[int, int]:
        return (accumulator[0] + value, accumulator[1] + 1)

    def get_result(self, accumulator: tuple[int, int]) -> float:
        return accumulator[0] / accumulator[1]

    def merge(self, one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
        return (one[0] + other[0], one[1] + other[1])


class Byte:
    """A type information as the backend knows it: something with a coercer."""

    def coercer(self) -> Any:
        return lambda value: (value + 128) % 256 - 128

    def __repr__(self) -> str:
        return "Byte"


DESCRIPTORS = [
    ValueStateDescriptor("value"),
    ListStateDescriptor("list"),
    MapStateDescriptor("map"),
    ReducingStateDescriptor("reducing", lambda a, b: a + b),
    AggregatingStateDescriptor("aggregating", Mean()),
]


@pytest.fixture
def backend() -> KeyedState:
    backend = KeyedState(lambda: 0)
    backend.current_key = "a"
    return backend


@pytest.fixture(params=[VOID, ("window", 5)], ids=["void", "window"])
def namespace(request: pytest.FixtureRequest) -> object:
    return request.param


def test_value(backend: KeyedState, namespace: object) -> None:
    state = backend.get_state(ValueStateDescriptor("s"), namespace)
    assert state.value() is None
    state.update(0)
    assert state.value() == 0
    backend.current_key = "b"
    assert state.value() is None
    backend.current_key = "a"
    state.update(None)
    assert state.value() is None
    assert backend.keys("s", namespace) == []


def test_list(backend: KeyedState, namespace: object) -> None:
    state = backend.get_state(ListStateDescriptor("s"), namespace)
    assert list(state.get()) == []
    state.add_all([])
    assert backend.keys("s", namespace) == []
    state.add(1)
    state.add_all(iter([2, 3]))
    state.get().append(9)
    assert list(state) == [1, 2, 3]
    state.update(value for value in (4, 5))
    assert state.get() == [4, 5]
    for element in state:
        state.add(element)
    assert state.get() == [4, 5, 4, 5]
    state.update([])
    assert backend.keys("s", namespace) == []


def test_map(backend: KeyedState, namespace: object) -> None:
    state = backend.get_state(MapStateDescriptor("s"), namespace)
    assert (state.get("x"), state["x"], "x" in state, state.is_empty(), list(state)) == (None, None, False, True, [])
    state.remove("x")
    state.put("x", 1)
    state["y"] = 2
    state.put_all({"z": 3})
    assert list(state.items()) == [("x", 1), ("y", 2), ("z", 3)]
    assert (list(state.keys()), list(state.values()), list(state)) == (["x", "y", "z"], [1, 2, 3], ["x", "y", "z"])
    assert (state.contains("x"), "y" in state, state.is_empty()) == (True, True, False)
    for key in state:
        del state[key]
    assert state.is_empty()
    assert backend.keys("s", namespace) == []


def test_reducing(backend: KeyedState, namespace: object) -> None:
    state = backend.get_state(ReducingStateDescriptor("s", lambda a, b: a + b), namespace)
    assert state.get() is None
    state.add("x")
    state.add("y")
    assert state.get() == "xy"
    state.clear()
    assert state.get() is None


def test_reducing_takes_an_object_with_a_reduce_method(backend: KeyedState) -> None:
    class Larger:
        def reduce(self, one: int, other: int) -> int:
            return max(one, other)

    state = backend.get_state(ReducingStateDescriptor("s", Larger()))
    for value in (3, 5, 4):
        state.add(value)
    assert state.get() == 5


def test_aggregating_stores_the_accumulator(backend: KeyedState, namespace: object) -> None:
    state = backend.get_state(AggregatingStateDescriptor("s", Mean()), namespace)
    assert state.get() is None
    state.add(1)
    state.add(2)
    assert state.get() == 1.5
    assert backend.table("s").pane(namespace) == {"a": (3, 2)}


def test_values_are_narrowed_to_the_type_when_written(backend: KeyedState) -> None:
    value = backend.get_state(ValueStateDescriptor("value", Byte()))
    elements = backend.get_state(ListStateDescriptor("list", Byte()))
    entries = backend.get_state(MapStateDescriptor("map", Byte(), Byte()))
    total = backend.get_state(ReducingStateDescriptor("reducing", lambda a, b: a + b, Byte()))
    value.update(200)
    elements.add(200)
    elements.add_all([1, 300])
    entries.put(257, 200)
    total.add(100)
    total.add(100)
    assert (value.value(), elements.get(), entries.items(), total.get()) == (-56, [-56, 1, 44], [(1, -56)], -56)
    assert (257 in entries, entries[257], entries[1]) == (True, -56, -56)
    entries.remove(257)
    assert entries.is_empty()


@pytest.mark.parametrize("descriptor", DESCRIPTORS, ids=lambda descriptor: descriptor.kind)
def test_no_state_without_a_key(descriptor: StateDescriptor, namespace: object) -> None:
    backend = KeyedState(lambda: 0)
    state: Any = backend.get_state(descriptor, namespace)
    accesses: dict[str, list[tuple[Any, ...]]] = {
        "value": [("clear",), ("value",), ("update", 1), ("update", None)],
        "list": [("clear",), ("get",), ("add", 1), ("add_all", [1]), ("update", [1])],
        "map": [("clear",), ("get", 1), ("put", 1, 1), ("remove", 1), ("items",), ("is_empty",)],
        "reducing": [("clear",), ("get",), ("add", 1)],
        "aggregating": [("clear",), ("get",), ("add", 1)],
    }
    for method, *arguments in accesses[descriptor.kind]:
        with pytest.raises(StateError, match=r"keyed state needs a key: call key_by\(\) before"):
            getattr(state, method)(*arguments)
    assert backend.delta() == {}


def test_no_key_is_one_object_across_pickling() -> None:
    assert pickle.loads(pickle.dumps(NO_KEY)) is NO_KEY


def test_the_handle_of_void_is_made_once_and_sees_windows_apart(backend: KeyedState) -> None:
    descriptor = ValueStateDescriptor("s")
    state = backend.get_state(descriptor)
    assert backend.get_state(ValueStateDescriptor("s")) is state
    state.update(1)
    backend.get_state(descriptor, "w1").update(2)
    assert (state.value(), backend.get_state(descriptor, "w1").value()) == (1, 2)
    assert backend.get_state(descriptor, "w2").value() is None
    assert list(backend.table("s").panes) == [VOID, "w1"]


def test_a_window_handle_survives_its_pane(backend: KeyedState) -> None:
    state = backend.get_state(ValueStateDescriptor("s"), "w")
    state.update(1)
    backend.table("s").drop("w")
    assert state.value() is None
    state.update(2)
    assert backend.table("s").pane("w") == {"a": 2}
    backend.delta()
    state.update(3)
    assert backend.delta()["s"][1] == ([], {"w": ({"a": 3}, ["a"])})


def test_handles_survive_a_delta_and_an_applied_full(backend: KeyedState) -> None:
    state = backend.get_state(ValueStateDescriptor("s"))
    state.update(1)
    full = backend.full()
    backend.delta()
    state.update(2)
    backend.apply(full)
    assert state.value() == 1
    state.update(3)
    assert backend.delta()["s"][1] == ([], {VOID: ({"a": 3}, ["a"])})


def test_one_name_has_one_kind(backend: KeyedState) -> None:
    backend.get_state(ValueStateDescriptor("s"))
    with pytest.raises(StateError, match="'s' is value state and cannot be list state too"):
        backend.get_state(ListStateDescriptor("s"))


def test_the_kind_is_remembered_across_restarts(backend: KeyedState) -> None:
    backend.get_state(ValueStateDescriptor("s")).update(1)
    full = backend.full()
    restored = KeyedState(lambda: 0)
    restored.apply(full)
    with pytest.raises(RestoreError, match="'s' is value state and cannot be map state too"):
        restored.get_state(MapStateDescriptor("s"))
    opened = KeyedState(lambda: 0)
    opened.get_state(MapStateDescriptor("s"))
    with pytest.raises(RestoreError, match="'s' is value state and cannot be map state too"):
        opened.apply(full)


def test_merge_namespaces_moves_the_current_key_only(backend: KeyedState) -> None:
    for descriptor, expected in (
        (ListStateDescriptor("list"), [1, 2, 3]),
        (ReducingStateDescriptor("reducing", lambda a, b: a + b), 6),
        (AggregatingStateDescriptor("aggregating", Mean()), 2.0),
    ):
        for key in ("a", "b"):
            backend.current_key = key
            for namespace, value in (("w1", 1), ("w2", 2), ("w3", 3)):
                backend.get_state(descriptor, namespace).add(value)
        backend.current_key = "a"
        backend.merge_namespaces(descriptor, "w1", ["w1", "w2", "w3", "w4"])
        assert backend.get_state(descriptor, "w1").get() == expected
        assert [backend.keys(descriptor.name, namespace) for namespace in ("w1", "w2", "w3")] == [
            ["a", "b"],
            ["b"],
            ["b"],
        ]


def test_merge_into_an_empty_namespace_and_of_empty_ones(backend: KeyedState) -> None:
    descriptor = ListStateDescriptor("s")
    backend.get_state(descriptor, "w2").add(2)
    backend.delta()
    backend.merge_namespaces(descriptor, "w1", ["w2"])
    backend.merge_namespaces(descriptor, "w1", ["w3", "w4"])
    assert backend.get_state(descriptor, "w1").get() == [2]
    assert backend.delta()["s"][1] == ([], {"w1": ({"a": [2]}, ["a"]), "w2": ({}, ["a"])})


@pytest.mark.parametrize("descriptor", [ValueStateDescriptor("s"), MapStateDescriptor("s")], ids=["value", "map"])
def test_value_and_map_state_cannot_merge(backend: KeyedState, descriptor: StateDescriptor) -> None:
    for namespace in ("w1", "w2"):
        state: Any = backend.get_state(descriptor, namespace)
        (state.update if descriptor.kind == "value" else state.put_all)({1: 1})
    with pytest.raises(StateError, match="use reducing, aggregating or list state instead"):
        backend.merge_namespaces(descriptor, "w1", ["w2"])


def test_clear_all_of_key(backend: KeyedState) -> None:
    value = backend.get_state(ValueStateDescriptor("value"))
    for key in ("a", "b"):
        backend.current_key = key
        value.update(1)
        backend.get_state(ListStateDescriptor("list"), "w").add(1)
    backend.delta()
    backend.clear_all_of_key("a")
    assert (backend.keys("value"), backend.keys("list", "w")) == (["b"], ["b"])
    assert {name: delta for name, (_, delta) in backend.delta().items()} == {
        "value": ([], {VOID: ({}, ["a"])}),
        "list": ([], {"w": ({}, ["a"])}),
    }


def test_delta_holds_changed_tables_only(backend: KeyedState) -> None:
    value = backend.get_state(ValueStateDescriptor("value"))
    backend.get_state(ListStateDescriptor("list")).add(1)
    backend.delta()
    value.update(1)
    assert backend.delta() == {"value": (("value", "any", False), ([], {VOID: ({"a": 1}, ["a"])}))}
    value.value()
    assert backend.delta() == {}


def test_state_info(backend: KeyedState) -> None:
    backend.get_state(MapStateDescriptor("prices", Byte())).put(1, 2)
    backend.table("raw").pane("w")["a"] = 1
    assert backend.state_info() == [("prices", "map", "Byte -> any", 1), ("raw", "table", "any", 1)]
    assert list(backend.tables()) == ["prices", "raw"]
    assert backend.keys("unknown") == []


@pytest.mark.parametrize("name", ["", None, 5])
def test_a_state_needs_a_name(name: Any) -> None:
    with pytest.raises(StateError, match="a state needs a name"):
        ValueStateDescriptor(name)


def test_functions_are_checked_when_described() -> None:
    with pytest.raises(StateError, match="needs a function of two values"):
        ReducingStateDescriptor("s", 5)
    with pytest.raises(StateError, match=r"has no create_accumulator, add, get_result\(\)"):
        AggregatingStateDescriptor("s", object())


def test_a_bare_descriptor_is_refused(backend: KeyedState) -> None:
    with pytest.raises(StateError, match="does not say which kind"):
        backend.get_state(StateDescriptor("s"))


def test_descriptors_say_what_they_are() -> None:
    reduce, mean = (lambda a, b: a), Mean()
    assert ReducingStateDescriptor("s", reduce).get_reduce_function() is reduce
    assert AggregatingStateDescriptor("s", mean).get_agg_function() is mean
    assert repr(ListStateDescriptor("s", Byte())) == "ListStateDescriptor('s', Byte)"
