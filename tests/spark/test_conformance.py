"""Rows of Flink's own tests that make sense end to end: on Spark, as one plan, in epochs and in batch mode."""

from __future__ import annotations

from typing import Any

import pytest

from millrace.common import Configuration, Time, WatermarkStrategy
from millrace.datastream import RuntimeExecutionMode
from millrace.datastream import StreamExecutionEnvironment as Environment
from millrace.datastream.window import EventTimeSessionWindows, SlidingEventTimeWindows, TumblingEventTimeWindows

pytestmark = pytest.mark.usefixtures("spark")

Record = tuple[str, int, int]
"""Key, value, timestamp."""

W1 = [
    ("k2", 1, 3999),
    ("k2", 1, 3000),
    ("k1", 1, 20),
    ("k1", 1, 0),
    ("k1", 1, 999),
    ("k2", 1, 1998),
    ("k2", 1, 1999),
    ("k2", 1, 1000),
]
W3 = [
    ("k2", 1, 0),
    ("k2", 2, 1000),
    ("k2", 3, 2500),
    ("k1", 1, 10),
    ("k1", 2, 1000),
    ("k1", 3, 2500),
    ("k2", 4, 5501),
    ("k2", 5, 6000),
    ("k2", 5, 6000),
    ("k2", 6, 6050),
    ("k2", 10, 15000),
    ("k2", 20, 15000),
]


@pytest.fixture(params=["once", "in epochs", "batch"])
def env(request: pytest.FixtureRequest) -> Environment:
    # Four seconds of disorder in the rows above: no record of them is late.
    config = Configuration.from_dict({"pipeline.epoch.max-records": "3"} if request.param == "in epochs" else {})
    made = Environment.get_execution_environment(config).set_parallelism(2)
    if request.param == "batch":
        made.set_runtime_mode(RuntimeExecutionMode.BATCH)
    return made


def timed(env: Environment, records: list[Any], time: int = 2, bound: int = 4000) -> Any:
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Time.milliseconds(bound))
    return env.from_collection(records).assign_timestamps_and_watermarks(
        strategy.with_timestamp_assigner(lambda record, _: record[time])
    )


def collected(stream: Any) -> list[Any]:
    with stream.execute_and_collect() as results:
        return sorted(results)


def sums(env: Environment, records: list[Record], assigner: Any) -> list[Any]:
    windows = timed(env, records).key_by(lambda record: record[0]).window(assigner)
    return collected(
        windows.apply(lambda key, window, rows: [(key, sum(row[1] for row in rows), window.start, window.end)])
    )


def test_w1_tumbling(env: Environment) -> None:
    assert sums(env, W1, TumblingEventTimeWindows.of(Time.seconds(3))) == [
        ("k1", 3, 0, 3000),
        ("k2", 2, 3000, 6000),
        ("k2", 3, 0, 3000),
    ]


def test_w2_sliding(env: Environment) -> None:
    assert sums(env, W1, SlidingEventTimeWindows.of(Time.seconds(3), Time.seconds(1))) == [
        ("k1", 3, -2000, 1000),
        ("k1", 3, -1000, 2000),
        ("k1", 3, 0, 3000),
        ("k2", 2, 2000, 5000),
        ("k2", 2, 3000, 6000),
        ("k2", 3, -1000, 2000),
        ("k2", 3, 0, 3000),
        ("k2", 5, 1000, 4000),
    ]


def test_w3_sessions(env: Environment) -> None:
    assert sums(env, W3, EventTimeSessionWindows.with_gap(Time.seconds(3))) == [
        ("k1", 6, 10, 5500),
        ("k2", 6, 0, 5500),
        ("k2", 20, 5501, 9050),
        ("k2", 30, 15000, 18000),
    ]


@pytest.mark.parametrize(
    ("lower", "upper", "expected"),
    [
        (-2, -1, [(2, 1), (3, 1), (3, 2), (4, 2), (4, 3)]),
        (1, 2, [(1, 2), (1, 3), (2, 3), (2, 4), (3, 4)]),
    ],
)
def test_j1_interval_join(env: Environment, lower: int, upper: int, expected: list[Any]) -> None:
    left, right = (timed(env, [("key", n) for n in (1, 2, 3, 4)], 1).key_by(lambda record: record[0]) for _ in "lr")
    bounds = left.interval_join(right).between(Time.milliseconds(lower), Time.milliseconds(upper))
    assert collected(bounds.process(lambda one, other: [(one[1], other[1])])) == expected


def test_g1_co_group(env: Environment) -> None:
    left = [("a", 0), ("a", 1), ("a", 2), ("b", 3), ("b", 4), ("b", 5), ("a", 6), ("a", 7), ("a", 8)]
    right = [("a", 0), ("a", 1), ("b", 3), ("c", 6), ("c", 7), ("c", 8)]
    grouped = (
        timed(env, left, 1)
        .co_group(timed(env, right, 1))
        .where(lambda record: record[0])
        .equal_to(lambda record: record[0])
        .window(TumblingEventTimeWindows.of(Time.milliseconds(3)))
        .apply(lambda ones, others: [(sorted(r[1] for r in ones), sorted(r[1] for r in others))])
    )
    assert collected(grouped) == [([], [6, 7, 8]), ([0, 1, 2], [0, 1]), ([3, 4, 5], [3]), ([6, 7, 8], [])]
