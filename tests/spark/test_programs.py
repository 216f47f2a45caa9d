"""Programs end to end on Spark: bounded and in epochs, with the same results."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from millrace.common import Configuration, Duration, Row, Time, Types, WatermarkStrategy
from millrace.connectors.callback import CallbackSink
from millrace.datastream import (
    CoFlatMapFunction,
    CoMapFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    MapFunction,
    OutputTag,
    ProcessFunction,
    RuntimeContext,
    RuntimeExecutionMode,
    StreamExecutionEnvironment,
)
from millrace.datastream.functions import SinkFunction
from millrace.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from millrace.datastream.window import TumblingEventTimeWindows

pytestmark = pytest.mark.usefixtures("spark")

ONCE: dict[str, str] = {}
EPOCHS = {"pipeline.epoch.max-records": "3"}


@pytest.fixture(params=[ONCE, EPOCHS], ids=["once", "in epochs"])
def env(request: pytest.FixtureRequest) -> StreamExecutionEnvironment:
    config = Configuration.from_dict(request.param)
    return StreamExecutionEnvironment.get_execution_environment(config).set_parallelism(2)


def collected(stream: Any) -> list[Any]:
    with stream.execute_and_collect() as results:
        return list(results)


@dataclass(frozen=True)
class Reading:
    sensor: str
    at: int
    value: float


def by_time(*, bound: int = 0) -> WatermarkStrategy:
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(bound))
    return strategy.with_timestamp_assigner(lambda reading, _: reading.at)


READINGS = [
    Reading("a", 1000, 1.0),
    Reading("b", 1500, 2.0),
    Reading("a", 2500, 3.0),
    Reading("a", 11000, 4.0),
    Reading("b", 12000, 5.0),
    Reading("a", 25000, 6.0),
]


def test_word_count(env: StreamExecutionEnvironment) -> None:
    lines = env.from_collection(["to be or not", "to be"])
    counts = lines.flat_map(str.split).map(lambda word: (word, 1)).key_by(lambda pair: pair[0]).sum(1)
    assert sorted(collected(counts)) == [("be", 1), ("be", 2), ("not", 1), ("or", 1), ("to", 1), ("to", 2)]


def test_print_comes_back_to_the_terminal(env: StreamExecutionEnvironment, capsys: pytest.CaptureFixture[str]) -> None:
    env.from_elements("x", "y").print()
    env.from_elements("z").print("only")
    env.execute()
    out = capsys.readouterr().out.split("\n")
    assert {"1> x", "2> y", "only:1> z"} <= set(out)


def test_a_collection_keeps_its_order(env: StreamExecutionEnvironment) -> None:
    env.set_parallelism(1)
    assert collected(env.from_collection(list(range(20))).map(lambda n: n * 2)) == list(range(0, 40, 2))


def test_types_of_records(env: StreamExecutionEnvironment) -> None:
    values = [(1, "t"), Row(n=1), {"k": [1]}, Reading("a", 1, 2.0), np.int64(7), None, b"bytes"]
    assert sorted(map(repr, collected(env.from_collection(values).rebalance().map(lambda v: v)))) == sorted(
        map(repr, values)
    )


def test_key_by_fields(env: StreamExecutionEnvironment) -> None:
    stream = env.from_collection(READINGS)
    assert sorted(r.value for r in collected(stream.key_by("sensor").max("value"))) == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]


def test_key_by_position(env: StreamExecutionEnvironment) -> None:
    pairs = env.from_collection([("a", 1), ("b", 5), ("a", 3)])
    assert sorted(collected(pairs.key_by(0).max_by(1))) == [("a", 1), ("a", 3), ("b", 5)]


def test_union_connect_and_side_outputs(env: StreamExecutionEnvironment) -> None:
    odd = OutputTag("odd")

    class Sort(ProcessFunction):
        def process_element(self, value: int, ctx: ProcessFunction.Context) -> Iterator[Any]:
            if value % 2:
                ctx.output(odd, -value)
                yield odd, value
            else:
                yield value

    sorted_out = env.from_sequence(1, 4).process(Sort())
    both = sorted_out.union(sorted_out.get_side_output(odd), env.from_elements(100))
    assert sorted(collected(both)) == [-3, -1, 1, 2, 3, 4, 100]


def test_co_functions(env: StreamExecutionEnvironment) -> None:
    class Name(CoMapFunction):
        def map1(self, value: int) -> str:
            return f"number {value}"

        def map2(self, value: str) -> str:
            return f"word {value}"

    class Twice(CoFlatMapFunction):
        def flat_map1(self, value: int) -> Iterator[Any]:
            yield value
            yield value

        def flat_map2(self, value: str) -> Iterator[Any]:
            yield from ()

    numbers, words = env.from_elements(1, 2), env.from_elements("a")
    assert sorted(collected(numbers.connect(words).map(Name()))) == ["number 1", "number 2", "word a"]
    numbers, words = env.from_elements(1, 2), env.from_elements("a")
    assert sorted(collected(numbers.connect(words).flat_map(Twice()))) == [1, 1, 2, 2]


class CountUntilQuiet(KeyedProcessFunction):
    """Counts the records of a key and reports when event time is five seconds past its last one."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))
        self.last = runtime_context.get_state(ValueStateDescriptor("last", Types.LONG()))
        self.seen = runtime_context.get_list_state(ListStateDescriptor("seen", Types.DOUBLE()))
        self.by_second = runtime_context.get_map_state(MapStateDescriptor("by second", Types.LONG(), Types.LONG()))

    def process_element(self, value: Reading, ctx: KeyedProcessFunction.Context) -> None:
        self.count.update((self.count.value() or 0) + 1)
        self.seen.add(value.value)
        self.by_second[value.at // 1000] = 1
        last = max(self.last.value() or 0, value.at)
        self.last.update(last)
        ctx.timer_service().register_event_time_timer(last + 5000)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Any]:
        if timestamp == self.last.value() + 5000:
            yield ctx.get_current_key(), timestamp, self.count.value(), sorted(self.seen), len(list(self.by_second))
            self.count.clear()
            self.seen.clear()
            self.by_second.clear()


