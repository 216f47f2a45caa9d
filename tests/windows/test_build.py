"""What is refused when the graph is built, and which operator is chosen."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from millrace.errors import GraphError
from millrace.runtime.windows.assigners import (
    DynamicEventTimeSessionWindows,
    EventTimeSessionWindows,
    ProcessingTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from millrace.runtime.windows.build import WindowSpec, make_window_operator
from millrace.runtime.windows.counting import GlobalWindows
from millrace.runtime.windows.evictors import CountEvictor
from millrace.runtime.windows.functions import WindowFunctionKind
from millrace.runtime.windows.triggers import CountTrigger, DeltaTrigger, EventTimeTrigger, PurgingTrigger
from tests.windows.test_functions import Counting, Mean

TUMBLING = TumblingEventTimeWindows.of(1000)
SESSIONS = EventTimeSessionWindows.with_gap(1000)


class NoMerge:
    def create_accumulator(self) -> Any:
        return 0

    def add(self, value: Any, accumulator: Any) -> Any:
        return accumulator + 1

    def get_result(self, accumulator: Any) -> Any:
        return accumulator


def test_a_trigger_that_cannot_merge_on_sessions() -> None:
    with pytest.raises(GraphError, match=r"counts: DeltaTrigger\(1\) cannot merge windows.*override can_merge"):
        WindowSpec(SESSIONS, trigger=DeltaTrigger.of(1, lambda a, b: b - a), reduce=max, name="counts")
    WindowSpec(TUMBLING, trigger=DeltaTrigger.of(1, lambda a, b: b - a), reduce=max)


def test_an_evictor_with_incremental_aggregation() -> None:
    with pytest.raises(GraphError, match=r"reduce\(\) keeps only their result. Use apply\(\) or process\(\)"):
        WindowSpec(TUMBLING, evictor=CountEvictor.of(1), reduce=max)
    with pytest.raises(GraphError, match=r"aggregate\(\) keeps only"):
        WindowSpec(TUMBLING, evictor=CountEvictor.of(1), aggregate=Mean())


def test_sessions_need_merge() -> None:
    with pytest.raises(GraphError, match=r"NoMerge has no merge\(\)"):
        WindowSpec(SESSIONS, aggregate=NoMerge())
    WindowSpec(TUMBLING, aggregate=NoMerge())
    WindowSpec(SESSIONS, aggregate=Mean())


def test_negative_lateness() -> None:
    with pytest.raises(GraphError, match="allowed lateness is -1 ms"):
        WindowSpec(TUMBLING, reduce=max, allowed_lateness=-1)


@pytest.mark.parametrize(
    "wrong",
    [
        {"reduce": 5},
        {"aggregate": object()},
        {"function_kind": WindowFunctionKind.APPLY, "function": 5},
        {"function_kind": WindowFunctionKind.PROCESS_ALL, "function": object()},
        {"reduce": max, "aggregate": Mean()},
    ],
)
def test_functions_that_are_none(wrong: Any) -> None:
    with pytest.raises(GraphError):
        WindowSpec(TUMBLING, **wrong)


def kind(assigner: Any, **more: Any) -> str:
    return type(make_window_operator(WindowSpec(assigner, **{"reduce": max, **more}))).__name__


class MyTumbling(TumblingEventTimeWindows):
    pass


class MyTrigger(EventTimeTrigger):
    pass


def test_the_fast_operators_are_for_the_plain_cases() -> None:
    purging = PurgingTrigger.of(EventTimeTrigger())
    process = {"reduce": None, "function_kind": WindowFunctionKind.PROCESS, "function": Counting()}
    assert kind(TUMBLING) == "AlignedWindowOperator"
    assert kind(TUMBLING, trigger=EventTimeTrigger.create()) == "AlignedWindowOperator"
    assert kind(TUMBLING, trigger=purging, allowed_lateness=5) == "AlignedWindowOperator"
    assert kind(TUMBLING, trigger=purging, **process) == "AlignedWindowOperator"
    assert kind(TUMBLING, trigger=purging, allowed_lateness=5, **process) == "WindowOperator"
    assert kind(SlidingEventTimeWindows.of(10, 3)) == "AlignedWindowOperator"
    assert kind(SESSIONS) == "SessionWindowOperator"
    assert kind(DynamicEventTimeSessionWindows.with_dynamic_gap(int), allowed_lateness=5) == "SessionWindowOperator"
    assert kind(SESSIONS, trigger=purging) == "SessionWindowOperator"
    assert kind(SESSIONS, trigger=purging, allowed_lateness=5) == "WindowOperator"


def test_the_general_operator_is_for_the_rest() -> None:
    assert kind(TUMBLING, trigger=CountTrigger.of(1)) == "WindowOperator"
    assert kind(TUMBLING, trigger=MyTrigger()) == "WindowOperator"
    assert kind(MyTumbling.of(10)) == "AlignedWindowOperator"  # of() makes the plain class
    assert kind(MyTumbling(10)) == "WindowOperator"
    assert kind(TumblingProcessingTimeWindows.of(10)) == "WindowOperator"
    assert kind(ProcessingTimeSessionWindows.with_gap(10)) == "WindowOperator"
    assert kind(GlobalWindows.create(), trigger=CountTrigger.of(1)) == "WindowOperator"


def test_a_spec_can_be_sent_to_a_task() -> None:
    spec = WindowSpec(SESSIONS, aggregate=Mean(), allowed_lateness=7)
    copy = pickle.loads(pickle.dumps(spec))
    assert copy.allowed_lateness == 7
    assert repr(copy.assigner) == repr(SESSIONS)
