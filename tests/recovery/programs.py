"""Programs and parts of programs for the tests of this folder."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from typing import Any

from millrace.common import Configuration, Duration, Time, WatermarkStrategy
from millrace.datastream import KeyedBroadcastProcessFunction, KeyedProcessFunction, RuntimeContext
from millrace.datastream import StreamExecutionEnvironment as Environment
from millrace.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from millrace.datastream.window import TumblingEventTimeWindows
from millrace.runtime.sink import Sink, SinkWriter

__all__ = ["Committed", "CountPerKey", "Limit", "counting", "environment", "everything"]


class Committed(Sink[Any]):
    """Keeps what was committed, by the name that the writer gave it: committed twice, it is there once."""

    def __init__(self) -> None:
        self.commits: dict[str, list[Any]] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {"commits": {}}

    def create_writer(self, context: RuntimeContext) -> SinkWriter[Any]:
        return _Gathering()

    def commit(self, committables: Sequence[Any]) -> None:
        self.commits.update(committables)

    @property
    def rows(self) -> list[Any]:
        return sorted(row for rows in self.commits.values() for row in rows)


class _Gathering(SinkWriter[Any]):
    def __init__(self) -> None:
        self.rows: list[Any] = []

    def write(self, value: Any, timestamp: int | None) -> None:
        self.rows.append(value)

    def prepare_commit(self) -> Sequence[Any]:
        rows, self.rows = self.rows, []
        return [(uuid.uuid4().hex, rows)] if rows else []


class CountPerKey(KeyedProcessFunction):
    """Numbers the records of each key; keeps the last ones, and tells at the end of event time how many there were."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count"))
        self.recent = runtime_context.get_list_state(ListStateDescriptor("recent"))
        self.seen = runtime_context.get_map_state(MapStateDescriptor("seen"))

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Any:
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        self.recent.update([*list(self.recent.get())[-2:], value])
        self.seen.put(value, count)
        ctx.timer_service().register_event_time_timer(1_000_000)
        yield "number", ctx.get_current_key(), count
        yield "value", ctx.get_current_key(), value

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Any:
        yield "total", ctx.get_current_key(), self.count.value(), len(list(self.recent.get())), sum(self.seen.keys())


class Limit(KeyedBroadcastProcessFunction):
    """Lets a record pass if it is not above the limit that was broadcast."""

    RULES = MapStateDescriptor("rules")

    def process_element(self, value: int, ctx: KeyedBroadcastProcessFunction.ReadOnlyContext) -> Any:
        limit = ctx.get_broadcast_state(self.RULES).get("limit")
        if limit is None or value <= limit:
            yield "passed", value % 3, value

    def process_broadcast_element(self, value: Any, ctx: KeyedBroadcastProcessFunction.Context) -> Any:
        ctx.get_broadcast_state(self.RULES).put("limit", value)
        return ()


def environment(parallelism: int = 2, **config: Any) -> Environment:
    settings = Configuration.from_dict({key.replace("__", "-").replace("_", "."): str(v) for key, v in config.items()})
    return Environment.get_execution_environment(settings).set_parallelism(parallelism)


def timed(bound: int = 5) -> WatermarkStrategy:
    bounded = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(bound))
    return bounded.with_timestamp_assigner(lambda value, _: value)


def counting(env: Environment, numbers: int, sink: Sink[Any], keys: int = 5) -> None:
    """Keyed state and timers."""
    stream = env.from_sequence(1, numbers).uid("numbers").assign_timestamps_and_watermarks(timed()).uid("times")
    stream.key_by(lambda n: n % keys).process(CountPerKey()).uid("count").sink_to(sink).uid("sink")


def everything(env: Environment, numbers: int, sinks: Iterable[Sink[Any]], limit: int = 1_000_000) -> None:
    """Keyed state, timers, windows and broadcast state, each with a sink of its own."""
    counts, windows, limited = sinks
    stream = env.from_sequence(1, numbers).uid("numbers").assign_timestamps_and_watermarks(timed()).uid("times")
    stream.key_by(lambda n: n % 5).process(CountPerKey()).uid("count").sink_to(counts).uid("counts")
    sums = stream.key_by(lambda n: n % 2).window(TumblingEventTimeWindows.of(Time.milliseconds(20)))
    summed = sums.apply(lambda key, window, ns: [("window", key, window.start, sum(ns))]).uid("windows")
    summed.sink_to(windows).uid("sums")
    rules = env.from_collection([limit]).uid("rules").broadcast(Limit.RULES)
    stream.key_by(lambda n: n % 3).connect(rules).process(Limit()).uid("limit").sink_to(limited).uid("limited")
