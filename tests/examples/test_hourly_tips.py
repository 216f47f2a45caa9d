from __future__ import annotations

from collections import Counter

import hourly_tips
import pytest
from hourly_tips import (
    HOUR_MS,
    LATE,
    DriverTips,
    PseudoWindow,
    best_of_hour,
    better,
    tips_with_timers,
    tips_with_windows,
)
from taxi_rides import TaxiData, TaxiFare

from millrace.common.constants import LONG_MIN
from millrace.testing import OperatorHarness, harness_for
from tests.examples.local import CUTS, Program
from tests.examples.taxi_events import fare


def pseudo_window() -> OperatorHarness:
    return harness_for(PseudoWindow(), key_selector=lambda paid: paid.driver_id)


def send(harness: OperatorHarness, paid: TaxiFare) -> None:
    harness.process_element(paid, paid.event_time)


def test_tips_add_up_and_come_out_with_the_last_moment_of_the_hour() -> None:
    with pseudo_window() as harness:
        send(harness, fare(1, 0, tip_cents=100))
        send(harness, fare(2, HOUR_MS - 1, tip_cents=50))
        send(harness, fare(3, HOUR_MS, tip_cents=7))
        harness.process_watermark(HOUR_MS - 1)
        assert harness.get_output() == [(DriverTips(HOUR_MS, 1, 150), HOUR_MS - 1)]
        harness.end_input()
        assert harness.outputs() == [DriverTips(HOUR_MS, 1, 150), DriverTips(2 * HOUR_MS, 1, 7)]
        assert harness.num_keyed_state_entries() == harness.num_event_time_timers() == 0


@pytest.mark.parametrize(("watermark", "late"), [(HOUR_MS - 2, False), (HOUR_MS - 1, True), (HOUR_MS, True)])
def test_a_fare_is_late_once_the_hour_is_over(watermark: int, late: bool) -> None:
    with pseudo_window() as harness:
        harness.process_watermark(watermark)
        send(harness, fare(1, HOUR_MS - 1))
        assert harness.get_side_output(LATE) == ([(fare(1, HOUR_MS - 1), HOUR_MS - 1)] if late else [])
        assert harness.num_event_time_timers() == (0 if late else 1)


def test_a_fare_out_of_order_is_not_late_while_its_hour_is_open() -> None:
    with pseudo_window() as harness:
        send(harness, fare(1, 2000, tip_cents=1))
        harness.process_watermark(1999)
        send(harness, fare(2, 5, tip_cents=2))
        harness.end_input()
        assert harness.outputs() == [DriverTips(HOUR_MS, 1, 3)]


def test_each_driver_has_hours_of_their_own() -> None:
    with pseudo_window() as harness:
        send(harness, fare(1, 0, tip_cents=1, driver_id=1))
        send(harness, fare(2, 0, tip_cents=2, driver_id=2))
        harness.end_input()
        assert sorted(tips.tip_cents for tips in harness.outputs()) == [1, 2]


def test_a_copy_counts_twice() -> None:
    """Nothing in a sum tells a copy from another fare: who may get copies drops them before."""
    with pseudo_window() as harness:
        send(harness, fare(1, 0, tip_cents=10))
        send(harness, fare(1, 0, tip_cents=10))
        harness.end_input()
        assert harness.outputs() == [DriverTips(HOUR_MS, 1, 20)]


def test_a_fare_without_tip_still_opens_its_hour() -> None:
    with pseudo_window() as harness:
        send(harness, fare(1, 0, tip_cents=0))
        harness.end_input()
        assert harness.outputs() == [DriverTips(HOUR_MS, 1, 0)]


def test_open_hours_survive_a_restart() -> None:
    with pseudo_window() as harness:
        send(harness, fare(1, 0, tip_cents=10))
        harness.process_watermark(1000)
        restored = harness.restore(harness.snapshot())
    send(restored, fare(2, 500, tip_cents=5))
    restored.end_input()
    assert restored.outputs() == [DriverTips(HOUR_MS, 1, 15)]


def test_of_equal_tips_the_lower_driver_wins_in_either_order() -> None:
    low, high = DriverTips(HOUR_MS, 1, 10), DriverTips(HOUR_MS, 2, 10)
    assert better(low, high) == better(high, low) == low


def expected(data: TaxiData, *, all_on_time: bool = False) -> tuple[set[DriverTips], set[DriverTips], set[TaxiFare]]:
    """Tips per driver and hour, the best of each hour, and the late fares: one pass over the list."""
    sums: Counter[tuple[int, int]] = Counter()
    late: set[TaxiFare] = set()
    watermark = LONG_MIN
    for paid in data.fares():
        hour_end = (paid.start_time // HOUR_MS + 1) * HOUR_MS
        if hour_end - 1 <= watermark and not all_on_time:
            late.add(paid)
        else:
            sums[hour_end, paid.driver_id] += paid.tip_cents
        watermark = max(watermark, paid.start_time - data.disorder_ms - 1)
    tips = {DriverTips(hour_end, driver, cents) for (hour_end, driver), cents in sums.items()}
    hours = {one.hour_end for one in tips}
    best = {
        min((one for one in tips if one.hour_end == hour), key=lambda one: (-one.tip_cents, one.driver_id))
        for hour in hours
    }
    return tips, best, late


def both_versions(data: TaxiData, parallelism: int) -> Program:
    program = Program(data, parallelism)
    fares = program.fares()
    for version, tips in (("windows", tips_with_windows(fares)), ("timers", tips_with_timers(fares))):
        program.keep(version, tips, LATE)
        program.keep(f"best by {version}", best_of_hour(tips))
    return program


@CUTS
def test_both_versions_give_what_the_oracle_gives(parallelism: int, per_epoch: int | None) -> None:
    data = TaxiData(800, late_fare_share=0.05)
    results = both_versions(data, parallelism).run(per_epoch)
    tips, best, late = expected(data)
    assert len(best) > 2 and len(late) > 20
    for version in ("windows", "timers"):
        assert len(results[version]) == len(tips)
        assert set(results[version]) == tips
        assert sorted(results[f"best by {version}"], key=lambda one: one.hour_end) == sorted(
            best, key=lambda one: one.hour_end
        )
        assert set(results[f"{version}: late fares"]) == late


def test_both_versions_survive_crashes() -> None:
    data = TaxiData(400, late_fare_share=0.05)
    results = both_versions(data, 2).run(40, crashes=True)
    tips, best, late = expected(data)
    for version in ("windows", "timers"):
        assert set(results[version]) == tips
        assert set(results[f"best by {version}"]) == best
        assert set(results[f"{version}: late fares"]) == late


def test_nothing_is_late_in_batch_mode() -> None:
    data = TaxiData(600, late_fare_share=0.05)
    results = both_versions(data, 2).run(batch=True)
    tips, best, _ = expected(data, all_on_time=True)
    for version in ("windows", "timers"):
        assert set(results[version]) == tips
        assert set(results[f"best by {version}"]) == best
        assert results[f"{version}: late fares"] == []


def test_the_script(spark: object, capsys: pytest.CaptureFixture[str]) -> None:
    assert hourly_tips.main(["--rides", "500"]) == 0
    lines = capsys.readouterr().out.splitlines()
    _, best, late = expected(TaxiData(500, late_fare_share=0.02))
    assert len(lines) == len(best) + 2
    assert late
    assert lines[-2].startswith(f"{len(best)} hours; {len(late)} fares came too late")
    assert lines[-1] == "windows and timers agree"