def test_keyed_process_function_with_state_and_timers(env: StreamExecutionEnvironment) -> None:
    stream = env.from_collection(READINGS).assign_timestamps_and_watermarks(by_time())
    results = collected(stream.key_by(lambda reading: reading.sensor).process(CountUntilQuiet()))
    assert sorted(results) == [("a", 30000, 4, [1.0, 3.0, 4.0, 6.0], 4), ("b", 17000, 2, [2.0, 5.0], 2)]


def test_two_keyed_inputs_share_state(env: StreamExecutionEnvironment) -> None:
    class Match(KeyedCoProcessFunction):
        def open(self, runtime_context: RuntimeContext) -> None:
            self.left = runtime_context.get_state(ValueStateDescriptor("left", Types.STRING()))
            self.right = runtime_context.get_state(ValueStateDescriptor("right", Types.STRING()))

        def process_element1(self, value: Any, ctx: KeyedCoProcessFunction.Context) -> Iterator[Any]:
            self.left.update(value[1])
            if self.right.value() is not None:
                yield ctx.get_current_key(), value[1], self.right.value()

        def process_element2(self, value: Any, ctx: KeyedCoProcessFunction.Context) -> Iterator[Any]:
            self.right.update(value[1])
            if self.left.value() is not None:
                yield ctx.get_current_key(), self.left.value(), value[1]

    orders = env.from_collection([(n, f"order{n}") for n in range(5)])
    bills = env.from_collection([(n, f"bill{n}") for n in reversed(range(5))])
    matched = orders.connect(bills).key_by(lambda order: order[0], lambda bill: bill[0]).process(Match())
    assert sorted(collected(matched)) == [(n, f"order{n}", f"bill{n}") for n in range(5)]


