"""Every trigger: on its own with a real context, and in the operator."""

from __future__ import annotations

from typing import Any

import pytest

from millrace.common.constants import LONG_MAX, LONG_MIN
from millrace.common.time import Time
from millrace.errors import GraphError
from millrace.runtime.operator import OperatorContext, RecordFailure
from millrace.runtime.windows.assigners import (
    EventTimeSessionWindows,
    ProcessingTimeSessionWindows,
    SlidingProcessingTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from millrace.runtime.windows.build import WindowSpec
from millrace.runtime.windows.contexts import PaneContext
from millrace.runtime.windows.counting import GlobalWindows
from millrace.runtime.windows.functions import WindowFunctionKind
from millrace.runtime.windows.triggers import (
    ContinuousEventTimeTrigger,
    ContinuousProcessingTimeTrigger,
    CountTrigger,
    DeltaTrigger,
    EarlyAndLateTrigger,
    EndOfStreamTrigger,
    EventTimeTrigger,
    NeverTrigger,
    ProcessingTimeoutTrigger,
    ProcessingTimeTrigger,
    PurgingTrigger,
    Trigger,
    TriggerResult,
)
from millrace.runtime.windows.windows import TimeWindow
from millrace.state.descriptors import ValueStateDescriptor
from millrace.state.operator_state import Cell
from millrace.state.store import OperatorStore
from tests.windows.harness import Run

pytestmark = pytest.mark.usefixtures("each_backend")

CONTINUE, FIRE = TriggerResult.CONTINUE, TriggerResult.FIRE
FIRE_AND_PURGE, PURGE = TriggerResult.FIRE_AND_PURGE, TriggerResult.PURGE

A, B = TimeWindow(0, 2), TimeWindow(2, 4)


class Bench:
    """A trigger with a context on a real store, for one key."""

    def __init__(self, trigger: Trigger[Any, Any]) -> None:
        self.trigger = trigger
        self.now = 0
        self.store = OperatorStore(lambda: self.now)
        self.store.keyed.current_key = "key"
        self.watermark: Cell[int] = self.store.operator.per_task("watermark", lambda: LONG_MIN)
        self.ctx = PaneContext(OperatorContext("w", "w", self.store, lambda: self.now, keyed=True), self.watermark)

    def element(self, value: Any, window: TimeWindow, time: int = 0) -> TriggerResult:
        self.ctx.window = window
        return self.trigger.on_element(value, time, window, self.ctx)

    def merge(self, result: TimeWindow, *merged: TimeWindow) -> None:
        """As the operator does it: on_merge, then clear what was merged."""
        self.ctx.window, self.ctx.merged = result, list(merged)
        self.trigger.on_merge(result, self.ctx)
        for window in merged:
            self.clear(window)

    def clear(self, window: TimeWindow) -> None:
        self.ctx.window = window
        self.trigger.clear(window, self.ctx)

    def event_timers(self) -> list[tuple[int, Any]]:
        return [(time, window) for time, _, window in self.store.event_timers]

    def processing_timers(self) -> list[tuple[int, Any]]:
        return [(time, window) for time, _, window in self.store.processing_timers]

    def entries(self) -> int:
        return sum(len(table) for table in self.store.keyed.tables().values())


# EventTimeTrigger


def test_event_time_trigger_fires_at_once_behind_the_watermark() -> None:
    bench = Bench(EventTimeTrigger.create())
    got = []
    for bench.watermark.value in (0, 1, 2):
        got.append(bench.element(1, A))
    assert got == [CONTINUE, FIRE, FIRE]
    assert bench.event_timers() == [(1, A)]


def test_event_time_trigger_behind_the_watermark_sets_no_timer() -> None:
    bench = Bench(EventTimeTrigger.create())
    bench.watermark.value = 2
    assert bench.element(1, A) is FIRE
    assert bench.event_timers() == []


def test_event_time_trigger_fires_at_the_end_only() -> None:
    bench = Bench(EventTimeTrigger.create())
    assert [bench.trigger.on_event_time(time, A, bench.ctx) for time in (0, 1, 2)] == [CONTINUE, FIRE, CONTINUE]
    assert bench.trigger.on_processing_time(1, A, bench.ctx) is CONTINUE


def test_event_time_trigger_merging_leaves_one_timer() -> None:
    bench = Bench(EventTimeTrigger.create())
    bench.element(1, A)
    bench.element(1, B)
    bench.merge(TimeWindow(0, 4), A, B)
    assert bench.event_timers() == [(3, TimeWindow(0, 4))]
    bench.clear(TimeWindow(0, 4))
    assert bench.event_timers() == []


def test_event_time_trigger_merging_behind_the_watermark_sets_no_timer() -> None:
    bench = Bench(EventTimeTrigger.create())
    bench.watermark.value = 10
    bench.merge(TimeWindow(0, 4), A, B)
    assert bench.event_timers() == []


# ProcessingTimeTrigger


def test_processing_time_trigger() -> None:
    bench = Bench(ProcessingTimeTrigger.create())
    assert bench.element(1, A) is CONTINUE
    assert bench.processing_timers() == [(1, A)]
    assert [bench.trigger.on_processing_time(time, A, bench.ctx) for time in (0, 1, 2)] == [FIRE, FIRE, FIRE]
    assert bench.trigger.on_event_time(1, A, bench.ctx) is CONTINUE
    bench.element(1, B)
    bench.merge(TimeWindow(0, 4), A, B)
    assert bench.processing_timers() == [(3, TimeWindow(0, 4))]
    bench.clear(TimeWindow(0, 4))
    assert bench.processing_timers() == []


# CountTrigger and PurgingTrigger


def test_count_trigger_fires_at_the_third_and_starts_over() -> None:
    bench = Bench(CountTrigger.of(3))
    assert [bench.element(1, A) for _ in range(7)] == [CONTINUE, CONTINUE, FIRE, CONTINUE, CONTINUE, FIRE, CONTINUE]
    assert bench.trigger.on_event_time(1, A, bench.ctx) is CONTINUE
    assert bench.trigger.on_processing_time(1, A, bench.ctx) is CONTINUE


def test_count_trigger_counts_each_window_and_key() -> None:
    bench = Bench(CountTrigger.of(3))
    assert [bench.element(1, w) for w in (A, B, A, B)] == [CONTINUE] * 4
    bench.store.keyed.current_key = "other"
    assert bench.element(1, A) is CONTINUE
    bench.store.keyed.current_key = "key"
    assert [bench.element(1, w) for w in (A, B)] == [FIRE, FIRE]


def test_count_trigger_adds_counts_when_windows_merge() -> None:
    bench = Bench(CountTrigger.of(3))
    bench.element(1, A)
    bench.element(1, B)
    merged = TimeWindow(0, 4)
    bench.merge(merged, A, B)
    assert bench.entries() == 1
    assert bench.element(1, merged) is FIRE
    bench.element(1, merged)
    bench.clear(merged)
    assert bench.entries() == 0


@pytest.mark.parametrize("count", [0, -1])
def test_count_trigger_needs_a_positive_count(count: int) -> None:
    with pytest.raises(GraphError, match="greater than zero"):
        CountTrigger.of(count)


class Scripted(NeverTrigger):
    """Says what it is told to say."""

    def __init__(self, result: TriggerResult) -> None:
        self.result = result

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Any) -> TriggerResult:
        return self.result

    on_processing_time = on_event_time = lambda self, time, window, ctx: self.result  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("said", "done"),
    [(FIRE, FIRE_AND_PURGE), (FIRE_AND_PURGE, FIRE_AND_PURGE), (CONTINUE, CONTINUE), (PURGE, PURGE)],
)
def test_purging_trigger(said: TriggerResult, done: TriggerResult) -> None:
    bench = Bench(PurgingTrigger.of(Scripted(said)))
    assert bench.element(1, A) is done
    assert bench.trigger.on_event_time(1, A, bench.ctx) is done
    assert bench.trigger.on_processing_time(1, A, bench.ctx) is done


