"""Window functions by hand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from millrace.datastream import OutputTag, ProcessWindowFunction
from millrace.datastream.window import (
    CountEvictor,
    CountTrigger,
    GlobalWindows,
    PurgingTrigger,
    TumblingEventTimeWindows,
)
from millrace.errors import GraphError
from millrace.testing import window_harness

LATE = OutputTag("late")


class Summary(ProcessWindowFunction):
    def process(self, key: str, context: ProcessWindowFunction.Context, elements: Iterable[Any]) -> Iterator[Any]:
        yield key, context.window().start, context.current_watermark(), [value for _, value in elements]


def test_a_process_window_function_with_lateness_and_late_data() -> None:
    windows = TumblingEventTimeWindows.of(10)
    with window_harness(
        windows, Summary(), key_selector=lambda record: record[0], allowed_lateness=5, late_tag=LATE
    ) as harness:
        harness.process_element(("a", 1), 3)
        harness.process_watermark(9)
        harness.process_element(("a", 2), 4)
        harness.process_watermark(14)
        harness.process_element(("a", 3), 5)
        assert harness.outputs() == [("a", 0, 9, [1]), ("a", 0, 9, [1, 2])]
        assert harness.get_side_output(LATE) == [(("a", 3), 5)]


def test_a_trigger_and_an_evictor() -> None:
    with window_harness(
        GlobalWindows.create(),
        lambda key, window, records: [[value for _, value in records]],
        key_selector=lambda record: record[0],
        trigger=CountTrigger.of(2),
        evictor=CountEvictor.of(3),
    ) as harness:
        for number in range(4):
            harness.process_element(("a", number))
        assert harness.outputs() == [[0, 1], [1, 2, 3]]


def test_the_state_of_windows_can_be_taken_and_restored() -> None:
    with window_harness(
        GlobalWindows.create(),
        key_selector=lambda record: record[0],
        reduce=lambda a, b: (a[0], a[1] + b[1]),
        trigger=PurgingTrigger.of(CountTrigger.of(3)),
    ) as harness:
        harness.process_element(("a", 1))
        harness.process_element(("a", 2))
        restored = harness.restore(harness.snapshot())
        restored.process_element(("a", 4))
        assert restored.outputs() == [("a", 7)]


def test_a_harness_without_anything_to_do() -> None:
    with pytest.raises(GraphError, match="something to do"):
        window_harness(GlobalWindows.create(), key_selector=lambda record: record)
