from __future__ import annotations

import pytest

from millrace.common.constants import LONG_MIN
from millrace.common.output_tag import OutputTag
from millrace.datastream.functions import BroadcastProcessFunction, KeyedBroadcastProcessFunction
from millrace.errors import StateError
from millrace.runtime.operators.process import TimeDomain
from millrace.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from millrace.testing import OperatorHarness, harness_for

pytestmark = pytest.mark.usefixtures("each_backend")

RULES = MapStateDescriptor("rules")


def itself(value):
    return value


class SeesAll(KeyedBroadcastProcessFunction):
    """B2: collects the broadcast side, and shows what it has to each keyed element and timer."""

    def process_element(self, value, ctx):
        ctx.timer_service().register_event_time_timer(41)
        yield "element", sorted(ctx.get_broadcast_state(RULES))

    def process_broadcast_element(self, value, ctx):
        ctx.get_broadcast_state(RULES).put(value, str(value))

    def on_timer(self, timestamp, ctx):
        yield "timer", ctx.get_current_key(), sorted(ctx.get_broadcast_state(RULES))


def keyed(function, **settings) -> OperatorHarness:
    return harness_for(function, key_selector=itself, broadcast_state=RULES, **settings)


@pytest.mark.parametrize("restart", [False, True])
def test_the_keyed_side_sees_all_of_the_broadcast_side(restart: bool) -> None:
    harness = keyed(SeesAll())
    for value in (5, 34, 53, 12, 98):
        harness.process_broadcast_element(value, 1)
    harness.process_element("key", 2)
    assert harness.get_output() == [(("element", [5, 12, 34, 53, 98]), 2)]
    if restart:
        harness = harness.restore(harness.snapshot())
    harness.clear_output()
    harness.process_broadcast_element(51, 3)
    harness.process_watermark1(50)
    assert harness.outputs() == []
    harness.process_watermark2(50)
    assert harness.events() == [("record", ("timer", "key", [5, 12, 34, 51, 53, 98]), 41), ("watermark", 50)]


@pytest.mark.parametrize(("before", "after"), [(2, 3), (3, 2), (1, 4), (3, 3)])
def test_every_task_has_all_entries_after_rescaling(before: int, after: int) -> None:
    snapshots = []
    for subtask in range(before):
        harness = keyed(SeesAll(), subtask=subtask, parallelism=before)
        for value in (1, 2, 3):
            harness.process_broadcast_element(value)
        snapshots.append(harness.snapshot())
    keys = [f"key {number}" for number in range(20)]
    seen = []
    for subtask in range(after):
        restored = harness.restore(snapshots, subtask=subtask, parallelism=after)
        for key in filter(restored.owns, keys):
            restored.process_element(key, 1)
        seen.append({tuple(values) for _, values in restored.outputs()})
    assert seen == [{(1, 2, 3)}] * after


def test_tasks_do_not_share_their_copies_after_rescaling() -> None:
    harness = keyed(SeesAll())
    harness.process_broadcast_element(1)
    snapshot = harness.snapshot()
    first, second = (harness.restore(snapshot, subtask=subtask, parallelism=2) for subtask in (0, 1))
    first.process_broadcast_element(2)
    second.process_element(next(key for key in "abcdefgh" if second.owns(key)), 1)
    assert second.outputs() == [("element", [1])]


class Times(KeyedBroadcastProcessFunction):
    def process_element(self, value, ctx):
        ctx.timer_service().register_event_time_timer(10)
        ctx.timer_service().register_processing_time_timer(20)
        yield "element", ctx.timestamp(), ctx.current_watermark(), ctx.current_processing_time(), ctx.get_current_key()

    def process_broadcast_element(self, value, ctx):
        yield "rule", ctx.timestamp(), ctx.current_watermark(), ctx.current_processing_time()

    def on_timer(self, timestamp, ctx):
        yield ctx.time_domain(), ctx.timestamp(), ctx.get_current_key()


def test_contexts_know_the_time() -> None:
    harness = keyed(Times(), processing_time=3)
    harness.process_element("a", 1)
    harness.process_broadcast_element("rule", 2)
    harness.process_broadcast_element("rule")
    harness.process_watermark(10)
    harness.set_processing_time(20)
    assert harness.get_output() == [
        (("element", 1, LONG_MIN, 3, "a"), 1),
        (("rule", 2, LONG_MIN, 3), 2),
        (("rule", None, LONG_MIN, 3), None),
        ((TimeDomain.EVENT_TIME, 10, "a"), 10),
        ((TimeDomain.PROCESSING_TIME, 20, "a"), None),
    ]


class SideOutputs(BroadcastProcessFunction):
    data, rules = OutputTag("data"), OutputTag("rules")

    def process_element(self, value, ctx):
        ctx.output(self.data, value)
        yield self.data, value
        yield value

    def process_broadcast_element(self, value, ctx):
        ctx.output(self.rules, value)
        return [(self.rules, value), value]


def test_side_outputs_from_both_sides() -> None:
    harness = harness_for(SideOutputs(), broadcast_state=RULES)
    harness.process_element("d", 1)
    harness.process_broadcast_element("r", 2)
    assert harness.get_output() == [("d", 1), ("r", 2)]
    assert harness.get_side_output(SideOutputs.data) == [("d", 1), ("d", 1)]
    assert harness.get_side_output(SideOutputs.rules) == [("r", 2), ("r", 2)]


class Filter(BroadcastProcessFunction):
    """Rules that change while data flows: None takes a rule back."""

    def process_element(self, value, ctx):
        limit = ctx.get_broadcast_state(RULES).get("limit")
        if limit is None or value <= limit:
            yield value

    def process_broadcast_element(self, value, ctx):
        if value is None:
            del ctx.get_broadcast_state(RULES)["limit"]
        else:
            ctx.get_broadcast_state(RULES)["limit"] = value