def test_purging_trigger_merges_and_clears_like_the_one_inside() -> None:
    assert PurgingTrigger.of(CountTrigger.of(3)).can_merge()
    assert not PurgingTrigger.of(DeltaTrigger.of(1, lambda a, b: b - a)).can_merge()
    bench = Bench(PurgingTrigger.of(CountTrigger.of(3)))
    bench.element(1, A)
    bench.element(1, B)
    bench.merge(TimeWindow(0, 4), A, B)
    assert bench.element(1, TimeWindow(0, 4)) is FIRE_AND_PURGE


def sums(assigner: Any, trigger: Any, **more: Any) -> Run:
    return Run(WindowSpec(assigner, trigger=trigger, reduce=lambda a, b: a + b, **more))


def test_count_trigger_without_purging_gives_growing_results() -> None:
    run = sums(GlobalWindows.create(), CountTrigger.of(2))
    run.batch([("a", value, None) for value in (1, 2, 3, 4, 5)])
    assert run.take() == [(3, LONG_MAX), (10, LONG_MAX)]


def test_purge_drops_contents_but_not_the_count_of_the_trigger() -> None:
    class PurgeOnZero(CountTrigger):
        def on_element(self, element: Any, timestamp: int, window: Any, ctx: Any) -> TriggerResult:
            return PURGE if element == 0 else super().on_element(element, timestamp, window, ctx)

    run = sums(GlobalWindows.create(), PurgeOnZero(3))
    run.batch([("a", value, None) for value in (1, 2, 0, 5)])
    assert run.take() == [(5, LONG_MAX)]


