from __future__ import annotations

import threading

import pytest

from millrace.common.constants import LONG_MAX, LONG_MIN
from millrace.datastream.functions import KeyedProcessFunction, KeySelector, MapFunction
from millrace.errors import GraphError, RestoreError, StateError
from millrace.runtime.functions import UserFunction
from millrace.runtime.operators.co import co_map
from millrace.runtime.operators.stateless import MapOperator
from millrace.state import ValueStateDescriptor
from millrace.testing import OperatorHarness, harness_for


def upper() -> MapOperator:
    return MapOperator(UserFunction(str.upper, "map"))


def itself(value):
    return value


class Life(MapFunction):
    def __init__(self):
        self.calls = []

    def open(self, runtime_context):
        self.calls.append("open")
        self.context = runtime_context

    def map(self, value):
        self.calls.append(value)
        return value

    def close(self):
        self.calls.append("close")


def test_a_context_manager_opens_and_closes() -> None:
    function = Life()
    with harness_for(function) as harness:
        assert function.calls == ["open"]
        harness.process_element(1)
    assert function.calls == ["open", 1, "close"]
    assert harness.outputs() == [1]


def test_it_opens_by_itself_and_only_once() -> None:
    function = Life()
    harness = harness_for(function)
    assert function.calls == []
    harness.process_element(1)
    harness.open()
    harness.close()
    harness.close()
    assert function.calls == ["open", 1, "close"]


def test_a_closed_harness_takes_no_more() -> None:
    harness = harness_for(Life(), name="life")
    with harness:
        harness.process_element(1)
    with pytest.raises(StateError, match="harness of life is closed"):
        harness.process_element(2)


def test_the_runtime_context_says_where_it_runs() -> None:
    function = Life()
    settings = {"subtask": 2, "parallelism": 4, "max_parallelism": 64, "parameters": {"city": "Rome"}, "name": "life"}
    harness_for(function, **settings).open()
    context = function.context
    assert context.get_task_name_with_subtasks() == "life (3/4)"
    assert context.get_index_of_this_subtask() == 2
    assert context.get_number_of_parallel_subtasks() == 4
    assert context.get_max_number_of_parallel_subtasks() == 64
    assert context.get_job_parameter("city", "") == "Rome"


def test_output_in_all_its_views() -> None:
    harness = OperatorHarness(upper())
    harness.process_element("a", 1)
    harness.process_element("b")
    harness.process_watermark(5)
    harness.mark_idle()
    assert harness.get_output() == [("A", 1), ("B", None)]
    assert harness.outputs() == ["A", "B"]
    assert harness.watermarks() == [5]
    assert harness.events() == [("record", "A", 1), ("record", "B", None), ("watermark", 5), ("idle", True)]
    harness.clear_output()
    assert harness.events() == []


def test_watermarks_only_grow() -> None:
    harness = OperatorHarness(upper())
    for watermark in (5, 5, 3, 6):
        harness.process_watermark(watermark)
    assert harness.watermarks() == [5, 6]
    assert harness.get_watermark() == 6


def test_two_inputs_give_the_minimum_of_their_watermarks() -> None:
    harness = OperatorHarness(co_map(object()), inputs=2)
    harness.process_watermark1(10)
    assert harness.get_watermark() == LONG_MIN
    harness.process_watermark2(4)
    harness.process_watermark2(12)
    harness.process_watermark(20)
    assert harness.watermarks() == [4, 10, 12, 20]


def test_an_idle_input_does_not_hold_the_other_back() -> None:
    harness = OperatorHarness(co_map(object()), inputs=2)
    harness.process_watermark1(10)
    harness.mark_idle(1)
    harness.process_watermark1(11)
    harness.mark_idle(0)
    harness.mark_active(0)
    assert harness.events() == [("watermark", 10), ("watermark", 11), ("idle", True), ("idle", False)]


def test_the_end_of_input_is_the_end_of_time() -> None:
    harness = OperatorHarness(upper())
    harness.end_input()
    assert harness.watermarks() == [LONG_MAX]


def test_the_clock_does_not_go_back() -> None:
    harness = OperatorHarness(upper(), processing_time=10)
    assert harness.get_processing_time() == 10
    harness.set_processing_time(10)
    with pytest.raises(ValueError, match="stands at 10 and cannot go back to 9"):
        harness.set_processing_time(9)


class Count(KeyedProcessFunction):
    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count"))

    def process_element(self, value, ctx):
        self.count.update((self.count.value() or 0) + 1)
        ctx.timer_service().register_event_time_timer(100)
        ctx.timer_service().register_processing_time_timer(200)

    def on_timer(self, timestamp, ctx):
        yield ctx.get_current_key(), self.count.value()


def test_state_and_timers_are_counted() -> None:
    harness = harness_for(Count(), key_selector=itself)
    harness.process_batch(["a", "b", "a"])
    assert harness.num_keyed_state_entries() == 2
    assert harness.num_keyed_state_entries("count") == 2
    assert harness.num_keyed_state_entries("other") == 0
    assert (harness.num_event_time_timers(), harness.num_processing_time_timers()) == (2, 2)
    harness.process_watermark(100)
    assert (harness.num_event_time_timers(), harness.num_processing_time_timers()) == (0, 2)


def test_a_restored_harness_goes_on_where_the_snapshot_was_taken() -> None:
    harness = harness_for(Count(), key_selector=itself)
    harness.process_element("a")
    harness.process_watermark(7)
    harness.set_processing_time(50)
    snapshot = harness.snapshot()
    harness.process_element("a")
    restored = harness.restore(snapshot)
    assert (restored.get_watermark(), restored.get_processing_time(), restored.outputs()) == (7, 50, [])
    restored.process_watermark(6)
    restored.process_watermark(100)
    assert restored.get_output() == [(("a", 1), 100)]
    assert restored.watermarks() == [100]


