"""Whole jobs with functions that keep state of their task."""

from __future__ import annotations

from typing import Any

import pytest

from millrace.common.typeinfo import Types
from millrace.datastream import (
    CheckpointedFunction,
    CheckpointListener,
    MapFunction,
    SourceFunction,
    StreamExecutionEnvironment,
)
from millrace.datastream.state import ListStateDescriptor
from millrace.errors import GraphError
from millrace.testing import LocalRun


def test_a_source_function_with_state_is_refused() -> None:
    class Numbers(SourceFunction, CheckpointListener):
        def run(self, ctx: Any) -> Any:
            yield 1

        def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
            return

    env = StreamExecutionEnvironment.get_execution_environment()
    with pytest.raises(GraphError, match="Numbers has notify_checkpoint_complete.*would never be called"):
        env.add_source(Numbers())


CALLS: list[Any] = []


class Listening(MapFunction, CheckpointedFunction, CheckpointListener):
    def initialize_state(self, context: Any) -> None:
        self.state = context.get_operator_state_store().get_list_state(ListStateDescriptor("sum"))
        self.sum = sum(self.state.get())
        CALLS.append(("initialize", context.is_restored(), self.sum))

    def snapshot_state(self, context: Any) -> None:
        CALLS.append(("snapshot", context.get_checkpoint_id()))
        self.state.update([self.sum])

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        CALLS.append(("complete", checkpoint_id))

    def map(self, value: int) -> int:
        self.sum += value
        return self.sum


def test_a_job_snapshots_each_epoch_and_hears_of_it_in_the_next(capsys: pytest.CaptureFixture[str]) -> None:
    CALLS.clear()
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    env.from_sequence(1, 6).map(Listening()).print()
    run = LocalRun(env)
    run.run_epoch(2)
    run.run_epoch(2)
    run.crash()
    run.run_epoch(2)
    assert capsys.readouterr().out.split() == ["1", "3", "6", "10", "15", "21"]
    assert CALLS == [
        ("initialize", False, 0),
        ("snapshot", 1),
        ("complete", 1),
        ("snapshot", 2),
        ("initialize", True, 10),
        ("complete", 2),
        ("snapshot", 3),
    ]


def test_a_function_with_a_declared_type_has_operator_state(capsys: pytest.CaptureFixture[str]) -> None:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    env.from_collection([100, 100]).map(Listening(), output_type=Types.BYTE()).print()
    run = LocalRun(env)
    run.run_epoch(1)
    run.crash()
    run.run_epoch(1)
    assert capsys.readouterr().out.split() == ["100", "-56"]


class Offsets(MapFunction, CheckpointedFunction):
    def initialize_state(self, context: Any) -> None:
        self.union = context.get_operator_state_store().get_union_list_state(ListStateDescriptor("offsets"))
        CALLS.append((context.is_restored(), sorted(self.union.get())))
        self.own: list[int] = []

    def snapshot_state(self, context: Any) -> None:
        self.union.update(self.own)

    def map(self, value: int) -> int:
        self.own.append(value)
        return value


def test_a_restored_task_gets_the_union_list_of_all_tasks() -> None:
    CALLS.clear()
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
    env.from_sequence(1, 8).map(Offsets()).filter(lambda value: False).print()
    run = LocalRun(env)
    run.run_epoch(2)
    run.crash()
    run.run_epoch(1)
    assert CALLS == [(False, []), (False, []), (True, [1, 2, 5, 6]), (True, [1, 2, 5, 6])]
