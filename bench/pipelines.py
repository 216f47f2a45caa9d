"""The programs that are measured, and their peers in plain PySpark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from millrace.common import Time, WatermarkStrategy
from millrace.datastream import StreamExecutionEnvironment
from millrace.datastream.window import EventTimeSessionWindows, SlidingEventTimeWindows, TumblingEventTimeWindows
from millrace.runtime.context import RuntimeContext
from millrace.runtime.sink import Sink, SinkWriter
from millrace.spark.session import get_session

__all__ = ["CheckedTotal", "expected_total", "reduce_by_key", "reduce_with_rdd", "reduce_with_sql", "windowed"]


class CheckedTotal(Sink[Any]):
    """Counts what arrives and adds up field 1 of it: cheap, and enough to see that nothing was lost."""

    volatile = True

    def __init__(self) -> None:
        self.records = 0
        self.total = 0

    def create_writer(self, context: RuntimeContext) -> SinkWriter[Any]:
        return _Totals()

    def commit(self, committables: Sequence[Any]) -> None:
        for records, total in committables:
            self.records += records
            self.total += total


class _Totals(SinkWriter[Any]):
    def __init__(self) -> None:
        self.records = self.total = 0

    def write(self, value: Any, timestamp: int | None) -> None:
        self.write_batch([value], None)

    def write_batch(self, values: list[Any], timestamps: list[int] | None) -> None:
        self.records += len(values)
        self.total += sum(value[1] for value in values)

    def prepare_commit(self) -> Sequence[Any]:
        done = (self.records, self.total)
        self.records = self.total = 0
        return (done,) if done[0] else ()


def expected_total(events: int) -> tuple[int, int]:
    """How many records pass the filter, and the sum of their numbers."""
    kept = [number for number in range(events) if number % 10]
    return len(kept), sum(kept)


def reduce_by_key(events: int, keys: int, sink: Sink[Any]) -> StreamExecutionEnvironment:
    """sequence -> map -> filter -> key_by -> rolling reduce: one result for every event."""
    env = StreamExecutionEnvironment.get_execution_environment()
    (
        env.from_sequence(0, events - 1)
        .map(lambda number: (number % keys, number))
        .filter(lambda event: event[1] % 10 != 0)
        .key_by(lambda event: event[0])
        .reduce(lambda a, b: (a[0], b[1]))
        .sink_to(sink)
    )
    return env


def windowed(kind: str, events: int, keys: int, sink: Sink[Any]) -> StreamExecutionEnvironment:
    """sequence -> map -> timestamps -> key_by -> window -> reduce; 1,000 events for each second of event time."""
    env = StreamExecutionEnvironment.get_execution_environment()
    assigner = {
        "tumbling": TumblingEventTimeWindows.of(Time.seconds(10)),
        "sliding": SlidingEventTimeWindows.of(Time.minutes(1), Time.seconds(10)),
        "session": EventTimeSessionWindows.with_gap(Time.seconds(5)),
    }[kind]
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda event, _: event[2])
    (
        env.from_generator(lambda number: (number * 7919 % keys, 1, number), count=events)
        .assign_timestamps_and_watermarks(strategy)
        .key_by(lambda event: event[0])
        .window(assigner)
        .reduce(lambda a, b: (a[0], a[1] + b[1], b[2]))
        .sink_to(sink)
    )
    return env


def reduce_with_rdd(events: int, keys: int) -> int:
    """The same functions on PySpark's RDDs, which also run them in Python; one result for each key."""
    numbers = get_session().sparkContext.range(0, events, 1, get_session().sparkContext.defaultParallelism)
    pairs = numbers.map(lambda number: (number % keys, number)).filter(lambda event: event[1] % 10 != 0)
    return len(pairs.reduceByKey(lambda a, b: b).collect())


def reduce_with_sql(events: int, keys: int) -> int:
    """The same answer from Spark SQL, in the JVM: no Python function runs."""
    frame = get_session().range(0, events)
    kept = frame.selectExpr(f"id % {keys} AS key", "id").where("id % 10 != 0")
    return len(kept.groupBy("key").agg({"id": "max"}).collect())
