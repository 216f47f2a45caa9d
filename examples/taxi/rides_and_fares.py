"""Exercise 2, rides and fares: bring the START of each ride together with its fare.

Whichever of the two comes first waits in keyed state. Some never meet their other half: a timer takes them out of state
and sends them to a side output, so that state does not grow for ever.

    python examples/taxi/rides_and_fares.py --rides 2000
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from taxi_program import arguments, environment, events_in, time_of_day
from taxi_rides import TaxiData, TaxiFare, TaxiRide

from millrace.connectors.callback import CallbackSink
from millrace.datastream import DataStream, KeyedCoProcessFunction, OutputTag, RuntimeContext
from millrace.datastream.state import ValueStateDescriptor

PATIENCE_MS = 60_000
"""How long after its own time an event waits for its other half, in event time."""

RIDE_WITHOUT_FARE = OutputTag("ride without fare")
FARE_WITHOUT_RIDE = OutputTag("fare without ride")


@dataclass(frozen=True, slots=True)
class RideAndFare:
    """A ride and what it cost."""

    ride: TaxiRide
    fare: TaxiFare


class Match(KeyedCoProcessFunction):
    """Pairs the START and the fare of one ride.

    An event on time always finds its other half if that is on time too: the timer waits for the slower of both streams.
    A second copy of an event is no news while the first one waits. After the match nothing remembers the ride, so a
    copy that comes then goes to the side output like any other event that nobody asked for.
    """

    def __init__(self, patience_ms: int = PATIENCE_MS) -> None:
        self._patience_ms = patience_ms

    def open(self, runtime_context: RuntimeContext) -> None:
        self._ride = runtime_context.get_state(ValueStateDescriptor("ride"))
        self._fare = runtime_context.get_state(ValueStateDescriptor("fare"))

    def process_element1(self, value: TaxiRide, ctx: KeyedCoProcessFunction.Context) -> Iterator[RideAndFare]:
        fare = self._fare.value()
        if fare is None:
            self._ride.update(value)
            ctx.timer_service().register_event_time_timer(value.event_time + self._patience_ms)
        else:
            self._fare.clear()
            ctx.timer_service().delete_event_time_timer(fare.event_time + self._patience_ms)
            yield RideAndFare(value, fare)

    def process_element2(self, value: TaxiFare, ctx: KeyedCoProcessFunction.Context) -> Iterator[RideAndFare]:
        ride = self._ride.value()
        if ride is None:
            self._fare.update(value)
            ctx.timer_service().register_event_time_timer(value.event_time + self._patience_ms)
        else:
            self._ride.clear()
            ctx.timer_service().delete_event_time_timer(ride.event_time + self._patience_ms)
            yield RideAndFare(ride, value)

    def on_timer(self, timestamp: int, ctx: KeyedCoProcessFunction.OnTimerContext) -> Iterator[Any]:
        if (ride := self._ride.value()) is not None:
            yield RIDE_WITHOUT_FARE, ride
        if (fare := self._fare.value()) is not None:
            yield FARE_WITHOUT_RIDE, fare
        self._ride.clear()
        self._fare.clear()


def matched(rides: DataStream, fares: DataStream, patience_ms: int = PATIENCE_MS) -> DataStream:
    """The program: pairs on the stream itself, the rest on its two side outputs."""
    starts = rides.filter(lambda ride: ride.is_start).name("STARTs")
    return (
        starts.key_by(lambda ride: ride.ride_id)
        .connect(fares.key_by(lambda fare: fare.ride_id))
        .process(Match(patience_ms))
        .name("match")
        .uid("match")
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run it and show pairs and leftovers."""
    args = arguments(__doc__, argv)
    data = TaxiData(args.rides, args.seed)
    env = environment()
    pairs: list[RideAndFare] = []
    rides_left: list[TaxiRide] = []
    fares_left: list[TaxiFare] = []
    result = matched(
        events_in(env, data, data.ride_events(), "rides"),
        events_in(env, data, data.fares(), "fares"),
    )
    result.sink_to(CallbackSink(pairs.extend))
    result.get_side_output(RIDE_WITHOUT_FARE).sink_to(CallbackSink(rides_left.extend))
    result.get_side_output(FARE_WITHOUT_RIDE).sink_to(CallbackSink(fares_left.extend))
    env.execute("rides and fares")

    for pair in sorted(pairs, key=lambda pair: pair.ride.ride_id)[: args.show]:
        print(
            f"{time_of_day(pair.ride.start_time)}  ride {pair.ride.ride_id:<5} driver {pair.ride.driver_id:<3}"
            f"{pair.fare.payment_type}  total {pair.fare.total_cents / 100:6.2f}, tip {pair.fare.tip_cents / 100:5.2f}"
        )
    print(f"{len(pairs)} rides with their fares")
    print(f"{len(rides_left)} rides without a fare: {_some([ride.ride_id for ride in rides_left], args.show)}")
    print(f"{len(fares_left)} fares without a ride: {_some([fare.ride_id for fare in fares_left], args.show)}")
    return 0


def _some(ride_ids: list[int], limit: int) -> str:
    shown = ", ".join(map(str, sorted(ride_ids)[:limit]))
    return f"{shown}, ..." if len(ride_ids) > limit else shown or "none"


if __name__ == "__main__":
    sys.exit(main())
