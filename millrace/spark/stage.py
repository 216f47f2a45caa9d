"""What runs inside Spark's Python workers: one stage of the job over one partition of one epoch."""

from __future__ import annotations

import gc
import json
import pickle
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from pyspark import TaskContext

from millrace.common.row import Row
from millrace.runtime.chunk import DRIVER, ChunkRow
from millrace.runtime.coordinator import EpochPlan
from millrace.runtime.failure import describe_failure
from millrace.runtime.operator import Batch
from millrace.runtime.recovery import CheckpointFailure
from millrace.runtime.restore import catch_up, restore_task
from millrace.runtime.task import Task, TaskReport
from millrace.spark.order import EPOCH_PROPERTY, EpochOrder
from millrace.state.codec import dump
from millrace.state.manifest import checksum_of, read_manifest
from millrace.state.savepoint import Snapshot, read_snapshot
from millrace.state.storage import Storage

__all__ = ["CHUNK_SCHEMA", "PARTITION_COLUMN", "StageCode", "install_main_classes", "stage_function"]

CHUNK_SCHEMA: Final = "level int, target int, channel long, sequence long, watermark long, blob binary"
PARTITION_COLUMN: Final = "__millrace_partition"
INLINE_STATE_BYTES: Final = 20 * 1024
"""Smaller snapshots travel in the manifest instead of a file of their own, as Flink does it."""

_ARROW_SCHEMA: Final = pa.schema(
    [
        ("level", pa.int32()),
        ("target", pa.int32()),
        ("channel", pa.int64()),
        ("sequence", pa.int64()),
        ("watermark", pa.int64()),
        ("blob", pa.binary()),
    ]
)


@dataclass(frozen=True)
class StageCode:
    """A stage as bytes: unpickled once per task and worker, not once per epoch."""

    job: str
    stage: str
    level: int
    external: bool
    spec: bytes
    main_classes: bytes


