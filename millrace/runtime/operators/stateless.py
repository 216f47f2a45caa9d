"""map, filter and flat_map."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress
from typing import Any

from millrace.runtime.functions import UserFunction
from millrace.runtime.operator import Batch, Operator, RecordFailure, last_taken

__all__ = ["FilterOperator", "FlatMapOperator", "FunctionOperator", "MapOperator"]


class FunctionOperator(Operator):
    """An operator around one user function; knows when the function needs to be told the key of each record."""

    def __init__(self, function: UserFunction) -> None:
        self.function = function
        self.needs_key = False

    def open(self) -> None:
        self.needs_key = self.context.keyed and self.function.rich
        self.function.open(self.context)

    @property
    def can_catch_up(self) -> bool:
        return not self.function.keeps_state

    def end_epoch(self) -> Sequence[Any]:
        self.function.snapshot(self.context.epoch)
        return ()

    def on_checkpoint_complete(self, checkpoint_id: int) -> None:
        self.function.checkpoint_complete(checkpoint_id)

    def on_checkpoint_aborted(self, checkpoint_id: int) -> None:
        self.function.checkpoint_aborted(checkpoint_id)

    def close(self) -> None:
        self.function.close()

    def failure(self, error: Exception, record: Any, what: str | None = None) -> RecordFailure:
        """The error that names this operator and the record."""
        return RecordFailure(error, self.context, what or f"{self.function.method}()", record)


class MapOperator(FunctionOperator):
    """One record out for each record in."""

    def process(self, batch: Batch, side: int = 0) -> None:
        records = iter(batch.values)
        try:
            if self.needs_key and batch.keys is not None:
                call, keyed = self.function.call, self.context.store.keyed
                values = []
                for key, value in zip(batch.keys, records, strict=True):
                    keyed.current_key = key
                    values.append(call(value))
            else:
                values = list(map(self.function.call, records))
        except Exception as error:
            raise self.failure(error, last_taken(records, batch.values)) from error
        self.output.emit(Batch(values, batch.timestamps))


class FilterOperator(FunctionOperator):
    """Keeps the records the function says yes to."""

    def process(self, batch: Batch, side: int = 0) -> None:
        records = iter(batch.values)
        try:
            if self.needs_key and batch.keys is not None:
                call, keyed = self.function.call, self.context.store.keyed
                wanted = []
                for key, value in zip(batch.keys, records, strict=True):
                    keyed.current_key = key
                    wanted.append(call(value))
            else:
                wanted = list(map(self.function.call, records))
        except Exception as error:
            raise self.failure(error, last_taken(records, batch.values)) from error
        values = list(compress(batch.values, wanted))
        if values:
            times = batch.timestamps
            self.output.emit(Batch(values, None if times is None else list(compress(times, wanted))))


class FlatMapOperator(FunctionOperator):
    """Any number of records out for each record in; None stands for none."""

    def process(self, batch: Batch, side: int = 0) -> None:
        values: list[Any] = []
        counts: list[int] = []
        records = iter(batch.values)
        call = self.function.call
        keyed = self.context.store.keyed if self.needs_key and batch.keys is not None else None
        keys = iter(batch.keys or ())
        before = 0
        try:
            for value in records:
                if keyed is not None:
                    keyed.current_key = next(keys)
                result = call(value)
                if result is not None:
                    values.extend(result)
                now = len(values)
                counts.append(now - before)
                before = now
        except Exception as error:
            raise self.failure(error, last_taken(records, batch.values)) from error
        if values:
            self.output.emit(Batch(values, _repeat(batch.timestamps, counts)))


def _repeat(times: list[int] | None, counts: list[int]) -> list[int] | None:
    """Each record's timestamp as often as it gave records."""
    if times is None:
        return None
    return [time for time, count in zip(times, counts, strict=True) for _ in range(count)]
