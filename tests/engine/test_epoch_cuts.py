"""Epochs are a matter of performance only (rules M1, M3, M4, M5): one of them, many, or one record each, crashes or
not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millrace.common import Configuration, Duration, Time, WatermarkStrategy
from millrace.connectors.callback import CallbackSink
from millrace.datastream import OutputTag, StreamExecutionEnvironment
from millrace.datastream.window import EventTimeSessionWindows, SlidingEventTimeWindows, TumblingEventTimeWindows
from millrace.testing import LocalRun

from .splits import SplitSource

BOUND = 5
LATE = OutputTag("late")

Event = tuple[str, int, int]
"""Key, number, timestamp."""

Build = Callable[[Any], Any]


@st.composite
def ordered_splits(draw: st.DrawFn) -> list[list[Event]]:
    """Splits that keep the promise of their watermark: no record is more than BOUND behind the newest before it."""
    splits = []
    number = 0
    for _ in range(draw(st.integers(1, 4))):
        newest = draw(st.integers(0, 10))
        split = []
        for _ in range(draw(st.integers(0, 15))):
            number += 1
            newest += draw(st.integers(0, 6))
            split.append((draw(st.sampled_from("abcd")), number, newest - draw(st.integers(0, BOUND))))
        splits.append(split)
    return splits


def strategy() -> WatermarkStrategy:
    bounded = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(BOUND))
    return bounded.with_timestamp_assigner(lambda event, _: event[2])


def run(
    splits: list[list[Event]],
    build: Build,
    *,
    parallelism: int = 2,
    epochs: list[int] | None = None,
    crashes: bool = False,
    every_record: bool = False,
) -> tuple[list[Any], list[Any]]:
    """The results and the late records of a program over the splits, cut as told."""
    results: list[Any] = []
    late: list[Any] = []
    config = Configuration()
    if every_record:
        config.set_string("pipeline.watermark-emission", "every-record")
    env = StreamExecutionEnvironment.get_execution_environment(config).set_parallelism(parallelism)
    stream = build(env.from_source(SplitSource(splits), strategy(), "splits"))
    stream.sink_to(CallbackSink(results.extend))
    stream.get_side_output(LATE).sink_to(CallbackSink(late.extend))
    local = LocalRun(env)
    sizes = iter(epochs or [])
    while not local.done:
        local.run_epoch(next(sizes, None if epochs is None else epochs[-1]))
        if crashes:
            local.crash()
    return results, late


def window_counts(assigner: Any) -> Build:
    def build(stream: Any) -> Any:
        windows = stream.key_by(lambda event: event[0]).window(assigner).side_output_late_data(LATE)
        return windows.apply(lambda key, window, es: [(key, window.start, window.end, sorted(e[1] for e in es))])

    return build


ASSIGNERS = {
    "tumbling": TumblingEventTimeWindows.of(Time.milliseconds(10)),
    "sliding": SlidingEventTimeWindows.of(Time.milliseconds(12), Time.milliseconds(4)),
    "session": EventTimeSessionWindows.with_gap(Time.milliseconds(4)),
}


def naive(kind: str, events: list[Event]) -> list[Any]:
    """The windows of all events, with no notion of arrival."""
    found: dict[tuple[str, int, int], list[int]] = {}
    if kind == "session":
        for key in sorted({event[0] for event in events}):
            mine = sorted((event for event in events if event[0] == key), key=lambda event: event[2])
            start: int | None = None
            end = 0
            members: list[int] = []
            for _, number, time in mine:
                if start is not None and time > end:
                    found[key, start, end] = sorted(members)
                    start, members = None, []
                start, end = (time, time + 4) if start is None else (start, max(end, time + 4))
                members.append(number)
            if start is not None:
                found[key, start, end] = sorted(members)
    else:
        size, slide = (10, 10) if kind == "tumbling" else (12, 4)
        for key, number, time in events:
            first = time - time % slide
            for start_of in range(first, time - size, -slide):
                found.setdefault((key, start_of, start_of + size), []).append(number)
    return sorted((*window, sorted(members)) for window, members in found.items())


@pytest.mark.parametrize("kind", ASSIGNERS)
@settings(max_examples=40, deadline=None)
@given(
    splits=ordered_splits(),
    parallelism=st.integers(1, 3),
    epochs=st.one_of(st.none(), st.just([1]), st.lists(st.integers(1, 7), min_size=1, max_size=6)),
    crashes=st.booleans(),
)
def test_windows_are_those_of_the_whole_input_however_it_is_cut(
    kind: str, splits: list[list[Event]], parallelism: int, epochs: list[int] | None, crashes: bool
) -> None:
    results, late = run(splits, window_counts(ASSIGNERS[kind]), parallelism=parallelism, epochs=epochs, crashes=crashes)
    assert sorted(results) == naive(kind, [event for split in splits for event in split])
    assert late == []


@settings(max_examples=40, deadline=None)
@given(
    events=st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 99), st.integers(0, 60)), max_size=25),
    epochs=st.lists(st.integers(1, 7), min_size=1, max_size=6),
    crashes=st.booleans(),
)
def test_with_a_watermark_at_every_record_even_late_data_does_not_show_the_cuts(
    events: list[Event], epochs: list[int], crashes: bool
) -> None:
    build = window_counts(ASSIGNERS["tumbling"])
    whole = run([events], build, every_record=True)
    cut = run([events], build, epochs=epochs, crashes=crashes, every_record=True)
    assert (Counter(map(str, whole[0])), Counter(whole[1])) == (Counter(map(str, cut[0])), Counter(cut[1]))


@settings(max_examples=40, deadline=None)
@given(
    splits=st.lists(
        st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 99)), max_size=12), min_size=1, max_size=3
    ),
    parallelism=st.integers(1, 3),
    epochs=st.one_of(st.none(), st.just([1]), st.lists(st.integers(1, 5), min_size=1, max_size=4)),
    crashes=st.booleans(),
)
def test_records_of_a_split_reach_their_key_in_order(
    splits: list[list[tuple[str, int]]], parallelism: int, epochs: list[int] | None, crashes: bool
) -> None:
    named = [[(f"{key}{index}", n, 0) for key, n in split] for index, split in enumerate(splits)]

    def build(stream: Any) -> Any:
        return (
            stream.key_by(lambda event: event[0])
            .map(lambda event: [event])
            .key_by(lambda events: events[0][0])
            .reduce(lambda a, b: a + b)
        )

    results, _ = run(named, build, parallelism=parallelism, epochs=epochs, crashes=crashes)
    longest: dict[str, list[Event]] = {}
    for events in results:
        if len(events) > len(longest.get(events[0][0], [])):
            longest[events[0][0]] = events
    everything = [event for split in named for event in split]
    expected = {key: [event for event in everything if event[0] == key] for key in {event[0] for event in everything}}
    assert longest == expected
    assert len(results) == len(everything)


@settings(max_examples=25, deadline=None)
@given(
    splits=ordered_splits(), parallelism=st.integers(1, 3), epochs=st.lists(st.integers(1, 7), min_size=1, max_size=4)
)
def test_the_same_epochs_give_the_same_output_to_the_letter(
    splits: list[list[Event]], parallelism: int, epochs: list[int]
) -> None:
    def build(stream: Any) -> Any:
        sums = stream.key_by(lambda event: event[0]).reduce(lambda a, b: (a[0], a[1] + b[1], max(a[2], b[2])))
        return sums.rebalance().map(lambda event: event)

    first = run(splits, build, parallelism=parallelism, epochs=epochs)
    assert first == run(splits, build, parallelism=parallelism, epochs=epochs)
    assert first == run(splits, build, parallelism=parallelism, epochs=epochs, crashes=True)
