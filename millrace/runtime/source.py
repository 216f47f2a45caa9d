"""Sources that Millrace reads itself: replayable, split by split, from position to position."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, Generic, TypeVar

from millrace.runtime.operator import Batch

__all__ = ["ReadFailure", "ReadRange", "Source", "read_interleaved"]

T = TypeVar("T")

_OPEN_READERS: Final = 32
"""Splits that a task reads in turn; a task with thousands of files must not open them all."""


class Source(ABC, Generic[T]):
    """A stream that can be read again: numbered splits, each with positions that can be written down as JSON.

    The driver asks ``splits`` and ``advance`` to plan an epoch; tasks ``read`` exactly the planned ranges, as often
    as a failure makes it necessary. That is all it takes for exactly-once input.

    >>> class Letters(Source[str]):
    ...     bounded = True
    ...     def splits(self, parallelism): return {"a-z": 0}
    ...     def advance(self, split, position, limit):
    ...         end = 26 if limit is None else min(26, position + limit)
    ...         return end, end == 26
    ...     def read(self, split, start, end):
    ...         yield [chr(97 + n) for n in range(start, end)]
    >>> list(Letters().read("a-z", 0, 3))
    [['a', 'b', 'c']]
    """

    bounded: bool = False
    """Whether every split comes to an end."""

    paced: bool = False
    """Whether records come at a rate, so that even a bounded source has to be read epoch by epoch."""

    parallel: bool = True
    """Whether several tasks may read; a source that must keep one total order says False."""

    @abstractmethod
    def splits(self, parallelism: int) -> dict[str, Any]:
        """The splits there are now, with the position each starts at. Asked again for every epoch: new ones may
        appear."""

    @abstractmethod
    def advance(self, split: str, position: Any, limit: int | None) -> tuple[Any, bool]:
        """How far to read next: an end position, about ``limit`` records on (None: as far as there is), and whether the
        split is over there."""

    @abstractmethod
    def read(self, split: str, start: Any, end: Any) -> Iterable[list[T] | Batch]:
        """The records between two positions, in lists of some thousands, or as batches when they have timestamps."""

    def open(self) -> None:
        """Called on the driver before the first epoch."""
        return

    def close(self) -> None:
        """Called on the driver after the last epoch."""
        return


@dataclass(frozen=True)
class ReadRange:
    """A piece of work for one task: the records of a split between two positions."""

    source: str
    split: str
    start: Any
    end: Any
    finished: bool

    @property
    def key(self) -> str:
        """The split's name, unique in the job."""
        return f"{self.source}/{self.split}"


class ReadFailure(Exception):
    """A source raised while it was read."""

    def __init__(self, piece: ReadRange, error: Exception) -> None:
        super().__init__(f"{type(error).__name__} in split {piece.split} of source {piece.source}")
        self.piece = piece
        self.error = error


def read_interleaved(sources: dict[str, Source[Any]], ranges: list[ReadRange]) -> Iterator[tuple[ReadRange, Batch]]:
    """The batches of several splits in turn, so that event time advances in all of them together."""
    waiting = iter(ranges)
    readers: list[tuple[ReadRange, Iterator[list[Any] | Batch]]] = []
    while True:
        for piece in islice(waiting, _OPEN_READERS - len(readers)):
            readers.append((piece, iter(sources[piece.source].read(piece.split, piece.start, piece.end))))
        if not readers:
            return
        still_open = []
        for piece, reader in readers:
            try:
                batch = next(reader, None)
            except Exception as error:
                raise ReadFailure(piece, error) from error
            if batch is None:
                continue
            still_open.append((piece, reader))
            if batch:
                yield piece, batch if isinstance(batch, Batch) else Batch(batch)
        readers = still_open