def test_a_snapshot_can_be_restored_into_another_version_of_the_function() -> None:
    class CountTens(Count):
        def on_timer(self, timestamp, ctx):
            yield ctx.get_current_key(), self.count.value() * 10

    harness = harness_for(Count(), key_selector=itself)
    harness.process_element("a")
    changed = harness_for(CountTens(), key_selector=itself, restore_from=harness.snapshot())
    changed.process_watermark(100)
    assert changed.outputs() == [("a", 10)]


@pytest.mark.parametrize(("before", "after"), [(1, 3), (2, 3), (3, 2), (4, 1), (2, 2)])
def test_state_and_timers_follow_their_keys_when_the_parallelism_changes(before: int, after: int) -> None:
    keys = [f"key {number}" for number in range(30)]
    snapshots = []
    for subtask in range(before):
        harness = harness_for(Count(), key_selector=itself, subtask=subtask, parallelism=before)
        harness.process_batch(filter(harness.owns, keys))
        snapshots.append(harness.snapshot())
    fired = []
    for subtask in range(after):
        restored = harness.restore(snapshots, subtask=subtask, parallelism=after)
        restored.process_watermark(100)
        assert all(restored.owns(key) for key, _ in restored.outputs())
        fired += restored.outputs()
    assert sorted(fired) == sorted((key, 1) for key in keys)


def test_a_change_of_parallelism_needs_all_snapshots() -> None:
    harness = harness_for(Count(), key_selector=itself, subtask=1, parallelism=2)
    with pytest.raises(RestoreError, match=r"needs the snapshots of all 2 subtasks, in order, and got those of \[1\]"):
        harness.restore(harness.snapshot(), subtask=0, parallelism=3)
    with pytest.raises(RestoreError, match="nothing to restore"):
        harness.restore([])


def test_the_number_of_key_groups_must_stay() -> None:
    snapshot = harness_for(Count(), key_selector=itself).snapshot()
    with pytest.raises(RestoreError, match="Max parallelism mismatch.*use max_parallelism=128"):
        harness_for(Count(), key_selector=itself, max_parallelism=64, restore_from=snapshot)


def test_a_function_that_cannot_be_copied_can_still_be_tested() -> None:
    class HoldsLock(Count):
        def __init__(self):
            self.lock = threading.Lock()

    harness = harness_for(HoldsLock(), key_selector=itself)
    harness.process_element("a")
    snapshot = harness.snapshot()
    with pytest.raises(StateError, match="cannot be copied.*restore_from=snapshot instead"):
        harness.restore(snapshot)
    assert harness_for(HoldsLock(), key_selector=itself, restore_from=snapshot).num_keyed_state_entries() == 1


def test_a_key_of_another_subtask_is_refused() -> None:
    harness = harness_for(Count(), key_selector=itself, subtask=0, parallelism=3)
    assert (harness.owns("key1"), harness.owns("a"), harness.owns("flink")) == (True, False, False)
    with pytest.raises(ValueError, match="key 'a' belongs to subtask 1 of 3, and this harness is subtask 0"):
        harness.process_element("a")


class ByLength(KeySelector):
    def get_key(self, value):
        return len(value)


class KeyOf(KeyedProcessFunction):
    def process_element(self, value, ctx):
        yield ctx.get_current_key()


@pytest.mark.parametrize(
    ("selector", "value", "key"),
    [(ByLength(), "abc", 3), (len, "abc", 3), (1, ("a", "b"), "b"), ("name", {"name": "ann"}, "ann")],
)
def test_keys_are_selected_in_every_way_that_key_by_knows(selector: object, value: object, key: object) -> None:
    harness = harness_for(KeyOf(), key_selector=selector)
    harness.process_element(value)
    assert harness.outputs() == [key]


@pytest.mark.parametrize(("operation", "outputs"), [(None, [2, 4]), ("map", [2, 4]), ("filter", [1, 2])])
def test_a_plain_callable_is_a_map_unless_told_otherwise(operation: str | None, outputs: list) -> None:
    harness = harness_for(lambda value: value * 2, operation=operation)
    harness.process_batch([1, 2])
    assert harness.outputs() == outputs


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"function": 5}, "5 is no function of a stream"),
        ({"function": len, "operation": "mapp"}, "unknown operation 'mapp': use one of async, broadcast"),
        ({"function": len, "operation": "reduce"}, "reduce works on keyed streams"),
        ({"function": len, "operation": "interval_join", "key_selector": len}, "needs its bounds"),
    ],
)
def test_what_cannot_be_a_harness_says_why(arguments: dict, message: str) -> None:
    with pytest.raises(GraphError, match=message):
        harness_for(**arguments)


def test_a_second_input_must_be_there() -> None:
    harness = OperatorHarness(upper(), name="upper")
    for call in (harness.process_element2, harness.process_watermark2):
        with pytest.raises(ValueError, match="upper has no input 2, only 1"):
            call(1)


def test_values_and_timestamps_must_be_as_many() -> None:
    with pytest.raises(ValueError, match="2 values but 1 timestamps"):
        OperatorHarness(upper()).process_batch(["a", "b"], [1])


@pytest.mark.parametrize("timestamp", [1.5, "1", True])
def test_timestamps_are_integers(timestamp: object) -> None:
    with pytest.raises(TypeError, match="not an integer"):
        OperatorHarness(upper()).process_element("a", timestamp)
