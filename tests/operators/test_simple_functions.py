"""map, filter, flat_map, reduce and their two-input forms, as the harness runs them."""

from __future__ import annotations

import pytest

from millrace.datastream.functions import (
    CoFlatMapFunction,
    CoMapFunction,
    FilterFunction,
    FlatMapFunction,
    MapFunction,
    ReduceFunction,
    RuntimeContext,
)
from millrace.state import ValueStateDescriptor
from millrace.testing import harness_for


def by_first(value):
    return value[0]


class Running(MapFunction):
    def open(self, runtime_context):
        self.total = runtime_context.get_state(ValueStateDescriptor("total"))

    def map(self, value):
        self.total.update((self.total.value() or 0) + value[1])
        return value[0], self.total.value()


def test_a_rich_map_has_keyed_state() -> None:
    harness = harness_for(Running(), key_selector=by_first)
    harness.process_batch([("a", 1), ("b", 10), ("a", 2)], [1, 2, 3])
    restored = harness.restore(harness.snapshot())
    restored.process_element(("a", 4), 4)
    assert harness.get_output() == [(("a", 1), 1), (("b", 10), 2), (("a", 3), 3)]
    assert restored.get_output() == [(("a", 7), 4)]


class OncePerKey(FilterFunction):
    def open(self, runtime_context):
        self.seen = runtime_context.get_state(ValueStateDescriptor("seen"))

    def filter(self, value):
        new = self.seen.value() is None
        self.seen.update(True)
        return new


def test_a_rich_filter_keeps_the_timestamps_of_what_it_keeps() -> None:
    harness = harness_for(OncePerKey(), key_selector=by_first)
    harness.process_batch([("a", 1), ("a", 2), ("b", 3)], [1, 2, 3])
    assert harness.get_output() == [(("a", 1), 1), (("b", 3), 3)]


class Words(FlatMapFunction):
    def flat_map(self, value):
        yield from value.split()


def test_flat_map_repeats_the_timestamp() -> None:
    harness = harness_for(Words())
    harness.process_batch(["to be", "", "or"], [1, 2, 3])
    assert harness.get_output() == [("to", 1), ("be", 1), ("or", 3)]


class Add(ReduceFunction):
    def reduce(self, value1, value2):
        return value1[0], value1[1] + value2[1]


@pytest.mark.parametrize("function", [Add(), lambda a, b: (a[0], a[1] + b[1])])
def test_reduce_emits_each_new_value(function: object) -> None:
    harness = harness_for(function, key_selector=0, operation="reduce")
    harness.process_batch([("a", 1), ("b", 5), ("a", 2)])
    assert harness.outputs() == [("a", 1), ("b", 5), ("a", 3)]


def test_reduce_emits_only_the_last_value_in_batch_mode() -> None:
    harness = harness_for(Add(), key_selector=0, batch=True)
    harness.process_batch([("b", 5), ("a", 1), ("a", 2)])
    harness.end_input()
    assert harness.outputs() == [("a", 3), ("b", 5)]


class Tagged(CoMapFunction):
    def map1(self, value):
        return "first", value

    def map2(self, value):
        return "second", value


class Repeated(CoFlatMapFunction):
    def flat_map1(self, value):
        return [value, value]

    def flat_map2(self, value):
        return None


def test_two_inputs() -> None:
    mapped, repeated = harness_for(Tagged()), harness_for(Repeated())
    for harness in (mapped, repeated):
        harness.process_element1("a", 1)
        harness.process_element2("b", 2)
    assert mapped.get_output() == [(("first", "a"), 1), (("second", "b"), 2)]
    assert repeated.get_output() == [("a", 1), ("a", 1)]


@pytest.mark.parametrize("operation", ["map", "filter", "flat_map"])
def test_an_error_names_the_record(operation: str) -> None:
    harness = harness_for(lambda value: 1 // value, operation=operation, name="divide")
    with pytest.raises(ZeroDivisionError) as raised:
        harness.process_batch([0])
    assert raised.value.__notes__ == [f"in operator 'divide' (uid divide), subtask 0, {operation}()", "record: 0"]


def test_a_reduce_function_may_keep_state_by_key() -> None:
    class Counting(ReduceFunction):
        def open(self, runtime_context: RuntimeContext) -> None:
            self.calls = runtime_context.get_state(ValueStateDescriptor("calls"))

        def reduce(self, value1: tuple[str, int], value2: tuple[str, int]) -> tuple[str, int]:
            self.calls.update((self.calls.value() or 0) + 1)
            return value1[0], value1[1] + value2[1] + 100 * self.calls.value()

    with harness_for(Counting(), key_selector=lambda record: record[0]) as harness:
        for record in [("a", 1), ("b", 1), ("a", 2), ("b", 2), ("a", 3)]:
            harness.process_element(record)
        assert harness.outputs() == [("a", 1), ("b", 1), ("a", 103), ("b", 103), ("a", 306)]
