"""Records made by a function of their number, at a chosen rate."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, Final, Generic, TypeVar

from millrace.connectors.collection import BATCH_RECORDS
from millrace.errors import GraphError
from millrace.runtime.source import Source

__all__ = ["GeneratorSource"]

T = TypeVar("T")

ENDLESS_STEP: Final = 100_000
"""How many records of a split make an epoch when the stream has no end and nobody set a limit."""


class GeneratorSource(Source[T], Generic[T]):
    """``function(0)``, ``function(1)``, ... up to ``count`` records, or without end.

    The numbers are dealt out to the splits in turn, so that all splits move through them together. With a rate, as many
    records come as are due since the source was started.

    >>> source = GeneratorSource(lambda index: index * 10, count=5, splits=2)
    >>> source.splits(4)
    {'0/2': 0, '1/2': 0}
    >>> list(source.read("1/2", 0, 2))
    [[10, 30]]
    """

    def __init__(
        self,
        function: Callable[[int], T],
        count: int | None = None,
        records_per_second: float | None = None,
        splits: int | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if not callable(function):
            message = f"a generator source needs a function of the record's number, not {function!r}"
            raise GraphError(message)
        if count is not None and count < 1:
            message = f"a generator source with count={count} gives nothing: use 1 or more, or None for no end"
            raise GraphError(message)
        if records_per_second is not None and records_per_second <= 0:
            message = f"records_per_second={records_per_second}: use a rate above 0, or None for no limit"
            raise GraphError(message)
        if splits is not None and splits < 1:
            message = f"a generator source with {splits} splits cannot be read: use 1 or more"
            raise GraphError(message)
        self.function = function
        self.count = count
        self.records_per_second = records_per_second
        self.bounded = count is not None
        self.paced = records_per_second is not None
        self._splits = splits
        self._clock = clock
        self._started: dict[str, tuple[float, int]] = {}

    def __getstate__(self) -> dict[str, Any]:
        # When it was started is known to the driver alone, and workers have no use for a clock.
        return {**self.__dict__, "_started": {}, "_clock": time.monotonic}

    def open(self) -> None:
        self._started.clear()

    def splits(self, parallelism: int) -> dict[str, int]:
        width = self._splits or parallelism
        if self.count is not None:
            width = min(width, self.count)
        return {f"{index}/{width}": 0 for index in range(width)}

    def advance(self, split: str, position: int, limit: int | None) -> tuple[int, bool]:
        index, width = _numbers(split)
        stop = None if self.count is None else -(-(self.count - index) // width)
        if limit is None and stop is not None:
            return stop, True
        end = position + (ENDLESS_STEP if limit is None else limit)
        if self.records_per_second is not None:
            end = min(end, self._due(split, position, width))
        if stop is not None:
            end = min(end, stop)
        return end, end == stop

    def read(self, split: str, start: int, end: int) -> Iterator[list[T]]:
        index, width = _numbers(split)
        function = self.function
        for first in range(start, end, BATCH_RECORDS):
            last = min(first + BATCH_RECORDS, end)
            yield [function(number) for number in range(first * width + index, last * width + index, width)]

    def _due(self, split: str, position: int, width: int) -> int:
        """How far the split may have come by now; the count starts when the split is first asked."""
        assert self.records_per_second is not None
        now = self._clock()
        since, from_position = self._started.setdefault(split, (now, position))
        return max(position, from_position + int((now - since) * self.records_per_second / width))


def _numbers(split: str) -> tuple[int, int]:
    index, width = split.split("/")
    return int(index), int(width)
