"""Triggers that fire again and again while a window is open."""

from __future__ import annotations

from typing import Any, Final

from millrace.common.constants import LONG_MAX
from millrace.common.time import millis
from millrace.runtime.windows.trigger import Trigger, TriggerResult, positive
from millrace.runtime.windows.windows import Window
from millrace.state.descriptors import ReducingStateDescriptor

__all__ = ["ContinuousEventTimeTrigger", "ContinuousProcessingTimeTrigger", "EarlyAndLateTrigger", "next_fire_time"]

CONTINUE: Final = TriggerResult.CONTINUE
FIRE: Final = TriggerResult.FIRE

# Reducing to the minimum, so that merged windows fire at the earliest time any of them waited for.
_FIRE_TIME: Final = ReducingStateDescriptor("trigger-fire-time", min)


def next_fire_time(time: int, interval: int, last: int, watermark: int) -> int:
    """The next time, after ``time``, that a window which ends at ``last`` fires in event time.

    A window without end would go through every interval up to the end of time once the input has ended; it goes there
    in one step instead.

    >>> next_fire_time(1000, 500, 9999, 1200), next_fire_time(9900, 500, 9999, 9900)
    (1500, 9999)
    >>> next_fire_time(1000, 500, LONG_MAX, LONG_MAX) == LONG_MAX
    True
    """
    if last == LONG_MAX and watermark == LONG_MAX:
        return LONG_MAX
    return min(time + interval, last)


