"""Evictors on their own and in the operator."""

from __future__ import annotations

from typing import Any

import pytest

from millrace.common.constants import LONG_MAX, LONG_MIN
from millrace.common.time import Time
from millrace.errors import GraphError
from millrace.runtime.windows.assigners import EventTimeSessionWindows, TumblingEventTimeWindows
from millrace.runtime.windows.build import WindowSpec
from millrace.runtime.windows.counting import GlobalWindows
from millrace.runtime.windows.evictors import CountEvictor, DeltaEvictor, Evictor, TimeEvictor, TimestampedValue
from millrace.runtime.windows.functions import WindowFunctionKind
from millrace.runtime.windows.triggers import CountTrigger, PurgingTrigger
from tests.windows.harness import Run

pytestmark = pytest.mark.usefixtures("each_backend")


def kept(evictor: Evictor[Any, Any], records: list[tuple[Any, int]], after: bool = False) -> list[Any]:
    buffer = [TimestampedValue(value, time) for value, time in records]
    call = evictor.evict_after if after else evictor.evict_before
    call(buffer, len(buffer), None, None)  # type: ignore[arg-type]
    return [element.value for element in buffer]


def test_count_evictor_keeps_the_newest_by_arrival() -> None:
    records = [("a", 9), ("b", 1), ("c", 5)]
    assert [kept(CountEvictor.of(count), records) for count in (2, 3, 4)] == [
        ["b", "c"],
        ["a", "b", "c"],
        ["a", "b", "c"],
    ]


def test_time_evictor_at_the_boundary() -> None:
    records = [("x", 4999), ("y", 5000), ("z", 5001), ("last", 10_000), ("early", 6000)]
    assert kept(TimeEvictor.of(Time.seconds(5)), records) == ["z", "last", "early"]


def test_time_evictor_without_timestamps_keeps_all() -> None:
    assert kept(TimeEvictor.of(5), [("a", LONG_MIN), ("b", LONG_MIN)]) == ["a", "b"]
    assert kept(TimeEvictor.of(5), []) == []


def test_delta_evictor_at_the_boundary() -> None:
    records = [(value, 0) for value in (89, 90, 91, 100)]
    assert kept(DeltaEvictor.of(10, lambda element, last: last - element), records) == [91, 100]
    assert kept(DeltaEvictor.of(10, lambda element, last: 0), []) == []


@pytest.mark.parametrize(
    "make", [lambda after: CountEvictor.of(1, after), lambda after: TimeEvictor.of(1, after),
             lambda after: DeltaEvictor.of(1, lambda element, last: last - element, after)]
)  # fmt: skip
def test_evictors_work_either_before_or_after(make: Any) -> None:
    records = [(1, 1), (5, 5)]
    assert kept(make(False), records) == [5]
    assert kept(make(False), records, after=True) == [1, 5]
    assert kept(make(True), records) == [1, 5]
    assert kept(make(True), records, after=True) == [5]


@pytest.mark.parametrize("make", [lambda: CountEvictor.of(0), lambda: TimeEvictor.of(-1)])
def test_evictors_need_positive_sizes(make: Any) -> None:
    with pytest.raises(GraphError, match="greater than zero"):
        make()


def evicting(assigner: Any, evictor: Any, **more: Any) -> Run:
    return Run(
        WindowSpec(
            assigner,
            evictor=evictor,
            function_kind=WindowFunctionKind.APPLY,
            function=lambda key, window, inputs: [list(inputs)],
            **more,
        )
    )


def test_survivors_are_the_new_contents() -> None:
    run = evicting(GlobalWindows.create(), TimeEvictor.of(100), trigger=CountTrigger.of(2))
    run.add(1, 0).add(2, 99)
    run.add(3, 100)
    run.restore()
    run.add(4, 150)
    assert run.take() == [([1, 2], LONG_MAX), ([2, 3, 4], LONG_MAX)]
    assert run.stored() == 1


def test_delta_evictor_in_a_window() -> None:
    evictor = DeltaEvictor.of(10, lambda element, last: abs(last - element))
    run = evicting(TumblingEventTimeWindows.of(1000), evictor)
    run.add(1, 1).add(20, 2).add(25, 3)
    assert run.watermark(999).take() == [([20, 25], 999)]
    assert run.stored() == 0


def test_evicting_everything_calls_the_function_with_nothing_and_empties_the_window() -> None:
    class All(Evictor[Any, Any]):
        def evict_before(self, elements: Any, size: int, window: Any, ctx: Any) -> None:
            assert size == len(elements)
            elements.clear()

        def evict_after(self, elements: Any, size: int, window: Any, ctx: Any) -> None:
            assert size == 0

    run = evicting(GlobalWindows.create(), All(), trigger=CountTrigger.of(2))
    run.add(1, None).add(2, None)
    assert run.take() == [([], LONG_MAX)]
    assert run.stored() == 0


def test_an_evictor_sees_time_and_window() -> None:
    seen = []

    class Noting(Evictor[Any, Any]):
        def evict_before(self, elements: Any, size: int, window: Any, ctx: Any) -> None:
            seen.append((window, ctx.get_current_watermark(), ctx.get_current_processing_time()))
            ctx.get_metric_group().counter("evictions").inc()

        def evict_after(self, elements: Any, size: int, window: Any, ctx: Any) -> None:
            pass

    run = evicting(TumblingEventTimeWindows.of(1000), Noting())
    run.clock(77).add(1, 5).watermark(1234)
    assert seen == [((0, 1000), 1234, 77)]
    assert run.context.metrics.counter("evictions").get_count() == 1


def test_evictors_on_sessions_that_merge() -> None:
    run = evicting(EventTimeSessionWindows.with_gap(10), CountEvictor.of(2))
    run.add("a", 0).add("c", 15).add("b", 7)
    assert run.watermark(100).take() == [(["c", "b"], 24)]
    assert run.stored() == 0


def test_purging_with_an_evictor() -> None:
    run = evicting(GlobalWindows.create(), CountEvictor.of(2), trigger=PurgingTrigger.of(CountTrigger.of(3)))
    run.batch([("k", value, None) for value in range(6)])
    assert run.take() == [([1, 2], LONG_MAX), ([4, 5], LONG_MAX)]
    assert run.stored() == 0
