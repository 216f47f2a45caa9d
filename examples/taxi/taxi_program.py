"""What the four exercises share: their options, their streams and how they print a time."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from taxi_rides import TaxiData, TaxiFare, TaxiRide

from millrace.common import Configuration, Duration, WatermarkStrategy
from millrace.connectors import CollectionSource
from millrace.datastream import DataStream, StreamExecutionEnvironment

__all__ = ["arguments", "environment", "events_in", "time_of_day"]


def arguments(description: str | None, argv: Sequence[str] | None) -> argparse.Namespace:
    """The command line: how many rides, which ones, and how many lines to print."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rides", type=int, default=2000, help="how many rides to make (default %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="another seed, another city (default %(default)s)")
    parser.add_argument("--show", type=int, default=10, help="how many results to print (default %(default)s)")
    return parser.parse_args(argv)


def environment() -> StreamExecutionEnvironment:
    """An environment in which event time moves on with each record.

    By default a source tells its event time at the end of an epoch and every 10,000 records. The input here is small:
    it would all be over before the first watermark, and nothing could ever be late.
    """
    config = Configuration.from_dict({"pipeline.watermark-emission": "every-record"})
    return StreamExecutionEnvironment.get_execution_environment(config)


def events_in(
    env: StreamExecutionEnvironment, data: TaxiData, events: list[TaxiRide] | list[TaxiFare], name: str
) -> DataStream:
    """A stream of events with their own time, and watermarks that wait as long as events may be delayed."""
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(
        Duration.of_millis(data.disorder_ms)
    ).with_timestamp_assigner(event_time)
    return env.from_source(CollectionSource(events), strategy, name)


def event_time(event: Any) -> int:
    """When a ride's event or a fare happened."""
    time: int = event.event_time
    return time


def time_of_day(millis: int) -> str:
    """A point in time for people, in UTC."""
    return datetime.fromtimestamp(millis / 1000, UTC).strftime("%H:%M:%S")
