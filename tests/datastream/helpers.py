"""What the tests of this folder share."""

from __future__ import annotations

from typing import Any

from millrace.connectors import CollectSink
from millrace.datastream import DataStream, RuntimeExecutionMode, StreamExecutionEnvironment
from millrace.graph.compile import JobGraph, JobNode
from millrace.testing import LocalRun

__all__ = ["collected", "environment", "node", "ships"]


def environment(parallelism: int = 2) -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)


def node(job: JobGraph, name: str) -> JobNode:
    (found,) = [each for each in job.nodes if each.name == name]
    return found


def ships(job: JobGraph, name: str) -> list[str]:
    return [edge.partitioner.ship_strategy for edge in node(job, name).inputs]


def collected(stream: DataStream, records_per_epoch: int | None = None, *, batch: bool = False) -> list[Any]:
    """Run the stream's program in this process and give the stream's records."""
    sink = CollectSink()
    stream.sink_to(sink)
    env = stream.get_execution_environment()
    if batch:
        env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    LocalRun(env).run(records_per_epoch)
    sink.records.end()
    over = object()
    return list(iter(lambda: sink.records.take(over), over))
