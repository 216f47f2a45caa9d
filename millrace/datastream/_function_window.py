"""Window functions: called with the records of a window when it gives a result."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, Generic, TypeVar

from millrace.common.output_tag import OutputTag
from millrace.datastream._function_basic import Function
from millrace.datastream._keyed_state_store import KeyedStateStore
from millrace.runtime.windows.functions import WindowContext

__all__ = ["AllWindowFunction", "ProcessAllWindowFunction", "ProcessWindowFunction", "WindowFunction"]

IN = TypeVar("IN")
OUT = TypeVar("OUT")
KEY = TypeVar("KEY")
W = TypeVar("W")
W2 = TypeVar("W2")


class WindowFunction(Function, Generic[IN, OUT, KEY, W]):
    """Makes results of the records of one window of one key.

    >>> class Count(WindowFunction):
    ...     def apply(self, key, window, inputs): return [(key, len(list(inputs)))]
    >>> Count().apply("a", None, [1, 2])
    [('a', 2)]
    """

    @abstractmethod
    def apply(self, key: KEY, window: W, inputs: Iterable[IN]) -> Iterable[OUT] | None:
        """The results of the window; None stands for none."""


class AllWindowFunction(Function, Generic[IN, OUT, W]):
    """Makes results of the records of one window over the whole stream.

    >>> class Count(AllWindowFunction):
    ...     def apply(self, window, inputs): yield len(list(inputs))
    >>> list(Count().apply(None, [1, 2]))
    [2]
    """

    @abstractmethod
    def apply(self, window: W, inputs: Iterable[IN]) -> Iterable[OUT] | None:
        """The results of the window; None stands for none."""


class _WindowContext(ABC, Generic[W2]):
    """What a process window function sees besides the records."""

    @abstractmethod
    def window(self) -> W2:
        """The window at hand."""

    @abstractmethod
    def current_processing_time(self) -> int:
        """The clock of this task, in milliseconds."""

    @abstractmethod
    def current_watermark(self) -> int:
        """Event time as far as this task knows it."""

    @abstractmethod
    def window_state(self) -> KeyedStateStore:
        """State of this key and this window; not for windows that merge. Clear it in ``clear``."""

    @abstractmethod
    def global_state(self) -> KeyedStateStore:
        """State of this key, the same for all its windows."""

    @abstractmethod
    def output(self, tag: OutputTag, value: Any) -> None:
        """Send a value to a side output."""


class ProcessWindowFunction(Function, Generic[IN, OUT, KEY, W]):
    """Makes results of a window and sees its context: time, state per window, side outputs.

    >>> class Total(ProcessWindowFunction):
    ...     def process(self, key, context, elements): yield key, sum(elements)
    >>> list(Total().process("a", None, [1, 2]))
    [('a', 3)]
    """

    class Context(_WindowContext[W2]):
        """What a ProcessWindowFunction sees besides the records."""

    @abstractmethod
    def process(
        self, key: KEY, context: ProcessWindowFunction.Context[W], elements: Iterable[IN]
    ) -> Iterable[OUT] | None:
        """The results of the window; None stands for none."""

    def clear(self, context: ProcessWindowFunction.Context[W]) -> None:
        """The window goes: clear what ``context.window_state()`` holds."""
        return


class ProcessAllWindowFunction(Function, Generic[IN, OUT, W]):
    """Makes results of a window over the whole stream and sees its context.

    >>> class Total(ProcessAllWindowFunction):
    ...     def process(self, context, elements): yield sum(elements)
    >>> list(Total().process(None, [1, 2]))
    [3]
    """

    class Context(_WindowContext[W2]):
        """What a ProcessAllWindowFunction sees besides the records."""

    @abstractmethod
    def process(self, context: ProcessAllWindowFunction.Context[W], elements: Iterable[IN]) -> Iterable[OUT] | None:
        """The results of the window; None stands for none."""

    def clear(self, context: ProcessAllWindowFunction.Context[W]) -> None:
        """The window goes: clear what ``context.window_state()`` holds."""
        return


ProcessWindowFunction.Context.register(WindowContext)
ProcessAllWindowFunction.Context.register(WindowContext)
