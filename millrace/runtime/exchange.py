"""The sending side of an exchange: which record goes to which task, gathered into chunks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Final

from millrace.common.constants import LONG_MIN
from millrace.errors import GraphError
from millrace.graph.partitioners import (
    Broadcast,
    Custom,
    Forward,
    Global,
    KeyBy,
    Partitioner,
    Rebalance,
    Rescale,
    Shuffle,
)
from millrace.runtime.chunk import CHUNK_RECORDS, ChunkBuffer, ChunkRow, channel_id
from millrace.runtime.functions import UserFunction
from millrace.runtime.operator import Batch, OperatorContext, RecordFailure, last_taken
from millrace.state.key_groups import KeyRouter

__all__ = ["ALL_KEY", "ExchangeWriter", "make_router"]

ALL_KEY: Final = None
"""The one key of streams that are windowed as a whole."""

_QUIET: Final = LONG_MIN + 1
_DATA: Final = LONG_MIN + 2

# Knuth's MMIX generator: the low bits are weak, so the high ones choose the target.
_LCG_FACTOR: Final = 6364136223846793005
_LCG_STEP: Final = 1442695040888963407
_LCG_MASK: Final = 2**64 - 1


class ExchangeWriter:
    """Fills a chunk per target task and hands full ones to ``emit`` (the task's list of rows to send)."""

    def __init__(
        self,
        edge: int,
        level: int,
        targets: int,
        task: int,
        routing: Routing,
        emit: Callable[[ChunkRow], None],
    ) -> None:
        self.level = level
        self.channel = channel_id(edge, task)
        self.buffers = [ChunkBuffer() for _ in range(targets)]
        self.routing = routing
        self.emit = emit

    def write(self, batch: Batch) -> None:
        """Send records on their way."""
        keys, targets = self.routing.route(batch)
        values, times = batch.values, batch.timestamps
        if targets is None:
            for index in range(len(self.buffers)):
                self._append(index, keys, values, times)
        elif isinstance(targets, int):
            self._append(targets, keys, values, times)
        else:
            self._scatter(targets, keys, values, times)

    def watermark(self, watermark: int) -> None:
        """Every target hears of it."""
        for buffer in self.buffers:
            buffer.mark(watermark)

    def idle(self, idle: bool) -> None:
        """Every target hears of it."""
        for buffer in self.buffers:
            buffer.mark_idle(idle)

    def announce(self) -> None:
        """Tell all targets that this channel exists, before any chunk of it: for channels they cannot know of."""
        for target in range(len(self.buffers)):
            self.emit(ChunkRow(self.level, target, self.channel, -1, LONG_MIN, b""))

    def flush(self) -> None:
        """Send what has gathered, at the end of an epoch."""
        for target, buffer in enumerate(self.buffers):
            if buffer:
                self._send(target, buffer)
            buffer.sequence = 0

    def _append(self, target: int, keys: list[Any] | None, values: list[Any], times: list[int] | None) -> None:
        buffer = self.buffers[target]
        if keys is not None:
            buffer.keys.extend(keys)
        _extend_times(buffer, times, len(values))
        buffer.values.extend(values)
        if len(buffer.values) >= CHUNK_RECORDS:
            self._send(target, buffer)

    def _scatter(self, targets: list[int], keys: list[Any] | None, values: list[Any], times: list[int] | None) -> None:
        buffers = self.buffers
        if times is not None:
            for buffer in buffers:
                _extend_times(buffer, None, 0, start=True)
        if keys is not None and times is not None:
            adders = [(buffer.keys.append, buffer.values.append, buffer.timestamps.append) for buffer in buffers]
            for target, key, value, time in zip(targets, keys, values, times, strict=True):
                add_key, add_value, add_time = adders[target]
                add_key(key)
                add_value(value)
                add_time(time)
        elif keys is not None:
            pairs = [(buffer.keys.append, buffer.values.append) for buffer in buffers]
            for target, key, value in zip(targets, keys, values, strict=True):
                add_key, add_value = pairs[target]
                add_key(key)
                add_value(value)
        elif times is not None:
            timed = [(buffer.values.append, buffer.timestamps.append) for buffer in buffers]
            for target, value, time in zip(targets, values, times, strict=True):
                add_value, add_time = timed[target]
                add_value(value)
                add_time(time)
        else:
            plain = [buffer.values.append for buffer in buffers]
            for target, value in zip(targets, values, strict=True):
                plain[target](value)
        for target, buffer in enumerate(buffers):
            if buffer.timestamps and len(buffer.timestamps) < len(buffer.values):
                buffer.timestamps.extend([LONG_MIN] * (len(buffer.values) - len(buffer.timestamps)))
            if len(buffer.values) >= CHUNK_RECORDS:
                self._send(target, buffer)

    def _send(self, target: int, buffer: ChunkBuffer) -> None:
        quiet = buffer.sequence == 0 and not buffer.values
        blob, start = buffer.take()
        # Announcements come first in every order, then channels that have no records in this epoch: they must not hold
        # back the event time of channels that happen to be taken before them.
        first = _QUIET if quiet else max(start, _DATA)
        self.emit(ChunkRow(self.level, target, self.channel, buffer.sequence, first, blob))
        buffer.sequence += 1


def _extend_times(buffer: ChunkBuffer, times: list[int] | None, count: int, start: bool = False) -> None:
    """Timestamps of a chunk are all there or none: pad with "no timestamp" where a batch without them meets one
    with."""
    held = len(buffer.values)
    if (times is not None or start) and len(buffer.timestamps) < held:
        buffer.timestamps.extend([LONG_MIN] * (held - len(buffer.timestamps)))
    if times is not None:
        buffer.timestamps.extend(times)
    elif buffer.timestamps:
        buffer.timestamps.extend([LONG_MIN] * count)


class Routing(ABC):
    """Decides on keys and targets of a batch; ``state`` is what it remembers between epochs."""

    state: Any = None

    def open(self) -> None:
        """Open a rich key selector or partitioner."""
        return

    def close(self) -> None:
        """Close it."""
        return

    @abstractmethod
    def route(self, batch: Batch) -> tuple[list[Any] | None, list[int] | int | None]:
        """Keys (or None) and targets: one for each record, one int for all of them, or None for everywhere."""


class _Fixed(Routing):
    """All records of the task to one target, or (None) to all of them."""

    def __init__(self, target: int | None, keyed: bool = False) -> None:
        self.target = target
        self.keyed = keyed

    def route(self, batch: Batch) -> tuple[list[Any] | None, list[int] | int | None]:
        keys = [ALL_KEY] * len(batch) if self.keyed else batch.keys
        return keys, self.target


class _RoundRobin(Routing):
    """Takes turns over a range of targets; ``state`` counts on across epochs, so the cuts between them do not show."""

    def __init__(self, targets: range, first: int) -> None:
        self.targets = targets
        self.state = first % len(targets)

    def route(self, batch: Batch) -> tuple[list[Any] | None, list[int] | int | None]:
        count, width, first = len(batch), len(self.targets), self.targets[0]
        turn: int = self.state
        self.state = (turn + count) % width
        if width == 1:
            return None, first
        return None, [first + (turn + index) % width for index in range(count)]


class _Shuffled(Routing):
    """Evenly and without a pattern, but the same way in every replay: the n-th record's target follows from n."""

    def __init__(self, targets: int, task: int) -> None:
        self.targets = targets
        self.state = task + 1

    def route(self, batch: Batch) -> tuple[list[Any] | None, list[int] | int | None]:
        state: int = self.state
        targets = []
        for _ in batch.values:
            state = (state * _LCG_FACTOR + _LCG_STEP) & _LCG_MASK
            targets.append((state >> 33) % self.targets)
        self.state = state
        return None, targets


class _Keyed(Routing):
    """To the owner of the key group of the record's key."""

    def __init__(self, partitioner: KeyBy, router: KeyRouter, context: OperatorContext) -> None:
        self.selector = partitioner.selector
        self.function = UserFunction(partitioner.function, "get_key")
        self.router = router
        self.context = context

    def open(self) -> None:
        self.function.open(self.context)

    def close(self) -> None:
        self.function.close()

    def route(self, batch: Batch) -> tuple[list[Any] | None, list[int] | int | None]:
        records = iter(batch.values)
        try:
            keys = list(map(self.selector, records))
        except Exception as error:
            raise RecordFailure(error, self.context, "key_by", last_taken(records, batch.values)) from error
        try:
            return keys, self.router.route(keys)
        except TypeError as error:
            culprit = next((value for key, value in zip(keys, batch.values, strict=True) if not _hashable(key)), None)
            raise RecordFailure(error, self.context, "key_by", culprit) from error


class _CustomRouting(Routing):
    """To the task that the user's partitioner names."""

    def __init__(self, partitioner: Custom, targets: int, context: OperatorContext) -> None:
        self.partitioner = partitioner
        self.functions = [UserFunction(function, "partition") for function in partitioner.functions]
        self.targets = targets
        self.context = context

    def open(self) -> None:
        for function in self.functions:
            function.open(self.context)

    def close(self) -> None:
        for function in self.functions:
            function.close()

    def route(self, batch: Batch) -> tuple[list[Any] | None, list[int] | int | None]:
        records = iter(batch.values)
        partition, selector, width = self.partitioner.partition, self.partitioner.selector, self.targets
        try:
            targets = [self._checked(partition(selector(value), width)) for value in records]
        except Exception as error:
            raise RecordFailure(error, self.context, "partition_custom", last_taken(records, batch.values)) from error
        return None, targets

    def _checked(self, target: int) -> int:
        if not isinstance(target, int) or not 0 <= target < self.targets:
            message = f"the partitioner answered {target!r}: there are {self.targets} partitions, numbered from 0"
            raise GraphError(message)
        return target


def _hashable(key: Any) -> bool:
    try:
        hash(key)
    except TypeError:
        return False
    return True


def make_router(
    partitioner: Partitioner,
    *,
    task: int,
    tasks: int,
    targets: int,
    max_parallelism: int,
    context: OperatorContext,
) -> Routing:
    """The routing of a partitioner, as seen from one sending task."""
    match partitioner:
        case KeyBy():
            return _Keyed(partitioner, KeyRouter(targets, max_parallelism), context)
        case Forward():
            return _Fixed(task % targets)
        case Global():
            return _Fixed(0, partitioner.keyed)
        case Broadcast():
            return _Fixed(None)
        case Rebalance():
            return _RoundRobin(range(targets), task)
        case Rescale():
            return _RoundRobin(rescale_targets(task, tasks, targets), task)
        case Shuffle():
            return _Shuffled(targets, task)
        case Custom():
            return _CustomRouting(partitioner, targets, context)
    message = f"no routing for {partitioner!r}"
    raise GraphError(message)


def rescale_targets(task: int, tasks: int, targets: int) -> range:
    """The targets that are one task's share: several of them when there are more targets than tasks, else one.

    >>> rescale_targets(0, 2, 4), rescale_targets(1, 2, 4), rescale_targets(3, 4, 2)
    (range(0, 2), range(2, 4), range(1, 2))
    """
    if targets <= tasks:
        target = task * targets // tasks
        return range(target, target + 1)
    return range(task * targets // tasks, (task + 1) * targets // tasks)
