from __future__ import annotations

import pytest
import ride_cleansing
from ride_cleansing import InNewYork, cleansed
from taxi_rides import TaxiData, TaxiRide

from millrace.testing import harness_for
from tests.examples.local import CUTS, Program
from tests.examples.taxi_events import end, start


@pytest.mark.parametrize(
    ("place", "kept"),
    [
        ({}, True),
        ({"start_lon": -74.05}, True),
        ({"start_lon": -74.0501}, False),
        ({"start_lon": -73.7}, True),
        ({"start_lon": -73.6999}, False),
        ({"start_lat": 40.5}, True),
        ({"start_lat": 40.4999}, False),
        ({"start_lat": 41.0}, True),
        ({"start_lat": 41.0001}, False),
        ({"end_lon": -74.0501}, False),
        ({"end_lat": 41.0001}, False),
    ],
)
def test_both_ends_must_lie_in_the_box(place: dict[str, float], kept: bool) -> None:
    with harness_for(InNewYork()) as harness:
        harness.process_element(start(1, 0, **place), 0)
        harness.process_element(end(1, 0, 60_000, **place), 60_000)
        assert len(harness.outputs()) == (2 if kept else 0)


def test_kept_rides_keep_their_time() -> None:
    with harness_for(InNewYork()) as harness:
        harness.process_element(start(1, 5), 5)
        assert harness.get_output() == [(start(1, 5), 5)]


def expected(data: TaxiData) -> set[TaxiRide]:
    def inside(ride: TaxiRide) -> bool:
        lons, lats = (ride.start_lon, ride.end_lon), (ride.start_lat, ride.end_lat)
        return min(lons) >= -74.05 and max(lons) <= -73.7 and min(lats) >= 40.5 and max(lats) <= 41.0

    return {ride for ride in data.ride_events() if inside(ride)}


@CUTS
def test_the_program_keeps_what_the_oracle_keeps(parallelism: int, per_epoch: int | None) -> None:
    data = TaxiData(300)
    program = Program(data, parallelism)
    program.keep("kept", cleansed(program.rides()))
    kept = program.run(per_epoch)["kept"]
    assert len(kept) == len(set(kept))
    assert set(kept) == expected(data)
    assert 0 < len(kept) < len(data.ride_events())


def test_the_script(spark: object, capsys: pytest.CaptureFixture[str]) -> None:
    assert ride_cleansing.main(["--rides", "60", "--show", "3"]) == 0
    lines = capsys.readouterr().out.splitlines()
    kept = expected(TaxiData(60))
    starts = sum(ride.is_start for ride in kept)
    assert len(lines) == 4
    assert lines[-1] == (
        f"kept {len(kept)} of {len(TaxiData(60).ride_events())} events: "
        f"{starts} STARTs and {len(kept) - starts} ENDs in New York"
    )
