"""Timestamps and watermarks per split (rules 1, 2, 4, 35 and M1)."""

from __future__ import annotations

from typing import Any

import pytest

from millrace.common.constants import LONG_MAX, LONG_MIN
from millrace.common.time import Duration
from millrace.common.watermark_strategy import WatermarkGenerator, WatermarkOutput, WatermarkStrategy
from millrace.runtime.operator import Batch, Collected, OperatorContext, RecordFailure, SplitCursor
from millrace.runtime.operators.watermarks import PERIODIC_RECORDS, AssignWatermarks
from millrace.state.store import OperatorStore


class Stage:
    """An assigner in a source task with the given splits."""

    def __init__(
        self, strategy: WatermarkStrategy, splits: tuple[str, ...] = ("s",), every_record: bool = False
    ) -> None:
        self.now = 0
        self.cursor = SplitCursor()
        self.cursor.active = {"src": list(splits)}
        self.output = Collected()
        self.operator = AssignWatermarks(strategy, every_record)
        sources = frozenset({"src"})
        store = OperatorStore(lambda: self.now)
        context = OperatorContext("time", "t", store, lambda: self.now, cursor=self.cursor, sources=sources)
        self.operator.setup(context, self.output)
        self.operator.open()

    def read(self, split: str, *values: Any) -> None:
        self.cursor.split = split
        self.operator.process(Batch(list(values)))

    def events(self) -> list[tuple[Any, ...]]:
        events, self.output.events = self.output.events, []
        return events


def bounded(bound: int) -> WatermarkStrategy:
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(bound))
    return strategy.with_timestamp_assigner(lambda value, _: value)


class AtEveryTen(WatermarkGenerator):
    def on_event(self, event: Any, timestamp: int, output: WatermarkOutput) -> None:
        if timestamp % 10 == 0:
            output.emit_watermark(timestamp)

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        return


def test_the_bound_is_kept_and_asked_for_at_the_end_of_an_epoch() -> None:
    stage = Stage(bounded(10))
    stage.read("s", 12345, 12300, 12340)
    assert stage.events() == [("record", 12345, 12345), ("record", 12300, 12300), ("record", 12340, 12340)]
    stage.operator.end_epoch()
    assert stage.events() == [("watermark", 12334)]


def test_within_an_epoch_a_split_is_asked_every_ten_thousand_records() -> None:
    stage = Stage(bounded(0))
    for start in range(0, PERIODIC_RECORDS + 1, 2500):
        stage.read("s", *range(start, start + 2500))
    marks = [event for event in stage.events() if event[0] == "watermark"]
    assert marks == [("watermark", PERIODIC_RECORDS - 2)]


def test_a_large_batch_is_cut_where_the_watermark_belongs() -> None:
    stage = Stage(bounded(0))
    stage.read("s", *range(2 * PERIODIC_RECORDS + 5))
    events = stage.events()
    assert events[PERIODIC_RECORDS] == ("watermark", PERIODIC_RECORDS - 2)
    assert events[2 * PERIODIC_RECORDS + 1] == ("watermark", 2 * PERIODIC_RECORDS - 2)
    assert len(events) == 2 * PERIODIC_RECORDS + 5 + 2


def test_every_record_mode_asks_at_each_record() -> None:
    stage = Stage(bounded(0), every_record=True)
    stage.read("s", 5, 3, 7)
    assert stage.events() == [("record", 5, 5), ("watermark", 4), ("record", 3, 3), ("record", 7, 7), ("watermark", 6)]


def test_a_punctuated_watermark_follows_its_record() -> None:
    strategy = WatermarkStrategy.for_generator(AtEveryTen).with_timestamp_assigner(lambda value: value)
    stage = Stage(strategy)
    stage.read("s", 9, 10, 11, 10, 20)
    assert stage.events() == [
        ("record", 9, 9),
        ("record", 10, 10),
        ("watermark", 10),
        ("record", 11, 11),
        ("record", 10, 10),
        ("record", 20, 20),
        ("watermark", 20),
    ]


def test_the_slowest_split_of_the_task_counts_from_the_first_record_on() -> None:
    stage = Stage(bounded(0), ("a", "b"))
    stage.read("a", 1000)
    stage.operator.end_epoch()
    assert stage.events() == [("record", 1000, 1000)]
    stage.read("b", 500)
    stage.operator.end_epoch()
    assert stage.events() == [("record", 500, 500), ("watermark", 499)]


def test_a_split_that_has_ended_holds_nothing_back() -> None:
    stage = Stage(bounded(0), ("a", "b"))
    stage.read("a", 1000)
    stage.read("b", 500)
    stage.cursor.active, stage.cursor.finished = {"src": ["a"]}, {"b"}
    stage.operator.end_epoch()
    assert stage.events()[-1] == ("watermark", 999)


