from __future__ import annotations

import pytest

from millrace.common.constants import LONG_MAX, LONG_MIN
from millrace.common.output_tag import OutputTag
from millrace.datastream.functions import (
    CoProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    ProcessFunction,
)
from millrace.errors import StateError
from millrace.runtime.operators.process import TimeDomain
from millrace.state import MapStateDescriptor, TimerQueue, ValueStateDescriptor
from millrace.testing import harness_for

pytestmark = pytest.mark.usefixtures("each_backend")


def itself(value):
    return value


class QueryTime(KeyedProcessFunction):
    """P1: says what time it is."""

    def process_element(self, value, ctx):
        yield f"{value}TIME:{ctx.timer_service().current_watermark()} TS:{ctx.timestamp()}"


def test_timestamp_and_watermark_can_be_queried() -> None:
    harness = harness_for(QueryTime(), key_selector=itself)
    harness.process_watermark(17)
    harness.process_element(5, 12)
    harness.process_watermark(42)
    harness.process_element(6, 13)
    assert harness.events() == [
        ("watermark", 17),
        ("record", "5TIME:17 TS:12", 12),
        ("watermark", 42),
        ("record", "6TIME:42 TS:13", 13),
    ]


class QueryClock(KeyedProcessFunction):
    def process_element(self, value, ctx):
        yield f"{value}TIME:{ctx.timer_service().current_processing_time()} TS:{ctx.timestamp()}"


def test_processing_time_can_be_queried_and_a_record_may_have_no_timestamp() -> None:
    harness = harness_for(QueryClock(), key_selector=itself)
    harness.set_processing_time(17)
    harness.process_element(5)
    harness.set_processing_time(42)
    harness.process_element(6)
    assert harness.get_output() == [("5TIME:17 TS:None", None), ("6TIME:42 TS:None", None)]


class KeepFirst(KeyedProcessFunction):
    """P2: the first element of a key is emitted 5 ms after it, unless a second one comes first."""

    def open(self, runtime_context):
        self.first = runtime_context.get_state(ValueStateDescriptor("first"))
        self.timer = runtime_context.get_state(ValueStateDescriptor("timer"))

    def process_element(self, value, ctx):
        service = ctx.timer_service()
        if self.first.value() is None:
            yield f"INPUT:{value}"
            self.first.update(value)
            self.timer.update(self.now(service) + 5)
            self.register(service, self.timer.value())
        else:
            self.delete(service, self.timer.value())
            self.first.clear()
            self.timer.clear()

    def on_timer(self, timestamp, ctx):
        yield f"STATE:{self.first.value()}"

    def now(self, service):
        return service.current_watermark()

    def register(self, service, time):
        service.register_event_time_timer(time)

    def delete(self, service, time):
        service.delete_event_time_timer(time)


class KeepFirstByClock(KeepFirst):
    def now(self, service):
        return service.current_processing_time()

    def register(self, service, time):
        service.register_processing_time_timer(time)

    def delete(self, service, time):
        service.delete_processing_time_timer(time)


def carry_over(harness):
    """The same function after a crash: only what was in the snapshot is left."""
    return harness.restore(harness.snapshot())


def test_event_time_timer_with_state() -> None:
    harness = harness_for(KeepFirst(), key_selector=itself)
    harness.process_watermark(1)
    harness.process_element(17, 0)
    harness.process_element(13, 0)
    harness.process_watermark(2)
    harness.process_element(42, 1)
    harness.process_element(13, 1)
    harness = carry_over(harness)
    harness.process_watermark(5)
    assert harness.get_output() == []
    harness.process_watermark(6)
    assert harness.get_output() == [("STATE:17", 6)]
    harness.process_watermark(7)
    assert harness.get_output() == [("STATE:17", 6), ("STATE:42", 7)]
    assert harness.events()[-1] == ("watermark", 7)


def test_processing_time_timer_with_state() -> None:
    harness = harness_for(KeepFirstByClock(), key_selector=itself, processing_time=1)
    harness.process_element(17)
    harness.process_element(13)
    harness.set_processing_time(2)
    harness.process_element(13)
    harness.process_element(42)
    assert harness.outputs() == ["INPUT:17", "INPUT:13", "INPUT:42"]
    harness = carry_over(harness)
    harness.set_processing_time(5)
    assert harness.outputs() == []
    harness.set_processing_time(6)
    harness.set_processing_time(7)
    assert harness.get_output() == [("STATE:17", None), ("STATE:42", None)]


# P4


