"""Exercise 4, long ride alerts: say so as soon as a ride has gone on for two hours without an END.

Nothing arrives to tell that nothing has arrived: that is what timers are for.

    python examples/taxi/long_ride_alerts.py --rides 2000
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

from taxi_program import arguments, environment, events_in, time_of_day
from taxi_rides import TaxiData, TaxiRide

from millrace.connectors.callback import CallbackSink
from millrace.datastream import DataStream, KeyedProcessFunction, RuntimeContext
from millrace.datastream.state import ValueStateDescriptor

LIMIT_MS = 2 * 3_600_000


class LongRides(KeyedProcessFunction):
    """Gives the START of each ride that has no END within the limit; an END at the limit itself is within.

    START and END both know when the ride began, so both set the same timer, and all is decided when it fires. Neither
    the order of the two nor a second copy of one makes a difference, and nothing of a ride stays in state afterwards.
    """

    def open(self, runtime_context: RuntimeContext) -> None:
        self._start = runtime_context.get_state(ValueStateDescriptor("start"))
        self._ended = runtime_context.get_state(ValueStateDescriptor("ended"))

    def process_element(self, value: TaxiRide, ctx: KeyedProcessFunction.Context) -> None:
        deadline = value.start_time + LIMIT_MS
        if value.is_start:
            self._start.update(value)
        elif value.event_time <= deadline:
            self._ended.update(True)
        else:
            # Too late to change anything: the alert is out, or will be when the START comes.
            return
        ctx.timer_service().register_event_time_timer(deadline)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[TaxiRide]:
        start = self._start.value()
        if start is not None and not self._ended.value():
            yield start
        self._start.clear()
        self._ended.clear()


def long_rides(rides: DataStream) -> DataStream:
    """The program."""
    return rides.key_by(lambda ride: ride.ride_id).process(LongRides()).name("long rides").uid("long rides")


def main(argv: Sequence[str] | None = None) -> int:
    """Run it and show the alerts."""
    args = arguments(__doc__, argv)
    data = TaxiData(args.rides, args.seed)
    env = environment()
    alerts: list[TaxiRide] = []
    long_rides(events_in(env, data, data.ride_events(), "rides")).sink_to(CallbackSink(alerts.extend))
    env.execute("long ride alerts")

    for ride in sorted(alerts, key=lambda ride: ride.ride_id)[: args.show]:
        print(
            f"{time_of_day(ride.start_time + LIMIT_MS)}  ride {ride.ride_id:<5} taxi {ride.taxi_id}, driver "
            f"{ride.driver_id:<3} on the road since {time_of_day(ride.start_time)}"
        )
    print(f"{len(alerts)} of {data.rides} rides had no END within two hours")
    return 0


if __name__ == "__main__":
    sys.exit(main())