def stage_function(code: StageCode) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function that mapInArrow runs; it carries the stage's code and nothing else."""

    def millrace_stage(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return run_stage(code, batches)

    return millrace_stage


@dataclass
class _Live:
    """A task that stays in this worker between epochs, and which committed state it holds."""

    task: Task
    epoch: int
    attempt: int


_live: dict[tuple[str, str, int], _Live] = {}
"""Tasks by (run, stage, index). Spark pins no partition to a worker, so what is found here is always checked."""

_installed: set[bytes] = set()


def run_stage(code: StageCode, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """One epoch of one task. Whatever happens, the input is read to its end, or Spark would not use the worker
    again."""
    _tune_worker()
    context = TaskContext.get()
    assert context is not None
    order = EpochOrder.from_json(context.getLocalProperty(EPOCH_PROPERTY) or "{}")
    attempt = context.taskAttemptId()
    task: Task | None = None
    try:
        if code.external:
            batches, index = _peek_partition(batches)
            if index is None:
                return
        else:
            index = context.partitionId()
        key = (order.run, code.stage, index)
        install_main_classes(code.main_classes)
        task = _task(code, order, index)
        task.begin_epoch(order.epoch, order.base)
        for rows in _work(code, order, task, batches):
            if isinstance(rows, TaskReport):
                _store_state(order, rows, attempt)
                yield _to_arrow([task.to_driver(("report", rows))])
            else:
                yield _to_arrow(rows)
        if order.last:
            task.close()
            _live.pop(key, None)
        elif order.streaming:
            _live[key] = _Live(task, order.epoch, attempt)
    except (Exception, SystemExit) as error:
        # Not raised to Spark, which would only run the same records again: the driver decides whether to restart.
        if task is not None:
            _close(task)
        payload = dump(("error", describe_failure(error)))
        yield _to_arrow([ChunkRow(DRIVER, 0, 0, 0, 0, payload)])
    finally:
        for _ in batches:
            pass


def _work(
    code: StageCode, order: EpochOrder, task: Task, batches: Iterator[pa.RecordBatch]
) -> Iterator[list[ChunkRow] | TaskReport]:
    if code.external:
        yield from task.push(_records(batches), order.last)
    elif code.level == 0:
        for _ in batches:
            pass
        plan = EpochPlan.from_json(_plan(order))
        yield from task.read(plan)
    else:
        passing: list[ChunkRow] = []
        rows = _own_rows(code.level, batches, passing)
        if order.streaming:
            rows = iter(sorted(rows, key=_arrival))
        yield from task.receive(rows, order.streaming)
        if passing:
            yield passing
    name = f"{code.stage}/{task.index}"
    yield from task.end_epoch(
        last=order.last, full=name in order.full or not order.attempts.get(name), with_state=order.streaming
    )


def _task(code: StageCode, order: EpochOrder, index: int) -> Task:
    """The task with the state of the last committed epoch: as it is here, brought up to date, or loaded anew."""
    key = (order.run, code.stage, index)
    name = f"{code.stage}/{index}"
    # Taken out while it runs: should this attempt be cut off, the next one must not find a task that is half fed.
    live = _live.pop(key, None)
    if live is not None and (live.epoch, live.attempt) == (order.base, order.attempts.get(name)):
        return live.task
    snapshot = None
    if order.snapshot is not None:
        snapshot = read_snapshot(*order.snapshot)
    elif order.base and order.storage is not None:
        storage = Storage(order.storage)
        snapshot = Snapshot(storage, read_manifest(storage, order.base))
        follows = live is not None and order.same_graph and live.task.can_catch_up
        if live is not None and follows and catch_up(live.task, storage, snapshot.manifest, live.epoch, live.attempt):
            return live.task
    if live is not None:
        if live.epoch > order.base:
            live.task.abort_epoch(live.epoch)
        _close(live.task)
    _drop(key)
    task = Task(pickle.loads(code.spec), index, _now)
    if snapshot is not None:
        restore_task(task, snapshot.storage, snapshot.manifest, order.same_graph)
    task.open()
    return task


def _drop(key: tuple[str, str, int]) -> None:
    """Forget a task that is out of step, and those of earlier runs; a user's close() may fail without harm here."""
    stale = [other for other in _live if other[0] != key[0]]
    for other in stale:
        _close(_live.pop(other).task)


def _close(task: Task) -> None:
    try:
        task.close()
    except Exception as error:
        print(f"close() of a task that is no longer needed failed: {error!r}", file=sys.stderr)


def _plan(order: EpochOrder) -> dict[str, Any]:
    if isinstance(order.plan, str):
        assert order.storage is not None
        plan: dict[str, Any] = json.loads(Storage(order.storage).read(order.plan))
        return plan
    return order.plan


def _store_state(order: EpochOrder, report: TaskReport, attempt: int) -> None:
    """Put a large snapshot into a file named after this attempt: no manifest will name it unless the attempt counts."""
    report.attempt = attempt
    if report.state is not None and len(report.state) > INLINE_STATE_BYTES and order.storage is not None:
        kind = "full" if report.full else "delta"
        report.state_file = f"state/{report.stage}-{report.task}/{order.epoch:012d}-{attempt}.{kind}"
        report.checksum = checksum_of(report.state)
        try:
            Storage(order.storage).write(report.state_file, report.state)
        except OSError as error:
            message = f"state of task {report.stage}/{report.task} could not be written: {error}"
            raise CheckpointFailure(message) from error
        report.state = None


def _own_rows(level: int, batches: Iterator[pa.RecordBatch], passing: list[ChunkRow]) -> Iterator[ChunkRow]:
    """The rows for this level; those for further levels and for the driver are set aside."""
    for batch in batches:
        columns = [column.to_pylist() for column in batch.columns]
        for values in zip(*columns, strict=True):
            row = ChunkRow._make(values)
            if row.level == level:
                yield row
            else:
                passing.append(row)


def _arrival(row: ChunkRow) -> tuple[int, int, int]:
    return row.watermark, row.channel, row.sequence


def _to_arrow(rows: list[ChunkRow]) -> pa.RecordBatch:
    columns = zip(*rows, strict=True)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, _ARROW_SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=_ARROW_SCHEMA)


def _peek_partition(batches: Iterator[pa.RecordBatch]) -> tuple[Iterator[pa.RecordBatch], int | None]:
    """The index of a source partition is in its rows: in a union, Spark's own partition id counts all inputs."""
    first = next((batch for batch in batches if batch.num_rows), None)
    if first is None:
        return iter(()), None

    def again() -> Iterator[pa.RecordBatch]:
        yield first
        yield from batches

    return again(), int(first.column(PARTITION_COLUMN)[0].as_py())


def _records(batches: Iterator[pa.RecordBatch]) -> Iterator[Batch]:
    """Spark's rows as Rows with field names."""
    for batch in batches:
        names = [name for name in batch.schema.names if name != PARTITION_COLUMN]
        columns = [batch.column(name).to_pylist() for name in names]
        make = Row(*names)
        yield Batch([make(*values) for values in zip(*columns, strict=True)] if names else [])


def install_main_classes(data: bytes) -> None:
    """Make classes of the user's main program findable here under their own names, so that records pickle by
    reference."""
    if data in _installed:
        return
    main = sys.modules["__main__"]
    for name, value in pickle.loads(data).items():
        setattr(main, name, value)
    _installed.add(data)


def _tune_worker() -> None:
    """Records come by the thousand and hold few cycles: let the collector look less often."""
    if gc.get_threshold()[0] < _GC_THRESHOLD:
        gc.freeze()
        gc.set_threshold(_GC_THRESHOLD, 50, 1000)


_GC_THRESHOLD: Final = 200_000


def _now() -> int:
    return time.time_ns() // 1_000_000
