from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from pathlib import Path

import pytest
import sine_waves
from sine_waves import STALLS_MS, WINDOW_MS, Sample, WindowSum, by_arrival, by_event_time, samples_of, sums

from millrace.connectors.callback import CallbackSink
from millrace.datastream import StreamExecutionEnvironment
from tests.examples.local import run_here

SECONDS = 12
PNG = b"\x89PNG\r\n\x1a\n"


def waves() -> list[list[Sample]]:
    return [samples_of(wave, SECONDS, seed=1) for wave in range(len(STALLS_MS))]


def added_up(clock: str) -> dict[int, tuple[float, int]]:
    """Window end -> sum and number of samples, by one pass over all of them."""
    windows: defaultdict[int, list[float]] = defaultdict(list)
    for samples in waves():
        for sample in samples:
            windows[getattr(sample, clock) // WINDOW_MS * WINDOW_MS + WINDOW_MS].append(sample.value)
    return {end: (sum(values), len(values)) for end, values in windows.items()}


def run(parallelism: int, per_epoch: int | None) -> tuple[list[WindowSum], list[WindowSum]]:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)
    streams = [env.from_collection(samples) for samples in waves()]
    event_time: list[WindowSum] = []
    arrival: list[WindowSum] = []
    sums(streams, by_event_time()).sink_to(CallbackSink(event_time.extend))
    sums(streams, by_arrival()).sink_to(CallbackSink(arrival.extend))
    run_here(env, per_epoch)
    return event_time, arrival


def test_samples_arrive_in_order_and_at_most_a_stall_late() -> None:
    for wave, samples in enumerate(waves()):
        assert len(samples) == SECONDS * 20
        assert all(one.arrived <= two.arrived and one.measured < two.measured for one, two in pairwise(samples))
        assert all(0 <= sample.arrived - sample.measured <= STALLS_MS[wave] for sample in samples)
    assert waves() == waves()


def test_the_waves_cancel_out_at_every_moment() -> None:
    for values in zip(*([sample.value for sample in samples] for samples in waves()), strict=True):
        assert sum(values) == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize(("parallelism", "per_epoch"), [(1, None), (2, None), (2, 40), (3, 17)])
def test_the_sum_is_zero_by_event_time_and_not_by_arrival(parallelism: int, per_epoch: int | None) -> None:
    event_time, arrival = run(parallelism, per_epoch)
    for windows, clock in ((event_time, "measured"), (arrival, "arrived")):
        oracle = added_up(clock)
        assert {window.end: window.samples for window in windows} == {end: many for end, (_, many) in oracle.items()}
        assert {window.end: window.total for window in windows} == pytest.approx(
            {end: total for end, (total, _) in oracle.items()}, abs=1e-9
        )
        assert len(windows) == len(oracle)
    assert all(window.samples == 40 for window in event_time)
    assert sine_waves.largest(event_time) < 1e-9
    assert sine_waves.largest(arrival) > 5


def test_the_script(spark: object, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "waves.png"
    assert sine_waves.main(["--seconds", "6", "--out", str(out)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "largest sum of a window by event time:      0.000"
    assert float(lines[1].split()[-1]) > 1
    assert out.read_bytes().startswith(PNG)
