"""The watermark of an operator: the minimum over its input channels."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from millrace.common.constants import LONG_MIN

__all__ = ["Valve"]


class Valve:
    """Combines the watermarks and idleness of several channels into one (rule 3).

    The combined watermark is the minimum over the channels that are not idle and only ever grows. When the last active
    channel becomes idle, the greatest watermark seen is let through first, then the whole input is idle.

    A channel that comes back from idleness behind the combined watermark counts again once it has caught up, as at a
    task's inputs; ``wait_for_returning`` makes it count at once, as among the splits of a source.

    >>> valve = Valve(["a", "b"])
    >>> valve.watermark("a", 12), valve.watermark("b", 8)
    (None, 8)
    >>> valve.idle("b", True)
    >>> valve.advance()
    12
    """

    __slots__ = ("_channels", "_idle", "_lagging", "_output", "_wait_for_returning", "all_idle")

    def __init__(self, channels: Iterable[Any] = (), *, wait_for_returning: bool = False) -> None:
        self._channels: dict[Any, int] = {channel: LONG_MIN for channel in channels}
        self._idle: set[Any] = set()
        self._lagging: set[Any] = set()
        self._wait_for_returning = wait_for_returning
        self._output = LONG_MIN
        self.all_idle = False

    @property
    def output(self) -> int:
        """The combined watermark let through last."""
        return self._output

    def channels(self) -> dict[Any, int]:
        """The watermark of each channel, for people who want to know who holds the job back."""
        return dict(self._channels)

    def add(self, channel: Any) -> None:
        """A channel that was not known before: it counts from now on."""
        if channel not in self._channels:
            self._channels[channel] = LONG_MIN
            self.all_idle = False

    def remove(self, channel: Any) -> None:
        """A channel that is gone for good no longer counts."""
        self._channels.pop(channel, None)
        self._idle.discard(channel)
        self._lagging.discard(channel)

    def watermark(self, channel: Any, watermark: int) -> int | None:
        """Take a channel's watermark; the new combined one if it grew. Watermarks of an idle channel are ignored."""
        if channel in self._idle or watermark <= self._channels.get(channel, LONG_MIN):
            return None
        self._channels[channel] = watermark
        if channel in self._lagging and watermark >= self._output:
            self._lagging.discard(channel)
        return self.advance()

    def idle(self, channel: Any, idle: bool) -> None:
        """Take a channel's status; ask ``advance`` and ``all_idle`` afterwards."""
        self.add(channel)
        if idle:
            self._idle.add(channel)
            self._lagging.discard(channel)
        elif channel in self._idle:
            self._idle.discard(channel)
            if not self._wait_for_returning and self._channels[channel] < self._output:
                self._lagging.add(channel)
        self.all_idle = len(self._idle) == len(self._channels)

    def advance(self) -> int | None:
        """The combined watermark if it has grown since it was last let through."""
        if not self._channels:
            return None
        if len(self._idle) == len(self._channels):
            candidate = max(self._channels.values())
        elif self._idle or self._lagging:
            left_out = self._idle | self._lagging
            candidate = min((time for name, time in self._channels.items() if name not in left_out), default=LONG_MIN)
        else:
            candidate = min(self._channels.values())
        if candidate <= self._output:
            return None
        self._output = candidate
        return candidate

    def snapshot(self) -> Any:
        """Everything, as plain data."""
        return (dict(self._channels), set(self._idle), set(self._lagging), self._output, self.all_idle)

    def restore(self, snapshot: Any) -> None:
        """Take over what ``snapshot`` gave."""
        channels, idle, lagging, self._output, self.all_idle = snapshot
        self._channels, self._idle, self._lagging = dict(channels), set(idle), set(lagging)
