"""Windows, and the rules of time that decide when one begins, ends, is late and goes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from struct import Struct
from typing import Any, BinaryIO, Final, NamedTuple, Protocol, TypeVar

from millrace.common.constants import LONG_MAX

__all__ = [
    "CountWindow",
    "CountWindowSerializer",
    "GlobalWindow",
    "GlobalWindowSerializer",
    "TimeWindow",
    "TimeWindowSerializer",
    "Window",
    "cleanup_time",
    "intersects",
    "is_element_late",
    "is_window_late",
    "max_timestamp",
    "window_start",
]

W_contra = TypeVar("W_contra", contravariant=True)


def window_start(timestamp: int, offset: int, size: int) -> int:
    """Where the window of ``timestamp`` begins: windows lie side by side from ``offset`` on, before 1970 as well.

    >>> window_start(3999, 0, 3000), window_start(-1, 0, 3000), window_start(3999, 1000, 3000)
    (3000, -3000, 1000)
    """
    return timestamp - (timestamp - offset) % size


def max_timestamp(end: int) -> int:
    """The last timestamp that belongs to a window that ends before ``end``."""
    return end - 1


def intersects(start: int, end: int, other_start: int, other_end: int) -> bool:
    """Whether two windows share a point or touch: where one ends and the other begins, sessions merge.

    >>> intersects(0, 3, 3, 5), intersects(0, 3, 4, 5)
    (True, False)
    """
    return start <= other_end and end >= other_start


class Window(ABC):
    """A group of records that is complete once time has passed ``max_timestamp``.

    A window of your own must be hashable, comparable by value and picklable, because state is kept by it.

    >>> isinstance(TimeWindow(0, 1), Window)
    True
    """

    __slots__ = ()

    @abstractmethod
    def max_timestamp(self) -> int:
        """The last timestamp that still belongs to the window."""


def cleanup_time(window: Window, lateness: int, event_time: bool) -> int:
    """When a window is forgotten: in event time only after the allowed lateness. LONG_MAX means never.

    >>> cleanup_time(TimeWindow(0, 1000), 500, True), cleanup_time(TimeWindow(0, 1000), 500, False)
    (1499, 999)
    """
    last = window.max_timestamp()
    return min(last + lateness, LONG_MAX) if event_time else last


def is_window_late(window: Window, lateness: int, watermark: int, event_time: bool) -> bool:
    """Whether the window has already been forgotten; at a watermark equal to its cleanup time it has.

    >>> [is_window_late(TimeWindow(0, 1000), 0, watermark, True) for watermark in (998, 999)]
    [False, True]
    """
    return event_time and cleanup_time(window, lateness, True) <= watermark


def is_element_late(timestamp: int, lateness: int, watermark: int) -> bool:
    """Whether a record that no window took counts as late.

    >>> [is_element_late(500, 10, watermark) for watermark in (509, 510)]
    [False, True]
    """
    return timestamp + lateness <= watermark


class _MergeCallback(Protocol[W_contra]):
    def merge(self, to_be_merged: Iterable[W_contra], merge_result: W_contra) -> None: ...


class _Bounds(NamedTuple):
    start: int
    end: int


# A tuple by birth: windows are looked up in dicts for every record, and tuples are hashed and compared in C.
class TimeWindow(_Bounds, Window):
    """The time from ``start`` up to, but without, ``end``, in milliseconds.

    >>> window = TimeWindow(0, 3000)
    >>> window.start, window.end, window.max_timestamp()
    (0, 3000, 2999)
    >>> window.cover(TimeWindow(2000, 5000))
    TimeWindow(start=0, end=5000)
    """

    __slots__ = ()

    def max_timestamp(self) -> int:
        return self[1] - 1

    def intersects(self, other: TimeWindow) -> bool:
        """Whether the two overlap or touch."""
        return intersects(self[0], self[1], other[0], other[1])

    def cover(self, other: TimeWindow) -> TimeWindow:
        """The smallest window that holds both."""
        return TimeWindow(min(self[0], other[0]), max(self[1], other[1]))

    @staticmethod
    def get_window_start_with_offset(timestamp: int, offset: int, window_size: int) -> int:
        """Where the window of ``timestamp`` begins."""
        return window_start(timestamp, offset, window_size)

    @staticmethod
    def merge_windows(windows: Iterable[TimeWindow], callback: _MergeCallback[TimeWindow]) -> None:
        """Tell ``callback`` of every group of windows that overlap or touch, and of the window that covers them."""
        group: list[TimeWindow] = []
        cover: TimeWindow | None = None
        for window in sorted(set(windows)):
            if cover is not None and cover.intersects(window):
                cover = cover.cover(window)
                group.append(window)
                continue
            if cover is not None and len(group) > 1:
                callback.merge(group, cover)
            group, cover = [window], window
        if cover is not None and len(group) > 1:
            callback.merge(group, cover)


class _Number(NamedTuple):
    id: int


class CountWindow(_Number, Window):
    """The window with the given number among the count windows of a key; ends by count, never by time.

    >>> CountWindow(2)
    CountWindow(id=2)
    """

    __slots__ = ()

    def max_timestamp(self) -> int:
        return LONG_MAX


class GlobalWindow(Window):
    """The one window that holds all records of a key.

    >>> GlobalWindow() is GlobalWindow.get()
    True
    """

    __slots__ = ()
    _instance: GlobalWindow | None = None

    # One object per process, restored by pickle as well, so that equality is identity and needs no Python code.
    def __new__(cls) -> GlobalWindow:
        if GlobalWindow._instance is None:
            GlobalWindow._instance = super().__new__(cls)
        return GlobalWindow._instance

    @staticmethod
    def get() -> GlobalWindow:
        """The window."""
        return GlobalWindow()

    def max_timestamp(self) -> int:
        return LONG_MAX

    def __lt__(self, other: object) -> bool:
        return False if isinstance(other, GlobalWindow) else NotImplemented

    def __reduce__(self) -> tuple[Any, ...]:
        return GlobalWindow, ()

    def __repr__(self) -> str:
        return "GlobalWindow()"


_TWO_LONGS: Final = Struct(">qq")
_ONE_LONG: Final = Struct(">q")


class TimeWindowSerializer:
    """Writes a TimeWindow as two 64-bit numbers.

    >>> from io import BytesIO
    >>> stream = BytesIO()
    >>> TimeWindowSerializer().serialize(TimeWindow(0, 5), stream)
    >>> TimeWindowSerializer().deserialize(BytesIO(stream.getvalue()))
    TimeWindow(start=0, end=5)
    """

    def serialize(self, element: TimeWindow, stream: BinaryIO) -> None:
        """Write the window."""
        stream.write(_TWO_LONGS.pack(element.start, element.end))

    def deserialize(self, stream: BinaryIO) -> TimeWindow:
        """Read a window."""
        return TimeWindow(*_TWO_LONGS.unpack(stream.read(_TWO_LONGS.size)))


class CountWindowSerializer:
    """Writes a CountWindow as a 64-bit number.

    >>> from io import BytesIO
    >>> stream = BytesIO()
    >>> CountWindowSerializer().serialize(CountWindow(7), stream)
    >>> CountWindowSerializer().deserialize(BytesIO(stream.getvalue()))
    CountWindow(id=7)
    """

    def serialize(self, element: CountWindow, stream: BinaryIO) -> None:
        """Write the window."""
        stream.write(_ONE_LONG.pack(element.id))

    def deserialize(self, stream: BinaryIO) -> CountWindow:
        """Read a window."""
        return CountWindow(*_ONE_LONG.unpack(stream.read(_ONE_LONG.size)))


class GlobalWindowSerializer:
    """Writes the GlobalWindow as one byte, so that a stream position stands for it.

    >>> from io import BytesIO
    >>> GlobalWindowSerializer().deserialize(BytesIO(b"0"))
    GlobalWindow()
    """

    def serialize(self, element: GlobalWindow, stream: BinaryIO) -> None:
        """Write the window."""
        stream.write(b"\0")

    def deserialize(self, stream: BinaryIO) -> GlobalWindow:
        """Read the window."""
        stream.read(1)
        return GlobalWindow()
