"""Which windows each assigner gives, and what it refuses."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from millrace.common.constants import LONG_MAX, LONG_MIN
from millrace.common.time import Duration, Time
from millrace.errors import GraphError, TimeError
from millrace.runtime.windows.assigners import (
    DynamicEventTimeSessionWindows,
    DynamicProcessingTimeSessionWindows,
    EventTimeSessionWindows,
    MergingWindowAssigner,
    ProcessingTimeSessionWindows,
    SessionWindowTimeGapExtractor,
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
    WindowAssigner,
)
from millrace.runtime.windows.build import WindowSpec
from millrace.runtime.windows.counting import (
    CountSlidingWindowAssigner,
    CountTumblingWindowAssigner,
    EndOfStreamWindows,
    GlobalWindows,
)
from millrace.runtime.windows.functions import WindowFunctionKind
from millrace.runtime.windows.triggers import (
    CountTrigger,
    EventTimeTrigger,
    NeverTrigger,
    ProcessingTimeTrigger,
    Trigger,
)
from millrace.runtime.windows.windows import TimeWindow
from tests.windows.harness import Run


class At:
    """An assigner context whose clock stands still."""

    def __init__(self, now: int) -> None:
        self.now = now

    def get_current_processing_time(self) -> int:
        return self.now


def bounds(windows: Any) -> list[tuple[int, int]]:
    return [(window.start, window.end) for window in windows]


@pytest.mark.parametrize("size", [Time.seconds(5), Duration.of_seconds(5), timedelta(seconds=5), 5000])
def test_sizes_may_be_said_in_many_ways(size: Any) -> None:
    assert bounds(TumblingEventTimeWindows.of(size).assign_windows("a", 4999, None)) == [(0, 5000)]


def test_tumbling_boundaries_and_offset() -> None:
    assigner = TumblingEventTimeWindows.of(5000, 100)
    got = [bounds(assigner.assign_windows("a", time, None))[0] for time in (99, 100, 101, 5099, 5100)]
    assert got == [(-4900, 100), (100, 5100), (100, 5100), (100, 5100), (5100, 10100)]
    assert bounds(TumblingEventTimeWindows.of(5000, -100).assign_windows("a", 4900, None)) == [(4900, 9900)]


def test_sliding_from_the_latest_to_the_earliest() -> None:
    assigner = SlidingEventTimeWindows.of(5000, 1000)
    assert bounds(assigner.assign_windows("a", 4999, None)) == [
        (4000, 9000), (3000, 8000), (2000, 7000), (1000, 6000), (0, 5000),
    ]  # fmt: skip
    assert bounds(assigner.assign_windows("a", 5000, None))[-1] == (1000, 6000)
    assert bounds(SlidingEventTimeWindows.of(5000, 3000, 1000).assign_windows("a", 5333, None)) == [
        (4000, 9000),
        (1000, 6000),
    ]


def test_sliding_by_more_than_the_size_leaves_gaps() -> None:
    assigner = SlidingEventTimeWindows.of(1000, 3000)
    assert [bounds(assigner.assign_windows("a", time, None)) for time in (999, 1000, 2999, 3000)] == [
        [(0, 1000)],
        [],
        [],
        [(3000, 4000)],
    ]


def test_negative_timestamps_are_valid() -> None:
    assert bounds(TumblingEventTimeWindows.of(1000).assign_windows("a", -1, None)) == [(-1000, 0)]
    assert bounds(SlidingEventTimeWindows.of(2000, 1000).assign_windows("a", -1, None)) == [(-1000, 1000), (-2000, 0)]


def test_processing_time_windows_ignore_the_timestamp() -> None:
    assert bounds(TumblingProcessingTimeWindows.of(5000).assign_windows("a", LONG_MAX, At(4999))) == [(0, 5000)]
    assert bounds(SlidingProcessingTimeWindows.of(4000, 2000).assign_windows("a", LONG_MIN, At(2000))) == [
        (2000, 6000),
        (0, 4000),
    ]
    assert bounds(ProcessingTimeSessionWindows.with_gap(500).assign_windows("a", LONG_MIN, At(7))) == [(7, 507)]


class ByValue(SessionWindowTimeGapExtractor):
    def extract(self, element: Any) -> int:
        return int(element)


def test_sessions_with_dynamic_gap() -> None:
    assert bounds(EventTimeSessionWindows.with_dynamic_gap(ByValue()).assign_windows(700, 5, None)) == [(5, 705)]
    assert bounds(DynamicEventTimeSessionWindows.with_dynamic_gap(int).assign_windows("70", 5, None)) == [(5, 75)]
    assigner = ProcessingTimeSessionWindows.with_dynamic_gap(Time.seconds)
    assert type(assigner) is DynamicProcessingTimeSessionWindows
    assert bounds(assigner.assign_windows(2, LONG_MIN, At(1))) == [(1, 2001)]


@pytest.mark.parametrize("gap", [0, -1])
def test_a_dynamic_gap_must_be_positive(gap: int) -> None:
    with pytest.raises(TimeError, match="gave .* ms for 'x'.*greater than zero"):
        DynamicEventTimeSessionWindows.with_dynamic_gap(lambda _: gap).assign_windows("x", 5, None)


@pytest.mark.parametrize(
    "assigner",
    [TumblingEventTimeWindows.of(1), SlidingEventTimeWindows.of(2, 1), EventTimeSessionWindows.with_gap(1)],
)
def test_no_timestamp_is_refused(assigner: Any) -> None:
    with pytest.raises(TimeError, match="assign_timestamps_and_watermarks"):
        assigner.assign_windows("a", LONG_MIN, None)


@pytest.mark.parametrize(
    "make",
    [
        lambda: TumblingEventTimeWindows.of(0),
        lambda: TumblingEventTimeWindows.of(-5),
        lambda: TumblingProcessingTimeWindows.of(0),
        lambda: SlidingEventTimeWindows.of(0, 5),
        lambda: SlidingEventTimeWindows.of(5, 0),
        lambda: SlidingProcessingTimeWindows.of(5, -1),
        lambda: EventTimeSessionWindows.with_gap(0),
        lambda: ProcessingTimeSessionWindows.with_gap(-1),
        lambda: CountTumblingWindowAssigner.of(0),
        lambda: CountSlidingWindowAssigner.of(5, 0),
    ],
)
def test_sizes_must_be_positive(make: Any) -> None:
    with pytest.raises(GraphError, match="must be greater than zero.*for example"):
        make()


def test_bad_offsets_say_which_one_means_the_same() -> None:
    with pytest.raises(GraphError, match="offset=500, which means the same"):
        TumblingEventTimeWindows.of(1000, 1500)
    with pytest.raises(GraphError, match="less than one slide.*offset=0,"):
        SlidingProcessingTimeWindows.of(5000, 1000, -1000)
    assert TumblingEventTimeWindows.of(1000, 999).offset == 999


def test_a_count_window_must_not_slide_by_more_than_its_size() -> None:
    with pytest.raises(GraphError, match="count window of 3 cannot slide by 4.*Use a slide of at most 3"):
        CountSlidingWindowAssigner.of(3, 4)
    assert CountSlidingWindowAssigner.of(3, 3).window_slide == 3


def test_a_gap_extractor_must_be_callable() -> None:
    with pytest.raises(GraphError, match=r"method extract\(\)"):
        EventTimeSessionWindows.with_dynamic_gap("minute")  # type: ignore[arg-type]


def test_default_triggers() -> None:
    assert type(TumblingEventTimeWindows.of(1).get_default_trigger()) is EventTimeTrigger
    assert type(SlidingProcessingTimeWindows.of(1, 1).get_default_trigger()) is ProcessingTimeTrigger
    assert type(GlobalWindows.create().get_default_trigger()) is NeverTrigger
    assert type(GlobalWindows.create_with_end_of_stream_trigger()) is EndOfStreamWindows


def listed(key: Any, window: Any, inputs: Any) -> list[Any]:
    return [(key, list(inputs))]


def list_spec(assigner: Any, **more: Any) -> WindowSpec:
    return WindowSpec(assigner, function_kind=WindowFunctionKind.APPLY, function=listed, **more)


def values(run: Run) -> list[Any]:
    return [value for value, _ in run.take()]


def test_count_windows_give_full_windows_only() -> None:
    run = Run(list_spec(CountTumblingWindowAssigner.of(3)))
    for value in range(1, 6):
        run.add(value, None, "a")
    run.add(10, None, "b")
    run.restore()
    run.add(6, None, "a").add(7, None, "a").watermark(LONG_MAX)
    assert values(run) == [("a", [1, 2, 3]), ("a", [4, 5, 6])]


def test_sliding_count_windows_give_full_windows_only() -> None:
    run = Run(list_spec(CountSlidingWindowAssigner.of(4, 2)))
    for value in range(1, 10):
        run.add(value, None, "a")
        if value == 5:
            run.restore(by_delta=True)
    run.watermark(LONG_MAX)
    assert values(run) == [("a", [1, 2, 3, 4]), ("a", [3, 4, 5, 6]), ("a", [5, 6, 7, 8])]


def test_a_count_window_that_slides_by_one_and_does_not_divide() -> None:
    run = Run(list_spec(CountSlidingWindowAssigner.of(3, 2)))
    run.batch([("a", value, None) for value in range(8)])
    assert values(run) == [("a", [0, 1, 2]), ("a", [2, 3, 4]), ("a", [4, 5, 6])]


def test_full_count_windows_leave_no_contents_behind() -> None:
    run = Run(WindowSpec(CountTumblingWindowAssigner.of(2), reduce=max))
    run.batch([("a", value, None) for value in range(100)])
    assert run.stored() == 1  # the number of records seen so far


def test_count_windows_without_keys() -> None:
    spec = WindowSpec(CountTumblingWindowAssigner.of(2), reduce=lambda a, b: a + b)
    run = Run(spec, keyed=False)
    run.batch([("", value, None) for value in (1, 2, 3, 4, 5)])
    assert values(run) == [3, 7]


def test_end_of_stream_windows_need_no_timestamps() -> None:
    run = Run(list_spec(EndOfStreamWindows.create()))
    run.batch([("a", 1, None), ("b", 2, None), ("a", 3, None)])
    assert run.watermark(10**12).take() == []
    run.restore()
    assert run.watermark(LONG_MAX).take() == [(("a", [1, 3]), LONG_MAX), (("b", [2]), LONG_MAX)]


def test_global_windows_never_fire_by_themselves() -> None:
    run = Run(list_spec(GlobalWindows.create()))
    run.add(1, 5).watermark(LONG_MAX).clock(10**12)
    assert run.take() == []


class PerThousandOfValue(WindowAssigner[Any, TimeWindow]):
    """A user's own assigner: by a field of the record, not by its timestamp."""

    def assign_windows(self, element: Any, timestamp: int, context: Any) -> list[TimeWindow]:
        return [TimeWindow(element // 1000 * 1000, element // 1000 * 1000 + 1000)]

    def get_default_trigger(self, env: Any) -> Trigger[Any, Any]:
        return EventTimeTrigger()

    def get_window_serializer(self) -> None:
        return None

    def is_event_time(self) -> bool:
        return True


def test_a_users_own_assigner() -> None:
    run = Run(list_spec(PerThousandOfValue()))
    run.batch([("a", 1500, 1), ("a", 1600, 2), ("a", 900, 3)])
    assert run.watermark(998).take() == []
    assert run.watermark(999).take() == [(("a", [900]), 999)]
    assert run.watermark(1999).take() == [(("a", [1500, 1600]), 1999)]
    assert run.stored() == 0


class SameDecade(MergingWindowAssigner[Any, TimeWindow]):
    """A user's own merging assigner: windows of one decade of seconds become the whole decade."""

    def __init__(self, end: int = 10_000) -> None:
        self.end = end

    def assign_windows(self, element: Any, timestamp: int, context: Any) -> list[TimeWindow]:
        return [TimeWindow(timestamp, timestamp + 1)]

    def merge_windows(self, windows: Any, callback: Any) -> None:
        groups: dict[int, list[TimeWindow]] = {}
        for window in windows:
            groups.setdefault(window.start // 10_000, []).append(window)
        for decade, group in groups.items():
            if len(group) > 1:
                callback.merge(group, TimeWindow(decade * 10_000, decade * 10_000 + self.end))

    def get_default_trigger(self, env: Any) -> Trigger[Any, Any]:
        return EventTimeTrigger()

    def get_window_serializer(self) -> None:
        return None

    def is_event_time(self) -> bool:
        return True


def test_a_users_own_merging_assigner() -> None:
    run = Run(list_spec(SameDecade()))
    run.add("x", 2000, "a").add("y", 7000, "a").add("z", 12_000, "a")
    run.restore()
    run.add("w", 4000, "a")
    assert run.watermark(9999).take() == [(("a", ["x", "y", "w"]), 9999)]
    assert run.watermark(12_000).take() == [(("a", ["z"]), 12_000)]
    assert run.stored() == 0


def test_merging_into_the_past_is_an_error() -> None:
    run = Run(list_spec(SameDecade(end=10)))
    run.add("x", 2000, "a").watermark(1000)
    with pytest.raises(TimeError, match=r"SameDecade\(\) merged windows into TimeWindow\(start=0, end=10\).*at 1000"):
        run.add("y", 7000, "a")


def test_merging_is_possible_up_to_the_allowed_lateness() -> None:
    run = Run(list_spec(SameDecade(end=10), allowed_lateness=992))
    run.add("x", 2000, "a").watermark(1000).add("y", 7000, "a")
    assert run.take() == [(("a", ["x", "y"]), 9)]


def test_repr_says_what_was_asked_for() -> None:
    assert repr(TumblingEventTimeWindows.of(5000, 10)) == "TumblingEventTimeWindows(5000, offset=10)"
    assert repr(SlidingEventTimeWindows.of(5000, 5000)) == "SlidingEventTimeWindows(5000, 5000)"
    assert repr(CountTrigger.of(3)) == "CountTrigger(3)"
