from __future__ import annotations

import operator
import pickle
from datetime import timedelta
from typing import Any

import pytest

from millrace.common.cloudpickles import by_value
from millrace.common.constants import LONG_MIN
from millrace.common.time import Duration, Time
from millrace.common.watermark_strategy import (
    BoundedOutOfOrdernessWatermarks,
    NoWatermarksGenerator,
    TimestampAssigner,
    Watermark,
    WatermarkAlignment,
    WatermarkGenerator,
    WatermarkOutput,
    WatermarkStrategy,
    bounded_watermark,
)
from millrace.errors import ConfigurationError


class Recorded(WatermarkOutput):
    def __init__(self) -> None:
        self.events: list[object] = []

    def emit_watermark(self, watermark: int) -> None:
        self.events.append(watermark)

    def mark_idle(self) -> None:
        self.events.append("idle")

    def mark_active(self) -> None:
        self.events.append("active")


class Punctuated(WatermarkGenerator):
    def __init__(self) -> None:
        self.seen: list[int] = []

    def on_event(self, event: Any, timestamp: int, output: WatermarkOutput) -> None:
        self.seen.append(timestamp)
        output.emit_watermark(Watermark(timestamp))

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        output.mark_idle()


def make_punctuated() -> Punctuated:
    return Punctuated()


class FieldAssigner(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value["at"]) + record_timestamp


def test_bounded_watermark_at_its_boundaries() -> None:
    assert bounded_watermark(100, 10) == 89
    assert bounded_watermark(100, 0) == 99
    assert bounded_watermark(-100, 10) == -111
    assert bounded_watermark(LONG_MIN + 12, 10) == LONG_MIN + 1
    assert bounded_watermark(LONG_MIN + 11, 10) == LONG_MIN
    assert bounded_watermark(LONG_MIN + 10, 10) == LONG_MIN
    assert bounded_watermark(LONG_MIN, 10) == LONG_MIN


@pytest.mark.parametrize("bound", [0, 1, 5_000])
def test_first_watermark_is_exactly_long_min(bound: int) -> None:
    output = Recorded()
    BoundedOutOfOrdernessWatermarks(bound).on_periodic_emit(output)
    assert output.events == [LONG_MIN]


def test_bounded_generator_follows_the_highest_timestamp() -> None:
    output = Recorded()
    generator = BoundedOutOfOrdernessWatermarks(10)
    for timestamp in (100, 90, 101, 50):
        generator.on_event("x", timestamp, output)
        generator.on_periodic_emit(output)
    assert output.events == [89, 89, 90, 90]


def test_advance_by_a_batch_equals_its_records_one_by_one() -> None:
    one_by_one, batched = BoundedOutOfOrdernessWatermarks(3), BoundedOutOfOrdernessWatermarks(3)
    for timestamp in (5, 9, 7):
        one_by_one.on_event(None, timestamp, Recorded())
    batched.advance(9)
    batched.advance(8)
    assert one_by_one.max_timestamp == batched.max_timestamp == 9


def test_no_watermarks() -> None:
    output = Recorded()
    generator = WatermarkStrategy.no_watermarks().create_generator()
    generator.on_event("x", 1, output)
    generator.on_periodic_emit(output)
    assert isinstance(generator, NoWatermarksGenerator)
    assert output.events == []


def test_monotonous_is_bound_zero() -> None:
    generator = WatermarkStrategy.for_monotonous_timestamps().create_generator()
    assert isinstance(generator, BoundedOutOfOrdernessWatermarks)
    assert generator.bound_ms == 0


@pytest.mark.parametrize("bound", [Duration.of_seconds(2), Time.seconds(2), timedelta(seconds=2), 2_000])
def test_bound_in_every_form(bound: Any) -> None:
    generator = WatermarkStrategy.for_bounded_out_of_orderness(bound).create_generator()
    assert isinstance(generator, BoundedOutOfOrdernessWatermarks)
    assert generator.bound_ms == 2_000


def test_every_split_has_a_generator_of_its_own() -> None:
    strategy = WatermarkStrategy.for_monotonous_timestamps()
    assert strategy.create_generator() is not strategy.create_generator()


@pytest.mark.parametrize("supplier", [Punctuated, make_punctuated, Punctuated()])
def test_own_generators(supplier: Any) -> None:
    strategy = WatermarkStrategy.for_generator(supplier)
    first, second = strategy.create_generator(), strategy.create_generator()
    output = Recorded()
    first.on_event("x", 7, output)
    first.on_periodic_emit(output)
    assert output.events == [7, "idle"]
    assert isinstance(first, Punctuated)
    assert isinstance(second, Punctuated)
    assert (first.seen, second.seen) == ([7], [])


