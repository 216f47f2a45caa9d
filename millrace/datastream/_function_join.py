"""Functions that bring two streams together by key and time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from millrace.common.output_tag import OutputTag
from millrace.datastream._function_basic import Function

__all__ = ["CoGroupFunction", "FlatJoinFunction", "JoinFunction", "ProcessJoinFunction"]


class JoinFunction(Function):
    """Makes one record of each pair that a window join finds.

    >>> class Pair(JoinFunction):
    ...     def join(self, first, second): return first, second
    >>> Pair().join(1, 2)
    (1, 2)
    """

    @abstractmethod
    def join(self, first: Any, second: Any) -> Any:
        """The record for a pair of the same key and window."""


class FlatJoinFunction(Function):
    """Makes any number of records of each pair that a window join finds.

    >>> class Smaller(FlatJoinFunction):
    ...     def join(self, first, second):
    ...         if first < second:
    ...             yield first, second
    >>> list(Smaller().join(2, 1))
    []
    """

    @abstractmethod
    def join(self, first: Any, second: Any) -> Iterable[Any] | None:
        """The records for a pair of the same key and window."""


class CoGroupFunction(Function):
    """Sees all records that two streams have for a key and window, also when one of them has none.

    >>> class Missing(CoGroupFunction):
    ...     def co_group(self, first, second):
    ...         if not list(second):
    ...             yield from first
    >>> list(Missing().co_group([1], []))
    [1]
    """

    @abstractmethod
    def co_group(self, first: Iterable[Any], second: Iterable[Any]) -> Iterable[Any] | None:
        """The records for a key and window."""


class ProcessJoinFunction(Function):
    """Sees each pair that an interval join finds.

    >>> class Pair(ProcessJoinFunction):
    ...     def process_element(self, left, right, ctx): yield left, right
    >>> list(Pair().process_element(1, 2, None))
    [(1, 2)]
    """

    class Context(ABC):
        """The times of the pair, and side outputs."""

        @abstractmethod
        def get_left_timestamp(self) -> int:
            """The timestamp of the left record."""

        @abstractmethod
        def get_right_timestamp(self) -> int:
            """The timestamp of the right record."""

        @abstractmethod
        def get_timestamp(self) -> int:
            """The timestamp of the result: the later of the two."""

        @abstractmethod
        def output(self, tag: OutputTag, value: Any) -> None:
            """Send a value to a side output."""

    @abstractmethod
    def process_element(self, left: Any, right: Any, ctx: ProcessJoinFunction.Context) -> Iterable[Any] | None:
        """Called for each pair; None stands for no output."""
