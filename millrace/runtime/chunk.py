"""Chunks: what crosses an exchange.

A row that Spark moves is not a record but a chunk of thousands of records, with the watermarks that stand between
them, so that neither the JVM nor the crossing into Python is paid for per record.
"""

from __future__ import annotations

from array import array
from typing import Any, Final, NamedTuple

from millrace.common.constants import LONG_MIN
from millrace.runtime.codec import dump_records, load_records

__all__ = ["CHUNK_RECORDS", "DRIVER", "ChunkBuffer", "ChunkRow", "Mark", "channel_id", "channel_task", "decode"]

CHUNK_RECORDS: Final = 8192
"""Records of a full chunk: large enough that its costs vanish among the records, small enough to keep channels
interleaved."""

DRIVER: Final = 1 << 20
"""The level of rows that are meant for the driver: commit rows, printed lines, collected records, errors."""

_TASK_BITS: Final = 24


class ChunkRow(NamedTuple):
    """One row of the exchange, in the order of its columns.

    Rows are taken in the order (watermark, channel, sequence), a pure function of the data (rule M2).
    """

    level: int
    target: int
    channel: int
    sequence: int
    watermark: int
    blob: bytes


class Mark(NamedTuple):
    """Something that stands between two records: a watermark, or (when ``watermark`` is None) a change of idleness."""

    position: int
    watermark: int | None
    idle: bool = False


def channel_id(edge: int, task: int) -> int:
    """A channel is an edge of the graph together with the task that feeds it.

    >>> channel_id(1, 3)
    16777219
    """
    return (edge << _TASK_BITS) | task


def channel_edge(channel: int) -> int:
    """The edge of a channel."""
    return channel >> _TASK_BITS


def channel_task(channel: int) -> int:
    """The task that feeds a channel."""
    return channel & ((1 << _TASK_BITS) - 1)


class ChunkBuffer:
    """The chunk being filled for one target task.

    >>> buffer = ChunkBuffer()
    >>> buffer.values.append("a")
    >>> buffer.mark(5)
    >>> buffer.mark(7)
    >>> decode(buffer.take()[0])
    (None, ['a'], None, [Mark(position=1, watermark=7, idle=False)])
    """

    __slots__ = ("keys", "marks", "sequence", "start", "timestamps", "values", "watermark")

    def __init__(self) -> None:
        self.keys: list[Any] = []
        self.values: list[Any] = []
        self.timestamps: list[int] = []
        self.marks: list[Mark] = []
        self.start = LONG_MIN
        self.watermark = LONG_MIN
        self.sequence = 0

    def mark(self, watermark: int) -> None:
        """A watermark after the records so far; it replaces one that no record has followed."""
        position = len(self.values)
        if self.marks and self.marks[-1].position == position and self.marks[-1].watermark is not None:
            self.marks.pop()
        self.marks.append(Mark(position, watermark))
        self.watermark = watermark

    def mark_idle(self, idle: bool) -> None:
        """A change of idleness after the records so far."""
        self.marks.append(Mark(len(self.values), None, idle))

    def __bool__(self) -> bool:
        return bool(self.values or self.marks)

    def take(self) -> tuple[bytes, int]:
        """The chunk's bytes and the watermark it starts with; the buffer is empty afterwards."""
        times = array("q", self.timestamps).tobytes() if self.timestamps else None
        blob = dump_records((self.keys or None, self.values, times, self.marks))
        start = self.start
        self.keys, self.values, self.timestamps, self.marks = [], [], [], []
        self.start = self.watermark
        return blob, start


def decode(blob: bytes | memoryview) -> tuple[list[Any] | None, list[Any], list[int] | None, list[Mark]]:
    """Keys, values, timestamps and marks of a chunk."""
    keys, values, packed, marks = load_records(blob)
    if packed is None:
        return keys, values, None, marks
    times = array("q")
    times.frombytes(packed)
    return keys, values, times.tolist(), marks
