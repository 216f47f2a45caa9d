"""Why event time, part 1: four sine waves that add up to zero, and to noise if you ask the wrong clock.

Four sensors measure the same wave, each a quarter of a period after the one before. At any moment their values cancel
out. But each sensor reaches us over a line of its own, and each line stalls now and then. The program adds up all
samples per half second, twice over the same stream: by the time they were measured, and by the time they arrived.

By event time the sum is zero, whatever the lines do. By arrival the sum mixes what different sensors measured at
different times, and says more about the network than about the waves.

Arrival times are part of the data here, so that the picture is the same each time; a run with processing-time windows
on a live stream sees just such times on its clock.

    python examples/why_event_time/sine_waves.py --out sine_waves.png
"""

from __future__ import annotations

import argparse
import math
import random
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.figure import Figure

from millrace.common import Duration, Time, WatermarkStrategy
from millrace.connectors.callback import CallbackSink
from millrace.datastream import AggregateFunction, DataStream, ProcessAllWindowFunction, StreamExecutionEnvironment
from millrace.datastream.window import TimeWindow, TumblingEventTimeWindows

STALLS_MS = (50, 700, 1500, 2500)
"""For each wave, for how long its line may stall: what was measured meanwhile comes all at once when it is over."""

PERIOD_MS = 8_000
SAMPLE_MS = 50
WINDOW_MS = 500


@dataclass(frozen=True, slots=True)
class Sample:
    """One value of one wave: when it was measured, and when it reached us."""

    wave: int
    measured: int
    arrived: int
    value: float


@dataclass(frozen=True, slots=True)
class WindowSum:
    """The sum of all samples that some clock puts into the window that ends at ``end``."""

    end: int
    total: float
    samples: int


def samples_of(wave: int, seconds: int, seed: int) -> list[Sample]:
    """The samples of one wave, in the order in which they arrive."""
    draw = random.Random(f"{seed} wave {wave}")
    samples = []
    stall_begins = stall_ends = 0
    for measured in range(0, seconds * 1000, SAMPLE_MS):
        if measured >= stall_ends:
            stall_begins = measured + draw.randint(0, 1000)
            stall_ends = stall_begins + draw.randint(0, STALLS_MS[wave])
        arrived = stall_ends if measured >= stall_begins else measured
        value = math.sin(2 * math.pi * (measured / PERIOD_MS - wave / len(STALLS_MS)))
        samples.append(Sample(wave, measured, arrived, value))
    return samples


class Adding(AggregateFunction):
    """Keeps the sum and the number of the samples in a window."""

    def create_accumulator(self) -> tuple[float, int]:
        return 0.0, 0

    def add(self, value: Sample, accumulator: tuple[float, int]) -> tuple[float, int]:
        return accumulator[0] + value.value, accumulator[1] + 1

    def get_result(self, accumulator: tuple[float, int]) -> tuple[float, int]:
        return accumulator

    def merge(self, acc_a: tuple[float, int], acc_b: tuple[float, int]) -> tuple[float, int]:
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


class WithEnd(ProcessAllWindowFunction[tuple[float, int], WindowSum, TimeWindow]):
    """Adds the end of the window to a sum."""

    def process(
        self, context: ProcessAllWindowFunction.Context[TimeWindow], elements: Iterable[tuple[float, int]]
    ) -> Iterator[WindowSum]:
        for total, samples in elements:
            yield WindowSum(context.window().end, total, samples)


def by_event_time() -> WatermarkStrategy:
    """The clock of the sensors; samples may come as late as the worst line stalls."""
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(max(STALLS_MS)))
    return strategy.with_timestamp_assigner(lambda sample: sample.measured)


def by_arrival() -> WatermarkStrategy:
    """Our own clock, which never goes back."""
    return WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda sample: sample.arrived)


def sums(waves: Sequence[DataStream], clock: WatermarkStrategy) -> DataStream:
    """The program: all waves together, added up per window of the given clock."""
    first, *others = [wave.assign_timestamps_and_watermarks(clock) for wave in waves]
    return (
        first.union(*others)
        .window_all(TumblingEventTimeWindows.of(Time.milliseconds(WINDOW_MS)))
        .aggregate(Adding(), WithEnd())
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run it by both clocks and draw the picture."""
    args = arguments(argv)
    data = [samples_of(wave, args.seconds, args.seed) for wave in range(len(STALLS_MS))]
    env = StreamExecutionEnvironment.get_execution_environment()
    waves = [env.from_collection(samples) for samples in data]
    event_time: list[WindowSum] = []
    arrival: list[WindowSum] = []
    sums(waves, by_event_time()).name("sums by event time").sink_to(CallbackSink(event_time.extend))
    sums(waves, by_arrival()).name("sums by arrival").sink_to(CallbackSink(arrival.extend))
    env.execute("sine waves")

    event_time.sort(key=lambda window: window.end)
    arrival.sort(key=lambda window: window.end)
    print(f"largest sum of a window by event time:      {largest(event_time):.3f}")
    print(f"largest sum of a window by processing time: {largest(arrival):.3f}")
    draw(data, event_time, arrival, args.out)
    print(f"see {args.out}")
    return 0


def largest(windows: list[WindowSum]) -> float:
    """How far from zero the sums get."""
    return max(abs(window.total) for window in windows)


def draw(data: list[list[Sample]], event_time: list[WindowSum], arrival: list[WindowSum], out: Path) -> None:
    """The waves as they arrive above, the two sums below."""
    figure = Figure(figsize=(10, 7), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True)
    for wave, samples in enumerate(data):
        seconds = [sample.arrived / 1000 for sample in samples]
        values = [sample.value for sample in samples]
        above.plot(
            seconds, values, ".", markersize=3, label=f"wave {wave + 1}, up to {STALLS_MS[wave] / 1000:g} s late"
        )
    above.set_title("Four sine waves that cancel out, as their samples arrive")
    above.set_ylabel("value")
    above.set_ylim(-1.15, 1.6)
    for windows, colour, name in (
        (arrival, "tab:red", "by processing time (arrival)"),
        (event_time, "tab:blue", "by event time (measurement)"),
    ):
        ends = [window.end / 1000 for window in windows]
        below.plot(ends, [window.total for window in windows], color=colour, linewidth=2, label=name)
    below.set_title(f"The sum of all samples in windows of {WINDOW_MS / 1000:g} s")
    below.set_xlabel("time (s)")
    below.set_ylabel("sum of the samples")
    below.set_ylim(1.25 * min(-1, -largest(arrival)), 1.6 * max(1, largest(arrival)))
    for axes in (above, below):
        axes.grid(alpha=0.3)
        axes.legend(loc="upper center", ncols=4, fontsize="small", markerscale=3)
    figure.savefig(out, dpi=110)


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=40, help="how long the sensors measure (default %(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    beside = Path(__file__).with_name("sine_waves.png")
    parser.add_argument("--out", type=Path, default=beside, help="where the picture goes (default: beside the program)")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
