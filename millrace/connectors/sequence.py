"""A range of whole numbers as a stream."""

from __future__ import annotations

from collections.abc import Iterator

from millrace.connectors.collection import BATCH_RECORDS
from millrace.errors import GraphError
from millrace.runtime.source import Source

__all__ = ["NumberSequenceSource"]


class NumberSequenceSource(Source[int]):
    """The numbers from ``start`` to ``end``, both included; each task reads a range of its own.

    The position of a split is the next number, and its name says which range it is.

    >>> source = NumberSequenceSource(1, 5)
    >>> source.splits(2)
    {'1..3': 1, '4..5': 4}
    >>> list(source.read("4..5", 4, 6))
    [[4, 5]]
    """

    bounded = True

    def __init__(self, start: int, end: int) -> None:
        if start > end:
            message = f"a sequence from {start} to {end} has no numbers: the start must not be greater than the end"
            raise GraphError(message)
        self.start = start
        self.end = end

    def splits(self, parallelism: int) -> dict[str, int]:
        count = self.end - self.start + 1
        parts = min(parallelism, count)
        base, longer = divmod(count, parts)
        splits = {}
        first = self.start
        for index in range(parts):
            last = first + base + (1 if index < longer else 0) - 1
            splits[f"{first}..{last}"] = first
            first = last + 1
        return splits

    def advance(self, split: str, position: int, limit: int | None) -> tuple[int, bool]:
        stop = int(split.split("..")[1]) + 1
        end = stop if limit is None else min(stop, position + limit)
        return end, end == stop

    def read(self, split: str, start: int, end: int) -> Iterator[list[int]]:
        for first in range(start, end, BATCH_RECORDS):
            yield list(range(first, min(first + BATCH_RECORDS, end)))