class ContinuousEventTimeTrigger(Trigger[Any, Window]):
    """Fires at every full ``interval`` of event time, at the end of the window, and for each late record.

    >>> ContinuousEventTimeTrigger.of(1000)
    ContinuousEventTimeTrigger(1000)
    """

    def __init__(self, interval: Any) -> None:
        example = f"{type(self).__name__}.of(Time.seconds(10))"
        self.interval = positive(millis(interval), f"the interval of a {type(self).__name__}", example)

    @staticmethod
    def of(interval: Any) -> ContinuousEventTimeTrigger:
        """Fire every ``interval``."""
        return ContinuousEventTimeTrigger(interval)

    def on_element(self, element: Any, timestamp: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        last = window.max_timestamp()
        if last <= ctx.get_current_watermark():
            return FIRE
        ctx.register_event_time_timer(last)
        state: Any = ctx.get_partitioned_state(_FIRE_TIME)
        if state.get() is None:
            self._wait_from(timestamp - timestamp % self.interval, window, ctx, state)
        return CONTINUE

    def on_processing_time(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        return CONTINUE

    def on_event_time(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        if time == window.max_timestamp():
            return FIRE
        state: Any = ctx.get_partitioned_state(_FIRE_TIME)
        if state.get() != time:
            return CONTINUE
        state.clear()
        self._wait_from(time, window, ctx, state)
        return FIRE

    def _wait_from(self, time: int, window: Window, ctx: Trigger.TriggerContext, state: Any) -> None:
        upcoming = next_fire_time(time, self.interval, window.max_timestamp(), ctx.get_current_watermark())
        state.add(upcoming)
        ctx.register_event_time_timer(upcoming)

    def can_merge(self) -> bool:
        return True

    def on_merge(self, window: Window, ctx: Trigger.OnMergeContext) -> None:
        ctx.merge_partitioned_state(_FIRE_TIME)
        state: Any = ctx.get_partitioned_state(_FIRE_TIME)
        upcoming = state.get()
        if upcoming is not None:
            ctx.register_event_time_timer(upcoming)

    def clear(self, window: Window, ctx: Trigger.TriggerContext) -> None:
        state: Any = ctx.get_partitioned_state(_FIRE_TIME)
        upcoming = state.get()
        if upcoming is not None:
            ctx.delete_event_time_timer(upcoming)
            state.clear()
        ctx.delete_event_time_timer(window.max_timestamp())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.interval})"


class ContinuousProcessingTimeTrigger(Trigger[Any, Window]):
    """Fires at every full ``interval`` of the clock, and at the end of a window in processing time.

    >>> ContinuousProcessingTimeTrigger.of(1000)
    ContinuousProcessingTimeTrigger(1000)
    """

    def __init__(self, interval: Any) -> None:
        example = f"{type(self).__name__}.of(Time.seconds(10))"
        self.interval = positive(millis(interval), f"the interval of a {type(self).__name__}", example)

    @staticmethod
    def of(interval: Any) -> ContinuousProcessingTimeTrigger:
        """Fire every ``interval``."""
        return ContinuousProcessingTimeTrigger(interval)

    def on_element(self, element: Any, timestamp: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        state: Any = ctx.get_partitioned_state(_FIRE_TIME)
        if state.get() is None:
            now = ctx.get_current_processing_time()
            self._wait_from(now - now % self.interval, now, window, ctx, state)
        return CONTINUE

    def on_processing_time(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        state: Any = ctx.get_partitioned_state(_FIRE_TIME)
        if state.get() != time:
            return CONTINUE
        state.clear()
        self._wait_from(time, time, window, ctx, state)
        return FIRE

    def on_event_time(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        return CONTINUE

    def _wait_from(self, time: int, now: int, window: Window, ctx: Trigger.TriggerContext, state: Any) -> None:
        upcoming = time + self.interval
        last = window.max_timestamp()
        # Only an end that is still to come: that of an event-time window may be long past by the clock, and a timer
        # for it would fire at once, for ever.
        if now < last < upcoming:
            upcoming = last
        state.add(upcoming)
        ctx.register_processing_time_timer(upcoming)

    def can_merge(self) -> bool:
        return True

    def on_merge(self, window: Window, ctx: Trigger.OnMergeContext) -> None:
        ctx.merge_partitioned_state(_FIRE_TIME)
        state: Any = ctx.get_partitioned_state(_FIRE_TIME)
        upcoming = state.get()
        if upcoming is not None:
            ctx.register_processing_time_timer(upcoming)

    def clear(self, window: Window, ctx: Trigger.TriggerContext) -> None:
        state: Any = ctx.get_partitioned_state(_FIRE_TIME)
        upcoming = state.get()
        if upcoming is not None:
            ctx.delete_processing_time_timer(upcoming)
            state.clear()

    def __repr__(self) -> str:
        return f"ContinuousProcessingTimeTrigger({self.interval})"


class _EarlyByClock(ContinuousProcessingTimeTrigger):
    """Does not stop at the end of the window: here that is a matter of the watermark, not of the clock."""

    def _wait_from(self, time: int, now: int, window: Window, ctx: Trigger.TriggerContext, state: Any) -> None:
        state.add(time + self.interval)
        ctx.register_processing_time_timer(time + self.interval)


class EarlyAndLateTrigger(Trigger[Any, Window]):
    """Early results while the window is open, one at the watermark, one more for each late record that is allowed.

    Early results come every ``interval`` of the clock, or of event time. Each result holds all records so far; with
    ``purging()`` only those since the result before.

    >>> EarlyAndLateTrigger.early_every(1000).purging()
    EarlyAndLateTrigger(1000, event_time=False, purge=True)
    """

    def __init__(self, interval: Any, event_time: bool = False, purge: bool = False) -> None:
        example = "EarlyAndLateTrigger.early_every(Time.seconds(1))"
        self.interval = positive(millis(interval), "the interval of an EarlyAndLateTrigger", example)
        self.event_time = event_time
        self.purge = purge
        self._fire = TriggerResult.FIRE_AND_PURGE if purge else FIRE
        self._early: Trigger[Any, Window] = (
            ContinuousEventTimeTrigger(interval) if event_time else _EarlyByClock(interval)
        )

    @staticmethod
    def early_every(interval: Any, event_time: bool = False) -> EarlyAndLateTrigger:
        """Early results every ``interval`` of the clock, or of event time."""
        return EarlyAndLateTrigger(interval, event_time)

    def purging(self) -> EarlyAndLateTrigger:
        """The same, but each result holds only what has come since the one before."""
        return EarlyAndLateTrigger(self.interval, self.event_time, purge=True)

    def accumulating(self) -> EarlyAndLateTrigger:
        """The same, and each result holds all records so far: the default."""
        return EarlyAndLateTrigger(self.interval, self.event_time)

    def on_element(self, element: Any, timestamp: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        last = window.max_timestamp()
        if last <= ctx.get_current_watermark():
            return self._fire
        ctx.register_event_time_timer(last)
        self._early.on_element(element, timestamp, window, ctx)
        return CONTINUE

    def on_processing_time(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        early = self._early.on_processing_time(time, window, ctx) is FIRE
        # Windows in processing time end by the clock: what has come since the last early result must not be lost.
        return self._fire if early or time == window.max_timestamp() else CONTINUE

    def on_event_time(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        if time == window.max_timestamp():
            # The early timer must not fire into the time of late records.
            self._early.clear(window, ctx)
            return self._fire
        return self._fire if self._early.on_event_time(time, window, ctx) is FIRE else CONTINUE

    def can_merge(self) -> bool:
        return True

    def on_merge(self, window: Window, ctx: Trigger.OnMergeContext) -> None:
        last = window.max_timestamp()
        self._early.on_merge(window, ctx)
        if last > ctx.get_current_watermark():
            ctx.register_event_time_timer(last)
        else:
            self._early.clear(window, ctx)

    def clear(self, window: Window, ctx: Trigger.TriggerContext) -> None:
        self._early.clear(window, ctx)
        ctx.delete_event_time_timer(window.max_timestamp())

    def __repr__(self) -> str:
        return f"EarlyAndLateTrigger({self.interval}, event_time={self.event_time}, purge={self.purge})"
