"""Process functions: records with their time, their key, timers and side outputs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from millrace.common.output_tag import OutputTag
from millrace.datastream._function_basic import Function
from millrace.runtime.operators.process import ProcessContext, TimeDomain
from millrace.runtime.timer_service import TimerService

__all__ = [
    "CoProcessFunction",
    "KeyedCoProcessFunction",
    "KeyedProcessFunction",
    "ProcessFunction",
]


class _Context(ABC):
    """What every process function sees of the record it is at."""

    @abstractmethod
    def timestamp(self) -> int | None:
        """The record's timestamp in milliseconds, None if it has none; in on_timer, the time of the timer."""

    @abstractmethod
    def timer_service(self) -> TimerService:
        """Time, and on keyed streams timers."""

    @abstractmethod
    def output(self, tag: OutputTag, value: Any) -> None:
        """Send a value to a side output; ``yield tag, value`` does the same."""


class _KeyedContext(_Context):
    """The context on a keyed stream."""

    @abstractmethod
    def get_current_key(self) -> Any:
        """The key of the record or timer."""


class _TimerContext(_KeyedContext):
    """The context of on_timer."""

    @abstractmethod
    def time_domain(self) -> TimeDomain:
        """Which clock has rung."""


class ProcessFunction(Function):
    """Sees each record with its context; emits by ``yield`` or by returning an iterable.

    >>> late = OutputTag("late")
    >>> class Route(ProcessFunction):
    ...     def process_element(self, value, ctx):
    ...         if value < 0:
    ...             yield late, value
    ...         else:
    ...             yield value
    >>> list(Route().process_element(1, None)), list(Route().process_element(-1, None))
    ([1], [(OutputTag('late'), -1)])
    """

    class Context(_Context):
        """What a ProcessFunction sees of the record it is at."""

    @abstractmethod
    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Iterable[Any] | None:
        """Called for each record; None stands for no output."""


class KeyedProcessFunction(Function):
    """Sees each record of a keyed stream, keeps state for its key and sets timers.

    >>> from millrace.state import ValueStateDescriptor
    >>> class Latest(KeyedProcessFunction):
    ...     def open(self, runtime_context):
    ...         self.latest = runtime_context.get_state(ValueStateDescriptor("latest"))
    ...     def process_element(self, value, ctx):
    ...         self.latest.update(value)
    ...         ctx.timer_service().register_event_time_timer(ctx.timestamp() + 1000)
    ...     def on_timer(self, timestamp, ctx):
    ...         yield ctx.get_current_key(), self.latest.value()
    """

    class Context(_KeyedContext):
        """What a KeyedProcessFunction sees of the record it is at."""

    class OnTimerContext(_TimerContext):
        """What a KeyedProcessFunction sees when a timer fires."""

    @abstractmethod
    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterable[Any] | None:
        """Called for each record, with keyed state set to its key."""

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterable[Any] | None:
        """Called when a timer fires, with keyed state set to the key that registered it."""
        return None


class CoProcessFunction(Function):
    """Sees the records of two connected streams.

    >>> class Both(CoProcessFunction):
    ...     def process_element1(self, value, ctx): yield "first", value
    ...     def process_element2(self, value, ctx): yield "second", value
    >>> list(Both().process_element2(1, None))
    [('second', 1)]
    """

    class Context(_Context):
        """What a CoProcessFunction sees of the record it is at."""

    @abstractmethod
    def process_element1(self, value: Any, ctx: CoProcessFunction.Context) -> Iterable[Any] | None:
        """Called for each record of the first stream."""

    @abstractmethod
    def process_element2(self, value: Any, ctx: CoProcessFunction.Context) -> Iterable[Any] | None:
        """Called for each record of the second stream."""


class KeyedCoProcessFunction(Function):
    """Sees the records of two connected keyed streams; state and timers of a key are common to both.

    >>> class Paired(KeyedCoProcessFunction):
    ...     def process_element1(self, value, ctx): yield ctx.get_current_key(), value
    ...     def process_element2(self, value, ctx): return None
    """

    class Context(_KeyedContext):
        """What a KeyedCoProcessFunction sees of the record it is at."""

    class OnTimerContext(_TimerContext):
        """What a KeyedCoProcessFunction sees when a timer fires."""

    @abstractmethod
    def process_element1(self, value: Any, ctx: KeyedCoProcessFunction.Context) -> Iterable[Any] | None:
        """Called for each record of the first stream."""

    @abstractmethod
    def process_element2(self, value: Any, ctx: KeyedCoProcessFunction.Context) -> Iterable[Any] | None:
        """Called for each record of the second stream."""

    def on_timer(self, timestamp: int, ctx: KeyedCoProcessFunction.OnTimerContext) -> Iterable[Any] | None:
        """Called when a timer fires."""
        return None


# One runtime class serves all of these contexts.
for _context in (
    ProcessFunction.Context,
    KeyedProcessFunction.Context,
    KeyedProcessFunction.OnTimerContext,
    CoProcessFunction.Context,
    KeyedCoProcessFunction.Context,
    KeyedCoProcessFunction.OnTimerContext,
):
    _context.register(ProcessContext)
