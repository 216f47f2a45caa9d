"""Timers of one operator: a set of (time, key, namespace) that gives back the earliest first."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from heapq import heapify, heappop, heappush
from typing import Any, TypeAlias

from millrace.state.table import VOID

__all__ = ["Timer", "TimerDelta", "TimerQueue"]

Timer: TypeAlias = tuple[int, Any, Hashable]
"""(time, key, namespace)"""

TimerDelta: TypeAlias = tuple[list[Timer] | None, list[Timer]]
"""(removed timers, added timers in order of registration); `None` as removed: all that was there before."""

_COMPACT_ABOVE = 64


class TimerQueue:
    """Timers of one operator and one time domain, fired in time order, ties in order of registration.

    Timers of equal time share a bucket, a dict in order of registration, so that the heap holds each time once:
    thousands of keys waiting for the end of the same window cost one heap entry.

    >>> timers = TimerQueue()
    >>> timers.register(20, "a")
    >>> timers.register(10, "b")
    >>> timers.register(10, "b")
    >>> timers.pop_due(15)
    (10, 'b', '')
    >>> print(timers.pop_due(15), timers.peek())
    None 20
    """

    __slots__ = ("_buckets", "_delta_seq", "_firing", "_fresh", "_removed", "_seq", "_stored_seq", "_times")

    def __init__(self) -> None:
        # Checkpointed: (key, namespace) -> number of the registration, by time. The numbers are not stored; the order
        # of the entries is, which says the same.
        self._buckets: dict[int, dict[tuple[Any, Hashable], int]] = {}
        # Rebuilt: heap of bucket times, may hold times without a bucket; buckets being fired, as a list in reverse,
        # because taking the first entry of a dict again and again is quadratic.
        self._times: list[int] = []
        self._firing: dict[int, list[tuple[tuple[Any, Hashable], int]]] = {}
        # Change tracking. A timer registered and gone between two snapshots leaves no trace: `_removed` takes only
        # those that some snapshot may hold (number <= _stored_seq), the delta adds only those after _delta_seq.
        self._seq = 0
        self._delta_seq = 0
        self._stored_seq = 0
        self._fresh: set[int] = set()
        self._removed: dict[Timer, None] = {}

    def register(self, time: int, key: Any, namespace: Hashable = VOID) -> None:
        """Add a timer; one that is there already stays as it is."""
        bucket = self._buckets.get(time)
        if bucket is None:
            bucket = self._buckets[time] = {}
            heappush(self._times, time)
        self._seq = seq = self._seq + 1
        if bucket.setdefault((key, namespace), seq) == seq:
            self._fresh.add(time)

    def register_all(self, time: int, keys: Iterable[Any], namespace: Hashable = VOID) -> None:
        """Add one timer per key, all for the same time and namespace."""
        for key in keys:
            self.register(time, key, namespace)

    def delete(self, time: int, key: Any, namespace: Hashable = VOID) -> None:
        """Remove a timer; one that is not there is no error."""
        bucket = self._buckets.get(time)
        if bucket is None:
            return
        seq = bucket.pop((key, namespace), None)
        if seq is None:
            return
        if seq <= self._stored_seq:
            self._removed[time, key, namespace] = None
        if not bucket:
            del self._buckets[time]
            self._firing.pop(time, None)
            if len(self._times) > _COMPACT_ABOVE + 2 * len(self._buckets):
                self._times = list(self._buckets)
                heapify(self._times)

    def peek(self) -> int | None:
        """The earliest time, or None without timers."""
        times = self._times
        while times and times[0] not in self._buckets:
            heappop(times)
        return times[0] if times else None

    def pop_due(self, limit: int) -> Timer | None:
        """Remove and return the next timer with time <= limit, or None."""
        times = self._times
        while times:
            time = times[0]
            if time > limit:
                return None
            bucket = self._buckets.get(time)
            if bucket is None:
                heappop(times)
                continue
            if len(bucket) == 1:
                (key, namespace), seq = bucket.popitem()
                heappop(times)
                del self._buckets[time]
                if time in self._firing:
                    del self._firing[time]
                if seq <= self._stored_seq:
                    self._removed[time, key, namespace] = None
                return time, key, namespace
            firing = self._firing.get(time)
            if firing is None:
                firing = self._firing[time] = list(bucket.items())
                firing.reverse()
            while firing:
                pair, seq = firing.pop()
                # Another number means: deleted and registered again meanwhile, so its turn is later.
                if bucket.get(pair) == seq:
                    del bucket[pair]
                    key, namespace = pair
                    if seq <= self._stored_seq:
                        self._removed[time, key, namespace] = None
                    return time, key, namespace
            del self._firing[time]
        return None

    def __len__(self) -> int:
        return sum(map(len, self._buckets.values()))

    def __bool__(self) -> bool:
        return bool(self._buckets)

    def count(self, namespace: Hashable) -> int:
        """How many timers a namespace has; looks at all of them."""
        return sum(1 for bucket in self._buckets.values() for _, ns in bucket if ns == namespace)

    def __iter__(self) -> Iterator[Timer]:
        for time in sorted(self._buckets):
            for key, namespace in self._buckets[time]:
                yield time, key, namespace

    def __repr__(self) -> str:
        return f"TimerQueue({len(self)} timers, next {self.peek()})"

    def delta(self) -> TimerDelta:
        """What changed since the last delta; costs only that much."""
        added: list[Timer] = []
        for time in sorted(self._fresh):
            fresh = []
            for (key, namespace), seq in reversed(self._buckets.get(time, {}).items()):
                if seq <= self._delta_seq:
                    break
                fresh.append((time, key, namespace))
            added.extend(reversed(fresh))
        removed = list(self._removed)
        self._forget_changes()
        return removed, added

    def full(self) -> TimerDelta:
        """Everything, in the shape of a delta; the next delta may be applied on top of this or of the last delta."""
        self._stored_seq = self._seq
        return None, list(self)

    def apply(self, delta: TimerDelta) -> None:
        """Take over a delta or a full; nothing of it counts as changed.

        The queue must be where the delta starts: no changes of its own since its last delta.
        """
        removed, added = delta
        if removed is None:
            self._buckets = {}
            self._times = []
            self._firing = {}
        else:
            for timer in removed:
                self.delete(*timer)
        for timer in added:
            self.register(*timer)
        self._forget_changes()

    def retain(self, keep: Callable[[Any], bool]) -> None:
        """Keep only the timers of these keys. Nothing counts as changed: after rescaling, write a full."""
        buckets = {}
        for time, bucket in self._buckets.items():
            kept = {pair: seq for pair, seq in bucket.items() if keep(pair[0])}
            if kept:
                buckets[time] = kept
        self._buckets = buckets
        self._times = list(buckets)
        heapify(self._times)
        self._firing = {}

    def _forget_changes(self) -> None:
        self._delta_seq = self._stored_seq = self._seq
        self._fresh = set()
        self._removed = {}
