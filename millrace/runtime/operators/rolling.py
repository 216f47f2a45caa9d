"""Rolling reduce and the aggregations by field: a new result for every record of a key."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from millrace.runtime.fields import Position, field_getter, field_replacer
from millrace.runtime.operator import Batch, last_taken
from millrace.runtime.operators.stateless import FunctionOperator
from millrace.state.descriptors import ReducingStateDescriptor
from millrace.state.table import VOID

__all__ = ["ReduceOperator", "field_aggregate"]

_ABSENT: Final = object()


class ReduceOperator(FunctionOperator):
    """Folds each record into its key's value and emits the new value; in batch mode only a key's last value."""

    STATE: Final = "reduce"
    final_only = False

    def use_batch_mode(self) -> None:
        self.final_only = True

    def open(self) -> None:
        super().open()
        keyed = self.context.store.keyed
        keyed.get_state(ReducingStateDescriptor(self.STATE, self.function.call))
        self._table = keyed.table(self.STATE)

    def process(self, batch: Batch, side: int = 0) -> None:
        assert batch.keys is not None
        reduce = self.function.call
        pane = self._table.pane(VOID)
        # A rich function may keep state of its own, by key.
        keyed = self.context.store.keyed if self.needs_key else None
        results: list[Any] = []
        append = results.append
        records = iter(batch.values)
        try:
            for key, value in zip(batch.keys, records, strict=True):
                held = pane.get(key, _ABSENT)
                if held is not _ABSENT:
                    if keyed is not None:
                        keyed.current_key = key
                    value = reduce(held, value)  # noqa: PLW2901
                pane[key] = value
                append(value)
        except Exception as error:
            raise self.failure(error, last_taken(records, batch.values)) from error
        self._table.touched(VOID).update(batch.keys)
        if self.final_only:
            self.output.emit(Batch(results[-1:], batch.timestamps and batch.timestamps[-1:]))
        else:
            self.output.emit(Batch(results, batch.timestamps))


class _Aggregate:
    """sum, min and max keep the first record and replace one field; min_by and max_by keep a whole record."""

    def __init__(self, kind: str, position: Position, first: bool = True) -> None:
        self.kind = kind
        self.get = field_getter(position)
        self.replace = field_replacer(position)
        self.first = first

    def sum(self, held: Any, value: Any) -> Any:
        return self.replace(held, self.get(held) + self.get(value))

    def min(self, held: Any, value: Any) -> Any:
        new = self.get(value)
        return self.replace(held, new) if new < self.get(held) else held

    def max(self, held: Any, value: Any) -> Any:
        new = self.get(value)
        return self.replace(held, new) if new > self.get(held) else held

    def min_by(self, held: Any, value: Any) -> Any:
        old, new = self.get(held), self.get(value)
        return value if new < old or (new == old and not self.first) else held

    def max_by(self, held: Any, value: Any) -> Any:
        old, new = self.get(held), self.get(value)
        return value if new > old or (new == old and not self.first) else held


def field_aggregate(kind: str, position: Position, first: bool = True) -> Callable[[Any, Any], Any]:
    """The reduce function of ``sum(position)`` and its kin; ``first`` says which of two equal records min_by keeps.

    >>> field_aggregate("sum", 1)(("a", 1), ("b", 2))
    ('a', 3)
    >>> field_aggregate("max_by", 1)(("a", 1), ("b", 2))
    ('b', 2)
    """
    aggregate: Callable[[Any, Any], Any] = getattr(_Aggregate(kind, position, first), kind)
    return aggregate
