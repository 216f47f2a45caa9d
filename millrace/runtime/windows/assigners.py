"""Which windows a record belongs to."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable
from typing import Any, Generic, NoReturn, TypeVar

from millrace.common.constants import LONG_MIN
from millrace.common.time import millis
from millrace.errors import GraphError, TimeError
from millrace.runtime.context import RuntimeContext
from millrace.runtime.windows.trigger import Trigger, callable_of, positive
from millrace.runtime.windows.triggers import EventTimeTrigger, ProcessingTimeTrigger
from millrace.runtime.windows.windows import TimeWindow, TimeWindowSerializer, window_start

__all__ = [
    "DynamicEventTimeSessionWindows",
    "DynamicProcessingTimeSessionWindows",
    "EventTimeSessionWindows",
    "MergingWindowAssigner",
    "ProcessingTimeSessionWindows",
    "SessionWindowTimeGapExtractor",
    "SlidingEventTimeWindows",
    "SlidingProcessingTimeWindows",
    "TumblingEventTimeWindows",
    "TumblingProcessingTimeWindows",
    "WindowAssigner",
]

T = TypeVar("T")
W = TypeVar("W")
W2 = TypeVar("W2")


class WindowAssigner(ABC, Generic[T, W]):
    """Says which windows a record belongs to. Write your own by overriding the four methods.

    >>> class OneWindowPerHundred(WindowAssigner):
    ...     def assign_windows(self, element, timestamp, context):
    ...         return [TimeWindow(timestamp // 100 * 100, timestamp // 100 * 100 + 100)]
    ...     def get_default_trigger(self, env):
    ...         return EventTimeTrigger()
    ...     def get_window_serializer(self):
    ...         return TimeWindowSerializer()
    ...     def is_event_time(self):
    ...         return True
    >>> OneWindowPerHundred().assign_windows("a", 250, None)
    [TimeWindow(start=200, end=300)]
    """

    class WindowAssignerContext(ABC):
        """What an assigner may ask for."""

        __slots__ = ()

        @abstractmethod
        def get_current_processing_time(self) -> int:
            """The clock of this task, in milliseconds."""

        @abstractmethod
        def get_runtime_context(self) -> RuntimeContext:
            """Where the assigner runs; gives access to state of the record's key."""

    @abstractmethod
    def assign_windows(
        self, element: T, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[W]:
        """The windows of a record; ``timestamp`` is LONG_MIN for a record without one."""

    @abstractmethod
    def get_default_trigger(self, env: Any) -> Trigger[T, W]:
        """The trigger for programs that choose none."""

    @abstractmethod
    def get_window_serializer(self) -> Any:
        """How a window is written; windows are stored by pickle, so None will do."""

    @abstractmethod
    def is_event_time(self) -> bool:
        """Whether windows end by the watermark, or else by the clock or by count."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class MergingWindowAssigner(WindowAssigner[T, W]):
    """An assigner whose windows may grow together, as sessions do.

    >>> issubclass(EventTimeSessionWindows, MergingWindowAssigner)
    True
    """

    class MergeCallback(ABC, Generic[W2]):
        """Told which windows have become one."""

        __slots__ = ()

        @abstractmethod
        def merge(self, to_be_merged: Iterable[W2], merge_result: W2) -> None:
            """``to_be_merged``, two or more, become ``merge_result``."""

    @abstractmethod
    def merge_windows(self, windows: Iterable[W], callback: MergingWindowAssigner.MergeCallback[W]) -> None:
        """Call ``callback.merge`` for every group of windows that must become one."""


def _no_timestamp(assigner: Any) -> NoReturn:
    message = (
        f"{assigner!r} got a record without a timestamp (LONG_MIN marks those). Windows in event time need them: call "
        "assign_timestamps_and_watermarks(WatermarkStrategy...with_timestamp_assigner(...)) before window(), "
        "or use processing-time windows"
    )
    raise TimeError(message)


class _Aligned(WindowAssigner[Any, TimeWindow]):
    """Windows of one size that begin every ``slide``; tumbling windows begin every ``size``."""

    size: int
    slide: int
    offset: int

    def _check(self, size: Any, slide: Any, offset: Any) -> None:
        name = type(self).__name__
        sliding = slide is not None
        example = f"{name}.of(Time.minutes(1){', Time.seconds(10)' if sliding else ''})"
        self.size = positive(millis(size), f"the size of {name}", example)
        self.slide = positive(millis(slide), f"the slide of {name}", example) if sliding else self.size
        self.offset = 0 if offset is None else millis(offset)
        if abs(self.offset) >= self.slide:
            message = (
                f"the offset of {name} must lie between -{self.slide - 1} and {self.slide - 1} ms, less than one "
                f"{'slide' if sliding else 'size'}, but is {self.offset}: "
                f"use offset={self.offset % self.slide}, which means the same"
            )
            raise GraphError(message)

    def _windows(self, timestamp: int) -> list[TimeWindow]:
        """From the latest to the earliest."""
        size, slide = self.size, self.slide
        latest = window_start(timestamp, self.offset, slide)
        return [TimeWindow(start, start + size) for start in range(latest, timestamp - size, -slide)]

    def get_window_serializer(self) -> TimeWindowSerializer:
        return TimeWindowSerializer()

    def __repr__(self) -> str:
        slide = f", {self.slide}" if self.slide != self.size or "Sliding" in type(self).__name__ else ""
        return f"{type(self).__name__}({self.size}{slide}{f', offset={self.offset}' if self.offset else ''})"


class _AlignedEventTime(_Aligned):
    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[TimeWindow]:
        if timestamp == LONG_MIN:
            _no_timestamp(self)
        return self._windows(timestamp)

    def get_default_trigger(self, env: Any = None) -> Trigger[Any, Any]:
        return EventTimeTrigger()

    def is_event_time(self) -> bool:
        return True


class _AlignedProcessingTime(_Aligned):
    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[TimeWindow]:
        return self._windows(context.get_current_processing_time())

    def get_default_trigger(self, env: Any = None) -> Trigger[Any, Any]:
        return ProcessingTimeTrigger()

    def is_event_time(self) -> bool:
        return False


class TumblingEventTimeWindows(_AlignedEventTime):
    """Windows side by side, by the records' timestamps.

    >>> TumblingEventTimeWindows.of(3000).assign_windows("a", 3999, None)
    [TimeWindow(start=3000, end=6000)]
    """

    def __init__(self, size: Any, offset: Any = None) -> None:
        self._check(size, None, offset)

    @staticmethod
    def of(size: Any, offset: Any = None) -> TumblingEventTimeWindows:
        """Windows of ``size``; ``offset`` moves them, for days that begin at another hour than UTC's."""
        return TumblingEventTimeWindows(size, offset)


class TumblingProcessingTimeWindows(_AlignedProcessingTime):
    """Windows side by side, by the clock.

    >>> TumblingProcessingTimeWindows.of(3000).is_event_time()
    False
    """

    def __init__(self, size: Any, offset: Any = None) -> None:
        self._check(size, None, offset)

    @staticmethod
    def of(size: Any, offset: Any = None) -> TumblingProcessingTimeWindows:
        """Windows of ``size``; ``offset`` moves them."""
        return TumblingProcessingTimeWindows(size, offset)


class SlidingEventTimeWindows(_AlignedEventTime):
    """Windows of ``size`` that begin every ``slide``, by the records' timestamps.

    >>> SlidingEventTimeWindows.of(3000, 2000).assign_windows("a", 2500, None)
    [TimeWindow(start=2000, end=5000), TimeWindow(start=0, end=3000)]
    """

    def __init__(self, size: Any, slide: Any, offset: Any = None) -> None:
        self._check(size, slide, offset)

    @staticmethod
    def of(size: Any, slide: Any, offset: Any = None) -> SlidingEventTimeWindows:
        """Windows of ``size`` every ``slide``; ``offset`` moves them."""
        return SlidingEventTimeWindows(size, slide, offset)


class SlidingProcessingTimeWindows(_AlignedProcessingTime):
    """Windows of ``size`` that begin every ``slide``, by the clock.

    >>> SlidingProcessingTimeWindows.of(3000, 1000)
    SlidingProcessingTimeWindows(3000, 1000)
    """

    def __init__(self, size: Any, slide: Any, offset: Any = None) -> None:
        self._check(size, slide, offset)

    @staticmethod
    def of(size: Any, slide: Any, offset: Any = None) -> SlidingProcessingTimeWindows:
        """Windows of ``size`` every ``slide``; ``offset`` moves them."""
        return SlidingProcessingTimeWindows(size, slide, offset)


class SessionWindowTimeGapExtractor(ABC):
    """Says how long a session stays open after a given record.

    >>> class ByPlan(SessionWindowTimeGapExtractor):
    ...     def extract(self, element):
    ...         return 60_000 if element["plan"] == "free" else 600_000
    >>> DynamicEventTimeSessionWindows.with_dynamic_gap(ByPlan()).gap_of({"plan": "free"})
    60000
    """

    @abstractmethod
    def extract(self, element: Any) -> int:
        """The gap after this record, in milliseconds."""


GapExtractor = SessionWindowTimeGapExtractor | Callable[[Any], int]


class _Sessions(MergingWindowAssigner[Any, TimeWindow]):
    """A session begins with a record and ends when none has come for a gap."""

    gap: int | None = None
    _extract: Callable[[Any], Any] | None = None

    def gap_of(self, element: Any) -> int:
        """The gap after a record, in milliseconds."""
        if self._extract is None:
            assert self.gap is not None
            return self.gap
        gap = millis(self._extract(element))
        if gap <= 0:
            message = (
                f"the gap extractor of {self!r} gave {gap} ms for {element!r}: "
                "return a number of milliseconds greater than zero"
            )
            raise TimeError(message)
        return gap

    def merge_windows(
        self, windows: Iterable[TimeWindow], callback: MergingWindowAssigner.MergeCallback[TimeWindow]
    ) -> None:
        TimeWindow.merge_windows(windows, callback)

    def get_window_serializer(self) -> TimeWindowSerializer:
        return TimeWindowSerializer()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({'' if self.gap is None else self.gap})"


class _FixedGap(_Sessions):
    def __init__(self, session_gap: Any) -> None:
        name = type(self).__name__
        self.gap = positive(millis(session_gap), f"the gap of {name}", f"{name}.with_gap(Time.minutes(30))")


class _DynamicGap(_Sessions):
    def __init__(self, session_gap: GapExtractor) -> None:
        self._extract = callable_of(session_gap, "extract")


class _EventTimeSessions(_Sessions):
    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[TimeWindow]:
        if timestamp == LONG_MIN:
            _no_timestamp(self)
        return [TimeWindow(timestamp, timestamp + self.gap_of(element))]

    def get_default_trigger(self, env: Any = None) -> Trigger[Any, Any]:
        return EventTimeTrigger()

    def is_event_time(self) -> bool:
        return True


class _ProcessingTimeSessions(_Sessions):
    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[TimeWindow]:
        now = context.get_current_processing_time()
        return [TimeWindow(now, now + self.gap_of(element))]

    def get_default_trigger(self, env: Any = None) -> Trigger[Any, Any]:
        return ProcessingTimeTrigger()

    def is_event_time(self) -> bool:
        return False


class EventTimeSessionWindows(_EventTimeSessions, _FixedGap):
    """Sessions by the records' timestamps: records closer than ``gap``, or exactly that far, belong together.

    >>> EventTimeSessionWindows.with_gap(3000).assign_windows("a", 10, None)
    [TimeWindow(start=10, end=3010)]
    """

    @staticmethod
    def with_gap(size: Any) -> EventTimeSessionWindows:
        """Sessions that end when no record has come for ``size``."""
        return EventTimeSessionWindows(size)

    @staticmethod
    def with_dynamic_gap(extractor: GapExtractor) -> DynamicEventTimeSessionWindows:
        """Sessions whose gap depends on the record."""
        return DynamicEventTimeSessionWindows(extractor)


class ProcessingTimeSessionWindows(_ProcessingTimeSessions, _FixedGap):
    """Sessions by the clock.

    >>> ProcessingTimeSessionWindows.with_gap(3000)
    ProcessingTimeSessionWindows(3000)
    """

    @staticmethod
    def with_gap(size: Any) -> ProcessingTimeSessionWindows:
        """Sessions that end when no record has come for ``size``."""
        return ProcessingTimeSessionWindows(size)

    @staticmethod
    def with_dynamic_gap(extractor: GapExtractor) -> DynamicProcessingTimeSessionWindows:
        """Sessions whose gap depends on the record."""
        return DynamicProcessingTimeSessionWindows(extractor)


class DynamicEventTimeSessionWindows(_EventTimeSessions, _DynamicGap):
    """Sessions by the records' timestamps, with a gap that depends on the record.

    >>> DynamicEventTimeSessionWindows.with_dynamic_gap(lambda e: e).assign_windows(500, 10, None)
    [TimeWindow(start=10, end=510)]
    """

    @staticmethod
    def with_dynamic_gap(extractor: GapExtractor) -> DynamicEventTimeSessionWindows:
        """``extractor`` is a function or an object with extract(element); it gives milliseconds."""
        return DynamicEventTimeSessionWindows(extractor)


class DynamicProcessingTimeSessionWindows(_ProcessingTimeSessions, _DynamicGap):
    """Sessions by the clock, with a gap that depends on the record.

    >>> DynamicProcessingTimeSessionWindows.with_dynamic_gap(lambda e: e).is_event_time()
    False
    """

    @staticmethod
    def with_dynamic_gap(extractor: GapExtractor) -> DynamicProcessingTimeSessionWindows:
        """``extractor`` is a function or an object with extract(element); it gives milliseconds."""
        return DynamicProcessingTimeSessionWindows(extractor)
