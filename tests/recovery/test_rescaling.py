"""Any parallelism from 1 to 8, up and down, for every kind of state: the results are those of an undisturbed run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millrace.common import Time
from millrace.datastream import CheckpointedFunction, MapFunction, RuntimeContext
from millrace.datastream import StreamExecutionEnvironment as Environment
from millrace.datastream.state import ListStateDescriptor
from millrace.datastream.window import EventTimeSessionWindows, SlidingEventTimeWindows, TumblingEventTimeWindows
from millrace.runtime.restore import collapsed
from millrace.state.parts import PartReader
from millrace.testing import LocalRun

from .programs import Committed, CountPerKey, Limit, environment, timed

NUMBERS = 90


class Buffer(MapFunction, CheckpointedFunction):
    """Keeps every number in list state: it does not matter which task has it."""

    def initialize_state(self, context: Any) -> None:
        self.state = context.get_operator_state_store().get_list_state(ListStateDescriptor("kept"))
        self.kept = list(self.state.get())

    def snapshot_state(self, context: Any) -> None:
        self.state.update(self.kept)

    def map(self, value: int) -> int:
        self.kept.append(value)
        return value


class Share(MapFunction, CheckpointedFunction):
    """Keeps every number in union list state; of all of them, a restored task takes those that are its own."""

    def open(self, runtime_context: RuntimeContext) -> None:
        width, index = (
            runtime_context.get_number_of_parallel_subtasks(),
            runtime_context.get_index_of_this_subtask(),
        )
        self.kept = [value for value in self.kept if value % width == index]

    def initialize_state(self, context: Any) -> None:
        self.state = context.get_operator_state_store().get_union_list_state(ListStateDescriptor("kept"))
        self.kept = list(self.state.get())

    def snapshot_state(self, context: Any) -> None:
        self.state.update(self.kept)

    def map(self, value: int) -> int:
        self.kept.append(value)
        return value


def window_of(assigner: Any) -> Any:
    def build(stream: Any, env: Environment) -> Any:
        windows = stream.key_by(lambda n: n % 3).window(assigner)
        return windows.apply(lambda key, window, ns: [("window", key, window.start, window.end, sum(ns))])

    return build


def limited(stream: Any, env: Environment) -> Any:
    rules = env.from_collection([10**6]).uid("rules").broadcast(Limit.RULES)
    return stream.key_by(lambda n: n % 7).connect(rules).process(Limit())


PIECES: dict[str, Any] = {
    "keyed": lambda stream, env: stream.key_by(lambda n: n % 11).process(CountPerKey()),
    "sums": lambda stream, env: stream.key_by(lambda n: n % 4).map(lambda n: (n % 4, n)).rebalance().map(str),
    "list": lambda stream, env: stream.map(Buffer()),
    "union": lambda stream, env: stream.map(Share()),
    "broadcast": limited,
    "tumbling": window_of(TumblingEventTimeWindows.of(Time.milliseconds(20))),
    "sliding": window_of(SlidingEventTimeWindows.of(Time.milliseconds(20), Time.milliseconds(5))),
    "session": window_of(EventTimeSessionWindows.with_gap(Time.milliseconds(3))),
}


def build(env: Environment, pieces: list[str], sinks: dict[str, Committed]) -> None:
    stream = env.from_sequence(1, NUMBERS).uid("numbers").assign_timestamps_and_watermarks(timed()).uid("times")
    for name in pieces:
        PIECES[name](stream, env).uid(name).sink_to(sinks[name]).uid(f"{name} sink")


def kept(run: LocalRun, uid: str, kind: str) -> list[int]:
    manifest = run._ledger.last
    assert manifest is not None
    reader = PartReader(run._ledger.storage, manifest)
    entry = manifest.operators[uid]
    tasks = [collapsed(reader, f"{entry.stage}/{index}") for index in range(entry.parallelism)]
    return sorted(value for task in tasks for value in task[uid]["operator"].get((kind, "kept"), ()))


@st.composite
def lives(draw: st.DrawFn) -> list[tuple[int, list[int], str]]:
    """How a job is run: with which parallelism, how many records an epoch, and how it goes on from there."""
    epochs = st.lists(st.integers(1, 6), min_size=1, max_size=3)
    life = st.tuples(st.integers(1, 8), epochs, st.sampled_from(["savepoint", "checkpoint"]))
    return draw(st.lists(life, min_size=1, max_size=4))


@settings(max_examples=30, deadline=None)
@given(
    pieces=st.lists(st.sampled_from(sorted(PIECES)), min_size=1, max_size=3, unique=True),
    lives=lives(),
    last=st.integers(1, 8),
)
def test_random_programs_are_rescaled_without_a_trace(
    tmp_path_factory: Any, pieces: list[str], lives: list[tuple[int, list[int], str]], last: int
) -> None:
    folder: Path = tmp_path_factory.mktemp("lives")
    sinks = {name: Committed() for name in pieces}
    config: dict[str, Any] = {}
    place = folder / "0"
    for number, (parallelism, epochs, way) in enumerate(lives):
        env = environment(parallelism, **config)
        build(env, pieces, sinks)
        run = LocalRun(env, storage=str(place))
        for size in epochs:
            if not run.done:
                run.run_epoch(size)
        if way == "savepoint" and run._ledger.last is not None:
            config = {"execution_savepoint_path": run.savepoint(str(folder))}
            place = folder / str(number + 1)
    env = environment(last, **config)
    build(env, pieces, sinks)
    run = LocalRun(env, storage=str(place))
    run.run(10)

    expected = {name: Committed() for name in pieces}
    env = environment(2)
    build(env, pieces, expected)
    LocalRun(env).run()
    assert {name: sink.rows for name, sink in sinks.items()} == {name: sink.rows for name, sink in expected.items()}
    if run._ledger.last is not None:
        for name, kind in (("list", "list"), ("union", "union list")):
            if name in pieces:
                assert kept(run, name, kind) == list(range(1, NUMBERS + 1))


@pytest.mark.parametrize("before", range(1, 9))
@pytest.mark.parametrize("after", [1, 3, 8])
def test_every_kind_of_state_from_and_to(before: int, after: int, tmp_path: Path) -> None:
    sinks = {name: Committed() for name in PIECES}
    for parallelism, epochs in ((before, 2), (after, 99)):
        env = environment(parallelism)
        build(env, list(PIECES), sinks)
        run = LocalRun(env, storage=str(tmp_path))
        for _ in range(epochs):
            if not run.done:
                run.run_epoch(4)
    assert kept(run, "list", "list") == kept(run, "union", "union list") == list(range(1, NUMBERS + 1))
    assert len(sinks["keyed"].rows) == 2 * NUMBERS + 11
    assert len(sinks["broadcast"].rows) == NUMBERS
