from __future__ import annotations

import pytest

from millrace.common.constants import LONG_MAX
from millrace.common.output_tag import OutputTag
from millrace.datastream.functions import ProcessJoinFunction
from millrace.errors import GraphError, StateError, TimeError
from millrace.runtime.functions import UserFunction
from millrace.runtime.operators.interval_join import IntervalJoinOperator, cleanup_time, is_late
from millrace.state import ValueStateDescriptor
from millrace.testing import OperatorHarness, harness_for

pytestmark = pytest.mark.usefixtures("each_backend")

LEFT_LATE, RIGHT_LATE = OutputTag("left late"), OutputTag("right late")


def one_key(value):
    return "key"


def pair(left, right):
    yield left, right


def joining(lower: int, upper: int, **settings) -> OperatorHarness:
    return harness_for(pair, key_selector=one_key, interval=(lower, upper), **settings)


def feed_one_to_four(harness: OperatorHarness) -> None:
    for time in (1, 2, 3, 4):
        harness.process_element1(time, time)
        harness.process_element2(time, time)
        harness.process_watermark(time)


@pytest.mark.parametrize(
    ("lower", "upper", "pairs"),
    [
        (-2, -1, {(2, 1), (3, 1), (3, 2), (4, 2), (4, 3)}),
        (-1, 1, {(1, 1), (1, 2), (2, 1), (2, 2), (2, 3), (3, 2), (3, 3), (3, 4), (4, 3), (4, 4)}),
        (1, 2, {(1, 2), (1, 3), (2, 3), (2, 4), (3, 4)}),
        # Exclusive bounds arrive moved by 1 ms: (-3, -1), (-1, 1) and (1, 3).
        (-2, -2, {(3, 1), (4, 2)}),
        (0, 0, {(1, 1), (2, 2), (3, 3), (4, 4)}),
        (2, 2, {(1, 3), (2, 4)}),
    ],
)
def test_bounds(lower: int, upper: int, pairs: set) -> None:
    harness = joining(lower, upper)
    feed_one_to_four(harness)
    assert len(harness.outputs()) == len(pairs)
    assert set(harness.outputs()) == pairs
    assert all(time == max(value) for value, time in harness.get_output())


@pytest.mark.parametrize("right_first", [False, True])
@pytest.mark.parametrize(
    ("right", "joined"), [(106, False), (107, True), (108, True), (112, True), (113, True), (114, False)]
)
def test_both_bounds_are_inclusive(right: int, joined: bool, right_first: bool) -> None:
    harness = joining(-3, 3)
    sends = [lambda: harness.process_element1("l", 110), lambda: harness.process_element2("r", right)]
    for send in reversed(sends) if right_first else sends:
        send()
    assert harness.get_output() == ([(("l", "r"), max(110, right))] if joined else [])


@pytest.mark.parametrize(("lower", "upper", "sides"), [(2, 5, "right later"), (-5, -2, "right earlier")])
def test_bounds_on_one_side_of_zero(lower: int, upper: int, sides: str) -> None:
    harness = joining(lower, upper)
    harness.process_element1("l", 10)
    for right in range(20):
        harness.process_element2(right, right)
    assert [right for _, right in harness.outputs()] == list(range(10 + lower, 10 + upper + 1))


def test_late_records_go_to_their_tags() -> None:
    harness = joining(-1, 1, late_tags=(LEFT_LATE, RIGHT_LATE))
    harness.process_element1(3, 3)
    harness.process_element2(3, 3)
    harness.process_watermark1(3)
    harness.process_watermark2(3)
    for time in (4,):
        harness.process_element1(time, time)
        harness.process_element2(time, time)
    harness.process_element1(1, 1)
    harness.process_element2(2, 2)
    harness.process_element1(5, 5)
    harness.process_element2(5, 5)
    assert sorted(harness.outputs()) == [(3, 3), (3, 4), (4, 3), (4, 4), (4, 5), (5, 4), (5, 5)]
    assert harness.get_side_output(LEFT_LATE) == [(1, 1)]
    assert harness.get_side_output(RIGHT_LATE) == [(2, 2)]