# ContinuousEventTimeTrigger


def test_continuous_event_time_fires_at_intervals_and_at_the_end() -> None:
    run = sums(TumblingEventTimeWindows.of(2500), ContinuousEventTimeTrigger.of(Time.seconds(1)))
    run.add(1, 300).add(2, 900)
    assert run.watermark(998).take() == []
    assert run.watermark(999).take() == []
    assert run.watermark(1000).take() == [(3, 2499)]
    run.restore()
    run.add(4, 1500)
    assert run.watermark(2000).take() == [(7, 2499)]
    assert run.watermark(2498).take() == []
    assert run.watermark(2499).take() == [(7, 2499)]
    assert run.stored() == 0


def test_continuous_event_time_starts_at_the_first_records_interval() -> None:
    bench = Bench(ContinuousEventTimeTrigger.of(1000))
    window = TimeWindow(-5000, 5000)
    bench.element(1, window, -1500)
    assert bench.event_timers() == [(-1000, window), (4999, window)]
    bench.element(1, window, -3500)
    assert bench.event_timers() == [(-1000, window), (4999, window)]


def test_continuous_event_time_fires_for_late_records() -> None:
    run = sums(TumblingEventTimeWindows.of(1000), ContinuousEventTimeTrigger.of(500), allowed_lateness=300)
    run.add(1, 100)
    assert run.watermark(1000).take() == [(1, 999), (1, 999)]
    assert run.add(2, 600).take() == [(3, 999)]
    run.watermark(1299)
    assert run.take() == []
    assert run.stored() == 0


def test_continuous_event_time_merges_to_the_earliest() -> None:
    run = sums(EventTimeSessionWindows.with_gap(3000), ContinuousEventTimeTrigger.of(1000))
    run.add(1, 100).add(2, 4500)
    run.add(4, 2000)  # joins both; the earliest waits for 1000
    assert run.watermark(1000).take() == [(7, 7499)]
    assert run.watermark(7499).take() == [(7, 7499)] * 7
    assert run.stored() == 0


def test_continuous_event_time_on_the_global_window_ends() -> None:
    run = sums(GlobalWindows.create(), ContinuousEventTimeTrigger.of(1000))
    run.add(1, 500).add(2, 2500)
    assert run.watermark(1000).take() == [(3, LONG_MAX)]
    assert run.watermark(LONG_MAX).take() == [(3, LONG_MAX), (3, LONG_MAX)]


# ContinuousProcessingTimeTrigger


def test_continuous_processing_time() -> None:
    run = sums(TumblingProcessingTimeWindows.of(2500), ContinuousProcessingTimeTrigger.of(1000))
    run.clock(300).add(1, None)
    assert run.clock(999).take() == []
    assert run.clock(1000).take() == [(1, 2499)]
    run.add(2, None)
    run.restore()
    assert run.clock(2000).take() == [(3, 2499)]
    assert run.clock(2498).take() == []
    assert run.clock(2499).take() == [(3, 2499)]
    assert run.stored() == 0


