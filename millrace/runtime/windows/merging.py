"""The windows of one key that may grow together, and where the contents of each of them are kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

from millrace.runtime.windows.assigners import MergingWindowAssigner

__all__ = ["MergeFunction", "MergingWindowSet"]

W = TypeVar("W")

MergeFunction = Callable[[W, list[W], W, list[W]], None]
"""(merged window, the windows it was made of, its state window, the state windows whose contents move there)"""


class _Collected(MergingWindowAssigner.MergeCallback[W]):
    __slots__ = ("merges",)

    def __init__(self) -> None:
        self.merges: list[tuple[W, list[W]]] = []

    def merge(self, to_be_merged: Iterable[W], merge_result: W) -> None:
        self.merges.append((merge_result, list(to_be_merged)))


class MergingWindowSet(Generic[W]):
    """Windows in flight, each with its state window: the one under whose name its contents are stored.

    When windows merge, the contents of one of them stay where they are and the others are moved there; so a session
    that grows record by record moves nothing. ``mapping`` (window -> state window) is what gets checkpointed.

    >>> from millrace.runtime.windows.assigners import EventTimeSessionWindows
    >>> from millrace.runtime.windows.windows import TimeWindow
    >>> windows = MergingWindowSet(EventTimeSessionWindows.with_gap(3), {})
    >>> windows.add_window(TimeWindow(0, 3), print)
    TimeWindow(start=0, end=3)
    >>> windows.add_window(TimeWindow(2, 5), lambda *merge: None)
    TimeWindow(start=0, end=5)
    >>> windows.mapping
    {TimeWindow(start=0, end=5): TimeWindow(start=0, end=3)}
    """

    __slots__ = ("_assigner", "mapping")

    def __init__(self, assigner: MergingWindowAssigner[Any, W], mapping: dict[W, W]) -> None:
        self._assigner = assigner
        self.mapping = mapping

    def get_state_window(self, window: W) -> W | None:
        """Where the contents of a window are, or None if it is not in flight (any more)."""
        return self.mapping.get(window)

    def retire_window(self, window: W) -> None:
        """The window is over."""
        self.mapping.pop(window, None)

    def add_window(self, new_window: W, merge: MergeFunction[W]) -> W:
        """Add a window and return the one it has become a part of; ``merge`` is told when windows in flight changed."""
        mapping = self.mapping
        if new_window in mapping:
            return new_window
        if not mapping:
            mapping[new_window] = new_window
            return new_window
        collected: _Collected[W] = _Collected()
        self._assigner.merge_windows([*mapping, new_window], collected)
        result = new_window
        absorbed = False
        for merge_result, merged in collected.merges:
            if new_window in merged:
                merged.remove(new_window)
                result = merge_result
                absorbed = True
            known = [window for window in merged if window in mapping]
            if not known:
                mapping[merge_result] = merge_result
                continue
            state_windows = [mapping.pop(window) for window in known]
            mapping[merge_result] = state_windows[0]
            # A window in flight that only took the new one in is still the same window.
            if known != [merge_result]:
                merge(merge_result, known, state_windows[0], state_windows[1:])
        if not absorbed:
            mapping[result] = result
        return result
