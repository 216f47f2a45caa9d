"""The interval join against two nested loops, whatever the order, the watermarks and the crashes."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millrace.common.constants import LONG_MIN
from millrace.common.output_tag import OutputTag
from millrace.state import VOID, OperatorStore
from millrace.state.codec import dump, load
from millrace.testing import harness_for

pytestmark = pytest.mark.usefixtures("each_backend")

LATE = (OutputTag("left"), OutputTag("right"))

elements = st.tuples(st.just("element"), st.sampled_from([0, 1]), st.sampled_from("ab"), st.integers(-20, 20))
watermarks = st.tuples(st.just("watermark"), st.sampled_from([0, 1]), st.integers(-25, 25))
steps = st.lists(elements | elements | elements | watermarks | st.just(("restart",)), max_size=60)
bounds = st.tuples(st.integers(-8, 8), st.integers(0, 8)).map(lambda pair: (pair[0], pair[0] + pair[1]))


def pair(left, right):
    yield left, right


def by_key(value):
    return value[0]


def nested_loops(script, lower, upper):
    """Each record against all of the other side that are still kept: until event time is past their last match.

    A record that stands exactly at the watermark is on time, though its match may have been let go by that very
    watermark (rules 24 and 25).
    """
    marks = [LONG_MIN, LONG_MIN]
    watermark = LONG_MIN
    kept: tuple[list, list] = ([], [])
    late: tuple[list, list] = ([], [])
    waits = (max(upper, 0), max(-lower, 0))
    pairs = []
    for number, step in enumerate(script):
        if step[0] == "watermark":
            marks[step[1]] = max(marks[step[1]], step[2])
            if min(marks) > watermark:
                watermark = min(marks)
                for side in (0, 1):
                    kept[side][:] = [(value, time) for value, time in kept[side] if time + waits[side] > watermark]
        elif step[0] == "element":
            _, side, key, time = step
            if time < watermark:
                late[side].append(((key, number), time))
                continue
            for other, other_time in kept[1 - side]:
                left_time, right_time = (time, other_time) if side == 0 else (other_time, time)
                if other[0] == key and left_time + lower <= right_time <= left_time + upper:
                    match = ((key, number), other) if side == 0 else (other, (key, number))
                    pairs.append((match, max(left_time, right_time)))
            kept[side].append(((key, number), time))
    return pairs, late


@settings(max_examples=300, deadline=None)
@given(steps, bounds)
def test_as_nested_loops(script, interval) -> None:
    harness = harness_for(pair, key_selector=by_key, interval=interval, late_tags=LATE)
    joined = []
    late: tuple[list, list] = ([], [])

    def drain():
        joined.extend(harness.get_output())
        for side, tag in enumerate(LATE):
            late[side].extend(harness.get_side_output(tag))
        harness.clear_output()

    for number, step in enumerate(script):
        match step:
            case ("element", side, key, time):
                harness.process_batch([(key, number)], [time], side=side)
            case ("watermark", 0, time):
                harness.process_watermark1(time)
            case ("watermark", 1, time):
                harness.process_watermark2(time)
            case _:
                drain()
                harness = harness.restore(harness.snapshot())
    harness.process_watermark(100)
    drain()
    expected, expected_late = nested_loops(script, *interval)
    assert Counter(joined) == Counter(expected)
    assert late == expected_late
    assert (harness.num_keyed_state_entries(), harness.num_event_time_timers()) == (0, 0)


@settings(max_examples=100, deadline=None)
@given(steps, bounds)
def test_deltas_add_up_to_the_whole_state(script, interval) -> None:
    harness = harness_for(pair, key_selector=by_key, interval=interval).open()
    store, copy = harness.context.store, OperatorStore()
    for number, step in enumerate(script):
        match step:
            case ("element", side, key, time):
                harness.process_batch([(key, number)], [time], side=side)
            case ("watermark", _, time):
                harness.process_watermark(time)
            case _:
                copy.apply(load(dump(store.delta())))
    copy.apply(load(dump(store.delta())))
    assert contents(copy) == contents(store)


def contents(store: OperatorStore):
    tables = {name: table.panes[VOID] for name, table in store.keyed.tables().items() if len(table)}
    return tables, set(store.event_timers)
