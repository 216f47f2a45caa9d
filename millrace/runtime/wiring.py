"""How the operators of a task are joined to each other and to the exchanges."""

from __future__ import annotations

from typing import Any, Protocol

from millrace.common.constants import LONG_MAX, LONG_MIN
from millrace.runtime.chunk import channel_edge, channel_id
from millrace.runtime.exchange import ExchangeWriter
from millrace.runtime.operator import Batch, Operator, OperatorContext, Output
from millrace.runtime.spec import OperatorSpec
from millrace.runtime.valve import Valve

__all__ = ["Fanout", "LocalReader", "RemoteReader", "TaskNode"]


class TaskNode:
    """An operator in a task, with the valves in front of its inputs."""

    def __init__(self, spec: OperatorSpec, operator: Operator | None, context: OperatorContext, output: Fanout) -> None:
        self.spec = spec
        self.operator = operator
        self.context = context
        self.output = output
        self.finished = False
        self.valves: dict[int, Valve] = {}
        self.sides: Valve | None = None
        self.dynamic: dict[int, int] = {}
        self._absent_is_idle: set[int] = set()
        for entry in spec.inputs:
            valve = self.valves.setdefault(entry.side, Valve())
            if entry.channels is None and not entry.local:
                self.dynamic[entry.edge] = entry.side
                if entry.absent_is_idle:
                    self._absent_is_idle.add(entry.edge)
            elif entry.local:
                valve.add(channel_id(entry.edge, 0))
            else:
                for task in range(entry.channels or 0):
                    valve.add(channel_id(entry.edge, task))
        if len(self.valves) > 1:
            self.sides = Valve(self.valves)

    def watermark(self, side: int, channel: int, watermark: int) -> None:
        """A channel's watermark has come."""
        combined = self.valves[side].watermark(channel, watermark)
        if combined is not None:
            self._advance(side, combined)

    def idle(self, side: int, channel: int, idle: bool) -> None:
        """A channel's status has changed."""
        valve = self.valves[side]
        was = valve.all_idle
        valve.idle(channel, idle)
        combined = valve.advance()
        if combined is not None:
            self._advance(side, combined)
        if valve.all_idle != was:
            self._status(side, valve.all_idle)

    def announce(self, edge: int, channels: set[int]) -> None:
        """The channels that a varying number of upstream tasks has in this epoch."""
        side = self.dynamic[edge]
        valve = self.valves[side]
        for channel in sorted(channels):
            valve.add(channel)
        if edge in self._absent_is_idle:
            known = {channel for channel in valve.channels() if channel_edge(channel) == edge}
            for channel in sorted(known):
                self.idle(side, channel, channel not in channels)

    def end_of_input(self) -> None:
        """The bounded input is over: whatever the channels said, event time has come to its end."""
        if self.finished:
            return
        self.finished = True
        assert self.operator is not None
        if self.current < LONG_MAX:
            self.operator.on_watermark(LONG_MAX)
        self.operator.finish()

    @property
    def current(self) -> int:
        """The watermark the operator has seen last."""
        if self.sides is not None:
            return self.sides.output
        return next(iter(self.valves.values())).output if self.valves else LONG_MIN

    def snapshot(self) -> Any:
        """The standing of all inputs."""
        return ({side: valve.snapshot() for side, valve in self.valves.items()}, self.sides and self.sides.snapshot())

    def restore(self, snapshot: Any) -> None:
        """Take over what ``snapshot`` gave."""
        valves, sides = snapshot
        for side, content in valves.items():
            self.valves[side].restore(content)
        if self.sides is not None:
            self.sides.restore(sides)

    def _advance(self, side: int, watermark: int) -> None:
        assert self.operator is not None
        combined = watermark if self.sides is None else self.sides.watermark(side, watermark)
        if combined is not None:
            self.operator.on_watermark(combined)

    def _status(self, side: int, idle: bool) -> None:
        assert self.operator is not None
        if self.sides is None:
            self.operator.on_idle(idle)
            return
        was = self.sides.all_idle
        self.sides.idle(side, idle)
        combined = self.sides.advance()
        if combined is not None:
            self.operator.on_watermark(combined)
        if self.sides.all_idle != was:
            self.operator.on_idle(self.sides.all_idle)


class Fanout(Output):
    """The output of an operator: the operators and exchanges that read it, by side output."""

    def __init__(self) -> None:
        self.main: list[_Reader] = []
        self.side: dict[str, list[_Reader]] = {}
        self.records_out = 0

    def attach(self, tag: str | None, reader: _Reader) -> None:
        """Let a reader have the main output, or a side output."""
        (self.main if tag is None else self.side.setdefault(tag, [])).append(reader)

    def emit(self, batch: Batch) -> None:
        self.records_out += len(batch.values)
        for reader in self.main:
            reader.records(batch)

    def emit_side(self, tag_id: str, batch: Batch) -> None:
        for reader in self.side.get(tag_id, ()):
            reader.records(batch)

    def emit_watermark(self, watermark: int) -> None:
        for reader in self._all():
            reader.watermark(watermark)

    def emit_idle(self, idle: bool) -> None:
        for reader in self._all():
            reader.idle(idle)

    def _all(self) -> list[_Reader]:
        return self.main if not self.side else [*self.main, *(reader for tag in self.side.values() for reader in tag)]


class _Reader(Protocol):
    """Somebody who reads an output."""

    def records(self, batch: Batch) -> None: ...

    def watermark(self, watermark: int) -> None: ...

    def idle(self, idle: bool) -> None: ...


class LocalReader:
    """An operator of the same task: a plain call."""

    def __init__(self, node: TaskNode, side: int, edge: int) -> None:
        self.node = node
        self.side = side
        self.channel = channel_id(edge, 0)
        assert node.operator is not None
        self.process = node.operator.process

    def records(self, batch: Batch) -> None:
        self.process(batch, self.side)

    def watermark(self, watermark: int) -> None:
        self.node.watermark(self.side, self.channel, watermark)

    def idle(self, idle: bool) -> None:
        self.node.idle(self.side, self.channel, idle)


class RemoteReader:
    """An operator behind an exchange."""

    def __init__(self, writer: ExchangeWriter) -> None:
        self.writer = writer

    def records(self, batch: Batch) -> None:
        self.writer.write(batch)

    def watermark(self, watermark: int) -> None:
        self.writer.watermark(watermark)

    def idle(self, idle: bool) -> None:
        self.writer.idle(idle)
