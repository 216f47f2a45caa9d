"""Programs that cannot run are refused where they are written, with a word on what to change."""

from __future__ import annotations

import functools
import threading
from typing import Any

import pytest

from millrace.common import Row, Types, WatermarkStrategy
from millrace.connectors import CollectSink, NumberSequenceSource
from millrace.datastream import (
    AggregateFunction,
    DataStream,
    FilterFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    KeyedStream,
    MapFunction,
    OutputTag,
    ProcessFunction,
    SinkFunction,
)
from millrace.datastream.window import (
    CountEvictor,
    EventTimeSessionWindows,
    TumblingEventTimeWindows,
)
from millrace.errors import GraphError
from millrace.state import ValueStateDescriptor
from tests.datastream.helpers import environment


def numbers() -> DataStream:
    return environment().from_sequence(1, 9)


def keyed() -> KeyedStream:
    return numbers().key_by(lambda n: n)


class Even(FilterFunction):
    def filter(self, value: Any) -> bool:
        return bool(value % 2 == 0)


class Keep(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
        yield value


class Stateful(MapFunction):
    def open(self, runtime_context: Any) -> None:
        self.last = runtime_context.get_state(ValueStateDescriptor("last"))

    def map(self, value: Any) -> Any:
        return value


class AsksAnotherService(MapFunction):
    def open(self, runtime_context: Any) -> None:
        self.value = self.get_state(runtime_context)

    def get_state(self, key: Any) -> Any:
        return key

    def map(self, value: Any) -> Any:
        return value


class WithTimers(ProcessFunction):
    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Any:
        ctx.timer_service().register_event_time_timer(5)


class WithOnTimer(ProcessFunction):
    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Any:
        yield value

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        yield timestamp


class Locked(MapFunction):
    def __init__(self) -> None:
        self.lock = threading.Lock()

    def map(self, value: Any) -> Any:
        return value


class Empty(SinkFunction):
    pass


class WithoutMerge(AggregateFunction):
    def create_accumulator(self) -> int:
        return 0

    def add(self, value: Any, accumulator: int) -> int:
        return accumulator + 1

    def get_result(self, accumulator: int) -> int:
        return accumulator


def window(assigner: Any = None) -> Any:
    return keyed().window(assigner or TumblingEventTimeWindows.of(1000))


CASES: dict[str, tuple[Any, str]] = {
    "not callable": (lambda: numbers().map(5), "map takes a MapFunction or a function, not 5"),
    "a class": (lambda: numbers().filter(Even), r"filter takes .*not a class: pass an instance, Even\(\)"),
    "another function": (
        lambda: numbers().map(Even()),
        r"map takes a MapFunction or a function, not Even; Even is used with filter\(...\)",
    ),
    "keyed process without keys": (
        lambda: numbers().process(Keep()),
        r"Keep needs a keyed stream: call key_by\(...\) first",
    ),
    "keyed state without keys": (
        lambda: numbers().map(Stateful()),
        r"map: Stateful uses keyed state \(get_state\) .*key_by",
    ),
    "timers without keys": (lambda: numbers().process(WithTimers()), r"timers \(register_event_time_timer\).*key_by"),
    "on_timer without keys": (lambda: numbers().process(WithOnTimer()), r"on_timer\(\) on a stream without keys"),
    "connected environments": (lambda: numbers().connect(numbers()), "connect: the streams belong to two environments"),
    "union of nothing": (lambda: numbers().union(), "union of nothing: pass at least one stream"),
    "union of something else": (lambda: numbers().union(5), "union takes a stream, not 5"),
    "union of two environments": (lambda: numbers().union(numbers()), "belong to two environments"),
    "no key": (lambda: numbers().key_by([]), "key_by needs a key"),
    "a bad key": (lambda: numbers().key_by(5.5), "key_by takes a KeySelector or a function, not 5.5"),
    "keys of two sorts": (lambda: numbers().key_by("a", len), "one function, or several names or positions"),
    "empty collection": (lambda: environment().from_collection([]), "the collection is empty"),
    "no elements": (lambda: environment().from_elements(), "no elements are given"),
    "text as collection": (lambda: environment().from_collection("abc"), "takes a list of records, not a str"),
    "a dict as collection": (lambda: environment().from_collection({"a": 1}), "not a dict"),
    "an element that does not fit": (
        lambda: environment().from_collection([("a", 1), 5], Types.TUPLE([Types.STRING(), Types.INT()])),
        "from_collection: element 1 does not fit",
    ),
    "an element that cannot be pickled": (
        lambda: environment().from_collection([1, threading.Lock()]),
        "from_collection: element 1: lock has to travel",
    ),
    "empty sequence": (lambda: environment().from_sequence(5, 4), "from 5 to 4 has no numbers"),
    "no source": (
        lambda: environment().from_source(NumberSequenceSource, WatermarkStrategy.no_watermarks(), "x"),
        "from_source takes a Source",
    ),
    "no strategy": (
        lambda: environment().from_source(NumberSequenceSource(1, 2), None, "x"),
        r"use WatermarkStrategy.no_watermarks\(\)",
    ),
    "no such file": (lambda: environment().read_text_file("/no/such/file"), "no file to read at '/no/such/file'"),
    "a type not called": (lambda: numbers().map(str, Types.STRING), r"call it: Types.STRING\(\)"),
    "no tag": (lambda: numbers().get_side_output("late"), r'OutputTag\("late"\), for example'),
    "no sink": (lambda: numbers().sink_to(print), r"sink_to takes a Sink, .*use add_sink\(...\)"),
    "a sink function without write": (
        lambda: numbers().add_sink(Empty()),
        r"Empty has to define invoke\(value, context\)",
    ),
    "nothing to project": (lambda: numbers().project(), "project needs at least one field"),
    "no parallelism": (lambda: numbers().set_parallelism(0), r"set_parallelism\(0\): use a whole number of 1 or more"),
    "a collection read by two": (
        lambda: environment().from_elements(1).set_parallelism(2),
        "'Collection Source' can only run in one task",
    ),
    "a bad uid hash": (lambda: numbers().set_uid_hash("abc"), "32 hexadecimal digits"),
    "an empty uid": (lambda: numbers().uid(""), "uid takes a text that is unique"),
    "settings of a union": (lambda: _union().name("x"), r"name\(\) speaks of one operator, and a union is none"),
    "settings of a repartitioned stream": (lambda: numbers().rebalance().uid("x"), "a repartitioned stream is none"),
    "settings of a side output": (
        lambda: numbers().get_side_output(OutputTag("a")).set_parallelism(2),
        "a side output is none",
    ),
    "no window assigner": (lambda: window(5), "window takes a window assigner, not 5"),
    "no trigger": (lambda: window().trigger(5), "trigger takes a Trigger, not 5"),
    "negative lateness": (lambda: window().allowed_lateness(-1).reduce(max), "the allowed lateness is -1 ms"),
    "an evictor that sees no records": (
        lambda: window().evictor(CountEvictor.of(1)).reduce(max),
        "an evictor needs all records of a window",
    ),
    "an aggregate that cannot merge": (
        lambda: window(EventTimeSessionWindows.with_gap(5)).aggregate(WithoutMerge()),
        r"WithoutMerge has no merge\(\)",
    ),
    "a count window of nothing": (lambda: keyed().count_window(0), "count_window: the size is 0"),
    "a slide larger than the window": (lambda: keyed().count_window(2, 3), "the slide of 3 records is larger"),
    "an apply function for process": (lambda: window().process(Even()), "process takes a ProcessWindowFunction"),
    "join without keys": (lambda: _join().window(TumblingEventTimeWindows.of(5)), r"call where\(...\) and equal_to"),
    "join without a window": (lambda: _join().where(len).equal_to(len).apply(max), r"window\(...\) before apply"),
    "join with a key too many": (lambda: _join().where(len).where(len), r"where\(...\) was called twice"),
    "interval join with a stream without keys": (lambda: _interval(False), "interval_join takes a keyed stream"),
    "interval join without bounds": (lambda: _interval(True).process(max), r"call between\(lower, upper\) before"),
    "interval join with bounds the wrong way round": (lambda: _interval(True).between(5, 4), "swap them"),
    "interval join with no time between its bounds": (
        lambda: _interval(True).between(5, 5).lower_bound_exclusive().process(max),
        "no pair can match",
    ),
    "an empty selection": (lambda: numbers().split(str).select(), "select takes one name or several"),
    "limit": (lambda: numbers().execute_and_collect(limit=0), "limit=0; use 1 or more"),
}


def _union() -> DataStream:
    stream = numbers()
    return stream.union(stream)


def _join() -> Any:
    stream = numbers()
    return stream.join(stream)


def _interval(with_keys: bool) -> Any:
    stream = numbers()
    other = stream.key_by(len) if with_keys else stream
    return stream.key_by(len).interval_join(other)


@pytest.mark.parametrize("case", CASES)
def test_refused(case: str) -> None:
    build, message = CASES[case]
    with pytest.raises(GraphError, match=message):
        build()


def test_a_keyed_co_process_function_needs_keyed_streams() -> None:
    class Both(KeyedCoProcessFunction):
        def process_element1(self, value: Any, ctx: Any) -> Any:
            yield value

        def process_element2(self, value: Any, ctx: Any) -> Any:
            yield value

    stream = numbers()
    with pytest.raises(GraphError, match=r"Both needs keyed streams: call key_by\(...\) first"):
        stream.connect(stream).process(Both())
    with pytest.raises(GraphError, match="one of the streams has keys and the other has none"):
        stream.key_by(lambda n: n).connect(stream).process(Both())
    assert stream.connect(stream).key_by(lambda n: n, lambda n: n).process(Both()).get_name() == "Keyed Co-Process"


def test_a_method_that_happens_to_be_called_get_state_is_fine() -> None:
    assert numbers().map(AsksAnotherService()).get_name() == "Map"


def test_keyed_state_is_fine_behind_key_by() -> None:
    assert keyed().map(Stateful()).get_name() == "Map"


@pytest.mark.parametrize(
    ("type_info", "selectors", "message"),
    [
        (Types.ROW_NAMED(["name", "age"], [Types.STRING(), Types.INT()]), ["nme"], "no field 'nme'; .* are name, age"),
        (
            Types.ROW_NAMED(["name", "age"], [Types.STRING(), Types.INT()]),
            [2],
            "no field 2; their fields are name, age",
        ),
        (Types.TUPLE([Types.STRING(), Types.INT()]), [2], "no field 2; they are tuples with positions 0 to 1"),
        (Types.TUPLE([Types.STRING(), Types.INT()]), ["name"], "no field 'name'; they are tuples"),
    ],
)
def test_unknown_fields(type_info: Any, selectors: list[Any], message: str) -> None:
    stream = environment().from_collection([("a", 1)], type_info)
    for build in (stream.key_by, stream.project, stream.key_by(0).sum, stream.key_by(0).min_by):
        with pytest.raises(GraphError, match=message):
            build(*selectors)


def test_unknown_fields_of_rows_whose_names_follow_from_the_data() -> None:
    stream = environment().from_collection([Row(name="a", age=1), Row(name="b", age=2)])
    with pytest.raises(GraphError, match="key_by: the records have no field 'nme'"):
        stream.key_by("nme")


def test_what_cannot_travel_is_named() -> None:
    lock = threading.Lock()

    def captures(value: Any) -> Any:
        with lock:
            return value

    for function, culprit in [
        (captures, "the variable 'lock', a lock,"),
        (Locked(), "the attribute 'lock', a lock,"),
        (Locked().map, "the attribute 'lock', a lock,"),
        (functools.partial(lambda held, value: value, lock), "an argument of the partial, a lock,"),
        (lambda value, held=lock: value, "a default value, a lock,"),
    ]:
        with pytest.raises(GraphError, match=rf"map: .* has to travel to the workers, but {culprit} cannot be pickled"):
            numbers().map(function)


REFUSED_ON_KEYED = {
    "shuffle": (),
    "rescale": (),
    "rebalance": (),
    "forward": (),
    "broadcast": (),
    "global_": (),
    "partition_custom": (lambda key, count: 0, lambda value: value),
    "set_parallelism": (1,),
    "name": ("x",),
    "get_name": (),
    "uid": ("x",),
    "set_uid_hash": ("0" * 32,),
    "set_max_parallelism": (5,),
    "force_non_parallel": (),
    "set_buffer_timeout": (5,),
    "start_new_chain": (),
    "disable_chaining": (),
    "slot_sharing_group": ("x",),
    "cache": (),
    "get_side_output": (OutputTag("x"),),
}


@pytest.mark.parametrize("method", REFUSED_ON_KEYED)
def test_refused_on_a_keyed_stream(method: str) -> None:
    with pytest.raises(GraphError, match=rf"{method}\(\) cannot be called on a keyed stream.*before key_by"):
        getattr(keyed(), method)(*REFUSED_ON_KEYED[method])


@pytest.mark.parametrize(("method", "argument"), [("name", "x"), ("uid", "x"), ("set_parallelism", 1)])
def test_refused_on_a_cached_stream(method: str, argument: Any) -> None:
    cached = numbers().map(lambda n: n).cache()
    with pytest.raises(GraphError, match=rf"{method}\(\) cannot be called on a cached stream"):
        getattr(cached, method)(argument)


def test_no_sink() -> None:
    env = environment()
    env.from_sequence(1, 2).map(lambda n: n)
    with pytest.raises(GraphError, match="the program has no sink"):
        env.execute()


def test_a_program_that_was_refused_keeps_no_sink_of_execute_and_collect() -> None:
    env = environment()
    stream = env.from_sequence(1, 2).map(lambda n: n).uid("same")
    env.from_sequence(1, 2).uid("same").sink_to(CollectSink())
    before = len(env._nodes)
    with pytest.raises(GraphError, match="the uid 'same' is given to both"):
        stream.execute_and_collect()
    assert len(env._nodes) == before