def test_late_records_without_a_tag_are_dropped_and_counted() -> None:
    harness = joining(-1, 1)
    harness.process_watermark(3)
    harness.process_batch([1, 2, 3], [1, 2, 3])
    harness.process_element2(3, 3)
    assert harness.outputs() == [(3, 3)]
    assert harness.context.metrics.counter("numLateRecordsDropped").get_count() == 2


@pytest.mark.parametrize(("time", "late"), [(9, True), (10, False), (11, False)])
def test_a_record_is_late_only_behind_the_watermark(time: int, late: bool) -> None:
    assert is_late(time, 10) is late
    harness = joining(0, 5, late_tags=(LEFT_LATE, RIGHT_LATE))
    harness.process_watermark(10)
    harness.process_element1("l", time)
    assert harness.get_side_output(LEFT_LATE) == ([("l", 9)] if late else [])


@pytest.mark.parametrize(
    ("lower", "upper", "left_gone", "right_gone"),
    [(-1, 1, 101, 101), (2, 5, 105, 100), (-5, -2, 100, 105), (0, 0, 100, 100)],
)
def test_records_are_let_go_when_nothing_can_match_them(
    lower: int, upper: int, left_gone: int, right_gone: int
) -> None:
    assert (cleanup_time(100, upper), cleanup_time(100, -lower)) == (left_gone, right_gone)
    for side, gone in enumerate((left_gone, right_gone)):
        for watermark, kept in [(gone - 1, 1), (gone, 0), (gone + 1, 0)]:
            harness = joining(lower, upper)
            harness.process_batch(["x"], [100], side=side)
            harness.process_watermark(watermark)
            assert (harness.num_keyed_state_entries(), harness.num_event_time_timers()) == (kept, kept)


def test_a_record_at_the_watermark_is_kept_until_the_next_one() -> None:
    harness = joining(-2, 0)
    harness.process_watermark(10)
    harness.process_element1("l", 10)
    harness.process_element2("r", 10)
    assert harness.get_output() == [(("l", "r"), 10)]
    harness.process_watermark(12)
    assert harness.num_keyed_state_entries() == 0


def test_clean_up_takes_the_early_and_leaves_the_rest() -> None:
    harness = joining(-5, 5)
    for time in (30, 10, 20, 10):
        harness.process_element1(time, time)
    harness.process_watermark(14)
    harness.process_element2("r", 15)
    assert harness.outputs() == [(10, "r"), (10, "r"), (20, "r")]
    harness.clear_output()
    harness.process_watermark(15)
    harness.process_element2("s", 15)
    assert harness.outputs() == [(20, "s")]
    harness.process_watermark(35)
    assert (harness.num_keyed_state_entries(), harness.num_event_time_timers()) == (0, 0)


def test_matches_come_in_time_order_and_equal_times_in_order_of_arrival() -> None:
    harness = joining(-10, 10)
    for name, time in [("c", 3), ("a", 1), ("b1", 2), ("b2", 2)]:
        harness.process_element1(name, time)
    harness.process_element2("r", 2)
    assert harness.get_output() == [(("a", "r"), 2), (("b1", "r"), 2), (("b2", "r"), 2), (("c", "r"), 3)]


def test_only_records_of_the_same_key_are_joined() -> None:
    harness = harness_for(pair, key_selector=0, second_key_selector=lambda value: value[-1], interval=(0, 0))
    harness.process_batch([("a", 1), ("b", 2)], [5, 5])
    harness.process_element2((3, "b"), 5)
    assert harness.outputs() == [(("b", 2), (3, "b"))]


def test_state_and_timers_survive_a_snapshot() -> None:
    harness = joining(-1, 1)
    harness.process_watermark(2)
    harness.process_element1("l", 3)
    harness = harness.restore(harness.snapshot())
    harness.process_element2("late", 1)
    harness.process_element2("r", 4)
    assert harness.outputs() == [("l", "r")]
    harness.process_watermark(5)
    assert (harness.num_keyed_state_entries(), harness.num_event_time_timers()) == (0, 0)