def test_rules_change_while_data_flows() -> None:
    harness = harness_for(Filter(), broadcast_state=[RULES])
    harness.process_batch([1, 9])
    harness.process_broadcast_element(5)
    harness.process_batch([1, 9])
    harness.process_broadcast_element(None)
    harness.process_element(9)
    assert harness.outputs() == [1, 9, 1, 9]


COUNTS = ValueStateDescriptor("count")


class ResetAll(KeyedBroadcastProcessFunction):
    def open(self, runtime_context):
        self.count = runtime_context.get_state(COUNTS)

    def process_element(self, value, ctx):
        self.count.update((self.count.value() or 0) + 1)
        yield value, self.count.value()

    def process_broadcast_element(self, value, ctx):
        seen = []

        def visit(key, state):
            seen.append((key, state.value()))
            if value == "reset":
                state.clear()
            else:
                state.update(value)

        ctx.apply_to_keyed_state(COUNTS, visit)
        yield "visited", seen


def test_the_broadcast_side_visits_the_state_of_every_key() -> None:
    harness = keyed(ResetAll())
    for key in "aab":
        harness.process_element(key)
    harness.clear_output()
    harness.process_broadcast_element(10)
    harness.process_element("a")
    harness.process_broadcast_element("reset")
    harness.process_broadcast_element("reset")
    assert harness.outputs() == [
        ("visited", [("a", 2), ("b", 1)]),
        ("a", 11),
        ("visited", [("a", 11), ("b", 10)]),
        ("visited", []),
    ]
    assert harness.num_keyed_state_entries() == 0


class Misuse(KeyedBroadcastProcessFunction):
    """Does what the value says."""

    def open(self, runtime_context):
        self.list = runtime_context.get_list_state(ListStateDescriptor("list"))

    def process_element(self, value, ctx):
        self.service = ctx.timer_service()
        if value == "write":
            ctx.get_broadcast_state(RULES).put("a", 1)
        if value == "unknown":
            ctx.get_broadcast_state(MapStateDescriptor("ruels"))

    def process_broadcast_element(self, value, ctx):
        if value == "state":
            self.list.add(1)
        elif value == "timer":
            self.service.register_event_time_timer(5)
        elif value == "unknown":
            ctx.get_broadcast_state(MapStateDescriptor("ruels"))
        elif value == "fail":
            raise LookupError("no such rule")


def test_the_data_side_cannot_write() -> None:
    with pytest.raises(StateError, match="read-only here: write to it in process_broadcast_element"):
        keyed(Misuse()).process_element("write")


@pytest.mark.parametrize("what", ["state", "timer"])
def test_the_broadcast_side_has_no_key(what: str) -> None:
    harness = keyed(Misuse())
    harness.process_element("ok")
    with pytest.raises(StateError, match="has no key.*use ctx.apply_to_keyed_state"):
        harness.process_broadcast_element(what)


@pytest.mark.parametrize("side", [0, 1])
def test_an_unknown_descriptor_names_the_known_ones(side: int) -> None:
    with pytest.raises(StateError, match="'ruels', and was connected with 'rules': add the descriptor"):
        keyed(Misuse()).process_batch(["unknown"], side=side)


def test_an_error_of_the_broadcast_side_names_the_record() -> None:
    with pytest.raises(LookupError) as raised:
        keyed(Misuse(), name="check").process_broadcast_element("fail")
    assert raised.value.__notes__ == [
        "in operator 'check' (uid check), subtask 0, process_broadcast_element()",
        "record: 'fail'",
    ]


class VisitsWithoutKeys(BroadcastProcessFunction):
    def process_element(self, value, ctx):
        ctx.timer_service().register_event_time_timer(1)

    def process_broadcast_element(self, value, ctx):
        ctx.apply_to_keyed_state(COUNTS, lambda key, state: None)


def test_without_keys_there_is_no_keyed_state_and_no_timer() -> None:
    harness = harness_for(VisitsWithoutKeys(), broadcast_state=RULES)
    with pytest.raises(StateError, match=r"apply_to_keyed_state\('count'\) on a stream without keys.*key_by"):
        harness.process_broadcast_element(1)
    with pytest.raises(StateError, match="uses timers on a stream without keys"):
        harness.process_element(1)


def test_in_batch_mode_the_rules_come_before_all_keys() -> None:
    harness = keyed(SeesAll(), batch=True)
    harness.process_element("b", 1)
    harness.process_broadcast_element(1)
    harness.process_element("a", 2)
    harness.process_broadcast_element(2)
    harness.end_input()
    assert harness.outputs() == [
        ("element", [1, 2]),
        ("timer", "a", [1, 2]),
        ("element", [1, 2]),
        ("timer", "b", [1, 2]),
    ]


def test_two_broadcast_states_are_two_maps() -> None:
    names = MapStateDescriptor("names")

    class Two(BroadcastProcessFunction):
        def process_element(self, value, ctx):
            yield [dict(ctx.get_broadcast_state(state).items()) for state in (RULES, names)]

        def process_broadcast_element(self, value, ctx):
            ctx.get_broadcast_state(RULES)[value] = 1
            ctx.get_broadcast_state(names)["name"] = value

    harness = harness_for(Two(), broadcast_state=(RULES, names))
    harness.process_broadcast_element("a")
    harness.process_broadcast_element("b")
    harness.process_element(0)
    assert harness.outputs() == [[{"a": 1, "b": 1}, {"name": "b"}]]
