"""General operator == fast path == a naive oracle, whatever the disorder, the cuts, the lateness, the restores."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millrace.common.constants import LONG_MAX, LONG_MIN
from millrace.common.output_tag import OutputTag
from millrace.runtime.windows.assigners import (
    DynamicEventTimeSessionWindows,
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from millrace.runtime.windows.build import WindowSpec
from millrace.runtime.windows.functions import WindowFunctionKind
from millrace.runtime.windows.triggers import EventTimeTrigger, PurgingTrigger
from tests.windows.harness import Run

pytestmark = pytest.mark.usefixtures("each_backend")

LATE = OutputTag("late")

Result = tuple[Any, tuple[int, int], list[Any]]
"""(key, (start, end) of the window, records in order of arrival)"""


@dataclass
class AlignedOracle:
    """Tumbling and sliding windows, one record at a time, straight from the rules."""

    size: int
    slide: int
    offset: int
    lateness: int
    purging: bool
    watermark: int = LONG_MIN
    contents: dict[Any, list[Any]] = field(default_factory=dict)
    waiting: dict[Any, None] = field(default_factory=dict)
    late: list[Any] = field(default_factory=list)

    def windows(self, time: int) -> list[tuple[int, int]]:
        first = (time - self.size - self.offset) // self.slide - 1
        starts = [self.offset + n * self.slide for n in range(first, first + self.size // self.slide + 4)]
        return [(start, start + self.size) for start in reversed(starts) if start <= time < start + self.size]

    def add(self, key: Any, value: Any, time: int) -> list[Result]:
        results, taken = [], False
        for window in self.windows(time):
            last = window[1] - 1
            if last + self.lateness <= self.watermark:
                continue
            taken = True
            self.contents.setdefault((key, window), []).append(value)
            if last <= self.watermark:
                results.append(self.fire(key, window))
            else:
                self.waiting[(key, window)] = None
        if not taken and time + self.lateness <= self.watermark:
            self.late.append((value, time))
        return results

    def fire(self, key: Any, window: tuple[int, int]) -> Result:
        records = list(self.contents[key, window])
        if self.purging:
            del self.contents[key, window]
        return key, window, records

    def advance(self, watermark: int) -> list[Result]:
        self.watermark = watermark
        due = sorted((pane for pane in self.waiting if pane[1][1] - 1 <= watermark), key=lambda pane: pane[1])
        for pane in due:
            del self.waiting[pane]
        results = [self.fire(*pane) for pane in due]
        for key, window in list(self.contents):
            if window[1] - 1 + self.lateness <= watermark:
                del self.contents[key, window]
        return results


@dataclass
class SessionOracle:
    """Sessions as plain lists of (start, end, records), merged by looking at all of them."""

    lateness: int
    watermark: int = LONG_MIN
    sessions: dict[Any, list[list[Any]]] = field(default_factory=lambda: defaultdict(list))
    late: list[Any] = field(default_factory=list)

    def add(self, key: Any, value: Any, time: int, gap: int) -> list[Result]:
        mine = self.sessions[key]
        touching = sorted(s for s in mine if s[0] <= time + gap and s[1] >= time)
        if not touching and time + gap - 1 + self.lateness <= self.watermark:
            self.late.append((value, time))
            return []
        start = min([time, *(s[0] for s in touching)])
        end = max([time + gap, *(s[1] for s in touching)])
        records = [record for s in touching for record in s[2]] + [value]
        fired = end - 1 <= self.watermark
        self.sessions[key] = [s for s in mine if s not in touching] + [[start, end, records, fired]]
        return [(key, (start, end), list(records))] if fired else []

    def advance(self, watermark: int) -> list[Result]:
        self.watermark = watermark
        due = [
            (s[1], key, s) for key, mine in self.sessions.items() for s in mine if s[1] - 1 <= watermark and not s[3]
        ]
        results = []
        for _, key, session in sorted(due, key=lambda one: one[:2]):
            session[3] = True
            results.append((key, (session[0], session[1]), list(session[2])))
        for key, mine in self.sessions.items():
            self.sessions[key] = [s for s in mine if s[1] - 1 + self.lateness > watermark]
        return results


def listed(key: Any, window: Any, inputs: Any) -> list[Any]:
    return [(key, (window.start, window.end), list(inputs))]


Step = tuple[str, Any]

times = st.integers(-60, 160)
records = st.lists(st.tuples(st.sampled_from("abc"), times), min_size=1, max_size=12)


@st.composite
def programs(draw: Any) -> list[Step]:
    """Batches of records in any order, watermarks that only rise, snapshots anywhere."""
    steps: list[Step] = []
    watermark = -80
    number = 0
    for kind in draw(st.lists(st.sampled_from(["batch", "batch", "watermark", "full", "delta"]), max_size=14)):
        if kind == "batch":
            batch = []
            for key, time in draw(records):
                number += 1
                batch.append((key, number, time))
            steps.append((kind, batch))
        elif kind == "watermark":
            watermark += draw(st.integers(0, 60))
            steps.append((kind, watermark))
        else:
            steps.append((kind, None))
    return [*steps, ("watermark", LONG_MAX)]


def by_time(results: list[tuple[Any, int]]) -> list[tuple[Any, int]]:
    """The order of keys within one time is free; the order of times is not."""
    assert [time for _, time in results] == sorted(time for _, time in results)
    return sorted(results, key=lambda result: (result[1], result[0][1], result[0][0]))


def played(spec: WindowSpec, path: str, steps: list[Step], one_by_one: bool) -> list[Any]:
    """What comes out at each step; a run is restored either always by deltas or always by fulls.

    On the path "turns" every restore goes on with the other kind of operator.
    """
    run = Run(spec, "fast" if path == "turns" else path)
    by_delta = any(kind == "delta" for kind, _ in steps)
    outputs: list[Any] = []
    for kind, content in steps:
        if kind == "batch":
            if one_by_one:
                for record in content:
                    run.batch([record])
            else:
                run.batch(content)
            outputs.append((run.take(), run.late()))
        elif kind == "watermark":
            run.watermark(content)
            outputs.append(by_time(run.take()))
        else:
            other = {"fast": "general", "general": "fast"}[run.path]
            run.restore(by_delta, other if path == "turns" else None)
    assert run.stored() == 0
    return outputs


def expected(oracle: Any, steps: list[Step], gap: Any = None) -> list[Any]:
    outputs: list[Any] = []
    for kind, content in steps:
        if kind == "batch":
            results: list[Result] = []
            for key, value, time in content:
                results += oracle.add(key, value, time, *([] if gap is None else [gap(value)]))
            outputs.append((timed(results), oracle.late))
            oracle.late = []
        elif kind == "watermark":
            outputs.append(by_time(timed(oracle.advance(content))))
    return outputs


def timed(results: list[Result]) -> list[tuple[Result, int]]:
    return [(result, result[1][1] - 1) for result in results]


def list_spec(assigner: Any, lateness: int, purging: bool = False) -> WindowSpec:
    return WindowSpec(
        assigner,
        trigger=PurgingTrigger.of(EventTimeTrigger.create()) if purging else None,
        allowed_lateness=lateness,
        late_tag=LATE,
        function_kind=WindowFunctionKind.APPLY,
        function=listed,
    )


@settings(max_examples=150, deadline=None)
@given(
    steps=programs(),
    size=st.integers(1, 50),
    offset=st.integers(-49, 49),
    lateness=st.sampled_from([0, 0, 1, 7, 40, LONG_MAX]),
    purging=st.booleans(),
    one_by_one=st.booleans(),
)
def test_tumbling_windows(
    steps: list[Step], size: int, offset: int, lateness: int, purging: bool, one_by_one: bool
) -> None:
    offset = offset % size
    lateness = min(lateness, 10**6)
    spec = list_spec(TumblingEventTimeWindows.of(size, offset), lateness, purging)
    want = expected(AlignedOracle(size, size, offset, lateness, purging), steps)
    assert played(spec, "fast", steps, one_by_one) == want
    assert played(spec, "general", steps, True) == want
    assert played(spec, "turns", steps, one_by_one) == want


@settings(max_examples=150, deadline=None)
@given(
    steps=programs(),
    size=st.integers(1, 50),
    slide=st.integers(1, 60),
    offset=st.integers(0, 59),
    lateness=st.sampled_from([0, 0, 1, 7, 40]),
    purging=st.booleans(),
    one_by_one=st.booleans(),
)
def test_sliding_windows(
    steps: list[Step], size: int, slide: int, offset: int, lateness: int, purging: bool, one_by_one: bool
) -> None:
    slide = max(slide, size // 8 + 1)
    offset = offset % slide
    spec = list_spec(SlidingEventTimeWindows.of(size, slide, offset), lateness, purging)
    want = expected(AlignedOracle(size, slide, offset, lateness, purging), steps)
    assert played(spec, "fast", steps, one_by_one) == want
    assert played(spec, "general", steps, True) == want
    assert played(spec, "turns", steps, one_by_one) == want


@settings(max_examples=200, deadline=None)
@given(
    steps=programs(),
    gap=st.integers(1, 40),
    lateness=st.sampled_from([0, 0, 1, 7, 40, 1000]),
    one_by_one=st.booleans(),
)
def test_sessions(steps: list[Step], gap: int, lateness: int, one_by_one: bool) -> None:
    spec = list_spec(EventTimeSessionWindows.with_gap(gap), lateness)
    want = expected(SessionOracle(lateness), steps, lambda _: gap)
    assert played(spec, "fast", steps, one_by_one) == want
    assert played(spec, "general", steps, True) == want
    assert played(spec, "turns", steps, one_by_one) == want


def varying(value: int) -> int:
    return value * 7 % 31 + 1


@settings(max_examples=150, deadline=None)
@given(steps=programs(), lateness=st.sampled_from([0, 0, 5, 40]), one_by_one=st.booleans())
def test_sessions_with_dynamic_gap(steps: list[Step], lateness: int, one_by_one: bool) -> None:
    spec = list_spec(DynamicEventTimeSessionWindows.with_dynamic_gap(varying), lateness)
    want = expected(SessionOracle(lateness), steps, varying)
    assert played(spec, "fast", steps, one_by_one) == want
    assert played(spec, "general", steps, True) == want
    assert played(spec, "turns", steps, one_by_one) == want


@settings(max_examples=100, deadline=None)
@given(
    arrivals=st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 300)), min_size=1, max_size=60),
    gap=st.integers(1, 20),
    cut=st.integers(1, 60),
)
def test_sessions_against_union_find(arrivals: list[tuple[str, int]], gap: int, cut: int) -> None:
    """Without watermarks in between, a session is what is connected by steps of at most the gap."""
    parent = list(range(len(arrivals)))

    def root(index: int) -> int:
        while parent[index] != index:
            index = parent[index]
        return index

    for one, (key, time) in enumerate(arrivals):
        for other, (other_key, other_time) in enumerate(arrivals[:one]):
            if key == other_key and abs(time - other_time) <= gap:
                parent[root(one)] = root(other)
    groups: dict[int, list[tuple[str, int]]] = defaultdict(list)
    for index, arrival in enumerate(arrivals):
        groups[root(index)].append(arrival)
    want = sorted(
        (group[0][0], min(time for _, time in group), max(time for _, time in group) + gap, len(group))
        for group in groups.values()
    )
    for path in ("fast", "general"):
        spec = WindowSpec(
            EventTimeSessionWindows.with_gap(gap),
            reduce=lambda a, b: a + b,
            function_kind=WindowFunctionKind.APPLY,
            function=lambda key, window, inputs: [(key, window.start, window.end, *inputs)],
        )
        run = Run(spec, path)
        for start in range(0, len(arrivals), cut):
            run.batch([(key, 1, time) for key, time in arrivals[start : start + cut]])
            run.restore()
        assert sorted(value for value, _ in run.watermark(LONG_MAX).take()) == want


@settings(max_examples=100, deadline=None)
@given(
    arrivals=st.lists(st.tuples(st.sampled_from("abcd"), st.integers(-500, 500)), max_size=80),
    size=st.integers(1, 200),
    slides=st.integers(1, 4),
    bound=st.integers(0, 50),
    cuts=st.lists(st.integers(1, 30), min_size=1, max_size=10),
)
def test_input_that_keeps_its_promise_against_sorting(
    arrivals: list[tuple[str, int]], size: int, slides: int, bound: int, cuts: list[int]
) -> None:
    """Records at most ``bound`` out of order, watermarks behind them: every window sums all of its records, once."""
    slide = max(1, size // slides)
    ordered = sorted(arrivals, key=lambda arrival: arrival[1])
    shuffled = sorted(ordered, key=lambda arrival: arrival[1] + (ord(arrival[0]) + arrival[1]) % (bound + 1))
    want: dict[Any, int] = defaultdict(int)
    for key, time in ordered:
        for start in range(time - (time % slide), time - size, -slide):
            want[key, start + size - 1] += time
    assigner = SlidingEventTimeWindows.of(size, slide)
    for path in ("fast", "general"):
        run = Run(WindowSpec(assigner, reduce=lambda a, b: (a[0], a[1] + b[1])), path)
        position, turn, seen = 0, 0, -(10**6)
        while position < len(shuffled):
            batch = shuffled[position : position + cuts[turn % len(cuts)]]
            run.batch([(key, (key, time), time) for key, time in batch])
            seen = max(seen, *(time for _, time in batch))
            run.watermark(seen - bound - 1)
            position, turn = position + len(batch), turn + 1
        got = {(key, time): total for (key, total), time in run.watermark(LONG_MAX).take()}
        assert got == want
        assert run.dropped() == 0
