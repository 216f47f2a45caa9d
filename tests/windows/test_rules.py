"""Each rule of time at t-1, t and t+1."""

from __future__ import annotations

import pickle
from io import BytesIO

import pytest

from millrace.common.constants import LONG_MAX, LONG_MIN
from millrace.runtime.windows.windows import (
    CountWindow,
    CountWindowSerializer,
    GlobalWindow,
    GlobalWindowSerializer,
    TimeWindow,
    TimeWindowSerializer,
    cleanup_time,
    intersects,
    is_element_late,
    is_window_late,
    max_timestamp,
    window_start,
)


def test_window_start_at_the_boundary() -> None:
    assert [window_start(time, 0, 1000) for time in (999, 1000, 1001)] == [0, 1000, 1000]


def test_window_start_before_1970() -> None:
    assert [window_start(time, 0, 1000) for time in (-1001, -1000, -999, -1, 0)] == [-2000, -1000, -1000, -1000, 0]


def test_window_start_with_offset() -> None:
    assert [window_start(time, 300, 1000) for time in (299, 300, 301, 1299, 1300)] == [-700, 300, 300, 300, 1300]
    assert [window_start(time, -300, 1000) for time in (699, 700, 701)] == [-300, 700, 700]


def test_window_start_near_the_ends_of_time() -> None:
    assert window_start(LONG_MIN + 1, 0, 1000) <= LONG_MIN + 1
    assert window_start(LONG_MAX, 0, 1000) == LONG_MAX - 807


def test_max_timestamp() -> None:
    assert max_timestamp(1000) == 999
    assert TimeWindow(0, 1000).max_timestamp() == 999
    assert GlobalWindow().max_timestamp() == LONG_MAX
    assert CountWindow(3).max_timestamp() == LONG_MAX


def test_intersects_when_touching() -> None:
    window = TimeWindow(1000, 2000)
    assert [window.intersects(TimeWindow(start, 3000)) for start in (1999, 2000, 2001)] == [True, True, False]
    assert [window.intersects(TimeWindow(0, end)) for end in (999, 1000, 1001)] == [False, True, True]
    assert intersects(0, 10, 3, 4) and intersects(3, 4, 0, 10)


def test_cleanup_time() -> None:
    window = TimeWindow(0, 1000)
    assert cleanup_time(window, 0, True) == 999
    assert cleanup_time(window, 500, True) == 1499
    assert cleanup_time(window, 500, False) == 999


def test_cleanup_time_saturates() -> None:
    almost = TimeWindow(0, LONG_MAX - 9)  # max_timestamp LONG_MAX - 10
    assert [cleanup_time(almost, lateness, True) for lateness in (9, 10, 11)] == [LONG_MAX - 1, LONG_MAX, LONG_MAX]
    assert cleanup_time(GlobalWindow(), 5000, True) == LONG_MAX


@pytest.mark.parametrize(("lateness", "edge"), [(0, 999), (500, 1499)])
def test_a_window_is_late_from_its_cleanup_time_on(lateness: int, edge: int) -> None:
    window = TimeWindow(0, 1000)
    late = [is_window_late(window, lateness, watermark, True) for watermark in (edge - 1, edge, edge + 1)]
    assert late == [False, True, True]


def test_a_window_in_processing_time_is_never_late() -> None:
    assert not is_window_late(TimeWindow(0, 1000), 0, LONG_MAX, False)


@pytest.mark.parametrize(("lateness", "edge"), [(0, 700), (50, 750)])
def test_an_element_is_late_from_its_time_and_lateness_on(lateness: int, edge: int) -> None:
    late = [is_element_late(700, lateness, watermark) for watermark in (edge - 1, edge, edge + 1)]
    assert late == [False, True, True]


def test_windows_are_values() -> None:
    assert TimeWindow(0, 5) == TimeWindow(0, 5)
    assert TimeWindow(0, 5) != TimeWindow(0, 6)
    assert len({TimeWindow(0, 5), TimeWindow(0, 5), TimeWindow(1, 5)}) == 2
    assert sorted([TimeWindow(1, 2), TimeWindow(0, 9), TimeWindow(0, 3)]) == [
        TimeWindow(0, 3),
        TimeWindow(0, 9),
        TimeWindow(1, 2),
    ]
    assert CountWindow(1) < CountWindow(2)
    assert not GlobalWindow() < GlobalWindow()
    assert repr(TimeWindow(0, 5)) == "TimeWindow(start=0, end=5)"


@pytest.mark.parametrize("window", [TimeWindow(-3, 5), CountWindow(7), GlobalWindow()])
def test_windows_are_picklable_and_small(window: object) -> None:
    restored = pickle.loads(pickle.dumps(window))
    assert restored == window and type(restored) is type(window)
    assert not hasattr(window, "__dict__")


def test_serializers_read_what_they_write() -> None:
    stream = BytesIO()
    TimeWindowSerializer().serialize(TimeWindow(-5, LONG_MAX), stream)
    CountWindowSerializer().serialize(CountWindow(9), stream)
    GlobalWindowSerializer().serialize(GlobalWindow(), stream)
    stream.seek(0)
    assert TimeWindowSerializer().deserialize(stream) == TimeWindow(-5, LONG_MAX)
    assert CountWindowSerializer().deserialize(stream) == CountWindow(9)
    assert GlobalWindowSerializer().deserialize(stream) is GlobalWindow()
    assert stream.read() == b""


def test_merge_windows_reports_groups_of_two_and_more() -> None:
    class Collected:
        def __init__(self) -> None:
            self.merges: list[tuple[list[TimeWindow], TimeWindow]] = []

        def merge(self, to_be_merged: list[TimeWindow], merge_result: TimeWindow) -> None:
            self.merges.append((list(to_be_merged), merge_result))

    callback = Collected()
    windows = [TimeWindow(10, 12), TimeWindow(0, 3), TimeWindow(3, 5), TimeWindow(4, 4), TimeWindow(20, 21)]
    TimeWindow.merge_windows(windows, callback)
    assert callback.merges == [([TimeWindow(0, 3), TimeWindow(3, 5), TimeWindow(4, 4)], TimeWindow(0, 5))]
