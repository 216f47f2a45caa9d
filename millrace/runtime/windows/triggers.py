"""The triggers that come with Millrace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from millrace.common.time import millis
from millrace.runtime.windows.continuous import (
    ContinuousEventTimeTrigger,
    ContinuousProcessingTimeTrigger,
    EarlyAndLateTrigger,
)
from millrace.runtime.windows.trigger import Trigger, TriggerResult, callable_of, fired, positive
from millrace.runtime.windows.windows import Window
from millrace.state.descriptors import ReducingStateDescriptor, ValueStateDescriptor

__all__ = [
    "ContinuousEventTimeTrigger",
    "ContinuousProcessingTimeTrigger",
    "CountTrigger",
    "DeltaTrigger",
    "EarlyAndLateTrigger",
    "EndOfStreamTrigger",
    "EventTimeTrigger",
    "NeverTrigger",
    "ProcessingTimeTrigger",
    "ProcessingTimeoutTrigger",
    "PurgingTrigger",
    "Trigger",
    "TriggerResult",
]

CONTINUE: Final = TriggerResult.CONTINUE
FIRE: Final = TriggerResult.FIRE


class EventTimeTrigger(Trigger[Any, Window]):
    """Fires when the watermark passes the end of the window, and again for each late record that is still allowed.

    >>> EventTimeTrigger.create()
    EventTimeTrigger()
    """

    @staticmethod
    def create() -> EventTimeTrigger:
        """The trigger."""
        return EventTimeTrigger()

    def on_element(self, element: Any, timestamp: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        last = window.max_timestamp()
        if last <= ctx.get_current_watermark():
            return FIRE
        ctx.register_event_time_timer(last)
        return CONTINUE

    def on_processing_time(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        return CONTINUE

    def on_event_time(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        return FIRE if time == window.max_timestamp() else CONTINUE

    def can_merge(self) -> bool:
        return True

    def on_merge(self, window: Window, ctx: Trigger.OnMergeContext) -> None:
        # If the watermark has passed the new window, on_element fires at once: a timer would fire a second time.
        last = window.max_timestamp()
        if last > ctx.get_current_watermark():
            ctx.register_event_time_timer(last)

    def clear(self, window: Window, ctx: Trigger.TriggerContext) -> None:
        ctx.delete_event_time_timer(window.max_timestamp())


class ProcessingTimeTrigger(Trigger[Any, Window]):
    """Fires when the clock passes the end of the window.

    >>> ProcessingTimeTrigger.create()
    ProcessingTimeTrigger()
    """

    @staticmethod
    def create() -> ProcessingTimeTrigger:
        """The trigger."""
        return ProcessingTimeTrigger()

    def on_element(self, element: Any, timestamp: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        ctx.register_processing_time_timer(window.max_timestamp())
        return CONTINUE

    def on_processing_time(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        return FIRE

    def on_event_time(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        return CONTINUE

    def can_merge(self) -> bool:
        return True

    def on_merge(self, window: Window, ctx: Trigger.OnMergeContext) -> None:
        last = window.max_timestamp()
        if last > ctx.get_current_processing_time():
            ctx.register_processing_time_timer(last)

    def clear(self, window: Window, ctx: Trigger.TriggerContext) -> None:
        ctx.delete_processing_time_timer(window.max_timestamp())


def _add(a: int, b: int) -> int:
    return a + b


class CountTrigger(Trigger[Any, Window]):
    """Fires at every n-th record of a window; keeps the contents, unless wrapped in a PurgingTrigger.

    >>> CountTrigger.of(3)
    CountTrigger(3)
    """

    _COUNT: Final = ReducingStateDescriptor("trigger-count", _add)

    def __init__(self, window_size: int) -> None:
        self.window_size = positive(window_size, "the count of a CountTrigger", "CountTrigger.of(100)")

    @staticmethod
    def of(window_size: int) -> CountTrigger:
        """Fire at every ``window_size``-th record."""
        return CountTrigger(window_size)

    def on_element(self, element: Any, timestamp: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        count: Any = ctx.get_partitioned_state(self._COUNT)
        count.add(1)
        if count.get() >= self.window_size:
            count.clear()
            return FIRE
        return CONTINUE

    def on_processing_time(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        return CONTINUE

    def on_event_time(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        return CONTINUE

    def can_merge(self) -> bool:
        return True

    def on_merge(self, window: Window, ctx: Trigger.OnMergeContext) -> None:
        ctx.merge_partitioned_state(self._COUNT)

    def clear(self, window: Window, ctx: Trigger.TriggerContext) -> None:
        ctx.get_partitioned_state(self._COUNT).clear()

    def __repr__(self) -> str:
        return f"CountTrigger({self.window_size})"


class PurgingTrigger(Trigger[Any, Any]):
    """Drops the contents of a window whenever the trigger inside fires.

    >>> PurgingTrigger.of(CountTrigger.of(3))
    PurgingTrigger(CountTrigger(3))
    """

    def __init__(self, nested_trigger: Trigger[Any, Any]) -> None:
        self.nested_trigger = nested_trigger

    @staticmethod
    def of(nested_trigger: Trigger[Any, Any]) -> PurgingTrigger:
        """Make any trigger a purging one."""
        return PurgingTrigger(nested_trigger)

    @staticmethod
    def _purge(result: TriggerResult) -> TriggerResult:
        return TriggerResult.FIRE_AND_PURGE if result is FIRE else result

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        return self._purge(self.nested_trigger.on_element(element, timestamp, window, ctx))

    def on_processing_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        return self._purge(self.nested_trigger.on_processing_time(time, window, ctx))

    def on_event_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        return self._purge(self.nested_trigger.on_event_time(time, window, ctx))

    def can_merge(self) -> bool:
        return self.nested_trigger.can_merge()

    def on_merge(self, window: Any, ctx: Trigger.OnMergeContext) -> None:
        self.nested_trigger.on_merge(window, ctx)

    def clear(self, window: Any, ctx: Trigger.TriggerContext) -> None:
        self.nested_trigger.clear(window, ctx)

    def __repr__(self) -> str:
        return f"PurgingTrigger({self.nested_trigger!r})"


class NeverTrigger(Trigger[Any, Window]):
    """Never fires; what GlobalWindows has until you choose a trigger.

    >>> NeverTrigger().on_element("a", 0, None, None)
    <TriggerResult.CONTINUE: (False, False)>
    """

    def on_element(self, element: Any, timestamp: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        return CONTINUE

    def on_processing_time(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        return CONTINUE

    def on_event_time(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        return CONTINUE

    def can_merge(self) -> bool:
        return True

    def on_merge(self, window: Window, ctx: Trigger.OnMergeContext) -> None:
        return

    def clear(self, window: Window, ctx: Trigger.TriggerContext) -> None:
        return


class EndOfStreamTrigger(NeverTrigger):
    """Fires once, when the bounded input has ended.

    >>> EndOfStreamTrigger()
    EndOfStreamTrigger()
    """

    def on_element(self, element: Any, timestamp: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        ctx.register_event_time_timer(window.max_timestamp())
        return CONTINUE

    def on_event_time(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        return FIRE if time == window.max_timestamp() else CONTINUE

    def on_merge(self, window: Window, ctx: Trigger.OnMergeContext) -> None:
        ctx.register_event_time_timer(window.max_timestamp())

    def clear(self, window: Window, ctx: Trigger.TriggerContext) -> None:
        ctx.delete_event_time_timer(window.max_timestamp())


class DeltaTrigger(Trigger[Any, Window]):
    """Fires when a record is further than ``threshold`` from the record that fired last (at first: the first record).

    >>> DeltaTrigger.of(10.0, lambda old, new: new - old)
    DeltaTrigger(10.0)
    """

    _LAST: Final = ValueStateDescriptor("trigger-last-element")

    def __init__(self, threshold: float, delta_function: Callable[[Any, Any], float]) -> None:
        self.threshold = threshold
        self._delta = callable_of(delta_function, "get_delta")

    @staticmethod
    def of(threshold: float, delta_function: Callable[[Any, Any], float]) -> DeltaTrigger:
        """``delta_function(old, new)`` says how far apart two records are; an object with get_delta() will do, too."""
        return DeltaTrigger(threshold, delta_function)

    def on_element(self, element: Any, timestamp: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        last: Any = ctx.get_partitioned_state(self._LAST)
        held = last.value()
        if held is None:
            last.update((element,))
            return CONTINUE
        if self._delta(held[0], element) > self.threshold:
            last.update((element,))
            return FIRE
        return CONTINUE

    def on_processing_time(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        return CONTINUE

    def on_event_time(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        return CONTINUE

    def clear(self, window: Window, ctx: Trigger.TriggerContext) -> None:
        ctx.get_partitioned_state(self._LAST).clear()

    def __repr__(self) -> str:
        return f"DeltaTrigger({self.threshold})"


class ProcessingTimeoutTrigger(Trigger[Any, Any]):
    """Fires when the trigger inside does, or when the window has waited for so long by the clock.

    >>> ProcessingTimeoutTrigger.of(CountTrigger.of(100), 5000)
    ProcessingTimeoutTrigger(CountTrigger(100), 5000)
    """

    _TIMEOUT: Final = ValueStateDescriptor("trigger-timeout")

    def __init__(
        self,
        nested_trigger: Trigger[Any, Any],
        timeout: Any,
        reset_timer_on_new_record: bool = False,
        should_clear_on_timeout: bool = True,
    ) -> None:
        example = "ProcessingTimeoutTrigger.of(CountTrigger.of(100), Time.seconds(5))"
        self.nested_trigger = nested_trigger
        self.timeout = positive(millis(timeout), "the timeout of a ProcessingTimeoutTrigger", example)
        self.reset_timer_on_new_record = reset_timer_on_new_record
        self.should_clear_on_timeout = should_clear_on_timeout

    @staticmethod
    def of(
        nested_trigger: Trigger[Any, Any],
        timeout: Any,
        reset_timer_on_new_record: bool = False,
        should_clear_on_timeout: bool = True,
    ) -> ProcessingTimeoutTrigger:
        """Count the time from the first record, or from the last one with ``reset_timer_on_new_record``."""
        return ProcessingTimeoutTrigger(nested_trigger, timeout, reset_timer_on_new_record, should_clear_on_timeout)

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        result = self.nested_trigger.on_element(element, timestamp, window, ctx)
        if result.is_fire():
            self.clear(window, ctx)
            return result
        state: Any = ctx.get_partitioned_state(self._TIMEOUT)
        waiting = state.value()
        if waiting is not None and self.reset_timer_on_new_record:
            ctx.delete_processing_time_timer(waiting)
            waiting = None
        if waiting is None:
            waiting = ctx.get_current_processing_time() + self.timeout
            state.update(waiting)
            ctx.register_processing_time_timer(waiting)
        return result

    def on_processing_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        result = self.nested_trigger.on_processing_time(time, window, ctx)
        if self.should_clear_on_timeout:
            self.clear(window, ctx)
        return fired(result)

    def on_event_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        result = self.nested_trigger.on_event_time(time, window, ctx)
        if result.is_fire() and self.should_clear_on_timeout:
            self.clear(window, ctx)
        return result

    def clear(self, window: Any, ctx: Trigger.TriggerContext) -> None:
        state: Any = ctx.get_partitioned_state(self._TIMEOUT)
        waiting = state.value()
        if waiting is not None:
            ctx.delete_processing_time_timer(waiting)
            state.clear()
        self.nested_trigger.clear(window, ctx)

    def __repr__(self) -> str:
        return f"ProcessingTimeoutTrigger({self.nested_trigger!r}, {self.timeout})"
