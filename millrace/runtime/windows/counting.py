"""Windows that do not end by time: the global window, and windows of so many records."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

from millrace.errors import GraphError
from millrace.runtime.windows.assigners import WindowAssigner
from millrace.runtime.windows.trigger import Trigger, positive
from millrace.runtime.windows.triggers import CountTrigger, EndOfStreamTrigger, NeverTrigger, PurgingTrigger
from millrace.runtime.windows.windows import (
    CountWindow,
    CountWindowSerializer,
    GlobalWindow,
    GlobalWindowSerializer,
)
from millrace.state.descriptors import ValueStateDescriptor

__all__ = ["CountSlidingWindowAssigner", "CountTumblingWindowAssigner", "EndOfStreamWindows", "GlobalWindows"]


class GlobalWindows(WindowAssigner[Any, GlobalWindow]):
    """One window per key; never fires unless you give it a trigger.

    >>> GlobalWindows.create().assign_windows("a", 5, None)
    (GlobalWindow(),)
    """

    _WINDOWS: Final = (GlobalWindow(),)

    @staticmethod
    def create() -> GlobalWindows:
        """The assigner."""
        return GlobalWindows()

    @staticmethod
    def create_with_end_of_stream_trigger() -> EndOfStreamWindows:
        """The assigner whose window fires when the bounded input has ended."""
        return EndOfStreamWindows()

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[GlobalWindow]:
        return self._WINDOWS

    def get_default_trigger(self, env: Any = None) -> Trigger[Any, Any]:
        return NeverTrigger()

    def get_window_serializer(self) -> GlobalWindowSerializer:
        return GlobalWindowSerializer()

    def is_event_time(self) -> bool:
        return False


class EndOfStreamWindows(GlobalWindows):
    """One window per key that fires once, when the bounded input has ended; records need no timestamps.

    >>> EndOfStreamWindows.create().get_default_trigger()
    EndOfStreamTrigger()
    """

    @staticmethod
    def create() -> EndOfStreamWindows:
        """The assigner."""
        return EndOfStreamWindows()

    def get_default_trigger(self, env: Any = None) -> Trigger[Any, Any]:
        return EndOfStreamTrigger()


class CountTumblingWindowAssigner(WindowAssigner[Any, CountWindow]):
    """Every ``window_size`` records of a key make a window; what is left over at the end gives no result.

    >>> CountTumblingWindowAssigner.of(3)
    CountTumblingWindowAssigner(3)
    """

    _SEEN: Final = ValueStateDescriptor("window-assigner-count")

    def __init__(self, window_size: int) -> None:
        self.window_size = positive(window_size, "the size of a count window", "count_window(100)")

    @staticmethod
    def of(window_size: int) -> CountTumblingWindowAssigner:
        """Windows of ``window_size`` records."""
        return CountTumblingWindowAssigner(window_size)

    def _number(self, context: WindowAssigner.WindowAssignerContext) -> int:
        """How many records of the key came before this one."""
        state = context.get_runtime_context().get_state(self._SEEN)
        seen: int = state.value() or 0
        state.update(seen + 1)
        return seen

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[CountWindow]:
        return [CountWindow(self._number(context) // self.window_size)]

    def get_default_trigger(self, env: Any = None) -> Trigger[Any, Any]:
        # A full window never gets another record: without purging its contents would stay for ever.
        return PurgingTrigger(CountTrigger(self.window_size))

    def get_window_serializer(self) -> CountWindowSerializer:
        return CountWindowSerializer()

    def is_event_time(self) -> bool:
        return False

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.window_size})"


class CountSlidingWindowAssigner(CountTumblingWindowAssigner):
    """Windows of ``window_size`` records of a key that begin every ``window_slide`` records; only full ones fire.

    >>> CountSlidingWindowAssigner.of(4, 2)
    CountSlidingWindowAssigner(4, 2)
    """

    def __init__(self, window_size: int, window_slide: int) -> None:
        super().__init__(window_size)
        self.window_slide = positive(window_slide, "the slide of a count window", "count_window(100, 10)")
        if window_slide > window_size:
            message = (
                f"a count window of {window_size} cannot slide by {window_slide}: records between two windows would be "
                f"in none. Use a slide of at most {window_size}, or count_window({window_slide}) and take a part of it"
            )
            raise GraphError(message)

    @staticmethod
    def of(window_size: int, window_slide: int = 1) -> CountSlidingWindowAssigner:
        """Windows of ``window_size`` records every ``window_slide`` records."""
        return CountSlidingWindowAssigner(window_size, window_slide)

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[CountWindow]:
        number, slide = self._number(context), self.window_slide
        latest = number // slide
        earliest = max(0, (number - self.window_size) // slide + 1)
        return [CountWindow(window) for window in range(latest, earliest - 1, -1)]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.window_size}, {self.window_slide})"
