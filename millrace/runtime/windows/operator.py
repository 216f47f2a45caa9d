"""The window operator for any assigner, trigger and evictor."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, cast

from millrace.common.constants import LONG_MAX
from millrace.common.output_tag import OutputTag
from millrace.errors import TimeError
from millrace.runtime.operator import Batch, RecordFailure
from millrace.runtime.windows.adoption import WINDOWS_IN_FLIGHT, adopt_for_general
from millrace.runtime.windows.assigners import MergingWindowAssigner, WindowAssigner
from millrace.runtime.windows.base import WindowingOperator, with_keys
from millrace.runtime.windows.contents import ABSENT, Contents
from millrace.runtime.windows.contexts import AssignerContext, PaneContext
from millrace.runtime.windows.evictors import Evictor, TimestampedValue
from millrace.runtime.windows.functions import WindowFunctionCall
from millrace.runtime.windows.merging import MergingWindowSet
from millrace.runtime.windows.trigger import Trigger, TriggerResult
from millrace.runtime.windows.windows import cleanup_time
from millrace.state.table import VOID
from millrace.state.timers import TimerQueue

__all__ = ["WindowOperator"]

CONTINUE: Final = TriggerResult.CONTINUE
FIRE: Final = TriggerResult.FIRE
PURGE: Final = TriggerResult.PURGE
FIRE_AND_PURGE: Final = TriggerResult.FIRE_AND_PURGE


class WindowOperator(WindowingOperator):
    """Runs windows by the book: every record goes to its assigner and trigger, every firing to its evictor.

    State: the contents by window and key (for windows that merge: by state window), for windows that merge also each
    key's windows in flight, and whatever the trigger keeps. Timers carry the window as their namespace.

    >>> from millrace.runtime.windows.assigners import TumblingEventTimeWindows
    >>> from millrace.runtime.windows.triggers import EventTimeTrigger
    >>> from millrace.runtime.operator import Batch, Collected, OperatorContext
    >>> from millrace.runtime.windows.contents import ReduceContents
    >>> from millrace.state.store import OperatorStore
    >>> operator, out = WindowOperator(
    ...     TumblingEventTimeWindows.of(1000), EventTimeTrigger(), ReduceContents(max), WindowFunctionCall()
    ... ), Collected()
    >>> operator.setup(OperatorContext("max", "max-1", OperatorStore(), lambda: 0, keyed=True), out)
    >>> operator.open()
    >>> operator.process(Batch([1, 3, 2], [10, 20, 30], ["a", "a", "a"]))
    >>> operator.on_watermark(999)
    >>> out.events
    [('record', 3, 999), ('watermark', 999)]
    """

    def __init__(
        self,
        assigner: WindowAssigner[Any, Any],
        trigger: Trigger[Any, Any],
        contents: Contents,
        function: WindowFunctionCall,
        *,
        evictor: Evictor[Any, Any] | None = None,
        lateness: int = 0,
        late_tag: OutputTag | None = None,
    ) -> None:
        super().__init__(contents, function, lateness, late_tag, merging=isinstance(assigner, MergingWindowAssigner))
        self._assigner: Any = assigner
        self._trigger = trigger
        self._evictor = evictor
        self._contents.shared = True
        if evictor is not None:
            self._contents.state_name = "window-buffer"
        self._event_time = assigner.is_event_time()

    def open(self) -> None:
        super().open()
        store = self.context.store
        self._pane_context = PaneContext(self.context, self._watermark)
        self._assigner_context = AssignerContext(with_keys(self.context))
        self._table = store.keyed.table(self._contents.state_name)
        self._in_flight = store.keyed.table(WINDOWS_IN_FLIGHT) if self._merging else None
        if self._event_time:
            adopt_for_general(store, self._contents.state_name, self._lateness)
        self._cleanup_timers = store.event_timers if self._event_time else store.processing_timers

    def process(self, batch: Batch, side: int = 0) -> None:
        if not batch.values:
            return
        due, now = self.next_processing_time(), self.context.clock()
        if due is not None and due <= now:
            # Else a record could still join a session whose time is over by the clock.
            self.on_processing_time(now)
        times = self._require_timestamps(batch) if self._event_time else batch.times()
        keys = [None] * len(times) if batch.keys is None else batch.keys
        keyed, clock, context = self._keyed, self.context.clock, self._assigner_context
        take = self._take_merging if self._merging else self._take
        for key, value, time in zip(keys, batch.values, times, strict=True):
            keyed.current_key = key
            context.now = clock()
            try:
                take(key, value, time, self._assigner.assign_windows(value, time, context))
            except (RecordFailure, TimeError):
                raise
            except Exception as error:
                raise self._failure(error, self._contents.method, value) from error
        self._emitter.flush(self.output)

    def on_watermark(self, watermark: int) -> None:
        self._watermark.value = watermark
        self._fire_timers(self.context.store.event_timers, watermark, True)
        self.output.emit_watermark(watermark)

    def on_processing_time(self, now: int) -> None:
        self._fire_timers(self.context.store.processing_timers, now, False)

    def next_processing_time(self) -> int | None:
        return self.context.store.processing_timers.peek()

    def _take(self, key: Any, value: Any, time: int, windows: Iterable[Any]) -> None:
        taken = False
        for window in windows:
            cleanup = cleanup_time(window, self._lateness, self._event_time)
            if self._event_time and cleanup <= self._watermark.value:
                continue
            taken = True
            self._add(key, value, time, window, window)
            if cleanup != LONG_MAX:
                self._cleanup_timers.register(cleanup, key, window)
        if not taken and self._event_time:
            self._late(value, time)

    def _take_merging(self, key: Any, value: Any, time: int, windows: Iterable[Any]) -> None:
        in_flight = self._windows_of(key)
        taken = False
        for window in windows:
            # The window may have become part of a larger one; from here on that one counts.
            actual = in_flight.add_window(window, self._merge)
            cleanup = cleanup_time(actual, self._lateness, self._event_time)
            if self._event_time and cleanup <= self._watermark.value:
                in_flight.retire_window(actual)
                continue
            taken = True
            self._add(key, value, time, actual, in_flight.get_state_window(actual))
            if cleanup != LONG_MAX:
                self._cleanup_timers.register(cleanup, key, actual)
        self._keep(key, in_flight)
        if not taken and self._event_time:
            self._late(value, time)

    def _add(self, key: Any, value: Any, time: int, window: Any, state_window: Any) -> None:
        item = value if self._evictor is None else TimestampedValue(value, time)
        pane = self._table.pane(state_window)
        held = pane.get(key, ABSENT)
        pane[key] = self._contents.start(item) if held is ABSENT else self._contents.add(held, item)
        self._table.touched(state_window).add(key)
        context = self._pane_context
        context.window = window
        result = self._trigger.on_element(value, time, window, context)
        if result is not CONTINUE:
            self._act(result, key, window, state_window)

    def _fire_timers(self, timers: TimerQueue, limit: int, event_time: bool) -> None:
        keyed, context, trigger = self._keyed, self._pane_context, self._trigger
        ring = trigger.on_event_time if event_time else trigger.on_processing_time
        # A timer that a trigger sets for a time already passed is found by the next look into the queue: same pass.
        while (timer := timers.pop_due(limit)) is not None:
            time, key, window = timer[0], timer[1], cast(Any, timer[2])
            keyed.current_key = key
            state_window: Any = window
            if self._merging:
                state_window = self._windows_of(key).get_state_window(window)
                if state_window is None:
                    continue  # the window was merged into another one, or is over
            context.window = window
            try:
                result = ring(time, window, context)
                if result is not CONTINUE:
                    self._act(result, key, window, state_window)
                if event_time is self._event_time and time == cleanup_time(window, self._lateness, event_time):
                    self._clean(key, window, state_window)
            except RecordFailure:
                raise
            except Exception as error:
                what = "on_event_time()" if event_time else "on_processing_time()"
                raise self._failure(error, what, f"{window!r} of key {key!r}") from error
        self._emitter.flush(self.output)

    def _act(self, result: Any, key: Any, window: Any, state_window: Any) -> None:
        """Do what the trigger said."""
        if not isinstance(result, TriggerResult):
            message = f"{self._trigger!r} returned {result!r}: return a TriggerResult, such as TriggerResult.CONTINUE"
            raise TypeError(message)
        if result is not PURGE:
            held = self._table.pane(state_window).get(key, ABSENT)
            if held is not ABSENT:
                self._fire(key, window, state_window, held)
        if result is not FIRE:
            self._remove(key, state_window)

    def _fire(self, key: Any, window: Any, state_window: Any, held: Any) -> None:
        if self._evictor is None:
            self._results(key, window, self._contents.elements(held))
            return
        context = self._pane_context
        buffer: list[TimestampedValue] = list(held)
        self._evictor.evict_before(buffer, len(buffer), window, context)
        self._results(key, window, [element.value for element in buffer])
        self._evictor.evict_after(buffer, len(buffer), window, context)
        if buffer:
            self._table.pane(state_window)[key] = buffer
            self._table.touched(state_window).add(key)
        else:
            self._remove(key, state_window)

    def _remove(self, key: Any, state_window: Any) -> None:
        """Drop the contents, and with the last key of a window the window's place in the table."""
        pane = self._table.pane(state_window)
        if pane.pop(key, ABSENT) is not ABSENT:
            self._table.touched(state_window).add(key)
        if not pane:
            self._table.drop(state_window)

    def _clean(self, key: Any, window: Any, state_window: Any) -> None:
        """The window is over: nothing of it stays."""
        self._remove(key, state_window)
        self._pane_context.window = window
        self._trigger.clear(window, self._pane_context)
        if self._function.clears:
            self._clear_function(key, window)
        if self._merging:
            in_flight = self._windows_of(key)
            in_flight.retire_window(window)
            self._keep(key, in_flight)

    def _windows_of(self, key: Any) -> MergingWindowSet[Any]:
        assert self._in_flight is not None
        return MergingWindowSet(self._assigner, self._in_flight.pane(VOID).get(key) or {})

    def _keep(self, key: Any, in_flight: MergingWindowSet[Any]) -> None:
        assert self._in_flight is not None
        pane = self._in_flight.pane(VOID)
        if in_flight.mapping:
            pane[key] = in_flight.mapping
        else:
            pane.pop(key, None)
        self._in_flight.touched(VOID).add(key)

    def _merge(self, result: Any, merged: list[Any], state_window: Any, merged_states: list[Any]) -> None:
        """Windows of the current key have become ``result``."""
        self._refuse_past(result)
        key = self._keyed.current_key
        context, trigger = self._pane_context, self._trigger
        context.window = result
        context.merged = merged
        trigger.on_merge(result, context)
        for window in merged:
            if window == result:
                continue
            context.window = window
            trigger.clear(window, context)
            cleanup = cleanup_time(window, self._lateness, self._event_time)
            self._cleanup_timers.delete(cleanup, key, window)
        table = self._table
        for source in merged_states:
            moved = table.pane(source).get(key, ABSENT)
            self._remove(key, source)
            if moved is not ABSENT:
                pane = table.pane(state_window)
                held = pane.get(key, ABSENT)
                pane[key] = moved if held is ABSENT else self._contents.merge(held, moved)
                table.touched(state_window).add(key)

    def _refuse_past(self, result: Any) -> None:
        if self._event_time:
            now, clock = self._watermark.value, "watermark"
            past = cleanup_time(result, self._lateness, True) <= now
        else:
            now, clock = self._assigner_context.now, "clock"
            past = result.max_timestamp() < now
        if past:
            message = (
                f"{self.context.name} (uid {self.context.uid}): {self._assigner!r} merged windows into {result!r}, "
                f"which was over before: the {clock} is at {now}. merge_windows() must return a window that ends no "
                "earlier than those it is made of"
            )
            raise TimeError(message)
