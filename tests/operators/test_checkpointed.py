"""Functions with state of their task, and functions that listen to checkpoints."""

from __future__ import annotations

from typing import Any

import pytest

from millrace.connectors.function_sink import FunctionSink
from millrace.datastream import (
    AsyncFunction,
    CheckpointedFunction,
    CheckpointListener,
    CoMapFunction,
    CoProcessFunction,
    FilterFunction,
    FlatMapFunction,
    KeyedBroadcastProcessFunction,
    KeyedProcessFunction,
    ListCheckpointed,
    MapFunction,
    ProcessFunction,
    ProcessWindowFunction,
    ReduceFunction,
    SinkFunction,
)
from millrace.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from millrace.errors import StateError
from millrace.runtime.checkpointed import restore_unions
from millrace.runtime.functions import UserFunction
from millrace.runtime.operators.stateless import MapOperator
from millrace.runtime.sink import SinkOperator
from millrace.runtime.windows.assigners import EventTimeSessionWindows, TumblingEventTimeWindows, WindowAssigner
from millrace.runtime.windows.build import WindowSpec, make_window_operator
from millrace.runtime.windows.functions import WindowFunctionKind
from millrace.state import OperatorState
from millrace.testing import OperatorHarness, harness_for

pytestmark = pytest.mark.usefixtures("each_backend")

RULES: MapStateDescriptor = MapStateDescriptor("rules")


class Seen(CheckpointedFunction, CheckpointListener):
    """Remembers all values in an attribute, and what was called."""

    def __init__(self) -> None:
        self.seen: list[Any] = []
        self.calls: list[Any] = []

    def initialize_state(self, context: Any) -> None:
        self.state = context.get_operator_state_store().get_list_state(ListStateDescriptor("seen"))
        self.calls.append(("initialize", context.is_restored()))
        if context.is_restored():
            self.seen += self.state.get()

    def open(self, runtime_context: Any) -> None:
        self.calls.append("open")

    def snapshot_state(self, context: Any) -> None:
        self.calls.append(("snapshot", context.get_checkpoint_id(), context.get_checkpoint_timestamp()))
        self.state.update(self.seen)

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        self.calls.append(("complete", checkpoint_id))

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        self.calls.append(("aborted", checkpoint_id))

    def note(self, value: Any) -> list[Any]:
        self.seen.append(value)
        return self.seen.copy()


class SeenMap(Seen, MapFunction):
    def map(self, value: Any) -> Any:
        return self.note(value)


class SeenFlatMap(Seen, FlatMapFunction):
    def flat_map(self, value: Any) -> Any:
        yield self.note(value)


class SeenFilter(Seen, FilterFunction):
    def filter(self, value: Any) -> Any:
        return len(self.note(value)) > 2


