from __future__ import annotations

import long_ride_alerts
import pytest
from long_ride_alerts import LIMIT_MS, LongRides, long_rides
from taxi_rides import TaxiData, TaxiRide

from millrace.testing import OperatorHarness, harness_for
from tests.examples.local import CUTS, Program
from tests.examples.taxi_events import end, start

MINUTE = 60_000


def watching() -> OperatorHarness:
    return harness_for(LongRides(), key_selector=lambda ride: ride.ride_id)


def send(harness: OperatorHarness, *events: TaxiRide) -> None:
    for event in events:
        harness.process_element(event, event.event_time)


def is_empty(harness: OperatorHarness) -> bool:
    return harness.num_keyed_state_entries() == 0 and harness.num_event_time_timers() == 0


@pytest.mark.parametrize(("watermark", "alert"), [(LIMIT_MS - 1, False), (LIMIT_MS, True), (LIMIT_MS + 1, True)])
def test_the_alert_comes_when_two_hours_are_over(watermark: int, alert: bool) -> None:
    with watching() as harness:
        send(harness, start(1, 0))
        harness.process_watermark(watermark)
        assert harness.get_output() == ([(start(1, 0), LIMIT_MS)] if alert else [])
        assert is_empty(harness) == alert


@pytest.mark.parametrize(("duration", "alert"), [(LIMIT_MS - 1, False), (LIMIT_MS, False), (LIMIT_MS + 1, True)])
@pytest.mark.parametrize("end_first", [False, True])
def test_two_hours_sharp_is_not_too_long_in_either_order(duration: int, alert: bool, end_first: bool) -> None:
    events = [start(1, 0), end(1, 0, duration)]
    with watching() as harness:
        send(harness, *(reversed(events) if end_first else events))
        harness.end_input()
        assert harness.outputs() == ([start(1, 0)] if alert else [])
        assert is_empty(harness)


def test_an_end_after_the_alert_changes_nothing() -> None:
    with watching() as harness:
        send(harness, start(1, 0))
        harness.process_watermark(LIMIT_MS)
        send(harness, end(1, 0, LIMIT_MS + MINUTE))
        assert is_empty(harness)
        harness.end_input()
        assert harness.outputs() == [start(1, 0)]


@pytest.mark.parametrize(
    "events",
    [
        [start(1, 0), start(1, 0), end(1, 0, MINUTE)],
        [start(1, 0), end(1, 0, MINUTE), end(1, 0, MINUTE)],
        [start(1, 0), end(1, 0, MINUTE), start(1, 0)],
        [end(1, 0, MINUTE), end(1, 0, MINUTE), start(1, 0), start(1, 0)],
    ],
)
def test_copies_of_a_short_ride_raise_no_alert(events: list[TaxiRide]) -> None:
    with watching() as harness:
        send(harness, *events)
        harness.end_input()
        assert harness.outputs() == []
        assert is_empty(harness)


def test_copies_of_a_long_ride_raise_one_alert() -> None:
    with watching() as harness:
        send(harness, start(1, 0), start(1, 0))
        harness.end_input()
        assert harness.outputs() == [start(1, 0)]


def test_an_end_without_a_start_raises_nothing_and_does_not_stay() -> None:
    with watching() as harness:
        send(harness, end(1, 0, MINUTE), end(2, 0, 3 * LIMIT_MS))
        harness.process_watermark(LIMIT_MS)
        assert harness.outputs() == []
        assert is_empty(harness)


def test_each_ride_has_its_own_clock() -> None:
    with watching() as harness:
        send(harness, start(1, 0), start(2, MINUTE), start(3, 2 * MINUTE), end(2, MINUTE, 2 * MINUTE))
        harness.process_watermark(LIMIT_MS + MINUTE)
        assert harness.outputs() == [start(1, 0)]
        harness.process_watermark(LIMIT_MS + 2 * MINUTE)
        assert harness.outputs() == [start(1, 0), start(3, 2 * MINUTE)]


def test_a_ride_on_the_road_survives_a_restart() -> None:
    with watching() as harness:
        send(harness, start(1, 0), start(2, 0))
        restored = harness.restore(harness.snapshot())
    send(restored, end(1, 0, MINUTE))
    restored.process_watermark(LIMIT_MS)
    assert restored.get_output() == [(start(2, 0), LIMIT_MS)]


def expected(data: TaxiData) -> set[TaxiRide]:
    events = data.ride_events()
    ends = {ride.ride_id: ride.event_time for ride in events if not ride.is_start}
    never = float("inf")
    return {
        ride for ride in events if ride.is_start and ends.get(ride.ride_id, never) - ride.event_time > 2 * 60 * MINUTE
    }


@CUTS
@pytest.mark.parametrize("batch", [False, True])
def test_the_program_alerts_where_the_oracle_does(parallelism: int, per_epoch: int | None, batch: bool) -> None:
    data = TaxiData(400, long_share=0.05, missing_end_share=0.05)
    program = Program(data, parallelism)
    program.keep("alerts", long_rides(program.rides()))
    alerts = program.run(None if batch else per_epoch, batch=batch)["alerts"]
    assert len(alerts) > 20
    assert sorted(ride.ride_id for ride in alerts) == sorted(ride.ride_id for ride in expected(data))


def test_the_script(spark: object, capsys: pytest.CaptureFixture[str]) -> None:
    assert long_ride_alerts.main(["--rides", "120"]) == 0
    lines = capsys.readouterr().out.splitlines()
    alerts = expected(TaxiData(120))
    assert alerts
    assert len(lines) == len(alerts) + 1
    assert lines[-1] == f"{len(alerts)} of 120 rides had no END within two hours"
