"""Time and timers, as a process function sees them."""

from __future__ import annotations

from typing import Any

from millrace.common.constants import LONG_MIN
from millrace.runtime.context import refuse_unkeyed
from millrace.runtime.operator import OperatorContext
from millrace.state.operator_state import Cell

__all__ = ["TimerService", "require_time"]


class TimerService:
    """Time and timers, as a process function sees them."""

    def __init__(self, context: OperatorContext) -> None:
        self._context = context
        self._event = context.store.event_timers
        self._processing = context.store.processing_timers
        self.keyed = context.store.keyed
        self._watermark: Cell[int] = context.store.operator.per_task("watermark", lambda: LONG_MIN)

    def current_processing_time(self) -> int:
        """The clock of this task, in milliseconds."""
        return self._context.clock()

    def current_watermark(self) -> int:
        """Event time as far as this task knows it."""
        return self._watermark.value

    def advance_watermark(self, watermark: int) -> None:
        """Called by the operator, before it fires what is due."""
        self._watermark.value = watermark

    def register_event_time_timer(self, timestamp: int) -> None:
        """Call on_timer for the current key when the watermark reaches ``timestamp``."""
        self._event.register(self._checked(timestamp), self.keyed.current_key)

    def register_processing_time_timer(self, timestamp: int) -> None:
        """Call on_timer for the current key when the clock reaches ``timestamp``."""
        self._processing.register(self._checked(timestamp), self.keyed.current_key)

    def delete_event_time_timer(self, timestamp: int) -> None:
        """Forget a timer of the current key; no-op if there is none."""
        self._event.delete(self._checked(timestamp), self.keyed.current_key)

    def delete_processing_time_timer(self, timestamp: int) -> None:
        """Forget a timer of the current key; no-op if there is none."""
        self._processing.delete(self._checked(timestamp), self.keyed.current_key)

    def _checked(self, timestamp: int) -> int:
        if not self._context.keyed:
            refuse_unkeyed(self._context, "timers")
        if type(timestamp) is not int:
            return require_time(timestamp, f"{self._context.name} registers a timer")
        return timestamp


def require_time(timestamp: Any, where: str) -> int:
    """A time as an int of milliseconds, or a TypeError that says what came instead."""
    index = getattr(timestamp, "__index__", None)
    if index is None or isinstance(timestamp, bool):
        message = (
            f"{where} with {timestamp!r} ({type(timestamp).__name__}), which is not an integer: "
            "times are whole milliseconds since 1970, for example int(seconds * 1000)"
        )
        raise TypeError(message)
    return int(index())
