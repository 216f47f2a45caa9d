"""Keyed operators in batch mode: all records of a key together, and every timer at the key's end (rule 35)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from millrace.common.constants import LONG_MAX
from millrace.runtime.operator import Batch, Operator, OperatorContext, Output

__all__ = ["BatchKeyedOperator"]


class BatchKeyedOperator(Operator):
    """Gathers the input by key, then runs the operator inside key by key, each with its own end of time.

    Within a key, records come in the order of their timestamps. Keys come in their natural order where they have one,
    else in the order of their first record.
    """

    def __init__(self, inner: Operator) -> None:
        self.inner = inner
        self._pending: dict[Any, list[tuple[int, int, Any]]] = {}

    def setup(self, context: OperatorContext, output: Output) -> None:
        super().setup(context, output)
        self.inner.setup(context, _HoldWatermarks(output))

    def open(self) -> None:
        self.inner.open()

    def process(self, batch: Batch, side: int = 0) -> None:
        if batch.keys is None:
            # The broadcast side has no keys: it comes before all of them.
            self.inner.process(batch, side)
            return
        for key, value, time in zip(batch.keys, batch.values, batch.times(), strict=True):
            self._pending.setdefault(key, []).append((time, side, value))

    def on_watermark(self, watermark: int) -> None:
        if watermark == LONG_MAX:
            self._run()
            self.output.emit_watermark(watermark)

    def finish(self) -> None:
        self.inner.finish()

    def end_epoch(self) -> Sequence[Any]:
        return self.inner.end_epoch()

    @property
    def can_catch_up(self) -> bool:
        return self.inner.can_catch_up

    def on_checkpoint_complete(self, checkpoint_id: int) -> None:
        self.inner.on_checkpoint_complete(checkpoint_id)

    def on_checkpoint_aborted(self, checkpoint_id: int) -> None:
        self.inner.on_checkpoint_aborted(checkpoint_id)

    def close(self) -> None:
        self.inner.close()

    def _run(self) -> None:
        for key in _in_order(list(self._pending)):
            records = self._pending.pop(key)
            records.sort(key=_by_time)
            for side, values, times in _runs(records):
                self.inner.process(Batch(values, times, [key] * len(values)), side)
            self.inner.on_watermark(LONG_MAX)
            self.inner.on_processing_time(LONG_MAX)
            self.inner.restart_time()


class _HoldWatermarks(Output):
    """Lets records through; the watermark of each key's end is nobody else's business."""

    def __init__(self, output: Output) -> None:
        self.output = output

    def emit(self, batch: Batch) -> None:
        self.output.emit(batch)

    def emit_side(self, tag_id: str, batch: Batch) -> None:
        self.output.emit_side(tag_id, batch)

    def emit_watermark(self, watermark: int) -> None:
        return

    def emit_idle(self, idle: bool) -> None:
        return


def _by_time(record: tuple[int, int, Any]) -> int:
    return record[0]


def _in_order(keys: list[Any]) -> list[Any]:
    try:
        return sorted(keys)
    except TypeError:
        return keys


def _runs(records: list[tuple[int, int, Any]]) -> list[tuple[int, list[Any], list[int]]]:
    """Consecutive records of one side, as batches."""
    runs: list[tuple[int, list[Any], list[int]]] = []
    for time, side, value in records:
        if not runs or runs[-1][0] != side:
            runs.append((side, [], []))
        runs[-1][1].append(value)
        runs[-1][2].append(time)
    return runs
