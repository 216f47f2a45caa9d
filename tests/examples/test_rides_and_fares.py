from __future__ import annotations

import pytest
import rides_and_fares
from rides_and_fares import FARE_WITHOUT_RIDE, RIDE_WITHOUT_FARE, Match, RideAndFare, matched
from taxi_rides import TaxiData

from millrace.testing import OperatorHarness, harness_for
from tests.examples.local import CUTS, Program
from tests.examples.taxi_events import fare, start

PATIENCE = 10


def matching() -> OperatorHarness:
    return harness_for(Match(PATIENCE), key_selector=lambda event: event.ride_id)


def is_empty(harness: OperatorHarness) -> bool:
    return harness.num_keyed_state_entries() == 0 and harness.num_event_time_timers() == 0


@pytest.mark.parametrize("ride_first", [True, False])
def test_a_pair_comes_out_in_either_order_and_leaves_nothing_behind(ride_first: bool) -> None:
    with matching() as harness:
        if ride_first:
            harness.process_element1(start(1, 100), 100)
            harness.process_element2(fare(1, 100), 100)
        else:
            harness.process_element2(fare(1, 100), 100)
            harness.process_element1(start(1, 100), 100)
        assert harness.get_output() == [(RideAndFare(start(1, 100), fare(1, 100)), 100)]
        assert is_empty(harness)
        harness.end_input()
        assert harness.get_side_output(RIDE_WITHOUT_FARE) == harness.get_side_output(FARE_WITHOUT_RIDE) == []


def test_only_events_of_the_same_ride_are_paired() -> None:
    with matching() as harness:
        harness.process_element1(start(1, 100), 100)
        harness.process_element2(fare(2, 100), 100)
        assert harness.outputs() == []
        harness.process_element2(fare(1, 100), 100)
        harness.process_element1(start(2, 100), 100)
        assert [pair.ride.ride_id for pair in harness.outputs()] == [1, 2]


@pytest.mark.parametrize(("watermark", "given_up"), [(109, False), (110, True), (111, True)])
def test_a_ride_waits_exactly_its_patience(watermark: int, given_up: bool) -> None:
    with matching() as harness:
        harness.process_element1(start(1, 100), 100)
        harness.process_watermark(watermark)
        assert harness.get_side_output(RIDE_WITHOUT_FARE) == ([(start(1, 100), 110)] if given_up else [])
        assert is_empty(harness) == given_up


@pytest.mark.parametrize(("watermark", "given_up"), [(109, False), (110, True), (111, True)])
def test_a_fare_waits_exactly_its_patience(watermark: int, given_up: bool) -> None:
    with matching() as harness:
        harness.process_element2(fare(1, 100), 100)
        harness.process_watermark(watermark)
        assert harness.get_side_output(FARE_WITHOUT_RIDE) == ([(fare(1, 100), 110)] if given_up else [])
        assert is_empty(harness) == given_up


def test_the_slower_stream_holds_the_timer_back() -> None:
    with matching() as harness:
        harness.process_element1(start(1, 100), 100)
        harness.process_watermark1(1_000_000)
        assert harness.get_side_output(RIDE_WITHOUT_FARE) == []
        harness.process_element2(fare(1, 100), 100)
        assert len(harness.outputs()) == 1


def test_a_late_fare_finds_its_ride_gone() -> None:
    with matching() as harness:
        harness.process_element1(start(1, 100), 100)
        harness.process_watermark(500)
        harness.process_element2(fare(1, 100), 100)
        harness.process_watermark(501)
        assert harness.outputs() == []
        assert [ride for ride, _ in harness.get_side_output(RIDE_WITHOUT_FARE)] == [start(1, 100)]
        assert [late for late, _ in harness.get_side_output(FARE_WITHOUT_RIDE)] == [fare(1, 100)]
        assert is_empty(harness)


def test_a_second_copy_before_the_match_changes_nothing() -> None:
    with matching() as harness:
        harness.process_element2(fare(1, 100), 100)
        harness.process_element2(fare(1, 100), 100)
        harness.process_element1(start(1, 100), 100)
        assert harness.outputs() == [RideAndFare(start(1, 100), fare(1, 100))]
        assert is_empty(harness)


def test_a_copy_after_the_match_is_an_event_nobody_asked_for() -> None:
    with matching() as harness:
        harness.process_element1(start(1, 100), 100)
        harness.process_element2(fare(1, 100), 100)
        harness.process_element2(fare(1, 100), 100)
        harness.end_input()
        assert harness.outputs() == [RideAndFare(start(1, 100), fare(1, 100))]
        assert [copy for copy, _ in harness.get_side_output(FARE_WITHOUT_RIDE)] == [fare(1, 100)]
        assert is_empty(harness)


def test_what_waits_survives_a_restart() -> None:
    with matching() as harness:
        harness.process_element1(start(1, 100), 100)
        harness.process_element1(start(2, 100), 100)
        restored = harness.restore(harness.snapshot())
    restored.process_element2(fare(1, 100), 100)
    restored.process_watermark(110)
    assert restored.outputs() == [RideAndFare(start(1, 100), fare(1, 100))]
    assert restored.get_side_output(RIDE_WITHOUT_FARE) == [(start(2, 100), 110)]


def expected(data: TaxiData) -> tuple[set[RideAndFare], set[int], set[int]]:
    rides = {ride.ride_id: ride for ride in data.ride_events() if ride.is_start}
    fares = {paid.ride_id: paid for paid in data.fares()}
    pairs = {RideAndFare(rides[ride_id], fares[ride_id]) for ride_id in rides.keys() & fares.keys()}
    return pairs, rides.keys() - fares.keys(), fares.keys() - rides.keys()


@CUTS
@pytest.mark.parametrize("batch", [False, True])
def test_the_program_pairs_what_the_oracle_pairs(parallelism: int, per_epoch: int | None, batch: bool) -> None:
    data = TaxiData(300, missing_start_share=0.05, missing_fare_share=0.05)
    program = Program(data, parallelism)
    program.keep("pairs", matched(program.rides(), program.fares()), RIDE_WITHOUT_FARE, FARE_WITHOUT_RIDE)
    results = program.run(None if batch else per_epoch, batch=batch)
    pairs, rides_left, fares_left = expected(data)
    assert rides_left and fares_left
    assert len(results["pairs"]) == len(pairs)
    assert set(results["pairs"]) == pairs
    assert sorted(ride.ride_id for ride in results["pairs: ride without fare"]) == sorted(rides_left)
    assert sorted(paid.ride_id for paid in results["pairs: fare without ride"]) == sorted(fares_left)


def test_the_script(spark: object, capsys: pytest.CaptureFixture[str]) -> None:
    assert rides_and_fares.main(["--rides", "80", "--show", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    pairs, rides_left, fares_left = expected(TaxiData(80))
    assert lines[2] == f"{len(pairs)} rides with their fares"
    assert lines[3].startswith(f"{len(rides_left)} rides without a fare")
    assert lines[4].startswith(f"{len(fares_left)} fares without a ride")