def test_continuous_processing_time_on_event_time_windows_long_past() -> None:
    run = sums(TumblingEventTimeWindows.of(1000), ContinuousProcessingTimeTrigger.of(1000))
    run.clock(50_000).add(1, 10)
    assert run.clock(50_999).take() == []
    assert run.clock(51_000).take() == [(1, 999)]
    assert run.clock(52_000).take() == [(1, 999)]
    run.watermark(999)
    assert run.take() == []
    assert run.stored() == 0


def test_continuous_processing_time_merges() -> None:
    run = sums(ProcessingTimeSessionWindows.with_gap(3000), ContinuousProcessingTimeTrigger.of(1000))
    run.add(1, None).clock(500).add(2, None)
    assert run.clock(1000).take() == [(3, 3499)]
    assert run.clock(3499).take() == [(3, 3499)] * 3
    assert run.stored() == 0


# EarlyAndLateTrigger


def test_early_and_late_in_processing_time() -> None:
    trigger = EarlyAndLateTrigger.early_every(Time.seconds(1))
    run = sums(TumblingEventTimeWindows.of(5000), trigger, allowed_lateness=1000)
    run.clock(100).add(1, 0)
    assert run.clock(999).take() == []
    assert run.clock(1000).take() == [(1, 4999)]
    run.add(2, 10)
    run.restore()
    assert run.clock(2000).take() == [(3, 4999)]
    run.add(3, 20)
    assert run.watermark(4998).take() == []
    assert run.watermark(4999).take() == [(6, 4999)]
    assert run.clock(3000).clock(9000).take() == []
    assert run.add(4, 30).take() == [(10, 4999)]
    assert run.add(5, 40).take() == [(15, 4999)]
    run.watermark(5999)
    assert run.take() == []
    assert run.stored() == 0


def test_early_and_late_purging() -> None:
    trigger = EarlyAndLateTrigger.early_every(1000).purging()
    run = sums(TumblingEventTimeWindows.of(5000), trigger, allowed_lateness=1000)
    run.add(1, 0).clock(1000).add(2, 10).clock(2000).clock(3000)
    assert run.take() == [(1, 4999), (2, 4999)]
    run.add(3, 20).watermark(4999)
    assert run.take() == [(3, 4999)]
    assert run.add(4, 30).take() == [(4, 4999)]
    assert trigger.accumulating().purge is False


def test_early_and_late_in_event_time() -> None:
    run = sums(TumblingEventTimeWindows.of(5000), EarlyAndLateTrigger.early_every(2000, event_time=True))
    run.add(1, 100).add(2, 2100)
    assert run.watermark(2000).take() == [(3, 4999)]
    assert run.watermark(LONG_MAX).take() == [(3, 4999), (3, 4999)]
    assert run.stored() == 0


def test_early_and_late_on_sessions() -> None:
    run = sums(EventTimeSessionWindows.with_gap(3000), EarlyAndLateTrigger.early_every(1000), allowed_lateness=500)
    run.add(1, 0).clock(500).add(2, 5000).clock(700).add(4, 2500)
    assert run.clock(1000).take() == [(7, 7999)]
    assert run.watermark(7999).take() == [(7, 7999)]
    assert run.clock(2000).take() == []
    assert run.add(8, 7000).take() == []
    assert run.clock(3000).take() == [(15, 9999)]
    assert run.watermark(9999).take() == [(15, 9999)]
    run.watermark(20_000)
    assert run.stored() == 0


def test_early_and_late_on_processing_time_windows_fires_at_the_end() -> None:
    run = sums(TumblingProcessingTimeWindows.of(1500), EarlyAndLateTrigger.early_every(1000))
    run.add(1, None).clock(1000).add(2, None)
    assert run.take() == [(1, 1499)]
    assert run.clock(1499).take() == [(3, 1499)]
    assert run.clock(5000).take() == []


# The others


def test_delta_trigger() -> None:
    bench = Bench(DeltaTrigger.of(10, lambda old, new: new - old))
    assert [bench.element(value, A) for value in (0, 10, 11, 20, 21, 22)] == [
        CONTINUE, CONTINUE, FIRE, CONTINUE, CONTINUE, FIRE,
    ]  # fmt: skip
    bench.clear(A)
    assert bench.entries() == 0


