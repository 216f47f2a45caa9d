"""Connected streams: one function object with a method for each input."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress
from typing import Any

from millrace.runtime.functions import UserFunction
from millrace.runtime.operator import Batch, Operator, OperatorContext, Output
from millrace.runtime.operators.stateless import FlatMapOperator, MapOperator

__all__ = ["CoOperator", "co_flat_map", "co_map"]


class CoOperator(Operator):
    """Sends each side to an operator of its own; both share the function object, the state and the output."""

    def __init__(self, first: MapOperator | FlatMapOperator, second: MapOperator | FlatMapOperator) -> None:
        self.sides = (first, second)

    def setup(self, context: OperatorContext, output: Output) -> None:
        super().setup(context, output)
        for side in self.sides:
            side.setup(context, output)

    def open(self) -> None:
        # The two share one function object: it is opened once.
        self.sides[0].open()
        self.sides[1].needs_key = self.sides[0].needs_key

    def process(self, batch: Batch, side: int = 0) -> None:
        self.sides[side].process(batch)

    @property
    def can_catch_up(self) -> bool:
        return self.sides[0].can_catch_up

    def end_epoch(self) -> Sequence[Any]:
        return self.sides[0].end_epoch()

    def on_checkpoint_complete(self, checkpoint_id: int) -> None:
        self.sides[0].on_checkpoint_complete(checkpoint_id)

    def on_checkpoint_aborted(self, checkpoint_id: int) -> None:
        self.sides[0].on_checkpoint_aborted(checkpoint_id)

    def close(self) -> None:
        self.sides[0].close()


class _MapSome(MapOperator):
    """A map whose None means no result, as PyFlink has it for two inputs."""

    def setup(self, context: OperatorContext, output: Output) -> None:
        super().setup(context, _DropNone(output))


class _DropNone(Output):
    def __init__(self, output: Output) -> None:
        self.output = output

    def emit(self, batch: Batch) -> None:
        if None in batch.values:
            kept = [value is not None for value in batch.values]
            times = None if batch.timestamps is None else list(compress(batch.timestamps, kept))
            batch = Batch(list(compress(batch.values, kept)), times)
        if batch.values:
            self.output.emit(batch)

    def emit_side(self, tag_id: str, batch: Batch) -> None:
        self.output.emit_side(tag_id, batch)

    def emit_watermark(self, watermark: int) -> None:
        self.output.emit_watermark(watermark)

    def emit_idle(self, idle: bool) -> None:
        self.output.emit_idle(idle)


def co_map(function: object) -> CoOperator:
    """The operator of ``connect(...).map(CoMapFunction)``."""
    return CoOperator(_MapSome(UserFunction(function, "map1")), _MapSome(UserFunction(function, "map2")))


def co_flat_map(function: object) -> CoOperator:
    """The operator of ``connect(...).flat_map(CoFlatMapFunction)``."""
    first, second = UserFunction(function, "flat_map1"), UserFunction(function, "flat_map2")
    return CoOperator(FlatMapOperator(first), FlatMapOperator(second))
