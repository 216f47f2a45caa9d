"""Flink's own cases for windows, lateness and the merging set, on the general operator and on the fast paths."""

from __future__ import annotations

from typing import Any

import pytest

from millrace.common.constants import LONG_MAX
from millrace.common.output_tag import OutputTag
from millrace.runtime.windows.assigners import (
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from millrace.runtime.windows.build import WindowSpec
from millrace.runtime.windows.counting import GlobalWindows
from millrace.runtime.windows.evictors import CountEvictor
from millrace.runtime.windows.functions import WindowFunctionKind
from millrace.runtime.windows.merging import MergingWindowSet
from millrace.runtime.windows.triggers import CountTrigger, EventTimeTrigger, PurgingTrigger
from millrace.runtime.windows.windows import TimeWindow
from tests.windows.harness import PATHS, Run

pytestmark = pytest.mark.usefixtures("each_backend")

LATE = OutputTag("late")


def add(a: Any, b: Any) -> Any:
    return (a[0], a[1] + b[1])


def keyed_sum(key: Any, window: Any, inputs: Any) -> list[Any]:
    return [(key, sum(value[1] for value in inputs))]


def sum_spec(assigner: Any, way: str, **more: Any) -> WindowSpec:
    """Sum per key, either reduced record by record or computed from the list at the end."""
    if way == "reduce":
        return WindowSpec(assigner, reduce=add, **more)
    return WindowSpec(assigner, function_kind=WindowFunctionKind.APPLY, function=keyed_sum, **more)


def session_result(key: Any, window: TimeWindow, inputs: Any) -> list[Any]:
    return [(key, sum(inputs), window.start, window.end)]


def session_spec(way: str, gap: int = 3000, **more: Any) -> WindowSpec:
    incremental = {"reduce": lambda a, b: a + b} if way == "reduce" else {}
    return WindowSpec(
        EventTimeSessionWindows.with_gap(gap),
        function_kind=WindowFunctionKind.APPLY,
        function=session_result,
        **incremental,
        **more,
    )


def feed(run: Run, *records: tuple[str, int]) -> None:
    """Records of value 1, one by one: (key, time)."""
    for key, time in records:
        run.add((key, 1), time, key)


TUMBLING_INPUT = [
    ("k2", 3999), ("k2", 3000), ("k1", 20), ("k1", 0), ("k1", 999), ("k2", 1998), ("k2", 1999), ("k2", 1000),
]  # fmt: skip

both = pytest.mark.parametrize("path", PATHS)
ways = pytest.mark.parametrize("way", ["reduce", "list"])
cuts = pytest.mark.parametrize("one_batch", [True, False])


def start(run: Run, one_batch: bool) -> None:
    if one_batch:
        run.batch([(key, (key, 1), time) for key, time in TUMBLING_INPUT])
    else:
        feed(run, *TUMBLING_INPUT)


@both
@ways
@cuts
def test_w1_tumbling_event_time(path: str, way: str, one_batch: bool) -> None:
    run = Run(sum_spec(TumblingEventTimeWindows.of(3000), way), path)
    start(run, one_batch)
    assert run.watermark(999).take() == []
    assert run.watermark(1999).take() == []
    run.restore()
    assert sorted(run.watermark(2999).take()) == [(("k1", 3), 2999), (("k2", 3), 2999)]
    assert run.watermark(3999).watermark(4999).take() == []
    assert run.watermark(5999).take() == [(("k2", 2), 5999)]
    assert run.watermark(6999).watermark(7999).take() == []
    assert run.stored() == 0


@both
@ways
@cuts
def test_w2_sliding_event_time(path: str, way: str, one_batch: bool) -> None:
    run = Run(sum_spec(SlidingEventTimeWindows.of(3000, 1000), way), path)
    start(run, one_batch)
    assert run.watermark(999).take() == [(("k1", 3), 999)]
    assert sorted(run.watermark(1999).take()) == [(("k1", 3), 1999), (("k2", 3), 1999)]
    assert sorted(run.watermark(2999).take()) == [(("k1", 3), 2999), (("k2", 3), 2999)]
    run.restore()
    assert run.watermark(3999).take() == [(("k2", 5), 3999)]
    assert run.watermark(4999).take() == [(("k2", 2), 4999)]
    assert run.watermark(5999).take() == [(("k2", 2), 5999)]
    assert run.watermark(6999).watermark(7999).take() == []
    assert run.stored() == 0


@both
@ways
def test_w3_sessions(path: str, way: str) -> None:
    run = Run(session_spec(way), path)
    for value, time in ((1, 0), (2, 1000), (3, 2500)):
        run.add(value, time, "k2")
    run.add(1, 10, "k1").add(2, 1000, "k1")
    run.restore()
    run.add(3, 2500, "k1")
    for value, time in ((4, 5501), (5, 6000), (5, 6000), (6, 6050)):
        run.add(value, time, "k2")
    assert sorted(run.watermark(12000).take()) == [
        (("k1", 6, 10, 5500), 5499),
        (("k2", 6, 0, 5500), 5499),
        (("k2", 20, 5501, 9050), 9049),
    ]
    run.add(10, 15000, "k2").add(20, 15000, "k2")
    assert run.watermark(17999).take() == [(("k2", 30, 15000, 18000), 17999)]
    assert run.stored() == 0


@ways
def test_w4_sessions_with_count_trigger(way: str) -> None:
    run = Run(session_spec(way, trigger=PurgingTrigger.of(CountTrigger.of(4))))
    for value, time in ((1, 0), (2, 1000), (3, 2500), (4, 3500)):
        run.add(value, time, "k2")
    assert run.take() == [(("k2", 10, 0, 6500), 6499)]
    run.add(1, 10, "k1").add(2, 1000, "k1")
    run.restore()
    run.add(3, 2500, "k1").add(1, 6000, "k1").add(2, 6500, "k1").add(3, 7000, "k1")
    assert run.take() == []
    assert run.add(10, 4500, "k1").take() == [(("k1", 22, 10, 10000), 9999)]
    run.watermark(LONG_MAX)
    assert run.take() == []
    assert run.stored() == 0


@ways
def test_w7_count_trigger(way: str) -> None:
    run = Run(sum_spec(GlobalWindows.create(), way, trigger=PurgingTrigger.of(CountTrigger.of(4))))
    feed(run, ("k2", 3000), ("k2", 3999), ("k1", 20), ("k1", 0), ("k1", 999), ("k2", 1998), ("k2", 1999))
    assert run.take() == [(("k2", 4), LONG_MAX)]
    run.restore()
    feed(run, ("k2", 1000))
    assert run.take() == []
    feed(run, ("k1", 10999))
    assert run.take() == [(("k1", 4), LONG_MAX)]
    feed(run, ("k2", 1000), ("k2", 1000), ("k2", 1000))
    assert run.take() == [(("k2", 4), LONG_MAX)]


@ways
def test_w10_tumbling_processing_time(way: str) -> None:
    run = Run(sum_spec(TumblingProcessingTimeWindows.of(3000), way))
    run.clock(3)
    # Any timestamp, even none, is ignored.
    for time in (LONG_MAX, 7000, 7000):
        feed(run, ("k2", time))
    run.batch([("k1", ("k1", 1), None), ("k1", ("k1", 1), None)])
    assert run.operator.next_processing_time() == 2999
    assert sorted(run.clock(5000).take()) == [(("k1", 2), 2999), (("k2", 3), 2999)]
    feed(run, ("k1", 7000), ("k1", 7000), ("k1", 7000))
    assert run.clock(7000).take() == [(("k1", 3), 5999)]
    assert run.stored() == 0


@both
@ways
def test_l1_lateness(path: str, way: str) -> None:
    trigger = PurgingTrigger.of(EventTimeTrigger.create())
    spec = sum_spec(TumblingEventTimeWindows.of(2000), way, allowed_lateness=500, trigger=trigger, late_tag=LATE)
    run = Run(spec, path)
    feed(run, ("k", 500))
    run.watermark(1500)
    feed(run, ("k", 1300))
    assert run.watermark(2300).take() == [(("k", 2), 1999)]
    feed(run, ("k", 1997))
    assert run.take() == [(("k", 1), 1999)]
    run.watermark(6000)
    feed(run, ("k", 1998))
    assert run.late() == [(("k", 1), 1998)]
    assert run.watermark(7000).take() == []
    assert run.stored() == 0


@both
@ways
def test_l2_side_output_tumbling(path: str, way: str) -> None:
    run = Run(sum_spec(TumblingEventTimeWindows.of(2000), way, late_tag=LATE), path)
    feed(run, ("k", 1000))
    run.watermark(1985)
    feed(run, ("k", 1980))
    assert run.watermark(1999).take() == [(("k", 2), 1999)]
    feed(run, ("k", 1998))
    assert run.late() == [(("k", 1), 1998)]
    feed(run, ("k", 2001))
    assert run.watermark(2999).take() == []
    assert run.watermark(3999).take() == [(("k", 1), 3999)]
    assert run.stored() == 0


@both
@ways
@pytest.mark.parametrize("one_batch", [True, False])
def test_l3_side_output_sliding(path: str, way: str, one_batch: bool) -> None:
    run = Run(sum_spec(SlidingEventTimeWindows.of(3000, 1000), way, late_tag=LATE), path)
    feed(run, ("k2", 1000))
    assert run.watermark(1999).take() == [(("k2", 1), 1999)]
    feed(run, ("k2", 2000))
    assert run.watermark(3000).take() == [(("k2", 2), 2999)]
    records = [("k1", 3001), ("k2", 2400), ("k2", 2400), ("k1", 3001), ("k2", 3900)]
    if one_batch:
        run.batch([(key, (key, 1), time) for key, time in records])
    else:
        feed(run, *records)
    assert run.late() == []
    assert sorted(run.watermark(6000).take(), key=lambda r: (r[1], r[0])) == [
        (("k1", 2), 3999),
        (("k2", 5), 3999),
        (("k1", 2), 4999),
        (("k2", 4), 4999),
        (("k1", 2), 5999),
        (("k2", 1), 5999),
    ]
    feed(run, ("k1", 3001))
    assert run.late() == [(("k1", 1), 3001)]
    assert run.stored() == 0


def base_session(run: Run) -> None:
    """The input S of the lateness cases, up to W14600."""
    run.add(1, 1000).watermark(1999).add(1, 2000).watermark(4998).add(1, 4500).add(1, 8500).watermark(7400)
    run.add(1, 7000)
    assert run.take() == []
    assert run.watermark(11501).take() == [(("key", 5, 1000, 11500), 11499)]
    run.add(1, 11600)
    assert run.watermark(14600).take() == [(("key", 1, 11600, 14600), 14599)]


@both
@ways
@pytest.mark.parametrize("purging", [False, True])
def test_l4_session_zero_lateness(path: str, way: str, purging: bool) -> None:
    trigger = PurgingTrigger.of(EventTimeTrigger.create()) if purging else None
    run = Run(session_spec(way, late_tag=LATE, trigger=trigger), path)
    base_session(run)
    run.add(1, 10000)
    assert run.late() == [(1, 10000)]
    run.add(1, 10100)
    assert run.late() == [(1, 10100)]
    run.add(1, 14500)
    assert run.watermark(20000).take() == [(("key", 1, 14500, 17500), 17499)]
    run.watermark(100000)
    assert run.take() == [] and run.late() == []
    assert run.stored() == 0


@both
@ways
def test_l6_session_with_lateness(path: str, way: str) -> None:
    run = Run(session_spec(way, late_tag=LATE, allowed_lateness=10), path)
    base_session(run)
    assert run.add(1, 10000).take() == [(("key", 2, 10000, 14600), 14599)]
    assert run.add(1, 14500).take() == []
    assert run.watermark(20000).take() == [(("key", 3, 10000, 17500), 17499)]
    run.watermark(100000)
    assert run.take() == [] and run.late() == []
    assert run.stored() == 0


def test_l5_session_with_lateness_purging() -> None:
    trigger = PurgingTrigger.of(EventTimeTrigger.create())
    run = Run(session_spec("reduce", late_tag=LATE, allowed_lateness=10, trigger=trigger))
    base_session(run)
    assert run.add(1, 10000).take() == [(("key", 1, 10000, 14600), 14599)]
    assert run.add(1, 14500).take() == []
    assert run.watermark(20000).take() == [(("key", 1, 10000, 17500), 17499)]
    run.watermark(100000)
    assert run.take() == [] and run.late() == []
    assert run.stored() == 0


@both
@ways
def test_l8_session_with_huge_lateness(path: str, way: str) -> None:
    run = Run(session_spec(way, late_tag=LATE, allowed_lateness=10000), path)
    base_session(run)
    assert run.add(1, 10000).take() == [(("key", 7, 1000, 14600), 14599)]
    assert run.add(1, 14500).take() == []
    assert run.watermark(20000).take() == [(("key", 8, 1000, 17500), 17499)]
    run.watermark(100000)
    assert run.take() == [] and run.late() == []
    assert run.stored() == 0


@both
def test_late_records_without_a_tag_are_counted(path: str) -> None:
    run = Run(sum_spec(TumblingEventTimeWindows.of(2000), "reduce"), path)
    run.watermark(5000)
    feed(run, ("k", 1), ("k", 2), ("k", 5001))
    assert run.dropped() == 2
    assert run.take() == []


def test_m1_incremental_merging() -> None:
    merges: list[Any] = []
    windows = MergingWindowSet(EventTimeSessionWindows.with_gap(3), {})

    def merge(*arguments: Any) -> None:
        merges.append(arguments)

    def w(start: int, end: int) -> TimeWindow:
        return TimeWindow(start, end)

    def added(window: TimeWindow) -> tuple[TimeWindow, TimeWindow | None, int]:
        merges.clear()
        result = windows.add_window(window, merge)
        return result, windows.get_state_window(result), len(merges)

    assert added(w(0, 4)) == (w(0, 4), w(0, 4), 0)
    assert added(w(0, 4)) == (w(0, 4), w(0, 4), 0)
    assert added(w(3, 5)) == (w(0, 5), w(0, 4), 1)
    assert merges == [(w(0, 5), [w(0, 4)], w(0, 4), [])]
    assert added(w(4, 6)) == (w(0, 6), w(0, 4), 1)
    assert added(w(1, 4)) == (w(0, 6), w(0, 4), 0)
    assert added(w(3, 5)) == (w(0, 6), w(0, 4), 0)
    assert added(w(0, 6)) == (w(0, 6), w(0, 4), 0)
    assert added(w(11, 14)) == (w(11, 14), w(11, 14), 0)
    assert added(w(10, 13)) == (w(10, 14), w(11, 14), 1)
    assert added(w(12, 15)) == (w(10, 15), w(11, 14), 1)
    assert added(w(11, 14)) == (w(10, 15), w(11, 14), 0)
    assert windows.mapping == {w(0, 6): w(0, 4), w(10, 15): w(11, 14)}
    windows.retire_window(w(0, 6))
    assert windows.get_state_window(w(0, 6)) is None
    assert windows.mapping == {w(10, 15): w(11, 14)}


def test_merging_a_bridge_between_three_windows() -> None:
    merges: list[Any] = []
    mapping: dict[Any, Any] = {}
    windows = MergingWindowSet(EventTimeSessionWindows.with_gap(3), mapping)
    for window in (TimeWindow(0, 3), TimeWindow(5, 8), TimeWindow(20, 23)):
        windows.add_window(window, lambda *_: None)
    result = windows.add_window(TimeWindow(2, 6), lambda *merge: merges.append(merge))
    assert result == TimeWindow(0, 8)
    assert merges == [(TimeWindow(0, 8), [TimeWindow(0, 3), TimeWindow(5, 8)], TimeWindow(0, 3), [TimeWindow(5, 8)])]
    assert mapping == {TimeWindow(0, 8): TimeWindow(0, 3), TimeWindow(20, 23): TimeWindow(20, 23)}


def count(key: Any, window: Any, inputs: Any) -> list[Any]:
    return [(key, len(list(inputs)))]


def evicting(do_evict_after: bool) -> Run:
    spec = WindowSpec(
        GlobalWindows.create(),
        trigger=CountTrigger.of(2),
        evictor=CountEvictor.of(4, do_evict_after),
        function_kind=WindowFunctionKind.APPLY,
        function=count,
    )
    return Run(spec)


def test_e1_count_evictor_before() -> None:
    run = evicting(do_evict_after=False)
    feed(run, ("k2", 3000), ("k2", 3999))
    assert run.take() == [(("k2", 2), LONG_MAX)]
    feed(run, ("k1", 20), ("k1", 0))
    assert run.take() == [(("k1", 2), LONG_MAX)]
    feed(run, ("k1", 999), ("k2", 1998), ("k2", 1999))
    assert run.take() == [(("k2", 4), LONG_MAX)]
    run.restore()
    feed(run, ("k2", 1000))
    assert run.take() == []
    feed(run, ("k1", 10999))
    assert run.take() == [(("k1", 4), LONG_MAX)]
    feed(run, ("k2", 1000))
    assert run.take() == [(("k2", 4), LONG_MAX)]


def test_e2_count_evictor_after() -> None:
    run = evicting(do_evict_after=True)
    feed(run, ("k2", 3000), ("k2", 3999), ("k1", 20), ("k1", 0))
    assert run.take() == [(("k2", 2), LONG_MAX), (("k1", 2), LONG_MAX)]
    feed(run, ("k1", 999), ("k2", 1998), ("k2", 1999))
    assert run.take() == [(("k2", 4), LONG_MAX)]
    feed(run, ("k2", 1000), ("k1", 10999))
    assert run.take() == [(("k1", 4), LONG_MAX)]
    feed(run, ("k2", 1000))
    assert run.take() == [(("k2", 6), LONG_MAX)]
    feed(run, ("k2", 1000), ("k2", 1000))
    assert run.take() == [(("k2", 6), LONG_MAX)]


@both
def test_the_fast_path_is_taken(path: str) -> None:
    kinds = [
        Run(sum_spec(TumblingEventTimeWindows.of(10), "reduce"), path).kind,
        Run(sum_spec(SlidingEventTimeWindows.of(10, 5), "list"), path).kind,
        Run(session_spec("reduce"), path).kind,
    ]
    fast = ["AlignedWindowOperator", "AlignedWindowOperator", "SessionWindowOperator"]
    assert kinds == (fast if path == "fast" else ["WindowOperator"] * 3)
