"""Sinks: writers that run in tasks, and what is committed on the driver once the epoch's manifest is written."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, Generic, TypeVar

from millrace.runtime.context import RuntimeContext
from millrace.runtime.operator import Batch, Operator, RecordFailure, last_taken

__all__ = ["Sink", "SinkOperator", "SinkWriter"]

T = TypeVar("T")


class SinkWriter(ABC, Generic[T]):
    """Writes the records of one task. What it prepares becomes visible only when the driver commits it."""

    @abstractmethod
    def write(self, value: T, timestamp: int | None) -> None:
        """Take one record."""

    def write_batch(self, values: list[T], timestamps: list[int] | None) -> None:
        """Take many records; override it where that is quicker."""
        if timestamps is None:
            for value in values:
                self.write(value, None)
        else:
            for value, timestamp in zip(values, timestamps, strict=True):
                self.write(value, timestamp)

    def prepare_commit(self) -> Sequence[Any]:
        """End of an epoch: make what was written durable, and say what the driver has to commit."""
        return ()

    @property
    def can_catch_up(self) -> bool:
        """Whether the writer can go on when the state of its task was changed from outside."""
        return True

    def checkpoint_complete(self, checkpoint_id: int) -> None:
        """The epoch of this number is committed; called once the next one begins."""
        return

    def checkpoint_aborted(self, checkpoint_id: int) -> None:
        """The epoch of this number was run, but will never be committed."""
        return

    def finish(self) -> None:
        """The bounded input is over; called before the last prepare_commit."""
        return

    def close(self) -> None:
        """Let go of resources."""
        return


class Sink(ABC, Generic[T]):
    """Where a stream ends.

    ``create_writer`` is called in each task. ``commit`` is called on the driver with everything the writers prepared,
    after the epoch's manifest is safe; after a crash it may be called again with the same committables, so it has to be
    idempotent.

    >>> class Shout(Sink[str]):
    ...     def create_writer(self, context):
    ...         class Writer(SinkWriter[str]):
    ...             def write(self, value, timestamp): print(value.upper())
    ...         return Writer()
    >>> Shout().volatile
    False
    """

    volatile: bool = False
    """Committables are for this process alone (printing, collecting) and are not kept in the manifest."""

    @abstractmethod
    def create_writer(self, context: RuntimeContext) -> SinkWriter[T]:
        """A writer for one task."""

    def open(self) -> None:
        """Called on the driver before the first epoch."""
        return

    def commit(self, committables: Sequence[Any]) -> None:
        """Make visible what the writers prepared. Idempotent."""
        return

    def close(self) -> None:
        """Called on the driver after the last epoch."""
        return


class _Watched(list[Any]):
    """A batch that knows which record was asked for last."""

    def __iter__(self) -> Iterator[Any]:
        self.iterator = super().__iter__()
        return self.iterator

    def at(self) -> Any:
        iterator = getattr(self, "iterator", None)
        return self if iterator is None else last_taken(iterator, self)


class SinkOperator(Operator):
    """Runs a sink's writer in a task."""

    def __init__(self, sink: Sink[Any]) -> None:
        self.sink = sink

    def open(self) -> None:
        try:
            self._writer = self.sink.create_writer(RuntimeContext(self.context))
        except RecordFailure:
            raise
        except Exception as error:
            raise RecordFailure(error, self.context, "create_writer()", None) from error

    def process(self, batch: Batch, side: int = 0) -> None:
        # A list that counts along: where a writer takes records one by one, the failing one can be named.
        values = _Watched(batch.values)
        try:
            self._writer.write_batch(values, batch.timestamps)
        except Exception as error:
            raise RecordFailure(error, self.context, "write()", values.at()) from error

    def end_epoch(self) -> Sequence[Any]:
        try:
            return self._writer.prepare_commit()
        except RecordFailure:
            raise
        except Exception as error:
            raise RecordFailure(error, self.context, "prepare_commit()", None) from error

    @property
    def can_catch_up(self) -> bool:
        return self._writer.can_catch_up

    def on_checkpoint_complete(self, checkpoint_id: int) -> None:
        self._writer.checkpoint_complete(checkpoint_id)

    def on_checkpoint_aborted(self, checkpoint_id: int) -> None:
        self._writer.checkpoint_aborted(checkpoint_id)

    def finish(self) -> None:
        self._writer.finish()

    def close(self) -> None:
        self._writer.close()
