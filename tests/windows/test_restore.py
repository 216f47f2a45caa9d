"""Restoring windows into a program that has changed, or in pieces."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from millrace.common.constants import LONG_MAX
from millrace.errors import RestoreError
from millrace.runtime.windows.assigners import (
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from millrace.runtime.windows.build import WindowSpec
from millrace.runtime.windows.evictors import CountEvictor
from millrace.runtime.windows.functions import WindowFunctionKind
from millrace.runtime.windows.triggers import ContinuousEventTimeTrigger, CountTrigger
from tests.windows.harness import PATHS, Run
from tests.windows.test_functions import Mean

pytestmark = pytest.mark.usefixtures("each_backend")

both = pytest.mark.parametrize("path", PATHS)
TUMBLING = TumblingEventTimeWindows.of(1000)


def add(a: int, b: int) -> int:
    return a + b


def changed(run: Run, **more: Any) -> Run:
    """The same job with another program."""
    run.spec = replace(run.spec, **more)
    return run.restore()


@both
def test_another_trigger_finds_the_windows(path: str) -> None:
    run = Run(WindowSpec(TUMBLING, reduce=add, allowed_lateness=500), path)
    run.add(1, 5).add(2, 1500).watermark(1000)
    assert run.take() == [(1, 999)]
    changed(run, trigger=ContinuousEventTimeTrigger.of(200))
    assert run.kind == "WindowOperator"
    assert run.add(4, 6).take() == [(5, 999)]
    run.add(8, 1700)
    assert run.watermark(1999).take() == [(10, 1999), (10, 1999)]
    run.watermark(5000)
    assert run.stored() == 0


@both
def test_sessions_go_on_with_another_trigger_and_back(path: str) -> None:
    run = Run(WindowSpec(EventTimeSessionWindows.with_gap(100), reduce=add), path)
    run.add(1, 0).add(2, 50).add(4, 500)
    changed(run, trigger=CountTrigger.of(2))
    run.add(8, 60).add(16, 70)
    assert run.take() == [(27, 169)]
    changed(run, trigger=None)
    run.add(32, 510)
    assert run.watermark(5000).take() == [(27, 169), (36, 609)]
    assert run.stored() == 0


@both
def test_windows_of_the_old_size_end_as_they_began(path: str) -> None:
    run = Run(WindowSpec(TUMBLING, reduce=add), path)
    run.add(1, 1500)
    changed(run, assigner=TumblingEventTimeWindows.of(3000))
    run.add(2, 1600)
    assert run.watermark(LONG_MAX).take() == [(1, 1999), (2, 2999)]
    assert run.stored() == 0


@both
def test_contents_of_another_kind_are_refused(path: str) -> None:
    run = Run(WindowSpec(TUMBLING, reduce=add), path)
    run.add(1, 5)
    with pytest.raises(RestoreError, match=r"hold a value made by reduce\(\), but .* now keeps an accumulator"):
        changed(run, reduce=None, aggregate=Mean())


@both
def test_an_evictor_cannot_take_over_a_plain_list(path: str) -> None:
    function = {"function_kind": WindowFunctionKind.APPLY, "function": lambda key, window, inputs: [list(inputs)]}
    run = Run(WindowSpec(TUMBLING, **function), path)  # type: ignore[arg-type]
    run.add(1, 5)
    with pytest.raises(RestoreError, match="a list of records, but .* now keeps records with their timestamps"):
        changed(run, evictor=CountEvictor.of(3))


@both
def test_no_windows_left_means_nothing_to_refuse(path: str) -> None:
    run = Run(WindowSpec(TUMBLING, reduce=add), path)
    run.add(1, 5).watermark(999)
    changed(run, reduce=None, aggregate=Mean())
    assert run.add(1, 1500).watermark(1999).take()[-1] == (1.0, 1999)


@both
@pytest.mark.parametrize("assigner", [SlidingEventTimeWindows.of(2000, 1000), EventTimeSessionWindows.with_gap(1000)])
def test_a_reduce_that_writes_to_its_argument_does_not_reach_other_windows(path: str, assigner: Any) -> None:
    def into(a: list[int], b: list[int]) -> list[int]:
        a[0] += b[0]
        return a

    run = Run(WindowSpec(assigner, reduce=into), path)
    run.add([1], 1500).add([2], 1600).add([4], 2500)
    totals = [value[0] for value, _ in run.watermark(LONG_MAX).take()]
    assert totals == ([3, 7, 4] if isinstance(assigner, SlidingEventTimeWindows) else [7])


@both
def test_deltas_hold_only_what_changed(path: str) -> None:
    run = Run(WindowSpec(TUMBLING, reduce=add, allowed_lateness=1000), path)
    run.batch([(key, 1, 5) for key in "abc"])
    run.store.delta()
    run.add(1, 6, "b")
    delta = run.store.delta()
    assert delta is not None
    (_, (dropped, changes)) = delta["keyed"]["window-reduce"]
    assert dropped == [] and [values for values, _ in changes.values()] == [{"b": 2}]
    run.watermark(10_000)
    assert run.stored() == 0
    run.store.delta()
    assert run.store.delta() is None
