"""Evictors: take records out of a window before or after its function has seen them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar

from millrace.common.constants import LONG_MIN
from millrace.common.time import millis
from millrace.metrics import MetricGroup
from millrace.runtime.windows.trigger import callable_of, positive

__all__ = ["CountEvictor", "DeltaEvictor", "Evictor", "TimeEvictor", "TimestampedValue"]

T = TypeVar("T")
W = TypeVar("W")


class TimestampedValue(NamedTuple):
    """A record in a window's buffer; the timestamp is LONG_MIN if it has none.

    >>> TimestampedValue("a", 5).has_timestamp()
    True
    """

    value: Any
    timestamp: int

    def get_value(self) -> Any:
        """The record."""
        return self.value

    def get_timestamp(self) -> int:
        """Its timestamp."""
        return self.timestamp

    def has_timestamp(self) -> bool:
        """Whether it has one."""
        return self.timestamp != LONG_MIN


class Evictor(ABC, Generic[T, W]):
    """Removes records from ``elements``, a list in order of arrival, in place; what stays is the window's new contents.

    >>> class DropNegative(Evictor):
    ...     def evict_before(self, elements, size, window, ctx):
    ...         elements[:] = [element for element in elements if element.value >= 0]
    ...     def evict_after(self, elements, size, window, ctx):
    ...         pass
    >>> buffer = [TimestampedValue(1, 0), TimestampedValue(-1, 0)]
    >>> DropNegative().evict_before(buffer, len(buffer), None, None)
    >>> buffer
    [TimestampedValue(value=1, timestamp=0)]
    """

    class EvictorContext(ABC):
        """What an evictor may ask for."""

        __slots__ = ()

        @abstractmethod
        def get_current_processing_time(self) -> int:
            """The clock of this task, in milliseconds."""

        @abstractmethod
        def get_metric_group(self) -> MetricGroup:
            """Where an evictor registers its own counters and gauges."""

        @abstractmethod
        def get_current_watermark(self) -> int:
            """Event time as far as this task knows it."""

    @abstractmethod
    def evict_before(self, elements: list[TimestampedValue], size: int, window: W, ctx: Evictor.EvictorContext) -> None:
        """Remove records that the window function is not to see."""

    @abstractmethod
    def evict_after(self, elements: list[TimestampedValue], size: int, window: W, ctx: Evictor.EvictorContext) -> None:
        """Remove records when the window function has seen them."""


class _OnceEvictor(Evictor[Any, Any]):
    """Does its work either before or after the window function."""

    do_evict_after: bool

    @abstractmethod
    def _evict(self, elements: list[TimestampedValue]) -> None:
        """Remove records, in place."""

    def evict_before(
        self, elements: list[TimestampedValue], size: int, window: Any, ctx: Evictor.EvictorContext
    ) -> None:
        if not self.do_evict_after:
            self._evict(elements)

    def evict_after(
        self, elements: list[TimestampedValue], size: int, window: Any, ctx: Evictor.EvictorContext
    ) -> None:
        if self.do_evict_after:
            self._evict(elements)


class CountEvictor(_OnceEvictor):
    """Keeps the newest ``max_count`` records, by arrival.

    >>> buffer = [TimestampedValue(n, n) for n in range(4)]
    >>> CountEvictor.of(2).evict_before(buffer, 4, None, None)
    >>> [element.value for element in buffer]
    [2, 3]
    """

    def __init__(self, max_count: int, do_evict_after: bool = False) -> None:
        self.max_count = positive(max_count, "the count of a CountEvictor", "CountEvictor.of(100)")
        self.do_evict_after = do_evict_after

    @staticmethod
    def of(max_count: int, do_evict_after: bool = False) -> CountEvictor:
        """Keep ``max_count`` records."""
        return CountEvictor(max_count, do_evict_after)

    def _evict(self, elements: list[TimestampedValue]) -> None:
        if len(elements) > self.max_count:
            del elements[: len(elements) - self.max_count]


class TimeEvictor(_OnceEvictor):
    """Keeps records that are less than ``window_size`` older than the newest; without timestamps it keeps all.

    >>> buffer = [TimestampedValue("a", 1000), TimestampedValue("b", 3000)]
    >>> TimeEvictor.of(2000).evict_before(buffer, 2, None, None)
    >>> [element.value for element in buffer]
    ['b']
    """

    def __init__(self, window_size: Any, do_evict_after: bool = False) -> None:
        example = "TimeEvictor.of(Time.seconds(10))"
        self.window_size = positive(millis(window_size), "the time of a TimeEvictor", example)
        self.do_evict_after = do_evict_after

    @staticmethod
    def of(window_size: Any, do_evict_after: bool = False) -> TimeEvictor:
        """Keep what is younger than ``window_size``, seen from the newest record."""
        return TimeEvictor(window_size, do_evict_after)

    def _evict(self, elements: list[TimestampedValue]) -> None:
        if elements and elements[0].has_timestamp():
            cutoff = max(element.timestamp for element in elements) - self.window_size
            elements[:] = [element for element in elements if element.timestamp > cutoff]


class DeltaEvictor(_OnceEvictor):
    """Keeps records that are nearer than ``threshold`` to the last one.

    >>> buffer = [TimestampedValue(n, n) for n in (1, 5, 9)]
    >>> DeltaEvictor.of(5, lambda element, last: last - element).evict_before(buffer, 3, None, None)
    >>> [element.value for element in buffer]
    [5, 9]
    """

    def __init__(
        self, threshold: float, delta_function: Callable[[Any, Any], float], do_evict_after: bool = False
    ) -> None:
        self.threshold = threshold
        self._delta = callable_of(delta_function, "get_delta")
        self.do_evict_after = do_evict_after

    @staticmethod
    def of(threshold: float, delta_function: Callable[[Any, Any], float], do_evict_after: bool = False) -> DeltaEvictor:
        """``delta_function(element, last)`` says how far apart records are; an object with get_delta() will do, too."""
        return DeltaEvictor(threshold, delta_function, do_evict_after)

    def _evict(self, elements: list[TimestampedValue]) -> None:
        if elements:
            last, delta, threshold = elements[-1].value, self._delta, self.threshold
            elements[:] = [element for element in elements if delta(element.value, last) < threshold]
