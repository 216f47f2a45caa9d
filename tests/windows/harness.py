"""Drives a window operator by hand: records, watermarks, the clock, snapshots."""

from __future__ import annotations

import pickle
from typing import Any

from millrace.runtime.operator import Batch, Collected, OperatorContext
from millrace.runtime.windows.base import WindowingOperator
from millrace.runtime.windows.build import WindowSpec, make_window_operator
from millrace.state.store import OperatorStore

PATHS = ["general", "fast"]


class Run:
    """One operator with one output; ``take`` gives what came out since the last call, as (value, timestamp)."""

    def __init__(self, spec: WindowSpec, path: str = "fast", keyed: bool = True) -> None:
        self.spec = spec
        self.path = path
        self.keyed = keyed
        self.now = 0
        self.dropped_before = 0
        self.out = Collected()
        self._start(OperatorStore(lambda: self.now))

    def _start(self, store: OperatorStore) -> None:
        self.store = store
        self.operator: WindowingOperator = make_window_operator(self.spec, general=self.path == "general")
        self.context = OperatorContext("windows", "windows-1", store, lambda: self.now, keyed=self.keyed)
        self.operator.setup(self.context, self.out)
        self.operator.open()

    @property
    def kind(self) -> str:
        return type(self.operator).__name__

    def add(self, value: Any, time: int | None, key: Any = "key") -> Run:
        return self.batch([(key, value, time)])

    def batch(self, records: list[tuple[Any, Any, int | None]]) -> Run:
        keys = [key for key, _, _ in records] if self.keyed else None
        times = [time for _, _, time in records]
        self.operator.process(Batch([value for _, value, _ in records], None if None in times else times, keys))
        self.store.keyed.settle()
        return self

    def watermark(self, watermark: int) -> Run:
        self.operator.on_watermark(watermark)
        self.store.keyed.settle()
        return self

    def clock(self, now: int) -> Run:
        self.now = now
        self.operator.on_processing_time(now)
        self.store.keyed.settle()
        return self

    def restore(self, by_delta: bool = False, path: str | None = None) -> Run:
        """Go on with a new operator, made from a snapshot of this one; perhaps one of another kind."""
        self.path = path or self.path
        self.operator.end_epoch()
        self.dropped_before = self.dropped()
        store = OperatorStore(lambda: self.now)
        if by_delta:
            self.deltas = [*getattr(self, "deltas", []), pickle.dumps(self.store.delta())]
            for delta in self.deltas:
                store.apply(pickle.loads(delta))
        else:
            store.apply(pickle.loads(pickle.dumps(self.store.full())))
        self.operator.close()
        if by_delta:
            # The new store has seen all deltas; what it changes from here on is the next one.
            assert store.delta() is None
        self._start(store)
        return self

    def take(self) -> list[tuple[Any, int]]:
        taken = [(event[1], event[2]) for event in self.out.events if event[0] == "record"]
        self.out.events.clear()
        return taken

    def late(self, tag_id: str = "late") -> list[tuple[Any, int]]:
        return self.out.side.pop(tag_id, [])

    def dropped(self) -> int:
        return self.dropped_before + self.context.metrics.counter("numLateRecordsDropped").get_count()

    def stored(self) -> int:
        """How many entries the operator holds, timers included."""
        tables = sum(len(table) for table in self.store.keyed.tables().values())
        return tables + len(self.store.event_timers) + len(self.store.processing_timers)
