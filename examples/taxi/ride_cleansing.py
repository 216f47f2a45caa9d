"""Exercise 1, ride cleansing: keep the rides that begin and end in New York.

The smallest program there is: one filter, no state, no time.

    python examples/taxi/ride_cleansing.py --rides 2000
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence

from taxi_program import arguments, environment, events_in, time_of_day
from taxi_rides import TaxiData, TaxiRide

from millrace.connectors.callback import CallbackSink
from millrace.datastream import DataStream, FilterFunction

WEST, EAST = -74.05, -73.7
SOUTH, NORTH = 40.5, 41.0


def is_in_new_york(lon: float, lat: float) -> bool:
    """Whether a place lies in the box around New York, its border included."""
    return WEST <= lon <= EAST and SOUTH <= lat <= NORTH


class InNewYork(FilterFunction):
    """Keeps rides with both ends in New York."""

    def filter(self, value: TaxiRide) -> bool:
        return is_in_new_york(value.start_lon, value.start_lat) and is_in_new_york(value.end_lon, value.end_lat)


def cleansed(rides: DataStream) -> DataStream:
    """The program."""
    return rides.filter(InNewYork()).name("in New York")


def main(argv: Sequence[str] | None = None) -> int:
    """Run it and show what is left."""
    args = arguments(__doc__, argv)
    data = TaxiData(args.rides, args.seed)
    events = data.ride_events()
    env = environment()
    kept: list[TaxiRide] = []
    cleansed(events_in(env, data, events, "rides")).sink_to(CallbackSink(kept.extend))
    env.execute("ride cleansing")

    for ride in kept[: args.show]:
        print(
            f"{time_of_day(ride.event_time)}  {'START' if ride.is_start else 'END  '} ride {ride.ride_id:<5}"
            f"({ride.start_lon:.4f}, {ride.start_lat:.4f}) -> ({ride.end_lon:.4f}, {ride.end_lat:.4f})"
        )
    kinds = Counter("START" if ride.is_start else "END" for ride in kept)
    print(f"kept {len(kept)} of {len(events)} events: {kinds['START']} STARTs and {kinds['END']} ENDs in New York")
    return 0


if __name__ == "__main__":
    sys.exit(main())
