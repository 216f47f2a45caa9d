"""Timestamps and watermarks: where event time enters a stream."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from millrace.common.constants import LONG_MAX, LONG_MIN
from millrace.common.watermark_strategy import (
    BoundedOutOfOrdernessWatermarks,
    NoWatermarksGenerator,
    WatermarkGenerator,
    WatermarkOutput,
    WatermarkStrategy,
)
from millrace.runtime.operator import Batch, Operator, RecordFailure, last_taken
from millrace.runtime.timer_service import require_time
from millrace.runtime.valve import Valve

__all__ = ["PERIODIC_RECORDS", "AssignWatermarks"]

PERIODIC_RECORDS: Final = 10_000
"""How many records of a split may pass before a periodic generator is asked again (rule M1)."""


class _SplitOutput(WatermarkOutput):
    """Takes what a generator says about one split."""

    def __init__(self) -> None:
        self.watermark = LONG_MIN
        self.idle: bool = False

    def emit_watermark(self, watermark: int) -> None:
        time = require_time(watermark, "a watermark was emitted")
        self.watermark = max(self.watermark, time)
        self.idle = False

    def mark_idle(self) -> None:
        self.idle = True

    def mark_active(self) -> None:
        self.idle = False


class _SplitTime:
    """Event time of one split: its generator, and when it last saw an event."""

    def __init__(self, generator: WatermarkGenerator) -> None:
        self.generator = generator
        self.output = _SplitOutput()
        self.since_asked = 0
        self.events = 0
        self.probed_events = -1
        self.quiet_since: int | None = None

    def probe_idleness(self, now: int, timeout: int) -> None:
        """Idle once a probe sees no event for longer than the timeout, counted from the first empty probe (rule 4)."""
        if self.events != self.probed_events:
            self.probed_events = self.events
            self.quiet_since = None
            return
        if self.quiet_since is None:
            self.quiet_since = now
        elif now - self.quiet_since > timeout:
            self.output.idle = True


class AssignWatermarks(Operator):
    """Gives records their timestamps and makes watermarks, per source split (rules 1, 2, 4 and M1).

    Upstream watermarks and idleness end here, except LONG_MAX. A record goes on before the generator sees it, so a
    watermark for it follows it.
    """

    def __init__(self, strategy: WatermarkStrategy, every_record: bool = False) -> None:
        self.strategy = strategy
        self.every_record = every_record

    def use_batch_mode(self) -> None:
        """Timestamps only: in batch mode the one watermark is LONG_MAX (rule 35)."""
        self.strategy = replace(self.strategy, generator_supplier=NoWatermarksGenerator)

    def open(self) -> None:
        self._assigner = self.strategy.timestamp_assigner
        self._times = self.context.store.operator.per_task("splits", _no_splits)
        self._ended = False
        self.refresh()

    def refresh(self) -> None:
        self._valve = Valve(wait_for_returning=True)
        self._splits: dict[str, _SplitTime] = {}
        self._sent = LONG_MIN
        self._idle = False
        if self._times.value is not None:
            self._splits, valve, self._idle = self._times.value
            self._valve.restore(valve)
            self._sent = self._valve.output

    def process(self, batch: Batch, side: int = 0) -> None:
        timestamps = self._assign(batch)
        name = self.context.cursor.split
        split = self._split(name)
        if split.output.idle:
            split.output.idle = False
            self._publish(name, split)
        generator = split.generator
        if isinstance(generator, NoWatermarksGenerator):
            split.events += len(batch)
            self.output.emit(Batch(batch.values, timestamps))
        elif isinstance(generator, BoundedOutOfOrdernessWatermarks) and not self.every_record:
            self._bounded(name, split, generator, batch.values, timestamps)
        else:
            self._per_record(name, split, batch.values, timestamps)

    def on_watermark(self, watermark: int) -> None:
        if watermark == LONG_MAX:
            self._ended = True
            self.output.emit_watermark(LONG_MAX)

    def on_idle(self, idle: bool) -> None:
        if self.context.sources and idle != self._idle:
            # Not a status of the stream but of this task: it has no split to read, so it cannot know any time.
            self._idle = idle
            self.output.emit_idle(idle)

    def end_epoch(self) -> tuple[()]:
        """An epoch's end asks every generator, and tells idle splits from busy ones."""
        if not self._ended:
            self.ask()
        self._times.value = (self._splits, self._valve.snapshot(), self._idle)
        return ()

    def ask(self) -> None:
        """What Flink does every 200 ms."""
        for name in self.context.cursor.splits_of(self.context.sources):
            self._split(name)
        for name in self.context.cursor.finished:
            if self._splits.pop(name, None) is not None:
                self._valve.remove(name)
        timeout = self.strategy.idle_timeout_ms
        now = self.context.clock()
        for name, split in self._splits.items():
            # A split that waits for the others (alignment) is not idle: its next records would be late.
            if timeout is not None and name not in self.context.cursor.paused:
                split.probe_idleness(now, timeout)
            if not split.output.idle:
                try:
                    split.generator.on_periodic_emit(split.output)
                except Exception as error:
                    raise RecordFailure(error, self.context, "on_periodic_emit()", None) from error
                split.since_asked = 0
            self._publish(name, split)
        self._forward()

    def holding_back(self) -> dict[str, int]:
        """The watermark of each split that counts: one that is idle or has ended holds nothing back."""
        if self._ended:
            return {}
        watermarks = self._valve.channels()
        return {
            name or f"{self.context.uid}[{self.context.subtask}]": watermarks[name]
            for name, split in self._splits.items()
            if not split.output.idle and name in watermarks
        }

    def _split(self, name: str) -> _SplitTime:
        split = self._splits.get(name)
        if split is None:
            # All splits this task reads count from the first record on, or one of them could run ahead of the rest.
            for known in (name, *self.context.cursor.splits_of(self.context.sources)):
                if known not in self._splits:
                    self._splits[known] = _SplitTime(self.strategy.create_generator())
                    self._valve.add(known)
            split = self._splits[name]
        return split

    def _assign(self, batch: Batch) -> list[int]:
        assigner = self._assigner
        if assigner is None:
            return batch.times()
        records = iter(batch.values)
        try:
            timestamps = list(map(assigner, records, batch.times()))
        except Exception as error:
            raise RecordFailure(
                error, self.context, "the timestamp assigner", last_taken(records, batch.values)
            ) from error
        if set(map(type, timestamps)) - {int}:
            timestamps = [self._checked(time, value) for time, value in zip(timestamps, batch.values, strict=True)]
        return timestamps

    def _checked(self, time: Any, value: Any) -> int:
        try:
            return require_time(time, "the timestamp assigner answered")
        except TypeError as error:
            raise RecordFailure(error, self.context, "the timestamp assigner", value) from error

    def _bounded(
        self,
        name: str,
        split: _SplitTime,
        generator: BoundedOutOfOrdernessWatermarks,
        values: list[Any],
        timestamps: list[int],
    ) -> None:
        """The common generator needs only the greatest timestamp, so cut where it is due instead of asking at each
        record."""
        start = 0
        while start < len(values):
            stop = min(len(values), start + PERIODIC_RECORDS - split.since_asked)
            whole = start == 0 and stop == len(values)
            times = timestamps if whole else timestamps[start:stop]
            self.output.emit(Batch(values if whole else values[start:stop], times))
            generator.advance(max(times))
            split.events += len(times)
            split.since_asked += len(times)
            if split.since_asked >= PERIODIC_RECORDS:
                generator.on_periodic_emit(split.output)
                split.since_asked = 0
                self._publish(name, split)
            start = stop

    def _per_record(self, name: str, split: _SplitTime, values: list[Any], timestamps: list[int]) -> None:
        """Ask the generator at each record and cut the batch exactly where it answers with a new watermark."""
        generator, output = split.generator, split.output
        start = 0
        for index, (value, time) in enumerate(zip(values, timestamps, strict=True)):
            before, was_idle = output.watermark, output.idle
            try:
                generator.on_event(value, time, output)
                split.events += 1
                split.since_asked += 1
                if self.every_record or split.since_asked >= PERIODIC_RECORDS:
                    generator.on_periodic_emit(output)
                    split.since_asked = 0
            except Exception as error:
                raise RecordFailure(error, self.context, "the watermark generator", value) from error
            if output.watermark > before or output.idle != was_idle:
                self.output.emit(Batch(values[start : index + 1], timestamps[start : index + 1]))
                start = index + 1
                self._publish(name, split)
        if start < len(values):
            self.output.emit(Batch(values[start:], timestamps[start:]))

    def _publish(self, name: str, split: _SplitTime) -> None:
        """Hand the split's standing to the valve and let through what follows from it."""
        self._valve.idle(name, split.output.idle)
        if not split.output.idle:
            self._valve.watermark(name, split.output.watermark)
        self._forward()

    def _forward(self) -> None:
        self._valve.advance()
        watermark = self._valve.output
        if watermark > self._sent:
            self._sent = watermark
            self.output.emit_watermark(watermark)
        if self._splits and self._valve.all_idle != self._idle:
            self._idle = self._valve.all_idle
            self.output.emit_idle(self._idle)


def _no_splits() -> Any:
    return None