def test_timers_are_a_set_by_time_key_and_namespace() -> None:
    timers = TimerQueue()
    for key in (1, 2):
        for namespace in ("hello", "ciao"):
            timers.register(10, key, namespace)
            timers.register(10, key, namespace)
    assert (len(timers), timers.count("hello"), timers.count("ciao")) == (4, 2, 2)
    timers.delete(10, 1, "hello")
    timers.delete(10, 2, "ciao")
    assert timers.pop_due(9) is None
    assert [timers.pop_due(10), timers.pop_due(10), timers.pop_due(10)] == [(10, 1, "ciao"), (10, 2, "hello"), None]


class Timers(KeyedProcessFunction):
    """Elements are ("set" or "delete", time); the timers say when they ring."""

    def process_element(self, value, ctx):
        _, what, time = value
        service = ctx.timer_service()
        if what == "set":
            service.register_event_time_timer(time)
        else:
            service.delete_event_time_timer(time)

    def on_timer(self, timestamp, ctx):
        yield ctx.get_current_key(), timestamp


def first(value):
    return value[0]


def test_a_timer_registered_twice_fires_once() -> None:
    harness = harness_for(Timers(), key_selector=first)
    harness.process_element(("a", "set", 10), 0)
    harness.process_element(("a", "set", 10), 0)
    harness.process_element(("b", "set", 10), 0)
    assert harness.num_event_time_timers() == 2
    harness.process_watermark(10)
    assert harness.get_output() == [(("a", 10), 10), (("b", 10), 10)]
    harness.process_watermark(11)
    assert len(harness.get_output()) == 2


def test_a_deleted_timer_does_not_fire_and_a_missing_one_is_no_error() -> None:
    harness = harness_for(Timers(), key_selector=first)
    harness.process_element(("a", "set", 10), 0)
    harness.process_element(("a", "delete", 10), 0)
    harness.process_element(("a", "delete", 11), 0)
    harness.process_element(("b", "delete", 10), 0)
    harness.process_watermark(LONG_MAX)
    assert harness.outputs() == []


@pytest.mark.parametrize(("watermark", "fired"), [(9, []), (10, [("a", 10)]), (11, [("a", 10)])])
def test_an_event_time_timer_fires_when_the_watermark_reaches_it(watermark: int, fired: list) -> None:
    harness = harness_for(Timers(), key_selector=first)
    harness.process_element(("a", "set", 10), 0)
    harness.process_watermark(watermark)
    assert harness.outputs() == fired


def test_timers_fire_in_time_order_across_keys_and_before_the_watermark() -> None:
    harness = harness_for(Timers(), key_selector=first)
    for key, time in [("a", 30), ("b", 10), ("c", 20), ("a", 15)]:
        harness.process_element((key, "set", time), 0)
    harness.process_watermark(25)
    harness.process_watermark(30)
    assert harness.events() == [
        ("record", ("b", 10), 10),
        ("record", ("a", 15), 15),
        ("record", ("c", 20), 20),
        ("watermark", 25),
        ("record", ("a", 30), 30),
        ("watermark", 30),
    ]


def test_a_timer_for_the_past_fires_at_the_next_watermark() -> None:
    harness = harness_for(Timers(), key_selector=first)
    harness.process_watermark(100)
    harness.process_element(("a", "set", 50), 100)
    assert harness.outputs() == []
    harness.process_watermark(101)
    assert harness.get_output() == [(("a", 50), 50)]


class Chain(KeyedProcessFunction):
    """A timer that sets the next one, every 10 ms up to 40, and one in the past."""

    def process_element(self, value, ctx):
        ctx.timer_service().register_event_time_timer(10)
        ctx.timer_service().register_event_time_timer(25)

    def on_timer(self, timestamp, ctx):
        yield timestamp, ctx.timer_service().current_watermark()
        if timestamp % 10 == 0 and timestamp < 40:
            ctx.timer_service().register_event_time_timer(timestamp + 10)
        if timestamp == 25:
            ctx.timer_service().register_event_time_timer(3)


def test_a_timer_set_in_on_timer_for_a_time_already_passed_fires_in_the_same_pass() -> None:
    harness = harness_for(Chain(), key_selector=itself)
    harness.process_element("a", 0)
    harness.process_watermark(30)
    assert harness.get_output() == [((10, 30), 10), ((20, 30), 20), ((25, 30), 25), ((3, 30), 3), ((30, 30), 30)]
    assert harness.num_event_time_timers() == 1
    harness.process_watermark(40)
    assert harness.get_output()[5:] == [((40, 40), 40)]


