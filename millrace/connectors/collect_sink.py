"""Records back to the program that started the job."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from typing import Any, Final

from millrace.runtime.context import RuntimeContext
from millrace.runtime.sink import Sink, SinkWriter

__all__ = ["CollectSink", "CollectedRecords"]

BACKLOG: Final = 100_000
"""How many records may wait for the program before the job has to wait itself."""


class CollectedRecords:
    """Records on their way from a job, which adds them, to the program, which takes them.

    >>> records = CollectedRecords()
    >>> records.add([1, 2])
    >>> records.end()
    >>> records.take(), records.take(), records.take(default="over")
    (1, 2, 'over')
    """

    def __init__(self) -> None:
        self._waiting: deque[Any] = deque()
        self._changed = threading.Condition()
        self._ended = False

    def add(self, records: Sequence[Any]) -> None:
        """Add records; waits while too many are there, and drops them once nobody takes any more."""
        with self._changed:
            while len(self._waiting) >= BACKLOG and not self._ended:
                self._changed.wait()
            if not self._ended:
                self._waiting.extend(records)
                self._changed.notify_all()

    def take(self, default: Any = None) -> Any:
        """Wait for the next record; ``default`` once there are no more."""
        with self._changed:
            while not self._waiting and not self._ended:
                self._changed.wait()
            if not self._waiting:
                return default
            record = self._waiting.popleft()
            self._changed.notify_all()
            return record

    def end(self) -> None:
        """There will be no more records."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def discard(self) -> None:
        """Nobody takes records any more: forget those that wait."""
        with self._changed:
            self._ended = True
            self._waiting.clear()
            self._changed.notify_all()


class CollectSink(Sink[Any]):
    """Brings every record to the driver, where ``records`` holds them until they are taken.

    >>> sink = CollectSink()
    >>> writer = sink.create_writer(None)
    >>> writer.write_batch(["a", "b"], None)
    >>> sink.commit(writer.prepare_commit())
    >>> sink.records.take()
    'a'
    """

    volatile = True

    def __init__(self) -> None:
        self.records = CollectedRecords()

    def create_writer(self, context: RuntimeContext) -> SinkWriter[Any]:
        return _CollectWriter()

    def commit(self, committables: Sequence[Any]) -> None:
        self.records.add(committables)

    def __getstate__(self) -> dict[str, Any]:
        return {}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.records = CollectedRecords()


class _CollectWriter(SinkWriter[Any]):
    def __init__(self) -> None:
        self._records: list[Any] = []

    def write(self, value: Any, timestamp: int | None) -> None:
        self._records.append(value)

    def write_batch(self, values: list[Any], timestamps: list[int] | None) -> None:
        self._records.extend(values)

    def prepare_commit(self) -> Sequence[Any]:
        records, self._records = self._records, []
        return records
