from __future__ import annotations

import json
import pickle

import pytest

from millrace.metrics import (
    Counter,
    CounterValue,
    Distribution,
    DistributionValue,
    GaugeValue,
    Meter,
    MeterValue,
    MetricGroup,
    merge_snapshots,
    plain_values,
)


def test_counter() -> None:
    counter = Counter()
    counter.inc()
    counter.inc(5)
    counter.dec()
    counter.dec(2)
    assert counter.get_count() == 3
    assert counter.value() == CounterValue(3)


def test_distribution() -> None:
    distribution = Distribution()
    assert distribution.value() == DistributionValue(0, 0, None, None)
    for value in (3, 1, 2):
        distribution.update(value)
    assert distribution.value() == DistributionValue(3, 6, 1, 3)


def test_meter_forgets_what_is_older_than_its_span() -> None:
    now = [0.0]
    meter = Meter(time_span_in_seconds=10, clock=lambda: now[0])
    meter.mark_event(20)
    now[0] = 5.0
    meter.mark_event()
    meter.mark_event(9)
    assert meter.get_rate() == 3.0
    now[0] = 9.9
    assert meter.get_rate() == 3.0
    now[0] = 10.0
    assert meter.get_rate() == 1.0
    now[0] = 15.0
    assert meter.get_rate() == 0.0
    assert meter.get_count() == 30
    assert meter.value() == MeterValue(30, 0.0)


def test_meter_needs_a_span() -> None:
    with pytest.raises(ValueError, match="time span of 1 second or more, not 0"):
        Meter(0)


def test_asking_twice_gives_the_same_metric() -> None:
    group = MetricGroup()
    assert group.counter("c") is group.counter("c")
    assert group.meter("m") is group.meter("m")
    assert group.distribution("d") is group.distribution("d")
    assert group.add_group("g") is group.add_group("g")
    assert group.add_group("k", "v") is group.add_group("k").add_group("v")


def test_gauge_is_read_at_the_time_of_the_snapshot() -> None:
    group = MetricGroup()
    sizes = [1]
    group.gauge("size", lambda: sizes[-1])
    sizes.append(7)
    assert group.snapshot() == {"size": GaugeValue(7, 7, 7)}
    group.gauge("size", lambda: 9)
    assert group.snapshot() == {"size": GaugeValue(9, 9, 9)}


def test_names_are_taken_once() -> None:
    group = MetricGroup()
    group.counter("x")
    group.add_group("g")
    with pytest.raises(ValueError, match="'x' is a counter of this group already"):
        group.meter("x")
    with pytest.raises(ValueError, match="'x' is a counter of this group already"):
        group.gauge("x", lambda: 1)
    with pytest.raises(ValueError, match="'x' is a metric of this group already"):
        group.add_group("x")
    with pytest.raises(ValueError, match="'g' is a group within this group already"):
        group.counter("g")


def test_snapshots_of_tasks_become_one() -> None:
    snapshots = []
    for task in (1, 2):
        group = MetricGroup()
        group.counter("seen").inc(task)
        inner = group.add_group("parser")
        inner.gauge("queue", lambda task=task: 10 * task)  # type: ignore[misc]
        inner.distribution("size").update(task)
        inner.add_group("topic", f"t{task}").counter("read").inc(task)
        group.distribution("none")
        snapshots.append(pickle.loads(pickle.dumps(group.snapshot())))
    merged = merge_snapshots(snapshots)
    assert merged == {
        "seen": CounterValue(3),
        "none": DistributionValue(0, 0, None, None),
        "parser": {
            "queue": GaugeValue(10, 20, 30),
            "size": DistributionValue(2, 3, 1, 2),
            "topic": {"t1": {"read": CounterValue(1)}, "t2": {"read": CounterValue(2)}},
        },
    }
    assert json.loads(json.dumps(plain_values(merged))) == {
        "seen": 3,
        "none": {"count": 0, "sum": 0, "min": None, "max": None, "mean": None},
        "parser": {
            "queue": {"min": 10, "max": 20, "sum": 30},
            "size": {"count": 2, "sum": 3, "min": 1, "max": 2, "mean": 1.5},
            "topic": {"t1": {"read": 1}, "t2": {"read": 2}},
        },
    }


def test_merging_leaves_the_snapshots_alone() -> None:
    first = {"g": {"c": CounterValue(1)}}
    merge_snapshots([first, {"g": {"c": CounterValue(2), "d": CounterValue(5)}}])
    assert first == {"g": {"c": CounterValue(1)}}
    assert merge_snapshots([]) == {}


def test_one_name_for_different_metrics_is_refused() -> None:
    with pytest.raises(ValueError, match="metric 'x' is a CounterValue in one task, a MeterValue in another"):
        merge_snapshots([{"x": CounterValue(1)}, {"x": MeterValue(1, 1.0)}])
    with pytest.raises(ValueError, match="'x' is a group in one task, a CounterValue in another"):
        merge_snapshots([{"x": {"c": CounterValue(1)}}, {"x": CounterValue(1)}])
    with pytest.raises(ValueError, match="'x' is a CounterValue in one task, a group in another"):
        merge_snapshots([{"x": CounterValue(1)}, {"x": {"c": CounterValue(1)}}])