class Both(KeyedProcessFunction):
    """Timers of both clocks, and side outputs from them."""

    side = OutputTag("side")

    def process_element(self, value, ctx):
        assert ctx.time_domain() is None
        ctx.timer_service().register_event_time_timer(5)
        ctx.timer_service().register_processing_time_timer(6)

    def on_timer(self, timestamp, ctx):
        ctx.output(self.side, ctx.time_domain())
        yield ctx.time_domain(), ctx.timestamp()


def test_results_of_processing_time_timers_have_no_timestamp() -> None:
    harness = harness_for(Both(), key_selector=itself)
    harness.process_element("a", 1)
    harness.process_watermark(5)
    harness.set_processing_time(6)
    event, processing = TimeDomain.EVENT_TIME, TimeDomain.PROCESSING_TIME
    assert harness.get_output() == [((event, 5), 5), ((processing, 6), None)]
    assert harness.get_side_output(Both.side) == [(event, 5), (processing, None)]


@pytest.mark.parametrize(("now", "fired"), [(5, 0), (6, 1), (7, 1)])
def test_a_processing_time_timer_fires_when_the_clock_reaches_it(now: int, fired: int) -> None:
    harness = harness_for(Both(), key_selector=itself)
    harness.process_element("a", 1)
    harness.set_processing_time(now)
    assert len(harness.outputs()) == fired


def test_pending_processing_time_timers_are_not_fired_at_the_end_of_input() -> None:
    harness = harness_for(Both(), key_selector=itself)
    harness.process_element("a", 1)
    harness.end_input()
    assert harness.get_output() == [((TimeDomain.EVENT_TIME, 5), 5)]
    assert harness.num_processing_time_timers() == 1


def test_in_batch_mode_every_timer_fires_at_the_end_of_its_key() -> None:
    harness = harness_for(Timers(), key_selector=first, batch=True)
    for element, time in [(("b", "set", 10), 2), (("a", "set", 30), 1), (("a", "set", 20), 0)]:
        harness.process_element(element, time)
    harness.process_watermark(15)
    assert harness.events() == []
    harness.end_input()
    assert harness.events() == [
        ("record", ("a", 20), 20),
        ("record", ("a", 30), 30),
        ("record", ("b", 10), 10),
        ("watermark", LONG_MAX),
    ]


class WatermarkOf(KeyedProcessFunction):
    def process_element(self, value, ctx):
        yield value, ctx.timer_service().current_watermark()


def test_in_batch_mode_each_key_starts_at_the_beginning_of_time() -> None:
    harness = harness_for(WatermarkOf(), key_selector=itself, batch=True)
    harness.process_element("b", 1)
    harness.process_element("a", 2)
    harness.end_input()
    assert harness.outputs() == [("a", LONG_MIN), ("b", LONG_MIN)]


# P5 and side outputs


class Split(KeyedProcessFunction):
    numbers = OutputTag("numbers")
    texts = OutputTag("texts")

    def process_element(self, value, ctx):
        yield f"IN:{value}"
        ctx.output(self.numbers, value)
        yield self.texts, str(value)


def test_side_outputs_both_ways_keep_the_timestamp() -> None:
    harness = harness_for(Split(), key_selector=itself)
    harness.process_element(42, 17)
    assert harness.get_output() == [("IN:42", 17)]
    assert harness.get_side_output(Split.numbers) == [(42, 17)]
    assert harness.get_side_output(Split.texts) == [("42", 17)]


@pytest.mark.parametrize("tag", [None, "late", 1])
def test_a_side_output_is_named_by_a_tag(tag: object) -> None:
    class Wrong(ProcessFunction):
        def process_element(self, value, ctx):
            ctx.output(tag, value)

    with pytest.raises(TypeError, match="named by an OutputTag"):
        harness_for(Wrong()).process_element(1)


# The other kinds


class Plain(ProcessFunction):
    def process_element(self, value, ctx):
        if value >= 0:
            yield value * 2
        else:
            ctx.output(OutputTag("negative"), value)


def test_process_function_without_keys() -> None:
    harness = harness_for(Plain())
    harness.process_batch([1, -2, 3], [10, 20, None])
    assert harness.get_output() == [(2, 10), (6, None)]
    assert harness.get_side_output("negative") == [(-2, 20)]


def test_a_process_function_may_return_a_list_or_nothing_or_be_a_lambda() -> None:
    harness = harness_for(lambda value, ctx: [value, ctx.timestamp()] if value else None, operation="process")
    harness.process_batch(["a", ""], [1, 2])
    assert harness.get_output() == [("a", 1), (1, 1)]


class TimersWithoutKeys(ProcessFunction):
    def process_element(self, value, ctx):
        ctx.timer_service().register_event_time_timer(10)


