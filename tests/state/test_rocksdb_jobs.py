"""Whole jobs on RocksDB give what they give on the heap, and move from one to the other with their snapshots."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from millrace.common import Configuration, Duration, Time, WatermarkStrategy
from millrace.connectors.callback import CallbackSink
from millrace.datastream import (
    DataStream,
    EmbeddedRocksDBStateBackend,
    HashMapStateBackend,
    KeyedProcessFunction,
    RuntimeContext,
    StateBackend,
    StreamExecutionEnvironment,
)
from millrace.datastream.window import EventTimeSessionWindows, SlidingEventTimeWindows, TumblingEventTimeWindows
from millrace.errors import ConfigurationError
from millrace.state import ListStateDescriptor, MapStateDescriptor
from millrace.testing import LocalRun

EVENTS = [(f"key{number * 7 % 11}", number, number * 3 + number * 5 % 7) for number in range(300)]


class Remember(KeyedProcessFunction):
    """Keeps everything of a key, in place, and tells at every hundredth millisecond."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.seen: Any = runtime_context.get_list_state(ListStateDescriptor("seen"))
        self.counts: Any = runtime_context.get_map_state(MapStateDescriptor("counts"))

    def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        self.seen.add(value[1])
        self.counts.put(value[1] % 3, (self.counts.get(value[1] % 3) or 0) + 1)
        ctx.timer_service().register_event_time_timer(value[2] // 100 * 100 + 100)
        return ()

    def on_timer(self, timestamp: int, ctx: Any) -> Iterable[Any]:
        yield (ctx.get_current_key(), timestamp, self.seen.get(), sorted(self.counts.items()))
        if timestamp % 300 == 0:
            self.seen.clear()


def program(env: StreamExecutionEnvironment) -> list[Any]:
    """One of everything that keeps state by key."""
    results: list[Any] = []
    bounded = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(10))
    strategy = bounded.with_timestamp_assigner(lambda event, _: event[2])
    events = env.from_collection(EVENTS).uid("events").assign_timestamps_and_watermarks(strategy).uid("times")
    keyed = events.key_by(lambda event: event[0])

    def add(a: Any, b: Any) -> Any:
        return (a[0], a[1] + b[1], max(a[2], b[2]))

    def show(stream: DataStream, name: str) -> None:
        stream.uid(name).map(lambda value: (name, value)).uid(f"{name}-map").sink_to(CallbackSink(results.extend)).uid(
            f"{name}-sink"
        )

    show(keyed.reduce(add), "rolling")
    show(keyed.window(TumblingEventTimeWindows.of(Time.milliseconds(50))).reduce(add), "tumbling")
    sliding = keyed.window(SlidingEventTimeWindows.of(Time.milliseconds(90), Time.milliseconds(30)))
    show(sliding.allowed_lateness(60).reduce(add), "sliding")
    show(keyed.window(EventTimeSessionWindows.with_gap(Time.milliseconds(25))).reduce(add), "sessions")
    show(keyed.process(Remember()), "process")
    other = keyed.interval_join(keyed).between(Time.milliseconds(-20), Time.milliseconds(5))
    show(other.process(lambda left, right: [(left, right)]), "join")
    return results


def environment(backend: StateBackend, parallelism: int = 2, **settings: str) -> StreamExecutionEnvironment:
    config = Configuration()
    # No memory at all: everything goes to the database after every batch.
    config.set_string("state.backend.rocksdb.memory.fixed-per-slot", "0")
    for key, value in settings.items():
        config.set_string(key, value)
    env = StreamExecutionEnvironment.get_execution_environment(config).set_parallelism(parallelism)
    return env.set_state_backend(backend)


def run_all(backend: StateBackend, records: int | None = None, crash: bool = False) -> list[Any]:
    env = environment(backend)
    results = program(env)
    run = LocalRun(env)
    while not run.done:
        run.run_epoch(records)
        if crash:
            run.crash()
    return results


@pytest.mark.parametrize(("records", "crash"), [(None, False), (20, False), (20, True)], ids=["one", "many", "crashes"])
def test_a_job_gives_the_same_in_the_same_order(records: int | None, crash: bool) -> None:
    expected = run_all(HashMapStateBackend(), records, crash)
    assert len(expected) > 1000
    assert run_all(EmbeddedRocksDBStateBackend(), records, crash) == expected


@pytest.mark.parametrize("to_parallelism", [2, 3])
def test_a_job_moves_between_backends_with_its_checkpoints(tmp_path: Path, to_parallelism: int) -> None:
    expected = sorted(map(repr, run_all(HashMapStateBackend(), 20)))
    results: list[Any] = []
    backends = [HashMapStateBackend(), EmbeddedRocksDBStateBackend()]
    for number in range(20):
        env = environment(backends[number % 2], 2 if number < 3 else to_parallelism)
        part = program(env)
        run = LocalRun(env, storage=str(tmp_path))
        for _ in range(2):
            if not run.done:
                run.run_epoch(20)
        results += part
        if run.done:
            break
    assert run.done
    assert sorted(map(repr, results)) == expected


def test_the_folders_go_with_the_tasks(tmp_path: Path) -> None:
    backend = EmbeddedRocksDBStateBackend()
    backend.set_db_storage_paths(str(tmp_path))
    env = environment(backend)
    program(env)
    run = LocalRun(env)
    run.run_epoch(20)
    assert len(list(tmp_path.iterdir())) == 2
    run.run()
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_backend_is_refused_before_anything_runs() -> None:
    env = environment(HashMapStateBackend())
    env.configure(_setting("state.backend.type", "forst"))
    program(env)
    with pytest.raises(ConfigurationError, match="there is no backend 'forst'; use hashmap or rocksdb"):
        LocalRun(env)


def _setting(key: str, value: str) -> Configuration:
    config = Configuration()
    config.set_string(key, value)
    return config