def test_what_makes_no_generators_is_refused() -> None:
    with pytest.raises(TypeError, match="for_generator: 5 cannot make watermark generators"):
        WatermarkStrategy.for_generator(5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="returned 5, which is no WatermarkGenerator"):
        WatermarkStrategy.for_generator(lambda: 5).create_generator()  # type: ignore[arg-type,return-value]


def test_watermark_is_its_timestamp() -> None:
    assert Watermark(5) == 5
    assert Watermark(5).timestamp == 5
    assert repr(Watermark(5)) == "Watermark(5)"


def default_as_second(value: Any, factor: int = 10) -> int:
    return int(value["at"]) * factor


class CallableAssigner:
    def __call__(self, value: Any) -> int:
        return int(value["at"])


@pytest.mark.parametrize(
    ("assigner", "expected"),
    [
        (FieldAssigner(), 103),
        (lambda value, record_timestamp: value["at"] + record_timestamp, 103),
        (lambda value: value["at"], 3),
        (lambda *arguments: len(arguments), 2),
        (default_as_second, 30),
        (CallableAssigner(), 3),
        (FieldAssigner().extract_timestamp, 103),
        (operator.itemgetter("at"), 3),
        (len, 1),
    ],
)
def test_assigners_are_called_as_they_take_it(assigner: Any, expected: int) -> None:
    strategy = WatermarkStrategy.no_watermarks().with_timestamp_assigner(assigner)
    assert strategy.timestamp_assigner is not None
    assert strategy.timestamp_assigner({"at": 3}, 100) == expected


def test_built_in_without_signature_is_given_the_value() -> None:
    strategy = WatermarkStrategy.no_watermarks().with_timestamp_assigner(int)
    assert strategy.timestamp_assigner is not None
    assert strategy.timestamp_assigner("12", LONG_MIN) == 12


@pytest.mark.parametrize("assigner", [lambda: 1, lambda a, b, c: 1, lambda a, *, b: 1])
def test_functions_that_cannot_be_called_are_refused_at_once(assigner: Any) -> None:
    with pytest.raises(TypeError, match=r"let it take \(value\) or \(value, record_timestamp\)"):
        WatermarkStrategy.no_watermarks().with_timestamp_assigner(assigner)


def test_what_is_no_assigner_is_refused() -> None:
    with pytest.raises(TypeError, match="'at' assigns no timestamps"):
        WatermarkStrategy.no_watermarks().with_timestamp_assigner("at")  # type: ignore[arg-type]


def test_with_methods_leave_the_original_alone() -> None:
    plain = WatermarkStrategy.for_monotonous_timestamps()
    full = (
        plain.with_timestamp_assigner(lambda value: 1)
        .with_idleness(Duration.of_seconds(30))
        .with_watermark_alignment("group", Duration.of_seconds(20), Duration.of_millis(500))
    )
    assert (plain.timestamp_assigner, plain.idle_timeout_ms, plain.alignment) == (None, None, None)
    assert full.timestamp_assigner is not None
    assert full.idle_timeout_ms == 30_000
    assert full.alignment == WatermarkAlignment("group", 20_000, 500)


def test_alignment_updates_every_second_unless_told() -> None:
    strategy = WatermarkStrategy.no_watermarks().with_watermark_alignment("g", Duration.of_seconds(1))
    assert strategy.alignment == WatermarkAlignment("g", 1_000, 1_000)


def test_lengths_out_of_range_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="for_bounded_out_of_orderness: the bound must be at least 0 ms"):
        WatermarkStrategy.for_bounded_out_of_orderness(-1)
    strategy = WatermarkStrategy.no_watermarks()
    assert strategy.with_idleness(1).idle_timeout_ms == 1
    with pytest.raises(ConfigurationError, match="with_idleness: the timeout must be at least 1 ms, not 0 ms"):
        strategy.with_idleness(0)
    with pytest.raises(ConfigurationError, match="with_watermark_alignment: the drift"):
        strategy.with_watermark_alignment("g", -1)


@pytest.mark.parametrize("generator", [Punctuated, make_punctuated, Punctuated()])
def test_travels_with_cloudpickle(generator: Any) -> None:
    strategy = (
        WatermarkStrategy.for_generator(generator)
        .with_timestamp_assigner(lambda value: value["at"])
        .with_idleness(Duration.of_seconds(1))
        .with_watermark_alignment("g", Duration.of_seconds(1))
    )
    copy = pickle.loads(by_value(strategy))
    assert copy.timestamp_assigner({"at": 4}, 0) == 4
    assert copy.idle_timeout_ms == 1_000
    assert copy.alignment == strategy.alignment
    assert type(copy.create_generator()).__name__ == "Punctuated"


def test_generators_travel_with_their_state() -> None:
    generator = BoundedOutOfOrdernessWatermarks(5)
    generator.advance(42)
    copy = pickle.loads(by_value(generator))
    assert (copy.max_timestamp, copy.bound_ms) == (42, 5)
    assert pickle.loads(by_value(Watermark(5))).timestamp == 5
