"""A task: the operators of one stage, for one share of the data, epoch after epoch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from millrace.common.constants import LONG_MAX
from millrace.metrics import MetricGroup
from millrace.runtime.batch_keyed import BatchKeyedOperator
from millrace.runtime.chunk import DRIVER, ChunkRow, channel_edge, channel_id, decode
from millrace.runtime.codec import dump_records
from millrace.runtime.coordinator import EpochPlan
from millrace.runtime.exchange import ExchangeWriter, make_router
from millrace.runtime.operator import Batch, OperatorContext, RecordFailure, SplitCursor
from millrace.runtime.sink import SinkOperator
from millrace.runtime.source import ReadFailure, read_interleaved
from millrace.runtime.spec import OperatorSpec, OutputSpec, StageSpec
from millrace.runtime.wiring import Fanout, LocalReader, RemoteReader, TaskNode
from millrace.state.codec import dump
from millrace.state.records import register_alias
from millrace.state.rocksdb_choice import table_source
from millrace.state.store import OperatorStore
from millrace.state.table import HeapTables

__all__ = ["Task", "TaskReport"]

STAGE_STATE = "#task"
"""Where a task keeps what belongs to none of its operators: the standing of its inputs and exchanges."""


@dataclass
class TaskReport:
    """What a task tells the driver at the end of an epoch."""

    stage: str
    task: int
    attempt: int = 0
    state: bytes | None = None
    full: bool = False
    committables: dict[str, list[Any]] = field(default_factory=dict)
    records_out: dict[str, int] = field(default_factory=dict)
    watermarks: dict[str, int] = field(default_factory=dict)
    splits: dict[str, int] = field(default_factory=dict)
    metrics: dict[str, Any] = field(default_factory=dict)
    next_timer: int | None = None
    state_file: str | None = None
    state_size: int = 0
    checksum: str = ""


class Task:
    """Runs a stage's operators. ``spec`` must be the task's own: operators in it are used, not copied."""

    def __init__(self, spec: StageSpec, index: int, clock: Callable[[], int]) -> None:
        for stored, current in spec.aliases.items():
            register_alias(stored, current)
        self.spec = spec
        self.index = index
        self.clock = clock
        self.rows: list[ChunkRow] = []
        self.cursor = SplitCursor()
        self.nodes: dict[int, TaskNode] = {}
        self.writers: list[ExchangeWriter] = []
        self._driver_sequence = 0
        self._without_splits: set[str] = set()
        # In batch mode a key's state goes when its records are over: there is nothing to keep on disk.
        self._tables = HeapTables() if spec.batch else table_source(spec.backend, index)
        for entry in spec.operators:
            if index < entry.parallelism or spec.external:
                self.nodes[entry.node] = self._make(entry)
        self._readers = {
            edge.edge: (node, edge.side) for node in self.nodes.values() for edge in node.spec.inputs if not edge.local
        }
        for node in reversed(self.nodes.values()):
            for output in node.spec.outputs:
                self._attach(node, output)
        self._sources = {
            node.spec.uid: node for node in self.nodes.values() if node.spec.source is not None or not node.spec.inputs
        }

    def _make(self, entry: OperatorSpec) -> TaskNode:
        context = OperatorContext(
            entry.name,
            entry.uid,
            OperatorStore(self.clock, self._tables),
            self.clock,
            subtask=self.index % entry.parallelism,
            parallelism=entry.parallelism,
            max_parallelism=entry.max_parallelism,
            keyed=entry.keyed,
            metrics=MetricGroup(),
            parameters=self.spec.parameters,
            cursor=self.cursor,
            sources=entry.sources,
        )
        operator = entry.operator
        output = Fanout()
        if operator is not None:
            if self.spec.batch:
                operator.use_batch_mode()
                operator = BatchKeyedOperator(operator) if entry.keyed else operator
            operator.setup(context, output)
        return TaskNode(entry, operator, context, output)

    def _attach(self, node: TaskNode, output: OutputSpec) -> None:
        if output.local:
            reader = self.nodes.get(output.target)
            if reader is not None:
                node.output.attach(output.tag, LocalReader(reader, output.side, output.edge))
            return
        routing = make_router(
            output.partitioner,
            task=self.index,
            tasks=node.spec.parallelism,
            targets=output.targets,
            max_parallelism=output.max_parallelism,
            context=node.context,
        )
        writer = ExchangeWriter(output.edge, output.level, output.targets, self.index, routing, self.rows.append)
        self.writers.append(writer)
        node.output.attach(output.tag, RemoteReader(writer))

    def restore(self, content: dict[str, Any]) -> None:
        """Apply a full snapshot or a delta, oldest first, before ``open``."""
        for uid, state in content.items():
            if uid == STAGE_STATE:
                valves, writers = state
                for node_id, snapshot in valves.items():
                    if node_id in self.nodes:
                        self.nodes[node_id].restore(snapshot)
                for writer, (routing, watermark) in zip(self.writers, writers, strict=True):
                    writer.routing.state = routing
                    for buffer in writer.buffers:
                        buffer.start = buffer.watermark = watermark
        for node in self.nodes.values():
            if STAGE_STATE in content or node.spec.uid in content:
                node.context.restored = True
            if node.spec.uid in content:
                node.context.store.apply(content[node.spec.uid])

    def open(self) -> None:
        """Open all operators, once the state is there."""
        for node in self.nodes.values():
            if node.operator is not None:
                node.operator.open()
        for writer in self.writers:
            writer.routing.open()

    @property
    def can_catch_up(self) -> bool:
        """Whether an open task can take deltas; a function with state of its own is restored only when it is new."""
        return all(node.operator is None or node.operator.can_catch_up for node in self.nodes.values())

    def begin_epoch(self, epoch: int, committed: int) -> None:
        """Say which epoch begins, and which is the last that is safe (0: none): functions may be waiting for it."""
        for node in self.nodes.values():
            node.context.epoch = epoch
            if committed and node.operator is not None:
                node.operator.on_checkpoint_complete(committed)

    def abort_epoch(self, epoch: int) -> None:
        """Say that an epoch that was run to its end will never be committed."""
        for node in self.nodes.values():
            if node.operator is not None:
                node.operator.on_checkpoint_aborted(epoch)

    def refresh(self) -> None:
        """State has been brought up to date after ``open``."""
        for node in self.nodes.values():
            if node.operator is not None:
                node.operator.refresh()

    def read(self, plan: EpochPlan) -> Iterator[list[ChunkRow]]:
        """An epoch of level 0: read this task's share of the plan and push it through the chains."""
        ranges, splits = plan.ranges.get(self.index, []), plan.splits.get(self.index, {})
        ended = set(plan.ended)
        self.cursor.paused = set(plan.paused)
        self.tick()
        self.cursor.active = {source: [f"{source}/{split}" for split in names] for source, names in splits.items()}
        self.cursor.finished = set()
        for uid, node in self._sources.items():
            # A task without splits of its own must not hold event time back for all the others.
            idle = not splits.get(uid) and uid not in ended and not node.finished
            if idle != (uid in self._without_splits):
                self._without_splits ^= {uid}
                node.output.emit_idle(idle)
        readers = {uid: node.spec.source for uid, node in self._sources.items()}
        try:
            for piece, batch in read_interleaved(readers, ranges):
                self.cursor.split = piece.key
                self._sources[piece.source].output.emit(batch)
                yield from self._take_rows()
        except ReadFailure as failure:
            piece = failure.piece
            what = f"reading split {piece.split} from {piece.start} to {piece.end}"
            raise RecordFailure(failure.error, self._sources[piece.source].context, what, None) from failure.error
        self.cursor.finished = {piece.key for piece in ranges if piece.finished}
        self.cursor.split = ""
        for uid in ended:
            if uid in self._sources:
                self._end_source(self._sources[uid])
        yield from self._take_rows()

    def push(self, batches: Iterable[Batch], ended: bool) -> Iterator[list[ChunkRow]]:
        """An epoch of level 0 whose records Spark has read: one source, one split for each Spark partition."""
        self.tick()
        (source,) = self._sources.values()
        for writer in self.writers:
            writer.announce()
        for batch in batches:
            source.output.emit(batch)
            yield from self._take_rows()
        if ended:
            self._end_source(source)
        yield from self._take_rows()

    def receive(self, rows: Iterable[ChunkRow], streaming: bool) -> Iterator[list[ChunkRow]]:
        """An epoch of a level behind an exchange: take the chunks in order."""
        self.tick()
        announced: dict[int, set[int]] = {}
        announcing = True
        for row in rows:
            if row.sequence < 0:
                announced.setdefault(channel_edge(row.channel), set()).add(row.channel)
                continue
            if announcing:
                self._announce(announced, streaming)
                announcing = False
            self._take_chunk(row)
            yield from self._take_rows()
        if announcing:
            self._announce(announced, streaming)
        yield from self._take_rows()

    def end_epoch(self, *, last: bool, full: bool, with_state: bool) -> Iterator[list[ChunkRow] | TaskReport]:
        """Everything that the end of an epoch asks for; the report comes last. ``last``: there is no further input."""
        report = TaskReport(self.spec.stage, self.index, full=full)
        for node in self.nodes.values():
            if last:
                if node.operator is not None:
                    node.end_of_input()
                elif node.spec.uid in self._sources:
                    self._end_source(node)
            if node.operator is not None:
                committables = list(node.operator.end_epoch())
                if committables:
                    report.committables[node.spec.uid] = committables
                self._note(node, report)
            yield from self._take_rows()
        if not last:
            self.tick()
        for writer in self.writers:
            writer.flush()
        yield from self._take_rows()
        if with_state:
            report.state = dump(self.snapshot(full))
            report.state_size = len(report.state)
        yield report

    def snapshot(self, full: bool) -> dict[str, Any]:
        """All state, or what has changed since the last call."""
        content: dict[str, Any] = {}
        for node in self.nodes.values():
            store = node.context.store
            state = store.full() if full else store.delta()
            if full:
                store.delta()
            if state is not None:
                content[node.spec.uid] = state
        valves = {node_id: node.snapshot() for node_id, node in self.nodes.items()}
        content[STAGE_STATE] = (
            valves,
            [(writer.routing.state, writer.buffers[0].watermark) for writer in self.writers],
        )
        return content

    def tick(self) -> None:
        """Let processing time pass."""
        now = self.clock()
        for node in self.nodes.values():
            if node.operator is not None:
                node.operator.on_processing_time(now)

    def close(self) -> None:
        """Close all operators; an error of one does not keep the others from being closed."""
        errors = []
        closers = [node.operator.close for node in self.nodes.values() if node.operator is not None]
        for close in (*closers, *(writer.routing.close for writer in self.writers), self._tables.close):
            try:
                close()
            except Exception as error:
                errors.append(error)
        if errors:
            raise errors[0]

    def to_driver(self, payload: Any) -> ChunkRow:
        """A row that travels through all further levels to the driver, in this task's order."""
        self._driver_sequence += 1
        channel = channel_id(self.spec.level, self.index)
        return ChunkRow(DRIVER, self.index, channel, self._driver_sequence, LONG_MAX, dump_records(payload))

    def _end_source(self, source: TaskNode) -> None:
        if not source.finished:
            source.finished = True
            source.output.emit_watermark(LONG_MAX)

    def _announce(self, announced: dict[int, set[int]], streaming: bool) -> None:
        for node in self.nodes.values():
            for edge in node.dynamic:
                if streaming or edge in announced:
                    node.announce(edge, announced.get(edge, set()))

    def _take_chunk(self, row: ChunkRow) -> None:
        node, side = self._readers[channel_edge(row.channel)]
        assert node.operator is not None
        keys, values, times, marks = decode(row.blob)
        start = 0
        for mark in marks:
            if mark.position > start:
                node.operator.process(_cut(keys, values, times, start, mark.position), side)
                start = mark.position
            if mark.watermark is None:
                node.idle(side, row.channel, mark.idle)
            else:
                node.watermark(side, row.channel, mark.watermark)
        if start < len(values):
            node.operator.process(_cut(keys, values, times, start, len(values)), side)

    def _take_rows(self) -> Iterator[list[ChunkRow]]:
        self._tables.settle()
        for node in self.nodes.values():
            operator = node.operator
            if isinstance(operator, SinkOperator) and operator.sink.volatile:
                shown = list(operator.end_epoch())
                if shown:
                    self.rows.append(self.to_driver(("commit", node.spec.uid, shown)))
        if self.rows:
            rows = self.rows[:]
            self.rows.clear()
            yield rows

    def _note(self, node: TaskNode, report: TaskReport) -> None:
        assert node.operator is not None
        uid = node.spec.uid
        report.records_out[uid] = node.output.records_out
        node.output.records_out = 0
        report.watermarks[uid] = node.current
        holding = getattr(node.operator, "holding_back", None)
        if holding is not None:
            report.splits.update(holding())
        metrics = node.context.metrics.snapshot()
        if metrics:
            report.metrics[uid] = metrics
        wanted = node.operator.next_processing_time()
        if wanted is not None:
            report.next_timer = wanted if report.next_timer is None else min(wanted, report.next_timer)


def _cut(keys: list[Any] | None, values: list[Any], times: list[int] | None, start: int, stop: int) -> Batch:
    if start == 0 and stop == len(values):
        return Batch(values, times, keys)
    return Batch(
        values[start:stop], None if times is None else times[start:stop], None if keys is None else keys[start:stop]
    )
