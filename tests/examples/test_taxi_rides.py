"""The generator: the same rides for the same seed, out of order within its bound, with all the trouble it promises."""

from __future__ import annotations

import pickle
from itertools import pairwise

import pytest
from taxi_rides import BEGINNING, TaxiData, TaxiFare, TaxiRide

MINUTE = 60_000
HOUR = 60 * MINUTE


def lateness(events: list[TaxiRide] | list[TaxiFare]) -> list[int]:
    """By how much each event trails the newest one before it."""
    newest = events[0].event_time
    behind = []
    for event in events:
        newest = max(newest, event.event_time)
        behind.append(newest - event.event_time)
    return behind


def test_a_ride_is_a_function_of_its_number_and_the_seed() -> None:
    few, many, other = TaxiData(10), TaxiData(5000), TaxiData(10, seed=2)
    assert [few.end_of(n) for n in range(10)] == [many.end_of(n) for n in range(10)]
    assert [few.fare_of(n) for n in range(10)] == [many.fare_of(n) for n in range(10)]
    assert few.start_of(3) != other.start_of(3)


def test_the_first_ride_never_changes() -> None:
    data = TaxiData(1)
    assert data.start_of(0) == TaxiRide(
        ride_id=0,
        is_start=True,
        start_time=1_577_880_000_000,
        end_time=None,
        start_lon=-74.00379,
        start_lat=40.80373,
        end_lon=-74.02414,
        end_lat=40.84947,
        passenger_count=5,
        taxi_id=1018,
        driver_id=18,
    )
    assert data.fare_of(0) == TaxiFare(0, 1018, 18, 1_577_880_000_000, "CARD", 1123, 0, 7038)


def test_the_lists_are_the_same_each_time() -> None:
    assert TaxiData(300).ride_events() == TaxiData(300).ride_events()
    assert TaxiData(300).fares() == TaxiData(300).fares()


def test_start_end_and_fare_belong_together() -> None:
    data = TaxiData(200)
    for number in range(200):
        start, end, fare = data.start_of(number), data.end_of(number), data.fare_of(number)
        assert start.is_start and start.end_time is None and start.event_time == start.start_time
        assert not end.is_start and end.end_time == end.event_time > start.event_time == end.start_time
        assert (start.ride_id, start.taxi_id, start.driver_id) == (fare.ride_id, fare.taxi_id, fare.driver_id)
        assert fare.event_time == start.start_time == BEGINNING + number * 15_000
        assert fare.total_cents >= 500 + fare.tip_cents + fare.tolls_cents


@pytest.mark.parametrize("disorder_ms", [0, 10_000, 120_000])
def test_events_are_out_of_order_by_no_more_than_the_bound(disorder_ms: int) -> None:
    data = TaxiData(1000, disorder_ms=disorder_ms)
    assert max(lateness(data.ride_events())) <= disorder_ms
    assert max(lateness(data.fares())) <= disorder_ms
    if disorder_ms:
        assert max(lateness(data.ride_events())) > disorder_ms // 2
    else:
        assert all(a.event_time <= b.event_time for a, b in pairwise(data.ride_events()))


def test_late_fares_are_beyond_the_bound() -> None:
    data = TaxiData(1000, late_fare_share=0.05)
    late = [behind for behind in lateness(data.fares()) if behind > data.disorder_ms]
    assert 20 <= len(late) <= 90
    assert max(late) < 4 * HOUR


def test_shares_hold_roughly() -> None:
    data = TaxiData(2000)
    events = data.ride_events()
    starts = {event.ride_id for event in events if event.is_start}
    ends = {event.ride_id for event in events if not event.is_start}
    assert 2000 - len(starts) in range(5, 50)
    assert 2000 - len(ends) in range(15, 80)
    assert 2000 - len(data.fares()) in range(15, 80)
    long = [n for n in range(2000) if data.end_of(n).event_time - data.start_of(n).event_time > 2 * HOUR]
    assert len(long) in range(15, 80)
    outside = [n for n in range(2000) if data.start_of(n).start_lon < -74.05 or data.start_of(n).end_lon < -74.05]
    assert len(outside) in range(120, 280)


def test_shares_can_be_turned_off() -> None:
    data = TaxiData(300, missing_start_share=0, missing_end_share=0, missing_fare_share=0, long_share=0)
    assert len(data.ride_events()) == 600
    assert len(data.fares()) == 300
    assert max(data.end_of(n).event_time - data.start_of(n).event_time for n in range(300)) <= 50 * MINUTE


def test_some_rides_end_before_they_start() -> None:
    seen: set[int] = set()
    end_first = 0
    for event in TaxiData(2000, missing_start_share=0).ride_events():
        end_first += not event.is_start and event.ride_id not in seen
        seen.add(event.ride_id)
    assert end_first > 0


def test_events_travel_by_pickle() -> None:
    data = TaxiData(1)
    for thing in (data, data.start_of(0), data.end_of(0), data.fare_of(0)):
        assert pickle.loads(pickle.dumps(thing)) == thing
