"""The fast way for tumbling and sliding windows in event time that fire at the watermark."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush
from itertools import chain
from math import gcd
from operator import itemgetter
from typing import Any, Final

from millrace.common.constants import LONG_MAX
from millrace.common.output_tag import OutputTag
from millrace.runtime.operator import Batch, last_taken
from millrace.runtime.windows.adoption import FIRED_SUFFIX, adopt_for_aligned, windows_in
from millrace.runtime.windows.assigners import SlidingEventTimeWindows, TumblingEventTimeWindows
from millrace.runtime.windows.base import WindowingOperator
from millrace.runtime.windows.contents import Contents
from millrace.runtime.windows.functions import WindowFunctionCall
from millrace.runtime.windows.windows import TimeWindow, cleanup_time, window_start
from millrace.state.backend import NO_KEY

__all__ = ["AlignedWindowOperator"]

_FIRE: Final = 0
_CLEAN: Final = 1


class AlignedWindowOperator(WindowingOperator):
    """Windows that all keys share need no timer per key, and their records no trigger.

    A batch is cut by window, and each part folded in one loop. The watermark fires whole windows: all keys at once,
    one batch each. Results, their order and their timestamps are those of WindowOperator with an EventTimeTrigger.

    State: the contents by window and key, in one table while the window is open; when it has fired and late records are
    allowed, in another one, until it is forgotten.

    >>> from millrace.runtime.operator import Batch, Collected, OperatorContext
    >>> from millrace.runtime.windows.contents import ReduceContents
    >>> from millrace.state.store import OperatorStore
    >>> operator, out = AlignedWindowOperator(
    ...     TumblingEventTimeWindows.of(1000), ReduceContents(max), WindowFunctionCall()
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
        assigner: TumblingEventTimeWindows | SlidingEventTimeWindows,
        contents: Contents,
        function: WindowFunctionCall,
        *,
        purging: bool = False,
        lateness: int = 0,
        late_tag: OutputTag | None = None,
    ) -> None:
        super().__init__(contents, function, lateness, late_tag)
        self._size, self._slide, self._offset = assigner.size, assigner.slide, assigner.offset
        # All records of one slice belong to the same windows.
        self._slice = gcd(self._size, self._slide)
        self._contents.shared = self._slide < self._size
        self._keeps_fired = lateness > 0 and not purging

    def open(self) -> None:
        super().open()
        name = self._contents.state_name
        adopt_for_aligned(self.context.store, name)
        self._open = self._keyed.table(name)
        self._fired = self._keyed.table(name + FIRED_SUFFIX)
        self.refresh()

    def refresh(self) -> None:
        self._look_at_watermark()
        # (time, what, window), rebuilt from the tables. Windows of another size are those of an older program.
        self._agenda: list[tuple[int, int, TimeWindow]] = []
        for window in windows_in(self._open):
            heappush(self._agenda, (window.max_timestamp(), _FIRE, window))
        for window in windows_in(self._fired):
            self._plan_cleanup(window)

    def _look_at_watermark(self) -> None:
        watermark = self._watermark.value
        # The end of the latest window that has fired.
        self._due_end = window_start(watermark + 1, self._offset + self._size, self._slide)
        # Records before this time need a closer look: they are in a window that has fired or, when windows lie apart,
        # may be in none.
        self._late_before = self._due_end if self._slide <= self._size else watermark + 1

    def process(self, batch: Batch, side: int = 0) -> None:
        values = batch.values
        if not values:
            return
        times = self._require_timestamps(batch)
        keys = [None] * len(times) if batch.keys is None else batch.keys
        self._keyed.current_key = NO_KEY
        first, last = min(times), max(times)
        start = window_start(first, self._offset, self._slice)
        if last < start + self._slice and first >= self._late_before:
            for window in self._windows_of(start):
                self._fold(window, keys, values)
            return
        self._fold_by_window(keys, values, times, first, last)
        if first < self._late_before:
            self._take_late(keys, values, times)
            self._emitter.flush(self.output)

    def _windows_of(self, time: int) -> list[TimeWindow]:
        """The windows of a slice or of a record, from the latest to the earliest."""
        size, slide = self._size, self._slide
        latest = window_start(time, self._offset, slide)
        return [TimeWindow(start, start + size) for start in range(latest, time - size, -slide)]

    def _fold_by_window(self, keys: list[Any], values: list[Any], times: list[int], first: int, last: int) -> None:
        """Give each open window its records of the batch, in order of arrival."""
        offset, width = self._offset, self._slice
        slices: dict[int, list[int]] = {}
        get = slices.get
        for index, time in enumerate(times):
            start = time - (time - offset) % width
            members = get(start)
            if members is None:
                slices[start] = [index]
            else:
                members.append(index)
        due_end = self._due_end
        parts: dict[TimeWindow, list[list[int]]] = {}
        for start, members in slices.items():
            for window in self._windows_of(start):
                if window.end > due_end:
                    parts.setdefault(window, []).append(members)
        for window, members_of_slices in parts.items():
            if window.start <= first and last < window.end:
                self._fold(window, keys, values)
                continue
            indices = members_of_slices[0] if len(members_of_slices) == 1 else sorted(chain(*members_of_slices))
            self._fold(window, _pick(keys, indices), _pick(values, indices))

    def _fold(self, window: TimeWindow, keys: Sequence[Any], values: Sequence[Any]) -> None:
        table = self._open
        pane = table.panes.get(window)
        if pane is None:
            pane = table.pane(window)
            heappush(self._agenda, (window.max_timestamp(), _FIRE, window))
        if self._fired.panes.get(window):
            self._reopen(window, keys, pane)
        records = iter(values)
        try:
            self._contents.fold(pane, keys, records)
        except Exception as error:
            raise self._failure(error, self._contents.method, last_taken(records, values)) from error
        table.touched(window).update(keys)

    def _reopen(self, window: TimeWindow, keys: Sequence[Any], pane: dict[Any, Any]) -> None:
        """Take contents back that have fired.

        Only after a change of parallelism can a window that has fired be ahead of the watermark: that begins anew then.
        """
        fired = self._fired.panes[window]
        for key in keys:
            if key in fired:
                pane[key] = fired.pop(key)
                self._fired.touched(window).add(key)

    def _take_late(self, keys: list[Any], values: list[Any], times: list[int]) -> None:
        """Records of windows that have fired: each of them fires its window again, or is too late."""
        watermark, lateness, due_end = self._watermark.value, self._lateness, self._due_end
        late_before = self._late_before
        for key, value, time in zip(keys, values, times, strict=True):
            if time >= late_before:
                continue
            taken = False
            for window in self._windows_of(time):
                if window.end > due_end:
                    taken = True  # open, and served already
                elif cleanup_time(window, lateness, True) > watermark:
                    taken = True
                    self._fire_late(key, value, window)
            if not taken:
                self._late(value, time)

    def _fire_late(self, key: Any, value: Any, window: TimeWindow) -> None:
        pane: dict[Any, Any] = {}
        if self._keeps_fired:
            if window not in self._fired.panes:
                self._plan_cleanup(window)
            pane = self._fired.pane(window)
            self._fired.touched(window).add(key)
        try:
            self._contents.fold(pane, [key], iter([value]))
            elements = self._contents.elements(pane[key])
        except Exception as error:
            raise self._failure(error, self._contents.method, value) from error
        self._keyed.current_key = key
        self._results(key, window, elements)
        self._keyed.current_key = NO_KEY

    def on_watermark(self, watermark: int) -> None:
        self._watermark.value = watermark
        self._look_at_watermark()
        agenda = self._agenda
        while agenda and agenda[0][0] <= watermark:
            _, what, window = heappop(agenda)
            if what == _FIRE:
                self._fire(window)
            else:
                self._clean(window, self._fired.panes.get(window, {}))
                self._fired.drop(window)
        self.output.emit_watermark(watermark)

    def _fire(self, window: TimeWindow) -> None:
        pane = self._open.panes.get(window)
        if pane is None:
            return
        time = window.max_timestamp()
        contents, function = self._contents, self._function
        if function.passes:
            try:
                results = contents.results(pane.values())
            except Exception as error:
                raise self._failure(error, "get_result()", repr(window)) from error
            self.output.emit(Batch(results, [time] * len(results)))
        else:
            for key, held in pane.items():
                self._keyed.current_key = key
                self._results(key, window, contents.elements(held))
            self._keyed.current_key = NO_KEY
            self._emitter.flush(self.output)
        if self._keeps_fired:
            self._keep_fired(window, pane)
        elif self._lateness == 0:
            self._clean(window, pane)
        self._open.drop(window)

    def _keep_fired(self, window: TimeWindow, pane: dict[Any, Any]) -> None:
        if window not in self._fired.panes:
            self._plan_cleanup(window)
            self._fired.panes[window] = pane
        else:
            self._fired.panes[window].update(pane)
        self._fired.touched(window).update(pane)

    def _plan_cleanup(self, window: TimeWindow) -> None:
        time = cleanup_time(window, self._lateness, True)
        if time != LONG_MAX:
            heappush(self._agenda, (time, _CLEAN, window))

    def _clean(self, window: TimeWindow, pane: dict[Any, Any]) -> None:
        """The window is over: let the function clear its state."""
        if self._function.clears:
            for key in pane:
                self._clear_function(key, window)
            self._keyed.current_key = NO_KEY


def _pick(items: list[Any], indices: list[int]) -> Sequence[Any]:
    return (items[indices[0]],) if len(indices) == 1 else itemgetter(*indices)(items)