def test_windows_and_late_data(env: StreamExecutionEnvironment) -> None:
    stream = env.from_collection(READINGS).assign_timestamps_and_watermarks(by_time())
    sums = (
        stream.key_by(lambda reading: reading.sensor)
        .window(TumblingEventTimeWindows.of(Time.seconds(10)))
        .reduce(
            lambda a, b: Reading(a.sensor, b.at, a.value + b.value),
            lambda key, window, readings: [(key, window.start, reading.value) for reading in readings],
        )
    )
    expected = [("a", 0, 4.0), ("a", 10000, 4.0), ("a", 20000, 6.0), ("b", 0, 2.0), ("b", 10000, 5.0)]
    assert sorted(collected(sums)) == expected


def test_several_sinks_read_one_source_once(env: StreamExecutionEnvironment) -> None:
    evens: list[int] = []
    everything: list[int] = []
    numbers = env.from_sequence(1, 10)
    numbers.filter(lambda n: n % 2 == 0).sink_to(CallbackSink(evens.extend))
    numbers.sink_to(CallbackSink(everything.extend))
    env.execute()
    assert (sorted(evens), sorted(everything)) == ([2, 4, 6, 8, 10], list(range(1, 11)))


def test_partitioning(env: StreamExecutionEnvironment) -> None:
    class Where(MapFunction):
        def open(self, runtime_context: RuntimeContext) -> None:
            self.task = runtime_context.get_index_of_this_subtask()

        def map(self, value: int) -> tuple[int, int]:
            return self.task, value

    numbers = env.from_collection(list(range(6)))
    where = Where()
    assert sorted(collected(numbers.rebalance().map(where))) == [(0, 0), (0, 2), (0, 4), (1, 1), (1, 3), (1, 5)]
    numbers = env.from_collection([1])
    assert sorted(collected(numbers.broadcast().map(where))) == [(0, 1), (1, 1)]
    numbers = env.from_collection(list(range(4)))
    chosen = numbers.partition_custom(lambda key, width: key % width, lambda n: n // 2).map(where)
    assert sorted(collected(chosen)) == [(0, 0), (0, 1), (1, 2), (1, 3)]
    numbers = env.from_collection(list(range(4)))
    assert {task for task, _ in collected(numbers.to_global().map(where))} == {0}


def test_a_sink_function_runs_in_the_tasks(env: StreamExecutionEnvironment, tmp_path: Any) -> None:
    class ToFile(SinkFunction):
        def __init__(self, folder: str) -> None:
            self.folder = folder

        def open(self, runtime_context: RuntimeContext) -> None:
            name = f"{self.folder}/part-{runtime_context.get_index_of_this_subtask()}"
            self.file = open(name, "a", encoding="utf-8")

        def invoke(self, value: int, context: Any) -> None:
            self.file.write(f"{value}\n")
            self.file.flush()

        def close(self) -> None:
            self.file.close()

    env.from_sequence(1, 6).add_sink(ToFile(str(tmp_path)))
    env.execute()
    written = sorted(int(line) for part in tmp_path.iterdir() for line in part.read_text().split())
    assert written == [1, 2, 3, 4, 5, 6]


def test_batch_mode_gives_only_final_values() -> None:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    pairs = env.from_collection([("a", 1), ("b", 5), ("a", 3)])
    assert sorted(collected(pairs.key_by(lambda pair: pair[0]).sum(1))) == [("a", 4), ("b", 5)]


def test_collecting_stops_early_and_cleanly() -> None:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    with env.from_generator(lambda n: n, records_per_second=2000).execute_and_collect() as results:
        assert [next(results) for _ in range(5)] == [0, 1, 2, 3, 4]


def test_processing_time_timers_fire_without_input() -> None:
    class After(KeyedProcessFunction):
        def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> None:
            service = ctx.timer_service()
            service.register_processing_time_timer(service.current_processing_time() + 50)

        def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Any]:
            yield ctx.get_current_key(), ctx.timestamp() == timestamp

    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
    # The first record comes at once, the second after two seconds: only the clock can fire the first one's timer.
    stream = env.from_generator(lambda n: n, records_per_second=0.5, parallelism=1)
    with stream.key_by(lambda n: n).process(After()).execute_and_collect() as results:
        assert next(results) == (0, True)
