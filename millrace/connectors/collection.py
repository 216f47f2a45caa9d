"""A list as a stream."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from millrace.runtime.source import Source

__all__ = ["CollectionSource"]

BATCH_RECORDS: Final = 4096
"""How many records a source hands on at a time."""


class CollectionSource(Source[Any]):
    """Gives the elements of a list in their order, in one split; the position is the index of the next element.

    >>> source = CollectionSource(["a", "b", "c"])
    >>> source.advance("0", 0, 2)
    (2, False)
    >>> list(source.read("0", 0, 2))
    [['a', 'b']]
    """

    bounded = True
    parallel = False

    def __init__(self, values: Sequence[Any]) -> None:
        self._values = list(values)

    @property
    def first(self) -> Any:
        """The first element: what a program says about fields can be checked against it."""
        return self._values[0]

    def splits(self, parallelism: int) -> dict[str, int]:
        return {"0": 0}

    def advance(self, split: str, position: int, limit: int | None) -> tuple[int, bool]:
        count = len(self._values)
        end = count if limit is None else min(count, position + limit)
        return end, end == count

    def read(self, split: str, start: int, end: int) -> Iterator[list[Any]]:
        for first in range(start, end, BATCH_RECORDS):
            yield self._values[first : min(first + BATCH_RECORDS, end)]