def test_timers_without_keys_say_to_key_the_stream() -> None:
    harness = harness_for(TimersWithoutKeys(), name="alarms")
    with pytest.raises(StateError, match=r"alarms .* uses timers on a stream without keys.*call key_by"):
        harness.process_element(1, 1)


def test_state_without_keys_says_to_key_the_stream() -> None:
    with pytest.raises(StateError, match=r"uses state 'first' on a stream without keys.*call key_by"):
        harness_for(KeepFirst()).open()


def test_a_timer_time_must_be_an_integer() -> None:
    harness = harness_for(Timers(), key_selector=first)
    with pytest.raises(TypeError, match="not an integer"):
        harness.process_element(("a", "set", 1.5), 0)


class Fare(KeyedCoProcessFunction):
    """Waits for the other half; a timer gives up on it."""

    alone = OutputTag("alone")

    def open(self, runtime_context):
        self.held = runtime_context.get_map_state(MapStateDescriptor("held"))

    def process_element1(self, value, ctx):
        return self.meet("ride", "fare", value, ctx)

    def process_element2(self, value, ctx):
        return self.meet("fare", "ride", value, ctx)

    def meet(self, mine, other, value, ctx):
        if other in self.held:
            yield ctx.get_current_key(), sorted([value[1], self.held[other]])
            self.held.clear()
        else:
            self.held[mine] = value[1]
            ctx.timer_service().register_event_time_timer(ctx.timestamp() + 10)

    def on_timer(self, timestamp, ctx):
        for side, value in self.held.items():
            yield self.alone, (side, value)
        self.held.clear()


def test_two_keyed_inputs_share_state_and_timers() -> None:
    harness = harness_for(Fare(), key_selector=first)
    harness.process_element1((1, "ride 1"), 0)
    harness.process_element2((2, "fare 2"), 1)
    harness.process_element2((1, "fare 1"), 2)
    harness = carry_over(harness)
    harness.process_watermark1(20)
    assert harness.watermarks() == []
    harness.process_watermark2(11)
    assert harness.watermarks() == [11]
    assert harness.get_side_output(Fare.alone) == [(("fare", "fare 2"), 11)]
    assert harness.num_keyed_state_entries() == 0


def test_two_keyed_inputs_meet_in_one_result() -> None:
    harness = harness_for(Fare(), key_selector=first, second_key_selector=first)
    harness.process_element1((1, "ride 1"), 0)
    harness.process_element2((1, "fare 1"), 2)
    assert harness.get_output() == [((1, ["fare 1", "ride 1"]), 2)]


class Sides(CoProcessFunction):
    def process_element1(self, value, ctx):
        yield "first", value

    def process_element2(self, value, ctx):
        ctx.output(OutputTag("second"), value)


def test_two_inputs_without_keys() -> None:
    harness = harness_for(Sides())
    harness.process_element1("a", 1)
    harness.process_element2("b", 2)
    assert harness.get_output() == [(("first", "a"), 1)]
    assert harness.get_side_output("second") == [("b", 2)]


# Errors


class Fails(KeyedProcessFunction):
    def process_element(self, value, ctx):
        ctx.timer_service().register_event_time_timer(5)
        yield 1 // value

    def on_timer(self, timestamp, ctx):
        raise KeyError("no timer wanted")


def test_the_error_of_a_record_names_the_operator_and_the_record() -> None:
    harness = harness_for(Fails(), key_selector=itself, name="divide", uid="divide-1")
    with pytest.raises(ZeroDivisionError) as raised:
        harness.process_batch([1, 0, 2])
    assert raised.value.__notes__ == [
        "in operator 'divide' (uid divide-1), subtask 0, process_element()",
        "record: 0",
    ]
    assert raised.value.__context__ is None


def test_the_error_of_a_timer_names_the_key() -> None:
    harness = harness_for(Fails(), key_selector=itself, name="divide")
    harness.process_element(1, 1)
    with pytest.raises(KeyError) as raised:
        harness.process_watermark(5)
    assert raised.value.__notes__ == [
        "in operator 'divide' (uid divide), subtask 0, on_timer(5)",
        "record: 'timer of key 1'",
    ]


class FailsToOpen(ProcessFunction):
    def open(self, runtime_context):
        raise ConnectionError("no database")

    def process_element(self, value, ctx):
        yield value


def test_the_error_of_open_names_the_operator() -> None:
    with pytest.raises(ConnectionError, match="no database") as raised:
        harness_for(FailsToOpen(), name="lookup").open()
    assert raised.value.__notes__ == ["in operator 'lookup' (uid lookup), subtask 0, open()"]
