"""The base of all user functions, and those that see one record at a time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from millrace.runtime.context import RuntimeContext

__all__ = [
    "AggregateFunction",
    "CoFlatMapFunction",
    "CoMapFunction",
    "FilterFunction",
    "FlatMapFunction",
    "Function",
    "KeySelector",
    "MapFunction",
    "Partitioner",
    "ReduceFunction",
]


class Function(ABC):  # noqa: B024
    """Base of all user functions: opened before the first record of a task, closed after the last.

    Connections, models and state handles belong into ``open``: it runs where the records are, while ``__init__`` runs
    where the program is built, and what it leaves on the object travels by pickle.

    >>> class Enrich(MapFunction):
    ...     def open(self, runtime_context): self.names = {1: "one"}
    ...     def map(self, value): return self.names[value]
    >>> enrich = Enrich()
    >>> enrich.open(None)
    >>> enrich.map(1)
    'one'
    """

    def open(self, runtime_context: RuntimeContext) -> None:
        """Called in each task before its first record."""
        return

    def close(self) -> None:
        """Called in each task after its last record."""
        return


class MapFunction(Function):
    """Makes one record of one record.

    >>> class Double(MapFunction):
    ...     def map(self, value): return value * 2
    >>> Double().map(21)
    42
    """

    @abstractmethod
    def map(self, value: Any) -> Any:
        """The record that takes the place of ``value``."""


class FlatMapFunction(Function):
    """Makes any number of records of one record.

    >>> class Words(FlatMapFunction):
    ...     def flat_map(self, value): yield from value.split()
    >>> list(Words().flat_map("to be"))
    ['to', 'be']
    """

    @abstractmethod
    def flat_map(self, value: Any) -> Iterable[Any] | None:
        """The records that take the place of ``value``, returned or yielded; None stands for none."""


class FilterFunction(Function):
    """Says which records stay.

    >>> class Even(FilterFunction):
    ...     def filter(self, value): return value % 2 == 0
    >>> Even().filter(3)
    False
    """

    @abstractmethod
    def filter(self, value: Any) -> bool:
        """Whether ``value`` stays."""


class ReduceFunction(Function):
    """Folds two records of a key, or of a window, into one of the same kind.

    >>> class Longest(ReduceFunction):
    ...     def reduce(self, value1, value2): return max(value1, value2, key=len)
    >>> Longest().reduce("a", "bb")
    'bb'
    """

    @abstractmethod
    def reduce(self, value1: Any, value2: Any) -> Any:
        """What is left of the two; ``value1`` is the result so far."""


class AggregateFunction(Function):
    """Gathers records in an accumulator and makes a result of it.

    >>> class Average(AggregateFunction):
    ...     def create_accumulator(self): return 0, 0
    ...     def add(self, value, accumulator): return accumulator[0] + value, accumulator[1] + 1
    ...     def get_result(self, accumulator): return accumulator[0] / accumulator[1]
    ...     def merge(self, acc_a, acc_b): return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]
    >>> average = Average()
    >>> average.get_result(average.add(4, average.add(2, average.create_accumulator())))
    3.0
    """

    @abstractmethod
    def create_accumulator(self) -> Any:
        """A new accumulator without records."""

    @abstractmethod
    def add(self, value: Any, accumulator: Any) -> Any:
        """The accumulator with ``value`` in it; the old one may be changed and returned."""

    @abstractmethod
    def get_result(self, accumulator: Any) -> Any:
        """What the accumulator amounts to."""

    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        """One accumulator for the records of both; needed for windows that merge, such as sessions."""
        message = f"{type(self).__name__} has no merge(acc_a, acc_b): windows that merge, such as sessions, need it"
        raise NotImplementedError(message)


class KeySelector(Function):
    """Reads the key of a record.

    >>> class ByUser(KeySelector):
    ...     def get_key(self, value): return value["user"]
    >>> ByUser().get_key({"user": "ann"})
    'ann'
    """

    @abstractmethod
    def get_key(self, value: Any) -> Any:
        """The key: hashable, picklable, and always the same for the same record."""


class Partitioner(Function):
    """Chooses the task that a key goes to, for ``partition_custom``.

    >>> class ByParity(Partitioner):
    ...     def partition(self, key, num_partitions): return key % num_partitions
    >>> ByParity().partition(7, 2)
    1
    """

    @abstractmethod
    def partition(self, key: Any, num_partitions: int) -> int:
        """The index of the task, from 0 to ``num_partitions - 1``."""


class CoMapFunction(Function):
    """Maps the records of two connected streams, each by a method of its own.

    >>> class Label(CoMapFunction):
    ...     def map1(self, value): return f"left {value}"
    ...     def map2(self, value): return f"right {value}"
    >>> Label().map2(1)
    'right 1'
    """

    @abstractmethod
    def map1(self, value: Any) -> Any:
        """What becomes of a record of the first stream."""

    @abstractmethod
    def map2(self, value: Any) -> Any:
        """What becomes of a record of the second stream."""


class CoFlatMapFunction(Function):
    """Makes any number of records of each record of two connected streams.

    >>> class Both(CoFlatMapFunction):
    ...     def flat_map1(self, value): yield value
    ...     def flat_map2(self, value): yield from value
    >>> list(Both().flat_map2([1, 2]))
    [1, 2]
    """

    @abstractmethod
    def flat_map1(self, value: Any) -> Iterable[Any] | None:
        """The records that a record of the first stream becomes."""

    @abstractmethod
    def flat_map2(self, value: Any) -> Iterable[Any] | None:
        """The records that a record of the second stream becomes."""
