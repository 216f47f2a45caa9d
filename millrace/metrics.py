"""Metrics that user functions and the runtime count, as groups of names with values.

A task has one root `MetricGroup`. `snapshot` gives its values as they are now; snapshots travel to the driver, where
`merge_snapshots` makes one of them for the whole job, and `plain_values` turns that into JSON.

>>> group = MetricGroup()
>>> group.add_group("parser").counter("errors").inc(2)
>>> plain_values(merge_snapshots([group.snapshot(), group.snapshot()]))
{'parser': {'errors': 4}}
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

__all__ = [
    "Counter",
    "CounterValue",
    "Distribution",
    "DistributionValue",
    "GaugeValue",
    "Meter",
    "MeterValue",
    "Metric",
    "MetricGroup",
    "MetricValue",
    "Snapshot",
    "merge_snapshots",
    "plain_values",
]


class CounterValue(NamedTuple):
    """What a counter had counted; counts of several tasks add up.

    >>> CounterValue(1).merge(CounterValue(2)).plain()
    3
    """

    total: int

    def merge(self, other: CounterValue) -> CounterValue:
        """The value for both tasks."""
        return CounterValue(self.total + other.total)

    def plain(self) -> int:
        """The count."""
        return self.total


class GaugeValue(NamedTuple):
    """What a gauge showed; of several tasks, the lowest, the highest and the sum.

    >>> GaugeValue(1, 1, 1).merge(GaugeValue(5, 5, 5)).plain()
    {'min': 1, 'max': 5, 'sum': 6}
    """

    lowest: float
    highest: float
    total: float

    def merge(self, other: GaugeValue) -> GaugeValue:
        """The value for both tasks."""
        return GaugeValue(min(self.lowest, other.lowest), max(self.highest, other.highest), self.total + other.total)

    def plain(self) -> dict[str, float]:
        """The values by name."""
        return {"min": self.lowest, "max": self.highest, "sum": self.total}


class MeterValue(NamedTuple):
    """How many events a meter saw, and how many a second lately; both add up over tasks.

    >>> MeterValue(10, 2.0).merge(MeterValue(5, 1.0)).plain()
    {'count': 15, 'rate': 3.0}
    """

    events: int
    rate: float

    def merge(self, other: MeterValue) -> MeterValue:
        """The value for both tasks."""
        return MeterValue(self.events + other.events, self.rate + other.rate)

    def plain(self) -> dict[str, float]:
        """The values by name."""
        return {"count": self.events, "rate": self.rate}


class DistributionValue(NamedTuple):
    """Number, sum, lowest and highest of the values that a distribution saw.

    >>> DistributionValue(1, 4, 4, 4).merge(DistributionValue(1, 2, 2, 2)).plain()
    {'count': 2, 'sum': 6, 'min': 2, 'max': 4, 'mean': 3.0}
    """

    number: int
    total: float
    lowest: float | None
    highest: float | None

    def merge(self, other: DistributionValue) -> DistributionValue:
        """The value for both tasks."""
        lows = [low for low in (self.lowest, other.lowest) if low is not None]
        highs = [high for high in (self.highest, other.highest) if high is not None]
        return DistributionValue(
            self.number + other.number, self.total + other.total, min(lows, default=None), max(highs, default=None)
        )

    def plain(self) -> dict[str, float | None]:
        """The values by name."""
        mean = self.total / self.number if self.number else None
        return {"count": self.number, "sum": self.total, "min": self.lowest, "max": self.highest, "mean": mean}


MetricValue = CounterValue | GaugeValue | MeterValue | DistributionValue
"""What one metric showed at one time."""

Snapshot = dict[str, Any]
"""Names to a `MetricValue`, or to the `Snapshot` of the group of that name."""


class Metric(ABC):
    """Base of all metrics.

    >>> isinstance(Counter(), Metric)
    True
    """

    __slots__ = ()

    @abstractmethod
    def value(self) -> MetricValue:
        """What the metric shows now."""


class Counter(Metric):
    """A number that goes up and down.

    >>> counter = MetricGroup().counter("orders")
    >>> counter.inc(5)
    >>> counter.dec()
    >>> counter.get_count()
    4
    """

    __slots__ = ("_count",)

    def __init__(self) -> None:
        self._count = 0

    def inc(self, n: int = 1) -> None:
        """Count up."""
        self._count += n

    def dec(self, n: int = 1) -> None:
        """Count down."""
        self._count -= n

    def get_count(self) -> int:
        """The count as of now."""
        return self._count

    def value(self) -> CounterValue:
        """What the counter shows now."""
        return CounterValue(self._count)


class Meter(Metric):
    """Counts events, and how many there were a second over the last `time_span_in_seconds`.

    >>> meter = Meter(time_span_in_seconds=10, clock=lambda: 0.0)
    >>> meter.mark_event(20)
    >>> meter.get_count(), meter.get_rate()
    (20, 2.0)
    """

    __slots__ = ("_clock", "_count", "_seconds", "_span")

    def __init__(self, time_span_in_seconds: int = 60, clock: Callable[[], float] = time.monotonic) -> None:
        if time_span_in_seconds < 1:
            raise ValueError(f"a meter needs a time span of 1 second or more, not {time_span_in_seconds}")
        self._span = time_span_in_seconds
        self._clock = clock
        self._count = 0
        # One entry for each second that had events: [second, events]. Never longer than the span.
        self._seconds: deque[list[int]] = deque(maxlen=time_span_in_seconds)

    def mark_event(self, value: int = 1) -> None:
        """Count events that happened now."""
        self._count += value
        second = int(self._clock())
        if self._seconds and self._seconds[-1][0] == second:
            self._seconds[-1][1] += value
        else:
            self._seconds.append([second, value])

    def get_count(self) -> int:
        """All events so far."""
        return self._count

    def get_rate(self) -> float:
        """Events a second over the time span."""
        oldest = int(self._clock()) - self._span
        return sum(events for second, events in self._seconds if second > oldest) / self._span

    def value(self) -> MeterValue:
        """What the meter shows now."""
        return MeterValue(self._count, self.get_rate())


class Distribution(Metric):
    """Number, sum, lowest and highest of the values it is given.

    >>> sizes = Distribution()
    >>> sizes.update(3)
    >>> sizes.update(1)
    >>> sizes.value()
    DistributionValue(number=2, total=4, lowest=1, highest=3)
    """

    __slots__ = ("_highest", "_lowest", "_number", "_total")

    def __init__(self) -> None:
        self._number = 0
        self._total: float = 0
        self._lowest: float | None = None
        self._highest: float | None = None

    def update(self, value: float) -> None:
        """Take in a value."""
        self._number += 1
        self._total += value
        self._lowest = value if self._lowest is None else min(self._lowest, value)
        self._highest = value if self._highest is None else max(self._highest, value)

    def value(self) -> DistributionValue:
        """What the distribution shows now."""
        return DistributionValue(self._number, self._total, self._lowest, self._highest)


class _Gauge(Metric):
    __slots__ = ("_read",)

    def __init__(self, read: Callable[[], float]) -> None:
        self._read = read

    def value(self) -> GaugeValue:
        shown = self._read()
        return GaugeValue(shown, shown, shown)


M = TypeVar("M", bound=Metric)


class MetricGroup:
    """Metrics by name, and groups within the group. Asking twice for a name gives the same metric.

    >>> group = MetricGroup()
    >>> group.counter("seen").inc()
    >>> group.add_group("topic", "orders").gauge("lag", lambda: 7)
    >>> plain_values(group.snapshot())
    {'seen': 1, 'topic': {'orders': {'lag': {'min': 7, 'max': 7, 'sum': 7}}}}
    """

    def __init__(self) -> None:
        self._metrics: dict[str, Metric] = {}
        self._groups: dict[str, MetricGroup] = {}

    def add_group(self, name: str, extra: str | None = None) -> MetricGroup:
        """The group of this name; with `extra`, the group of the value `extra` within the group of the key `name`."""
        if name in self._metrics:
            raise ValueError(f"{name!r} is a metric of this group already; give the group another name")
        group = self._groups.setdefault(name, MetricGroup())
        return group if extra is None else group.add_group(extra)

    def counter(self, name: str) -> Counter:
        """The counter of this name."""
        return self._metric(name, Counter, Counter)

    def gauge(self, name: str, obj: Callable[[], float]) -> None:
        """Show what the function returns whenever the metrics are read; replaces a gauge of the same name."""
        self._metric(name, _Gauge, lambda: _Gauge(obj))
        self._metrics[name] = _Gauge(obj)

    def meter(self, name: str, time_span_in_seconds: int = 60) -> Meter:
        """The meter of this name."""
        return self._metric(name, Meter, lambda: Meter(time_span_in_seconds))

    def distribution(self, name: str) -> Distribution:
        """The distribution of this name."""
        return self._metric(name, Distribution, Distribution)

    def snapshot(self) -> Snapshot:
        """The values of all metrics as of now, those of inner groups as a dict of their own."""
        values: Snapshot = {name: metric.value() for name, metric in self._metrics.items()}
        for name, group in self._groups.items():
            values[name] = group.snapshot()
        return values

    def _metric(self, name: str, kind: type[M], make: Callable[[], M]) -> M:
        if name in self._groups:
            raise ValueError(f"{name!r} is a group within this group already; give the metric another name")
        metric = self._metrics.get(name)
        if metric is None:
            metric = self._metrics[name] = make()
        if not isinstance(metric, kind):
            other = type(metric).__name__.lstrip("_").lower()
            raise ValueError(f"{name!r} is a {other} of this group already; give the new metric another name")
        return metric


def merge_snapshots(snapshots: Iterable[Mapping[str, Any]]) -> Snapshot:
    """One snapshot for all tasks: metrics of the same name and groups of the same name become one.

    >>> merge_snapshots([{"seen": CounterValue(1)}, {"seen": CounterValue(2)}])
    {'seen': CounterValue(total=3)}
    """
    merged: Snapshot = {}
    for snapshot in snapshots:
        for name, value in snapshot.items():
            merged[name] = _merged(name, merged[name], value) if name in merged else value
    return merged


def _merged(name: str, first: Any, second: Any) -> Any:
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        return merge_snapshots([first, second])
    if type(first) is type(second):
        return first.merge(second)
    kinds = ["group" if isinstance(value, Mapping) else type(value).__name__ for value in (first, second)]
    message = f"metric {name!r} is a {kinds[0]} in one task, a {kinds[1]} in another; give one of them another name"
    raise ValueError(message)


def plain_values(snapshot: Mapping[str, Any]) -> dict[str, Any]:
    """A snapshot in numbers and dicts, as JSON takes it.

    >>> plain_values({"seen": CounterValue(1)})
    {'seen': 1}
    """
    return {
        name: plain_values(value) if isinstance(value, Mapping) else value.plain() for name, value in snapshot.items()
    }