def test_delta_trigger_takes_an_object() -> None:
    class Distance:
        def get_delta(self, old: Any, new: Any) -> float:
            return abs(old - new)

    bench = Bench(DeltaTrigger.of(1.5, Distance()))  # type: ignore[arg-type]
    assert [bench.element(value, A) for value in (None, 5) if value] == [CONTINUE]
    assert bench.element(3, A) is FIRE


def test_never_trigger() -> None:
    bench = Bench(NeverTrigger())
    assert bench.element(1, A) is CONTINUE
    assert bench.trigger.on_event_time(1, A, bench.ctx) is CONTINUE
    assert bench.trigger.on_processing_time(1, A, bench.ctx) is CONTINUE


def test_end_of_stream_trigger() -> None:
    run = sums(GlobalWindows.create(), EndOfStreamTrigger())
    run.add(1, 5).add(2, 6)
    assert run.watermark(10**15).take() == []
    assert run.watermark(LONG_MAX).take() == [(3, LONG_MAX)]


def test_processing_timeout_trigger() -> None:
    run = sums(GlobalWindows.create(), ProcessingTimeoutTrigger.of(CountTrigger.of(3), Time.milliseconds(100)))
    run.add(1, None).clock(50).add(2, None)
    assert run.clock(99).take() == []
    assert run.clock(100).take() == [(3, LONG_MAX)]
    run.add(4, None).add(8, None)
    run.restore()
    assert run.add(16, None).take() == [(31, LONG_MAX)]
    assert run.clock(1000).take() == []


def test_processing_timeout_trigger_that_waits_from_the_last_record() -> None:
    trigger = ProcessingTimeoutTrigger.of(CountTrigger.of(3), 100, reset_timer_on_new_record=True)
    run = sums(GlobalWindows.create(), trigger)
    run.add(1, None).clock(50).add(2, None)
    assert run.clock(149).take() == []
    assert run.clock(150).take() == [(3, LONG_MAX)]


def test_processing_timeout_trigger_that_keeps_its_count() -> None:
    trigger = ProcessingTimeoutTrigger.of(CountTrigger.of(3), 100, should_clear_on_timeout=False)
    run = sums(GlobalWindows.create(), trigger)
    run.add(1, None).add(2, None).clock(100)
    assert run.take() == [(3, LONG_MAX)]
    assert run.add(4, None).take() == [(7, LONG_MAX)]


def test_processing_timeout_trigger_around_a_purging_one() -> None:
    trigger = ProcessingTimeoutTrigger.of(PurgingTrigger.of(CountTrigger.of(2)), 100)
    run = sums(GlobalWindows.create(), trigger)
    run.add(1, None).add(2, None)
    assert run.take() == [(3, LONG_MAX)]
    run.add(4, None).clock(100)
    assert run.take() == [(4, LONG_MAX)]


def test_processing_timeout_trigger_leaves_event_time_to_the_one_inside() -> None:
    trigger = ProcessingTimeoutTrigger.of(EventTimeTrigger.create(), 100)
    run = sums(TumblingEventTimeWindows.of(1000), trigger, allowed_lateness=500)
    run.add(1, 5)
    assert run.clock(100).take() == [(1, 999)]
    run.add(2, 5)
    assert run.watermark(999).take() == [(3, 999)]
    assert run.watermark(1499).take() == []
    assert run.stored() == 0


# Processing time in the operator


def test_sliding_processing_time_windows() -> None:
    run = sums(SlidingProcessingTimeWindows.of(3000, 1000), None)
    run.clock(1003).add(1, None).add(1, None)
    assert run.clock(2000).take() == [(2, 1999)]
    run.add(1, None)
    run.restore()
    assert run.clock(3000).take() == [(3, 2999)]
    assert run.clock(10_000).take() == [(3, 3999), (1, 4999)]
    assert run.stored() == 0
    assert run.operator.next_processing_time() is None


def test_processing_time_sessions() -> None:
    run = sums(ProcessingTimeSessionWindows.with_gap(3000), None)
    run.clock(3).add(1, None).clock(1000).add(1, None)
    assert run.clock(3999).take() == [(2, 3999)]
    run.clock(5000).add(1, None)
    run.restore()
    run.clock(8000).add(1, None)  # touches the session that ends at 8000, but that one has fired at 7999
    assert run.take() == [(1, 7999)]
    assert run.clock(20_000).take() == [(1, 10_999)]
    assert run.stored() == 0


