"""Exercise 3, hourly tips: which driver earned the most in tips, hour by hour?

Two versions of the first step, tips per driver and hour. One uses windows. The other does by hand what windows do for
you: a KeyedProcessFunction with one sum per open hour in map state, a timer for the end of each, and a side output for
fares that come after it. The program runs both over the same fares and says whether they agree.

The second step is the same for both: windows after windows. The sums of an hour carry the time of its last millisecond,
so that the next window of an hour takes exactly those.

    python examples/taxi/hourly_tips.py --rides 2000
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from taxi_program import arguments, environment, events_in, time_of_day
from taxi_rides import TaxiData, TaxiFare

from millrace.common import Time
from millrace.connectors.callback import CallbackSink
from millrace.datastream import (
    AggregateFunction,
    DataStream,
    KeyedProcessFunction,
    OutputTag,
    ProcessWindowFunction,
    RuntimeContext,
)
from millrace.datastream.state import MapStateDescriptor
from millrace.datastream.window import TimeWindow, TumblingEventTimeWindows

HOUR_MS = 3_600_000
LATE = OutputTag("late fares")


@dataclass(frozen=True, slots=True)
class DriverTips:
    """What a driver got in tips in the hour that ends at ``hour_end``."""

    hour_end: int
    driver_id: int
    tip_cents: int


class SumOfTips(AggregateFunction):
    """Adds up tips while fares come in."""

    def create_accumulator(self) -> int:
        return 0

    def add(self, value: TaxiFare, accumulator: int) -> int:
        return accumulator + value.tip_cents

    def get_result(self, accumulator: int) -> int:
        return accumulator

    def merge(self, acc_a: int, acc_b: int) -> int:
        return acc_a + acc_b


class WithHour(ProcessWindowFunction[int, DriverTips, int, TimeWindow]):
    """Adds driver and hour to a sum."""

    def process(
        self, key: int, context: ProcessWindowFunction.Context[TimeWindow], elements: Iterable[int]
    ) -> Iterator[DriverTips]:
        for tips in elements:
            yield DriverTips(context.window().end, key, tips)


class PseudoWindow(KeyedProcessFunction):
    """Tips of one driver per hour, without a window."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._open_hours = runtime_context.get_map_state(MapStateDescriptor("tips by end of hour"))

    def process_element(self, value: TaxiFare, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        hour_end = value.event_time - value.event_time % HOUR_MS + HOUR_MS
        last_moment = hour_end - 1
        if last_moment <= ctx.timer_service().current_watermark():
            yield LATE, value
            return
        # One timer an hour and driver: to register it again changes nothing.
        ctx.timer_service().register_event_time_timer(last_moment)
        self._open_hours.put(hour_end, (self._open_hours.get(hour_end) or 0) + value.tip_cents)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[DriverTips]:
        hour_end = timestamp + 1
        yield DriverTips(hour_end, ctx.get_current_key(), self._open_hours.get(hour_end) or 0)
        self._open_hours.remove(hour_end)


def tips_with_windows(fares: DataStream) -> DataStream:
    """Tips per driver and hour; late fares on the side output."""
    return (
        fares.key_by(lambda fare: fare.driver_id)
        .window(TumblingEventTimeWindows.of(Time.hours(1)))
        .side_output_late_data(LATE)
        .aggregate(SumOfTips(), WithHour())
        .name("tips per driver and hour, windows")
        .uid("windows")
    )


def tips_with_timers(fares: DataStream) -> DataStream:
    """The same with a process function."""
    return (
        fares.key_by(lambda fare: fare.driver_id)
        .process(PseudoWindow())
        .name("tips per driver and hour, timers")
        .uid("timers")
    )


def best_of_hour(tips: DataStream) -> DataStream:
    """The driver with the highest tips of each hour."""
    return tips.window_all(TumblingEventTimeWindows.of(Time.hours(1))).reduce(better).name("best of the hour")


def better(first: DriverTips, second: DriverTips) -> DriverTips:
    """The higher tips; of equal ones the lower driver id, so that the order of arrival does not matter."""
    return max(first, second, key=lambda tips: (tips.tip_cents, -tips.driver_id))


def main(argv: Sequence[str] | None = None) -> int:
    """Run both versions and compare them."""
    args = arguments(__doc__, argv)
    data = TaxiData(args.rides, args.seed, late_fare_share=0.02)
    env = environment()
    fares = events_in(env, data, data.fares(), "fares")
    best: dict[str, list[DriverTips]] = {"windows": [], "timers": []}
    late: dict[str, list[TaxiFare]] = {"windows": [], "timers": []}
    for version, tips in (("windows", tips_with_windows(fares)), ("timers", tips_with_timers(fares))):
        best_of_hour(tips).sink_to(CallbackSink(best[version].extend))
        tips.get_side_output(LATE).sink_to(CallbackSink(late[version].extend))
    env.execute("hourly tips")

    results = sorted(best["windows"], key=lambda tips: tips.hour_end)
    for top in results[: args.show]:
        begin = time_of_day(top.hour_end - HOUR_MS)
        print(f"{begin} - {time_of_day(top.hour_end)}  driver {top.driver_id:<3} {top.tip_cents / 100:8.2f}")
    missed = sum(fare.tip_cents for fare in late["windows"]) / 100
    print(f"{len(results)} hours; {len(late['windows'])} fares came too late, with {missed:.2f} in tips")
    agree = set(results) == set(best["timers"]) and set(late["windows"]) == set(late["timers"])
    print("windows and timers agree" if agree else "windows and timers DISAGREE")
    return 0 if agree else 1


if __name__ == "__main__":
    sys.exit(main())
