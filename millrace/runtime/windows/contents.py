"""What a window keeps of its records: one reduced value, an accumulator, or all of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from copy import copy
from typing import Any, Final

from millrace.runtime.functions import UserFunction
from millrace.runtime.operator import OperatorContext

__all__ = ["STATE_NAMES", "AggregateContents", "Contents", "ListContents", "ReduceContents"]

ABSENT: Final[Any] = object()

STATE_NAMES: Final = {
    "window-reduce": "a value made by reduce()",
    "window-aggregate": "an accumulator of aggregate()",
    "window-list": "a list of records",
    "window-buffer": "records with their timestamps, for an evictor",
}
"""The names under which contents are stored, and what that is."""

_IMMUTABLE: Final = frozenset({int, float, complex, str, bytes, bool, type(None), tuple, frozenset})


class Contents(ABC):
    """How records become the contents of a window, and how the contents become what the window function sees.

    >>> contents = ReduceContents(lambda a, b: a + b)
    >>> pane = {}
    >>> contents.fold(pane, ["x", "y", "x"], iter([1, 2, 3]))
    >>> pane
    {'x': 4, 'y': 2}
    """

    method: str
    """For messages."""
    state_name: str
    """Of the table that keeps the contents."""
    incremental: bool = True
    """Whether a window has one element for its function, however many records it took."""
    shared: bool = False
    """Whether a record may become the contents of several windows, or is somebody else's as well."""

    @abstractmethod
    def fold(self, pane: dict[Any, Any], keys: Iterable[Any], values: Iterator[Any]) -> None:
        """Add records, each to the contents of its key; the loop that most of the time of a job is spent in."""

    @abstractmethod
    def start(self, value: Any) -> Any:
        """The contents of a window with one record."""

    @abstractmethod
    def add(self, held: Any, value: Any) -> Any:
        """The contents with one record more."""

    @property
    def adder(self) -> Callable[[Any, Any], Any]:
        """What add() does, without the way through this object if there is a shorter one."""
        return self.add

    @abstractmethod
    def merge(self, first: Any, second: Any) -> Any:
        """The contents of two windows that have become one."""

    @abstractmethod
    def elements(self, held: Any) -> list[Any]:
        """What the window function gets; the contents stay as they are, whatever the function does to the list."""

    def results(self, held: Iterable[Any]) -> list[Any]:
        """The elements of many windows, one after the other."""
        return [element for one in held for element in self.elements(one)]

    @property
    def function(self) -> UserFunction | None:
        """The user's function that makes the contents, if there is one."""
        return None

    def open(self, context: OperatorContext) -> None:
        """Before the first record."""
        return

    def close(self) -> None:
        """After the last record."""
        return


class ReduceContents(Contents):
    """One value, into which each record is folded.

    >>> ReduceContents(max).add(3, 5)
    5
    """

    method = "reduce()"
    state_name = "window-reduce"

    def __init__(self, function: Any) -> None:
        self._user = UserFunction(function, "reduce", role="contents")
        self._reduce = self._user.call

    def fold(self, pane: dict[Any, Any], keys: Iterable[Any], values: Iterator[Any]) -> None:
        reduce, get, absent = self._reduce, pane.get, ABSENT
        if self.shared:
            start = self.start
            for key, value in zip(keys, values, strict=True):
                held = get(key, absent)
                pane[key] = start(value) if held is absent else reduce(held, value)
            return
        for key, value in zip(keys, values, strict=True):
            held = get(key, absent)
            pane[key] = value if held is absent else reduce(held, value)

    def start(self, value: Any) -> Any:
        # A reduce function that writes to its first argument must not write to the contents of another window.
        return copy(value) if self.shared and type(value) not in _IMMUTABLE else value

    def add(self, held: Any, value: Any) -> Any:
        return self._reduce(held, value)

    @property
    def adder(self) -> Callable[[Any, Any], Any]:
        return self._reduce

    def merge(self, first: Any, second: Any) -> Any:
        return self._reduce(first, second)

    def elements(self, held: Any) -> list[Any]:
        return [held]

    def results(self, held: Iterable[Any]) -> list[Any]:
        return list(held)

    @property
    def function(self) -> UserFunction:
        return self._user

    def open(self, context: OperatorContext) -> None:
        self._user.open(context)

    def close(self) -> None:
        self._user.close()


class AggregateContents(Contents):
    """An accumulator that an AggregateFunction looks after.

    >>> class Mean:
    ...     def create_accumulator(self): return (0, 0)
    ...     def add(self, value, accumulator): return (accumulator[0] + value, accumulator[1] + 1)
    ...     def get_result(self, accumulator): return accumulator[0] / accumulator[1]
    >>> contents = AggregateContents(Mean())
    >>> contents.elements(contents.add(contents.start(1), 2))
    [1.5]
    """

    method = "add()"
    state_name = "window-aggregate"

    def __init__(self, function: Any) -> None:
        self._function = function
        self._user = UserFunction(function, "add", role="contents")

    def fold(self, pane: dict[Any, Any], keys: Iterable[Any], values: Iterator[Any]) -> None:
        create, add = self._function.create_accumulator, self._function.add
        get, absent = pane.get, ABSENT
        for key, value in zip(keys, values, strict=True):
            held = get(key, absent)
            pane[key] = add(value, create() if held is absent else held)

    def start(self, value: Any) -> Any:
        return self._function.add(value, self._function.create_accumulator())

    def add(self, held: Any, value: Any) -> Any:
        return self._function.add(value, held)

    def merge(self, first: Any, second: Any) -> Any:
        return self._function.merge(first, second)

    def elements(self, held: Any) -> list[Any]:
        return [self._function.get_result(held)]

    def results(self, held: Iterable[Any]) -> list[Any]:
        return list(map(self._function.get_result, held))

    @property
    def function(self) -> UserFunction:
        return self._user

    def open(self, context: OperatorContext) -> None:
        self._user.open(context)

    def close(self) -> None:
        self._user.close()


class ListContents(Contents):
    """All records, in order of arrival.

    >>> ListContents().add(["a"], "b")
    ['a', 'b']
    """

    method = "window()"
    state_name = "window-list"
    incremental = False

    def fold(self, pane: dict[Any, Any], keys: Iterable[Any], values: Iterator[Any]) -> None:
        get = pane.get
        for key, value in zip(keys, values, strict=True):
            held = get(key)
            if held is None:
                pane[key] = [value]
            else:
                held.append(value)

    def start(self, value: Any) -> Any:
        return [value]

    def add(self, held: Any, value: Any) -> Any:
        held.append(value)
        return held

    def merge(self, first: Any, second: Any) -> Any:
        first.extend(second)
        return first

    def elements(self, held: Any) -> list[Any]:
        return held[:]  # type: ignore[no-any-return]