@pytest.mark.parametrize(("quiet_for", "idle"), [(99, False), (100, False), (101, True)])
def test_a_split_is_idle_after_more_than_the_timeout_since_the_first_empty_probe(quiet_for: int, idle: bool) -> None:
    stage = Stage(bounded(0).with_idleness(Duration.of_millis(100)))
    stage.read("s", 5)
    stage.operator.end_epoch()
    stage.operator.end_epoch()
    stage.now = quiet_for
    stage.operator.end_epoch()
    assert (("idle", True) in stage.output.events) is idle


def test_an_idle_split_lets_the_others_go_on_and_a_record_wakes_it() -> None:
    stage = Stage(bounded(0).with_idleness(Duration.of_millis(100)), ("a", "b"))
    stage.read("a", 50)
    stage.read("b", 10)
    stage.operator.end_epoch()
    assert stage.events()[-1] == ("watermark", 9)
    for now in (1, 200):
        stage.now = now
        stage.read("a", 60)
        stage.operator.end_epoch()
    assert stage.events()[-1] == ("watermark", 59)
    stage.read("b", 70)
    stage.read("a", 80)
    stage.operator.end_epoch()
    assert stage.events()[-1] == ("watermark", 69)


def test_upstream_watermarks_end_here_except_the_last() -> None:
    stage = Stage(bounded(0))
    stage.operator.on_watermark(77)
    assert stage.events() == []
    stage.operator.on_watermark(LONG_MAX)
    stage.operator.end_epoch()
    assert stage.events() == [("watermark", LONG_MAX)]


def test_the_assigner_is_told_the_earlier_timestamp() -> None:
    seen: list[int] = []

    def assign(value: int, earlier: int) -> int:
        seen.append(earlier)
        return value

    stage = Stage(WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(assign))
    stage.cursor.split = "s"
    stage.operator.process(Batch([1]))
    stage.operator.process(Batch([2], [55]))
    assert seen == [LONG_MIN, 55]


@pytest.mark.parametrize("answer", ["12", 1.5, None, True])
def test_a_timestamp_that_is_no_integer_is_refused_with_the_record(answer: Any) -> None:
    stage = Stage(WatermarkStrategy.no_watermarks().with_timestamp_assigner(lambda value: answer))
    with pytest.raises(RecordFailure) as caught:
        stage.read("s", "record-1")
    assert "whole milliseconds" in str(caught.value.error)
    assert caught.value.preview == "'record-1'"


def test_batch_mode_assigns_timestamps_only() -> None:
    strategy = bounded(0)
    stage = Stage(strategy)
    stage.operator.use_batch_mode()
    stage.operator.open()
    stage.read("s", *range(20_000))
    stage.operator.end_epoch()
    assert {event[0] for event in stage.events()} == {"record"}


def test_state_moves_to_another_worker() -> None:
    stage = Stage(bounded(0), ("a", "b"))
    stage.read("a", 100)
    stage.read("b", 50)
    stage.operator.end_epoch()
    stage.events()
    other = Stage(bounded(0), ("a", "b"))
    other.operator.context.store.apply(stage.operator.context.store.full())
    other.operator.refresh()
    other.read("b", 90)
    other.operator.end_epoch()
    assert other.events() == [("record", 90, 90), ("watermark", 89)]


def test_who_holds_event_time_back() -> None:
    stage = Stage(bounded(0).with_idleness(Duration.of_millis(100)), ("a", "b"))
    stage.read("a", 50)
    stage.read("b", 10)
    stage.operator.end_epoch()
    assert stage.operator.holding_back() == {"a": 49, "b": 9}
    for now in (1, 200):
        stage.now = now
        stage.read("a", 60)
        stage.operator.end_epoch()
    assert stage.operator.holding_back() == {"a": 59}
    stage.operator.on_watermark(LONG_MAX)
    assert stage.operator.holding_back() == {}


def test_a_generator_that_fails_is_named() -> None:
    class Broken(AtEveryTen):
        def on_periodic_emit(self, output: WatermarkOutput) -> None:
            raise ValueError("no time")

    stage = Stage(WatermarkStrategy.for_generator(Broken).with_timestamp_assigner(lambda value: value))
    stage.read("s", 1)
    with pytest.raises(RecordFailure) as caught:
        stage.operator.end_epoch()
    assert caught.value.what == "on_periodic_emit()"


def test_a_watermark_that_is_no_number_is_refused() -> None:
    class Wrong(AtEveryTen):
        def on_event(self, event: Any, timestamp: int, output: WatermarkOutput) -> None:
            output.emit_watermark("noon")  # type: ignore[arg-type]

    stage = Stage(WatermarkStrategy.for_generator(Wrong).with_timestamp_assigner(lambda value: value))
    with pytest.raises(RecordFailure) as caught:
        stage.read("s", 1)
    assert "whole milliseconds" in str(caught.value.error)


def test_ingestion_time_goes_on_without_records() -> None:
    stage = Stage(WatermarkStrategy.for_ingestion_time())
    stage.read("s", "x")
    stage.operator.end_epoch()
    (_, _, arrived), (_, watermark) = stage.events()
    assert watermark >= arrived - 1
