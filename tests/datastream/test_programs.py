"""Whole programs written with the API, run in this process: as many records an epoch as the case says."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from millrace.common import Row, Time, Types, WatermarkStrategy
from millrace.datastream import (
    AggregateFunction,
    AllWindowFunction,
    AsyncDataStream,
    AsyncFunction,
    BroadcastProcessFunction,
    CoFlatMapFunction,
    CoGroupFunction,
    DataStream,
    FlatJoinFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    OutputTag,
    ProcessAllWindowFunction,
    ProcessFunction,
    ProcessJoinFunction,
    ProcessWindowFunction,
    SourceFunction,
    WindowFunction,
)
from millrace.datastream.functions import KeyedStateStore, RuntimeContext
from millrace.datastream.window import (
    CountEvictor,
    CountTrigger,
    EventTimeSessionWindows,
    GlobalWindows,
    PurgingTrigger,
    TumblingEventTimeWindows,
)
from millrace.state import MapStateDescriptor, ValueStateDescriptor
from tests.datastream.helpers import collected, environment

CUTS = pytest.mark.parametrize("cut", [None, 2, 1])

TIMES = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value: value[1])


def timed(*records: tuple[Any, int], parallelism: int = 1) -> DataStream:
    env = environment(parallelism)
    return env.from_collection(records).assign_timestamps_and_watermarks(TIMES)


@CUTS
def test_word_count(cut: int | None) -> None:
    words = environment().from_elements("to be", "or not", "to be").flat_map(str.split)
    counts = words.map(lambda word: (word, 1)).key_by(0).sum(1)
    expected = [("be", 1), ("be", 2), ("not", 1), ("or", 1), ("to", 1), ("to", 2)]
    assert sorted(collected(counts, cut)) == expected


def test_rolling_aggregations() -> None:
    records = [("a", 3, "x"), ("a", 1, "y"), ("a", 1, "z"), ("a", 5, "w")]

    def rolled(method: str, *arguments: Any) -> list[Any]:
        return collected(getattr(environment(1).from_collection(records).key_by(0), method)(*arguments))

    assert rolled("min", 1) == [("a", 3, "x"), ("a", 1, "x"), ("a", 1, "x"), ("a", 1, "x")]
    assert rolled("max", 1) == [("a", 3, "x"), ("a", 3, "x"), ("a", 3, "x"), ("a", 5, "x")]
    assert rolled("min_by", 1) == [("a", 3, "x"), ("a", 1, "y"), ("a", 1, "y"), ("a", 1, "y")]
    assert rolled("min_by", 1, False) == [("a", 3, "x"), ("a", 1, "y"), ("a", 1, "z"), ("a", 1, "z")]
    assert rolled("max_by", 1)[-1] == ("a", 5, "w")


@dataclasses.dataclass(frozen=True)
class Ride:
    city: str
    fare: int


@pytest.mark.parametrize(
    ("records", "key", "field", "last"),
    [
        ([Ride("a", 1), Ride("a", 2)], "city", "fare", Ride("a", 3)),
        ([{"city": "a", "fare": 1}, {"city": "a", "fare": 2}], "city", "fare", {"city": "a", "fare": 3}),
        ([("a", np.int64(1)), ("a", np.int64(2))], 0, 1, ("a", 3)),
        ([["a", 1], ["a", 2]], 0, 1, ["a", 3]),
        ([1, 2], lambda value: "a", 0, 3),
    ],
)
def test_records_of_all_shapes(records: list[Any], key: Any, field: Any, last: Any) -> None:
    assert collected(environment(1).from_collection(records).key_by(key).sum(field))[-1] == last


def test_declared_types_narrow_what_passes() -> None:
    env = environment(1)
    assert collected(env.from_collection([43_878], Types.SHORT())) == [-21_658]
    assert collected(env.from_elements(100).map(lambda n: n * 2, Types.BYTE())) == [-56]
    assert collected(env.from_elements(100).flat_map(lambda n: [n, n * 2], Types.BYTE())) == [100, -56]
    rows = env.from_elements(1).map(lambda n: (n, "a"), Types.ROW_NAMED(["n", "word"], [Types.INT(), Types.STRING()]))
    assert collected(rows) == [Row("n", "word")(1, "a")]
    sums = env.from_collection([100, 100], Types.BYTE()).key_by(lambda n: 0).reduce(lambda a, b: a + b)
    assert collected(sums) == [100, -56]
    windows = env.from_collection([100, 100]).count_window_all(2).reduce(lambda a, b: a + b, output_type=Types.BYTE())
    assert collected(windows) == [-56]


def test_a_value_that_does_not_fit_names_the_operator() -> None:
    env = environment(1)
    with pytest.raises(TypeError, match="holds") as failure:
        collected(env.from_elements(1).map(lambda n: n, Types.STRING()).name("to text"))
    assert "in operator 'to text'" in failure.value.__notes__[0]


def test_project() -> None:
    env = environment(1)
    assert collected(env.from_elements(("a", 1, "c")).project(2, 0)) == [("c", "a")]
    assert collected(env.from_elements(Row(a=1, b=2, c=3)).project("c", 0)) == [Row("c", "a")(3, 1)]
    assert collected(env.from_elements({"a": 1, "b": 2}).project("b")) == [{"b": 2}]
    typed = env.from_collection([("a", 1)], Types.TUPLE([Types.STRING(), Types.INT()])).project(1)
    assert typed.get_type() == Types.TUPLE([Types.INT()])
    assert collected(typed) == [(1,)]


def test_side_outputs_in_both_ways() -> None:
    odd, all_numbers = OutputTag("odd"), OutputTag("all")

    class Route(ProcessFunction):
        def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Any:
            ctx.output(all_numbers, value)
            if value % 2:
                yield odd, value
            else:
                yield value

    def routed() -> DataStream:
        return environment(1).from_elements(1, 2, 3).process(Route(), Types.INT())

    assert collected(routed()) == [2]
    assert collected(routed().get_side_output(odd)) == [1, 3]
    assert collected(routed().get_side_output(all_numbers)) == [1, 2, 3]


def test_split_gives_a_record_once_to_each_selection() -> None:
    def split() -> Any:
        return environment(1).from_elements(1, 2, 3, 4).split(lambda n: ["even" if n % 2 == 0 else "odd", "any"])

    assert collected(split().select("even")) == [2, 4]
    assert collected(split().select("odd", "any")) == [1, 2, 3, 4]
    parts = split()
    parts.select("even").print()
    assert collected(parts.select("odd")) == [1, 3]


def test_connected_streams() -> None:
    class Labels(CoFlatMapFunction):
        def flat_map1(self, value: Any) -> Any:
            yield "left", value

        def flat_map2(self, value: Any) -> Any:
            return [("right", value)] * value

    env = environment(1)
    both = env.from_elements(1, 2).connect(env.from_elements(1, 2)).flat_map(Labels())
    assert sorted(collected(both)) == [("left", 1), ("left", 2), ("right", 1), ("right", 2), ("right", 2)]


@CUTS
def test_keyed_co_process_shares_state(cut: int | None) -> None:
    class Enrich(KeyedCoProcessFunction):
        def open(self, runtime_context: RuntimeContext) -> None:
            assert isinstance(runtime_context, KeyedStateStore)
            self.left = runtime_context.get_state(ValueStateDescriptor("left"))
            self.right = runtime_context.get_state(ValueStateDescriptor("right"))

        def process_element1(self, value: Any, ctx: KeyedCoProcessFunction.Context) -> Any:
            assert isinstance(ctx, KeyedCoProcessFunction.Context)
            self.left.update(value)
            yield from self.pair(ctx.get_current_key())

        def process_element2(self, value: Any, ctx: KeyedCoProcessFunction.Context) -> Any:
            self.right.update(value)
            yield from self.pair(ctx.get_current_key())

        def pair(self, key: Any) -> Any:
            if self.left.value() and self.right.value():
                yield key, self.left.value()[1], self.right.value()[1]

    env = environment()
    rides, fares = env.from_elements(("a", 1), ("b", 2)), env.from_elements(("b", 20), ("a", 10))
    assert sorted(collected(rides.connect(fares).key_by(0, 0).process(Enrich()), cut)) == [("a", 1, 10), ("b", 2, 20)]


@CUTS
def test_event_time_timers(cut: int | None) -> None:
    class Alert(KeyedProcessFunction):
        def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
            timestamp = ctx.timestamp()
            assert timestamp is not None
            ctx.timer_service().register_event_time_timer(timestamp + 10)

        def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Any:
            assert isinstance(ctx, KeyedProcessFunction.OnTimerContext)
            yield ctx.get_current_key(), timestamp, ctx.time_domain().name

    alerts = timed(("a", 1), ("b", 5), parallelism=2).key_by(0).process(Alert())
    assert sorted(collected(alerts, cut)) == [("a", 11, "EVENT_TIME"), ("b", 15, "EVENT_TIME")]


@CUTS
def test_windows_of_keys(cut: int | None) -> None:
    class Total(ProcessWindowFunction[Any, Any, Any, Any]):
        def process(self, key: Any, context: Any, elements: Any) -> Any:
            assert isinstance(context, ProcessWindowFunction.Context)
            yield key, context.window().start, sorted(value for _, value in elements)

    windows = timed(("a", 1), ("b", 2), ("a", 999), ("a", 1000), parallelism=2).key_by(0)
    results = windows.window(TumblingEventTimeWindows.of(Time.seconds(1))).process(Total())
    assert sorted(collected(results, cut)) == [("a", 0, [1, 999]), ("a", 1000, [1000]), ("b", 0, [2])]


class Average(AggregateFunction):
    def create_accumulator(self) -> Any:
        return 0, 0

    def add(self, value: Any, accumulator: Any) -> Any:
        return accumulator[0] + value[1], accumulator[1] + 1

    def get_result(self, accumulator: Any) -> Any:
        return accumulator[0] / accumulator[1]

    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


def test_all_ways_to_a_window_result() -> None:
    class Keyed(WindowFunction[Any, Any, Any, Any]):
        def apply(self, key: Any, window: Any, inputs: Any) -> Any:
            return [(key, window.end, list(inputs))]

    def window() -> Any:
        return timed(("a", 1), ("a", 3), ("a", 8)).key_by(0).window(EventTimeSessionWindows.with_gap(4))

    def add(a: Any, b: Any) -> Any:
        return a[0], a[1] + b[1]

    assert collected(window().reduce(add)) == [("a", 4), ("a", 8)]
    assert collected(window().reduce(add, Keyed())) == [("a", 7, [("a", 4)]), ("a", 12, [("a", 8)])]
    assert collected(window().aggregate(Average())) == [2.0, 8.0]
    assert collected(window().aggregate(Average(), lambda key, window, inputs: [(key, *inputs)])) == [
        ("a", 2.0),
        ("a", 8.0),
    ]
    narrowed = window().aggregate(Average(), None, Types.ROW([Types.LONG(), Types.LONG()]), Types.FLOAT())
    assert collected(narrowed) == [2.0, 8.0]
    assert collected(window().apply(Keyed()))[0] == ("a", 7, [("a", 1), ("a", 3)])
    assert collected(window().sum(1)) == [("a", 4), ("a", 8)]
    assert collected(window().max_by(1)) == [("a", 3), ("a", 8)]
    assert collected(window().count()) == [2, 1]


@CUTS
def test_windows_over_all_records(cut: int | None) -> None:
    class Sizes(AllWindowFunction[Any, Any, Any]):
        def apply(self, window: Any, inputs: Any) -> Any:
            return [(window.start, len(list(inputs)))]

    class Starts(ProcessAllWindowFunction[Any, Any, Any]):
        def process(self, context: Any, elements: Any) -> Any:
            yield context.window().start

    records = [("a", 1), ("b", 2), ("c", 1500)]
    assigner = TumblingEventTimeWindows.of(1000)
    assert sorted(collected(timed(*records, parallelism=3).window_all(assigner).apply(Sizes()), cut)) == [
        (0, 2),
        (1000, 1),
    ]
    assert sorted(collected(timed(*records, parallelism=3).window_all(assigner).process(Starts()), cut)) == [0, 1000]
    assert sorted(collected(timed(*records, parallelism=3).time_window_all(1000).count(), cut)) == [1, 2]


@CUTS
def test_count_windows(cut: int | None) -> None:
    def numbers() -> DataStream:
        return environment(1).from_sequence(1, 5)

    def total(stream: Any) -> list[Any]:
        return collected(stream.reduce(lambda a, b: a + b), cut)

    assert total(numbers().key_by(lambda n: 0).count_window(2)) == [3, 7]
    assert total(numbers().key_by(lambda n: 0).count_window(3, 1)) == [6, 9, 12]
    assert total(numbers().count_window_all(2)) == [3, 7]
    triggered = (
        numbers().key_by(lambda n: 0).window(GlobalWindows.create()).trigger(PurgingTrigger.of(CountTrigger.of(2)))
    )
    assert total(triggered) == [3, 7]
    evicting = numbers().key_by(lambda n: 0).window(GlobalWindows.create()).trigger(CountTrigger.of(2))
    last = evicting.evictor(CountEvictor.of(1)).apply(lambda key, window, inputs: list(inputs))
    assert collected(last, cut) == [2, 4]


def test_late_records_go_to_a_side_output() -> None:
    late = OutputTag("late")
    strategy = TIMES
    env = environment(1)
    env.configure(env.get_configuration().set_string("pipeline.watermark-emission", "every-record"))
    stream = env.from_elements(("a", 1), ("a", 2000), ("a", 3)).assign_timestamps_and_watermarks(strategy)
    window = stream.key_by(0).time_window(1000).side_output_late_data(late).count()
    assert collected(window.get_side_output(late)) == [("a", 3)]


@CUTS
def test_window_join_and_co_group(cut: int | None) -> None:
    class Larger(FlatJoinFunction):
        def join(self, first: Any, second: Any) -> Any:
            if second[1] > first[1]:
                yield first[1], second[1]

    class Missing(CoGroupFunction):
        def co_group(self, first: Any, second: Any) -> Any:
            if not second:
                yield from first

    def streams() -> tuple[DataStream, DataStream]:
        env = environment()
        left = env.from_elements(("a", 1), ("b", 2), ("a", 5)).assign_timestamps_and_watermarks(TIMES)
        right = env.from_elements(("a", 3), ("c", 4)).assign_timestamps_and_watermarks(TIMES)
        return left, right

    window = TumblingEventTimeWindows.of(1000)
    left, right = streams()
    pairs = left.join(right).where(0).equal_to(lambda value: value[0]).window(window).apply(lambda a, b: (a[1], b[1]))
    assert sorted(collected(pairs, cut)) == [(1, 3), (5, 3)]
    left, right = streams()
    assert collected(left.join(right).where(0).equal_to(0).window(window).apply(Larger()), cut) == [(1, 3)]
    left, right = streams()
    grouped = left.co_group(right).where(0).equal_to(0).window(window)
    assert collected(grouped.apply(Missing(), Types.TUPLE([Types.STRING(), Types.LONG()])), cut) == [("b", 2)]
    left, right = streams()
    triggered = left.join(right).where(0).equal_to(0).window(GlobalWindows.create()).trigger(CountTrigger.of(3))
    counted = triggered.evictor(CountEvictor.of(5)).allowed_lateness(0).apply(lambda a, b: (a[1], b[1]))
    assert sorted(collected(counted, cut)) == [(1, 3), (5, 3)]


@CUTS
def test_interval_join(cut: int | None) -> None:
    class Pair(ProcessJoinFunction):
        def process_element(self, left: Any, right: Any, ctx: ProcessJoinFunction.Context) -> Any:
            assert isinstance(ctx, ProcessJoinFunction.Context)
            yield ctx.get_left_timestamp(), ctx.get_right_timestamp()

    def join() -> Any:
        env = environment()
        left = env.from_elements(("a", 10), ("b", 10)).assign_timestamps_and_watermarks(TIMES)
        right = env.from_elements(("a", 8), ("a", 9), ("a", 12), ("a", 13)).assign_timestamps_and_watermarks(TIMES)
        return left.key_by(0).interval_join(right.key_by(0)).in_event_time().between(-2, Time.milliseconds(2))

    assert sorted(collected(join().process(Pair()), cut)) == [(10, 8), (10, 9), (10, 12)]
    exclusive = join().lower_bound_exclusive().upper_bound_exclusive()
    assert collected(exclusive.process(lambda a, b: [(a[1], b[1])], Types.ROW([Types.INT(), Types.INT()])), cut) == [
        Row(10, 9)
    ]


def test_broadcast_state() -> None:
    rules = MapStateDescriptor("rules")

    class Known(BroadcastProcessFunction[Any, Any, Any]):
        def process_element(self, value: Any, ctx: Any) -> Any:
            assert isinstance(ctx, BroadcastProcessFunction.ReadOnlyContext)
            yield value, value in ctx.get_broadcast_state(rules)

        def process_broadcast_element(self, value: Any, ctx: Any) -> Any:
            assert isinstance(ctx, BroadcastProcessFunction.Context)
            ctx.get_broadcast_state(rules)[value] = True

    class KeyedKnown(KeyedBroadcastProcessFunction[Any, Any, Any, Any]):
        def process_element(self, value: Any, ctx: Any) -> Any:
            yield ctx.get_current_key(), value in ctx.get_broadcast_state(rules)

        def process_broadcast_element(self, value: Any, ctx: Any) -> Any:
            ctx.get_broadcast_state(rules)[value] = True

    def streams() -> tuple[DataStream, Any]:
        env = environment()
        return env.from_sequence(1, 4), env.from_elements(2, 3).broadcast(rules)

    data, broadcast = streams()
    assert {value for value, _ in collected(data.connect(broadcast).process(Known()))} == {1, 2, 3, 4}
    data, broadcast = streams()
    keyed = data.key_by(lambda n: n).connect(broadcast).process(KeyedKnown())
    assert {value for value, _ in collected(keyed)} == {1, 2, 3, 4}


def test_async_functions() -> None:
    class Plus(AsyncFunction[int, int]):
        async def async_invoke(self, value: int) -> list[int]:
            return [value + 100]

    stream = environment(1).from_sequence(1, 30)
    assert collected(AsyncDataStream.ordered_wait(stream, Plus(), Time.seconds(5), 3, Types.BYTE())) == [
        *range(101, 128),
        -128,
        -127,
        -126,
    ]


def test_a_source_function_is_a_stream() -> None:
    class Three(SourceFunction):
        def run(self, ctx: SourceFunction.SourceContext) -> Any:
            yield from ("a", "b", "c")

    assert collected(environment(1).add_source(Three())) == ["a", "b", "c"]


def test_generated_and_partitioned(tmp_path: Any) -> None:
    env = environment()
    numbers = env.from_generator(lambda index: index * index, count=5, parallelism=2)
    assert sorted(collected(numbers.partition_custom(lambda key, count: key % count, lambda n: n).map(str))) == [
        "0",
        "1",
        "16",
        "4",
        "9",
    ]
    (tmp_path / "lines.txt").write_text("one\ntwo\n")
    assert collected(env.read_text_file(tmp_path).map(str.upper)) == ["ONE", "TWO"]


def test_batch_mode_gives_only_last_results() -> None:
    totals = environment().from_elements(("a", 1), ("b", 2), ("a", 3)).key_by(0).sum(1)
    assert sorted(collected(totals, batch=True)) == [("a", 4), ("b", 2)]
