from __future__ import annotations

import pickle
from datetime import timedelta

import pytest

from millrace.common.time import Duration, Instant, Time, millis, parse_duration
from millrace.errors import ConfigurationError


def test_time_units() -> None:
    times = [Time.milliseconds(1), Time.seconds(1), Time.minutes(1), Time.hours(1), Time.days(1)]
    assert [time.to_milliseconds() for time in times] == [1, 1_000, 60_000, 3_600_000, 86_400_000]


def test_duration_units() -> None:
    durations = [
        Duration.of_nanos(1),
        Duration.of_millis(1),
        Duration.of_seconds(1),
        Duration.of_minutes(1),
        Duration.of_hours(1),
        Duration.of_days(1),
    ]
    assert [duration.to_nanos() for duration in durations] == [
        1,
        1_000_000,
        1_000_000_000,
        60_000_000_000,
        3_600_000_000_000,
        86_400_000_000_000,
    ]


def test_duration_rounds_down_to_millis() -> None:
    assert Duration.of_nanos(1_999_999).to_millis() == 1
    assert Duration.of_nanos(2_000_000).to_millis() == 2
    assert Duration.of_nanos(-1).to_millis() == -1


def test_equality_hash_order_and_repr() -> None:
    assert Duration.of_seconds(60) == Duration.of_minutes(1)
    assert hash(Duration.of_seconds(60)) == hash(Duration.of_minutes(1))
    assert Duration.of_seconds(1) < Duration.of_seconds(2)
    assert Duration.of_seconds(1) != Time.seconds(1)
    assert repr(Duration.of_seconds(1)) == "Duration.of_millis(1000)"
    assert repr(Duration.of_nanos(5)) == "Duration.of_nanos(5)"
    assert Time.seconds(60) == Time.minutes(1)
    assert hash(Time.seconds(60)) == hash(Time.minutes(1))
    assert Time.seconds(2) >= Time.seconds(1)
    assert repr(Time.seconds(1)) == "Time.milliseconds(1000)"


def test_instant_around_the_epoch() -> None:
    assert Instant.of_epoch_milli(0) == Instant(0, 0)
    assert Instant.of_epoch_milli(-1) == Instant(-1, 999_000_000)
    assert [Instant.of_epoch_milli(n).to_epoch_milli() for n in (-1_001, -1, 0, 1, 1_001)] == [-1_001, -1, 0, 1, 1_001]
    assert Instant(0, 999_999).to_epoch_milli() == 0
    assert Instant.of_epoch_milli(-1) < Instant.of_epoch_milli(0)


def test_instant_refuses_nanos_out_of_range() -> None:
    with pytest.raises(ValueError, match="0 to 999999999, not 1000000000"):
        Instant(0, 1_000_000_000)


@pytest.mark.parametrize("value", [Time.seconds(2), Duration.of_seconds(2), timedelta(seconds=2), 2_000])
def test_millis_takes_every_form(value: Time | Duration | timedelta | int) -> None:
    assert millis(value) == 2_000


@pytest.mark.parametrize("value", [1.5, "1 s", None])
def test_millis_refuses_the_rest(value: object) -> None:
    with pytest.raises(TypeError, match="is not a length of time: pass a Time"):
        millis(value)  # type: ignore[arg-type]


def test_whole_numbers_only() -> None:
    with pytest.raises(TypeError):
        Time.seconds(1.5)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        Duration.of_seconds(1.5)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "nanos"),
    [
        ("10", 10_000_000),
        ("10ms", 10_000_000),
        ("10 s", 10_000_000_000),
        (" 1 min ", 60_000_000_000),
        ("2 hours", 7_200_000_000_000),
        ("1 D", 86_400_000_000_000),
        ("5 us", 5_000),
        ("5 ns", 5),
    ],
)
def test_parse_duration(text: str, nanos: int) -> None:
    assert parse_duration(text) == Duration.of_nanos(nanos)


@pytest.mark.parametrize("text", ["", "s", "-1 s", "1.5 s", "3 fortnights"])
def test_parse_duration_refuses_the_rest(text: str) -> None:
    with pytest.raises(ConfigurationError, match="is no length of time"):
        parse_duration(text)


def test_pickles() -> None:
    values = [Time.seconds(1), Duration.of_nanos(3), Instant(1, 2)]
    assert pickle.loads(pickle.dumps(values)) == values
