"""Event time of sources that run at different speeds: alignment, idleness, absent partitions."""

from __future__ import annotations

from typing import Any

import pytest

from millrace.common import Duration, WatermarkStrategy
from millrace.connectors.callback import CallbackSink
from millrace.datastream import StreamExecutionEnvironment, TimeCharacteristic
from millrace.errors import GraphError
from millrace.runtime.spec import InputSpec, OperatorSpec
from millrace.runtime.wiring import Fanout, TaskNode
from millrace.testing import LocalRun

from .splits import SplitSource


def read_order(strategy: WatermarkStrategy, parallelism: int) -> list[list[int]]:
    """What a job with a fast split and a slow one reads, epoch by epoch, at four records a split."""
    seen: list[Any] = []
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)
    fast, slow = list(range(0, 4000, 100)), list(range(0, 400, 10))
    stream = env.from_source(SplitSource([fast, slow]), strategy.with_timestamp_assigner(lambda time: time), "splits")
    stream.sink_to(CallbackSink(seen.extend))
    run = LocalRun(env)
    epochs = []
    while not run.done:
        run.run_epoch(4)
        epochs.append(sorted(seen))
        seen.clear()
    return epochs


@pytest.mark.parametrize("parallelism", [1, 2])
def test_a_split_that_is_ahead_waits_for_the_others(parallelism: int) -> None:
    free = WatermarkStrategy.for_monotonous_timestamps()
    aligned = free.with_watermark_alignment("group", Duration.of_millis(150))
    assert max(read_order(free, parallelism)[3]) == 1500
    epochs = read_order(aligned, parallelism)
    read: list[int] = []
    for epoch in epochs[:9]:
        read += epoch
        assert max(read) <= max(time for time in read if time % 100) + 150 + 400
    assert sorted(time for epoch in epochs for time in epoch) == sorted([*range(0, 4000, 100), *range(0, 400, 10)])


def test_a_waiting_split_does_not_become_idle() -> None:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_watermark_alignment("g", Duration.of_millis(150))
    epochs = read_order(strategy.with_idleness(Duration.of_millis(1)), 1)
    assert sum(map(len, epochs)) == 80


class Seen:
    """An operator that notes what it is told about time."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def on_watermark(self, watermark: int) -> None:
        self.told.append(watermark)

    def on_idle(self, idle: bool) -> None:
        self.told.append("idle" if idle else "active")


def node_behind_spark(absent_is_idle: bool) -> tuple[TaskNode, Seen]:
    entry = InputSpec(edge=3, side=0, local=False, channels=None, absent_is_idle=absent_is_idle)
    spec = OperatorSpec(1, "op", "op", None, None, 1, 128, False, (entry,), (), frozenset())
    seen = Seen()
    return TaskNode(spec, seen, None, Fanout()), seen  # type: ignore[arg-type]


FIRST, SECOND = 3 << 24, (3 << 24) | 1


def test_a_partition_that_is_absent_holds_event_time_back() -> None:
    node, seen = node_behind_spark(absent_is_idle=False)
    node.announce(3, {FIRST, SECOND})
    node.watermark(0, FIRST, 100)
    node.watermark(0, SECOND, 50)
    node.announce(3, {FIRST})
    node.watermark(0, FIRST, 200)
    assert seen.told == [50]
    node.announce(3, {FIRST, SECOND})
    node.watermark(0, SECOND, 150)
    assert seen.told == [50, 150]


def test_with_an_idle_timeout_it_is_left_out_until_it_is_back() -> None:
    node, seen = node_behind_spark(absent_is_idle=True)
    node.announce(3, {FIRST, SECOND})
    node.watermark(0, FIRST, 100)
    node.watermark(0, SECOND, 50)
    node.announce(3, {FIRST})
    node.watermark(0, FIRST, 200)
    assert seen.told == [50, 100, 200]


def test_ingestion_time_has_one_way() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    with pytest.raises(GraphError, match="for_ingestion_time"):
        env.set_stream_time_characteristic(TimeCharacteristic.IngestionTime)