def test_processing_time_windows_do_not_fire_at_the_end_of_input() -> None:
    run = sums(TumblingProcessingTimeWindows.of(3000), None)
    run.add(1, None).watermark(LONG_MAX)
    run.operator.finish()
    assert run.take() == []


# Triggers that users write


class FireEveryValueSeen(Trigger[Any, Any]):
    """Fires on a record not seen before; keeps state, sets and moves a timer, merges nothing."""

    LAST = ValueStateDescriptor("last")

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Any) -> TriggerResult:
        last = ctx.get_partitioned_state(self.LAST)
        if last.value() == element:
            return CONTINUE
        last.update(element)
        ctx.register_event_time_timer(timestamp + 100)
        return FIRE

    def on_processing_time(self, time: int, window: Any, ctx: Any) -> TriggerResult:
        return CONTINUE

    def on_event_time(self, time: int, window: Any, ctx: Any) -> TriggerResult:
        if time < 150:
            ctx.register_event_time_timer(time + 10)  # passed already: fires in the same pass
            return CONTINUE
        return FIRE

    def clear(self, window: Any, ctx: Any) -> None:
        ctx.get_partitioned_state(self.LAST).clear()


def test_a_trigger_with_state_and_timers() -> None:
    run = sums(TumblingEventTimeWindows.of(1000), FireEveryValueSeen())
    run.add(1, 30).add(1, 40).add(2, 41)
    assert run.take() == [(1, 999), (4, 999)]
    run.restore()
    assert run.watermark(500).take() == [(4, 999), (4, 999)]  # 130, 140, 141 -> 150, 151
    assert run.watermark(998).take() == []
    assert run.watermark(999).take() == [(4, 999)]  # the timer that ends the window rings for the trigger as well
    assert run.stored() == 0


def test_a_trigger_must_return_a_trigger_result() -> None:
    class Forgetful(FireEveryValueSeen):
        def on_element(self, element: Any, timestamp: int, window: Any, ctx: Any) -> Any:
            return None

    with pytest.raises(RecordFailure) as failure:
        sums(TumblingEventTimeWindows.of(1000), Forgetful()).add(7, 30)
    assert "return a TriggerResult" in str(failure.value.error)
    assert failure.value.preview == "7"


def test_a_timer_must_be_a_whole_number() -> None:
    class Floating(FireEveryValueSeen):
        def on_element(self, element: Any, timestamp: int, window: Any, ctx: Any) -> TriggerResult:
            ctx.register_event_time_timer(1.5)
            return CONTINUE

    with pytest.raises(RecordFailure) as failure:
        sums(TumblingEventTimeWindows.of(1000), Floating()).add(7, 30)
    assert "1.5 (float), which is not an integer" in str(failure.value.error)


def test_clear_is_called_with_the_window_and_key_that_go() -> None:
    cleared = []

    class Noting(EventTimeTrigger):
        def clear(self, window: Any, ctx: Any) -> None:
            cleared.append((window, ctx._keyed.current_key))
            super().clear(window, ctx)

    run = sums(TumblingEventTimeWindows.of(1000), Noting(), allowed_lateness=200)
    run.add(1, 5, "a").add(1, 5, "b").watermark(1198)
    assert cleared == []
    run.watermark(1199)
    assert cleared == [(TimeWindow(0, 1000), "a"), (TimeWindow(0, 1000), "b")]


def test_results_of_a_firing_trigger_with_nothing_in_the_window_are_none() -> None:
    run = Run(
        WindowSpec(
            TumblingEventTimeWindows.of(1000),
            trigger=PurgingTrigger.of(ContinuousEventTimeTrigger.of(100)),
            function_kind=WindowFunctionKind.APPLY,
            function=lambda key, window, inputs: [list(inputs)],
        )
    )
    run.add(1, 5)
    assert run.watermark(999).take() == [([1], 999)]
    assert run.stored() == 0


def test_what_is_due_by_the_clock_fires_before_the_next_record() -> None:
    run = sums(ProcessingTimeSessionWindows.with_gap(1000), None)
    run.add(1, None)
    run.now = 1000  # touches the session of before, whose timer at 999 nobody has called yet
    run.add(2, None)
    assert run.take() == [(1, 999)]
    assert run.clock(1999).take() == [(2, 1999)]
