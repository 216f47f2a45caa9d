"""A source for tests: the splits are lists, given by hand."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from millrace.runtime.source import Source

__all__ = ["SplitSource"]


class SplitSource(Source[Any]):
    """Reads each list as a split, in batches of a few records."""

    bounded = True

    def __init__(self, splits: list[list[Any]], batch: int = 3) -> None:
        self.lists = splits
        self.batch = batch

    def splits(self, parallelism: int) -> dict[str, int]:
        return {str(index): 0 for index in range(len(self.lists))}

    def advance(self, split: str, position: int, limit: int | None) -> tuple[int, bool]:
        size = len(self.lists[int(split)])
        end = size if limit is None else min(size, position + limit)
        return end, end == size

    def read(self, split: str, start: int, end: int) -> Iterator[list[Any]]:
        for first in range(start, end, self.batch):
            yield self.lists[int(split)][first : min(end, first + self.batch)]