class SeenProcess(Seen, ProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        yield self.note(value)


class SeenKeyed(Seen, KeyedProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        yield self.note(value)


class SeenCoMap(Seen, CoMapFunction):
    def map1(self, value: Any) -> Any:
        return self.note(value)

    def map2(self, value: Any) -> Any:
        return None


class SeenCoProcess(Seen, CoProcessFunction):
    def process_element1(self, value: Any, ctx: Any) -> Any:
        yield self.note(value)

    def process_element2(self, value: Any, ctx: Any) -> Any:
        yield None


class SeenBroadcast(Seen, KeyedBroadcastProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        yield self.note(value)

    def process_broadcast_element(self, value: Any, ctx: Any) -> Any:
        ctx.get_broadcast_state(RULES).put(value, True)


class SeenAsync(Seen, AsyncFunction):
    async def async_invoke(self, value: Any) -> list[Any]:
        return [self.note(value)]


class SeenReduce(Seen, ReduceFunction):
    def reduce(self, value1: Any, value2: Any) -> Any:
        return self.note(value2)


def key(value: Any) -> str:
    return "all"


FUNCTIONS: list[tuple[Any, dict[str, Any]]] = [
    (SeenMap, {}),
    (SeenMap, {"key_selector": key}),
    (SeenFlatMap, {}),
    (SeenFilter, {}),
    (SeenProcess, {}),
    (SeenKeyed, {"key_selector": key}),
    (SeenCoMap, {}),
    (SeenCoProcess, {}),
    (SeenBroadcast, {"key_selector": key, "broadcast_state": RULES}),
    (SeenAsync, {}),
]


@pytest.mark.parametrize(("kind", "settings"), FUNCTIONS)
def test_every_kind_of_function_has_operator_state(kind: Any, settings: dict[str, Any]) -> None:
    function = kind()
    harness = harness_for(function, **settings, processing_time=70)
    harness.process_batch(["a", "b"])
    snapshot = harness.snapshot()
    harness.notify_checkpoint_complete()
    harness.snapshot(checkpoint_id=7)
    harness.notify_checkpoint_aborted()
    assert function.calls == [
        ("initialize", False),
        "open",
        ("snapshot", 1, 70),
        ("complete", 1),
        ("snapshot", 7, 70),
        ("aborted", 7),
    ]
    again = kind()
    restored = harness_for(again, **settings, restore_from=snapshot)
    restored.process_element("c")
    assert restored.outputs() == (["c"] if kind is SeenFilter else [["a", "b", "c"]])
    assert again.calls == [("initialize", True), "open"]
    assert not restored.operator.can_catch_up
    harness.close()
    restored.close()


def test_reduce_and_sinks_have_operator_state() -> None:
    harness = harness_for(SeenReduce(), key_selector=key)
    harness.process_batch(["a", "b"])
    restored = harness.restore(harness.snapshot())
    restored.process_element("c")
    assert restored.outputs() == [["b", "c"]]

    class SeenSink(Seen, SinkFunction):
        def write(self, value: Any) -> None:
            self.note(value)

    sink = SeenSink()
    taking = OperatorHarness(SinkOperator(FunctionSink(sink)))
    taking.process_batch(["a", "b"])
    snapshot = taking.snapshot()
    taking.notify_checkpoint_complete()
    taking.notify_checkpoint_aborted()
    assert sink.calls == [("initialize", False), "open", ("snapshot", 1, 0), ("complete", 1), ("aborted", 1)]
    again = SeenSink()
    other = OperatorHarness(SinkOperator(FunctionSink(again)), restore_from=snapshot)
    other.process_element("c")
    assert again.seen == ["a", "b", "c"]
    assert not other.operator.can_catch_up


class Count(ListCheckpointed):
    def __init__(self) -> None:
        self.count = 0

    def snapshot_state(self, checkpoint_id: int, timestamp: int) -> list[Any]:
        return [self.count]

    def restore_state(self, state: list[Any]) -> None:
        self.count = sum(state)

    def one_more(self) -> int:
        self.count += 1
        return self.count


class CountMap(Count, MapFunction):
    def map(self, value: Any) -> Any:
        return self.one_more()


def test_list_checkpointed_functions_split_and_merge_their_lists() -> None:
    tasks = [harness_for(CountMap(), subtask=subtask, parallelism=3) for subtask in range(3)]
    for subtask, task in enumerate(tasks):
        task.process_batch(["x"] * (10**subtask))
    snapshots = [task.snapshot() for task in tasks]
    for subtask, expected in enumerate([1 + 100, 10]):
        task = tasks[0].restore(snapshots, subtask, 2)
        task.process_element("x")
        assert task.outputs() == [expected + 1]
    wide = [tasks[0].restore(snapshots, subtask, 5) for subtask in range(5)]
    for task in wide:
        task.process_element("x")
    assert [task.outputs() for task in wide] == [[2], [11], [101], [1], [1]]


def test_a_list_that_is_none_is_empty() -> None:
    class Nothing(CountMap):
        def snapshot_state(self, checkpoint_id: int, timestamp: int) -> Any:
            return None

    harness = harness_for(Nothing())
    harness.process_element("x")
    restored = harness.restore(harness.snapshot())
    restored.process_element("x")
    assert restored.outputs() == [1]


class CountReduce(Count, ReduceFunction):
    def reduce(self, value1: Any, value2: Any) -> Any:
        self.one_more()
        return value1 + value2


class CountWindows(Count, ProcessWindowFunction):
    def process(self, key: Any, context: Any, elements: Any) -> Any:
        yield self.one_more(), list(elements)


@pytest.mark.parametrize("general", [False, True])
@pytest.mark.parametrize("assigner", [TumblingEventTimeWindows.of(10), EventTimeSessionWindows.with_gap(5)])
def test_both_functions_of_a_window_have_operator_state(assigner: WindowAssigner[Any, Any], general: bool) -> None:
    def harness(**settings: Any) -> tuple[OperatorHarness, CountReduce]:
        counting = CountReduce()
        spec = WindowSpec(assigner, reduce=counting, function_kind=WindowFunctionKind.PROCESS, function=CountWindows())
        return OperatorHarness(make_window_operator(spec, general), key_selector=key, **settings), counting

    first, counting = harness()
    first.process_batch([1, 2, 3], [1, 2, 3])
    first.process_watermark(9)
    assert (first.outputs(), counting.count) == ([(1, [6])], 2)
    first.process_batch([4, 5], [21, 22])
    again, restored_counting = harness(restore_from=first.snapshot())
    again.process_watermark(50)
    assert (again.outputs(), restored_counting.count) == ([(2, [9])], 3)
    assert not again.operator.can_catch_up
    again.notify_checkpoint_complete()


class Offsets(MapFunction, CheckpointedFunction):
    """A union list of everybody's offsets, and broadcast rules."""

    def initialize_state(self, context: Any) -> None:
        store = context.get_operator_state_store()
        self.union = store.get_union_list_state(ListStateDescriptor("offsets"))
        self.rules = store.get_broadcast_state(RULES)
        self.known = sorted(self.union.get())
        self.own: list[Any] = []

    def snapshot_state(self, context: Any) -> None:
        self.union.update(self.own)
        self.rules.put("limit", 3)

    def map(self, value: Any) -> Any:
        self.own.append(value)
        return self.known, sorted(self.rules.items())


@pytest.mark.parametrize("parallelism", [1, 2, 3])
def test_union_and_broadcast_state_reach_all_tasks(parallelism: int) -> None:
    tasks = [harness_for(Offsets(), subtask=subtask, parallelism=2) for subtask in range(2)]
    for subtask, task in enumerate(tasks):
        task.process_batch([subtask, subtask + 10])
    snapshots = [task.snapshot() for task in tasks]
    for subtask in range(parallelism):
        task = tasks[0].restore(snapshots, subtask, parallelism)
        task.process_element("x")
        assert task.outputs() == [([0, 1, 10, 11], [("limit", 3)])]


def test_union_lists_are_gathered_for_a_task_that_was_restored_from_its_own_part() -> None:
    descriptor = ListStateDescriptor("offsets")
    states = [OperatorState() for _ in range(3)]
    for state, own in zip(states, ([1], [], [2, 3]), strict=True):
        state.union_list_state(descriptor).update(own)
        state.list_state(ListStateDescriptor("own")).update(own)
    fulls = [{"operator": state.full()} for state in states]
    restored = OperatorState()
    restored.apply(fulls[1]["operator"])
    asked: list[str] = []

    def others(uid: str) -> list[dict[str, Any]]:
        asked.append(uid)
        return fulls

    restore_unions({"plain": OperatorState(), "offsets": restored}, others)
    assert asked == ["offsets"]
    assert list(restored.union_list_state(descriptor).get()) == [1, 2, 3]
    assert list(restored.list_state(ListStateDescriptor("own")).get()) == []


class PerKey(MapFunction, CheckpointedFunction):
    def initialize_state(self, context: Any) -> None:
        self.last = context.get_keyed_state_store().get_state(ValueStateDescriptor("last"))

    def snapshot_state(self, context: Any) -> None:
        return

    def map(self, value: Any) -> Any:
        before = self.last.value()
        self.last.update(value)
        return before


def test_keyed_state_from_initialize_state() -> None:
    harness = harness_for(PerKey(), key_selector=lambda value: value[0])
    harness.process_batch(["a1", "b1"])
    restored = harness.restore(harness.snapshot())
    restored.process_batch(["b2", "a2"])
    assert restored.outputs() == ["b1", "a1"]
    with pytest.raises(StateError, match="on a stream without keys"):
        harness_for(PerKey()).open()


class NoBase:
    """Neither a function nor a base class of ours: the methods count."""

    def initialize_state(self, context: Any) -> None:
        self.last = context.get_keyed_state_store().get_state(ValueStateDescriptor("last"))

    def map(self, value: Any) -> Any:
        before = self.last.value()
        self.last.update(value)
        return before


def test_what_counts_are_the_methods() -> None:
    harness = harness_for(NoBase(), key_selector=lambda value: value[0])
    harness.process_batch(["a1", "b1", "a2"])
    assert harness.outputs() == [None, None, "a1"]


@pytest.mark.parametrize("method", ["initialize_state", "snapshot_state", "notify_checkpoint_complete"])
def test_errors_name_the_method(method: str) -> None:
    function = SeenMap()

    def fail(*_: Any) -> None:
        raise ValueError("no")

    setattr(function, method, fail)
    harness = OperatorHarness(MapOperator(UserFunction(function, "map")), name="seen")
    with pytest.raises(ValueError, match="no") as caught:
        harness.snapshot()
        harness.notify_checkpoint_complete()
    assert caught.value.__notes__[0] == f"in operator 'seen' (uid seen), subtask 0, {method}()"


def test_an_operator_without_such_functions_can_catch_up() -> None:
    class Listener(MapFunction, CheckpointListener):
        def map(self, value: Any) -> Any:
            return value

        def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
            return

    assert harness_for(lambda value: value).open().operator.can_catch_up
    assert harness_for(Listener()).open().operator.can_catch_up