def test_state_follows_its_keys_when_the_parallelism_changes() -> None:
    keys = [f"k{number}" for number in range(20)]
    before = harness_for(pair, key_selector=lambda value: value, interval=(-1, 1))
    before.process_batch(keys, [5] * 20)
    snapshot = before.snapshot()
    found = []
    for subtask in range(3):
        after = before.restore(snapshot, subtask=subtask, parallelism=3)
        for key in filter(after.owns, keys):
            after.process_element2(key, 6)
        found += after.outputs()
        after.process_watermark(100)
        assert after.num_keyed_state_entries() == 0
    assert sorted(found) == sorted((key, key) for key in keys)


def test_batch_mode_joins_everything_and_keeps_nothing() -> None:
    harness = joining(-1, 1, batch=True)
    for time in (4, 1, 3, 2):
        harness.process_element1(time, time)
        harness.process_element2(time, time)
    harness.process_watermark(4)
    assert harness.outputs() == []
    harness.end_input()
    assert len(harness.outputs()) == 10
    assert harness.num_keyed_state_entries() == 0


def test_times_at_the_end_of_time_do_not_overflow() -> None:
    harness = joining(-5, 5)
    harness.process_element1("l", LONG_MAX - 1)
    harness.process_element2("r", LONG_MAX - 3)
    assert harness.get_output() == [(("l", "r"), LONG_MAX - 1)]
    harness.end_input()
    assert (harness.num_keyed_state_entries(), harness.num_event_time_timers()) == (0, 0)


class Times(ProcessJoinFunction):
    tag = OutputTag("times")

    def process_element(self, left, right, ctx):
        ctx.output(self.tag, (ctx.get_left_timestamp(), ctx.get_right_timestamp(), ctx.get_timestamp()))
        yield self.tag, "yielded"
        yield left + right


def test_the_context_knows_the_times_and_side_outputs() -> None:
    harness = harness_for(Times(), key_selector=one_key, interval=(-10, 10))
    harness.process_element1("l", 7)
    harness.process_element2("r", 5)
    assert harness.get_output() == [("lr", 7)]
    assert harness.get_side_output(Times.tag) == [((7, 5, 7), 7), ("yielded", 7)]


class CountPairs(ProcessJoinFunction):
    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count"))

    def process_element(self, left, right, ctx):
        self.count.update((self.count.value() or 0) + 1)
        return [(left[0], self.count.value())]


def test_a_join_function_has_keyed_state() -> None:
    harness = harness_for(CountPairs(), key_selector=0, interval=(0, 0))
    harness.process_batch([("a", 1), ("b", 1), ("a", 2)], [1, 1, 1])
    harness.process_batch([("a", 3), ("b", 3)], [1, 1], side=1)
    assert harness.outputs() == [("a", 1), ("a", 2), ("b", 1)]


@pytest.mark.parametrize(("side", "name"), [(0, "left"), (1, "right")])
def test_a_record_without_a_timestamp_is_an_error(side: int, name: str) -> None:
    harness = joining(0, 1, name="match", uid="match-1")
    with pytest.raises(
        TimeError, match=rf"match \(uid match-1\).*'x' of the {name} stream has no timestamp.*assign_tim"
    ):
        harness.process_batch(["w", "x"], [1, None], side=side)


def test_bounds_that_nothing_can_match_are_an_error() -> None:
    with pytest.raises(GraphError, match="no pair can match in an interval join from 1 to -1 ms"):
        joining(1, -1)


def test_results_must_be_iterable() -> None:
    harness = harness_for(lambda left, right: 3, key_selector=one_key, interval=(0, 0))
    harness.process_element1("l", 1)
    with pytest.raises(TypeError, match="answered 3, which is not iterable: yield each result"):
        harness.process_element2("r", 1)


def test_an_error_of_the_function_names_the_pair() -> None:
    def fail(left, right):
        raise LookupError("nothing there")

    harness = harness_for(fail, key_selector=one_key, interval=(0, 0))
    harness.process_element1("l", 1)
    with pytest.raises(LookupError) as raised:
        harness.process_element2("r", 1)
    assert raised.value.__notes__[1] == "record: ('l', 'r')"


def test_streams_without_keys_are_refused() -> None:
    harness = OperatorHarness(IntervalJoinOperator(UserFunction(pair, "process_element"), 0, 1), inputs=2)
    with pytest.raises(StateError, match=r"an interval join on a stream without keys.*key_by"):
        harness.process_element1("l", 1)
