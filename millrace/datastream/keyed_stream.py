"""Streams of records with keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

from millrace.common.typeinfo import TypeInformation
from millrace.datastream import functions as f
from millrace.datastream._checks import check_function
from millrace.datastream._keys import check_position
from millrace.datastream._typed import Results, check_type, typed
from millrace.datastream.data_stream import DataStream
from millrace.errors import GraphError
from millrace.graph.node import Edge, Node
from millrace.graph.partitioners import Partitioner
from millrace.runtime.functions import UserFunction
from millrace.runtime.operator import Operator
from millrace.runtime.operators.process import ProcessOperator
from millrace.runtime.operators.rolling import ReduceOperator, field_aggregate

if TYPE_CHECKING:
    from millrace.datastream.cached import CachedDataStream
    from millrace.datastream.joined import IntervalJoin
    from millrace.datastream.windowed_stream import WindowedStream
    from millrace.runtime.windows.assigners import WindowAssigner

__all__ = ["KeyedStream"]


class KeyedStream(DataStream):
    """A stream divided by key: all records of a key meet in one task, in the order of their split, with common state.

    >>> from millrace.datastream import StreamExecutionEnvironment
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> totals = env.from_elements(("a", 1), ("b", 2), ("a", 3)).key_by(0).sum(1)
    """

    # Record by record, with keyed state

    def process(
        self,
        func: f.KeyedProcessFunction | f.ProcessFunction | Callable[..., Any],
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Any number of records for each record, with keyed state, timers, and side outputs."""
        check_function(func, "process", (f.KeyedProcessFunction, f.ProcessFunction), ("process_element",))
        declared = check_type(output_type, "process")
        function = typed(func, declared, Results.MANY, "process_element", "on_timer")
        return self._transform("KEYED PROCESS", ProcessOperator(UserFunction(function, "process_element")), declared)

    def _check_unkeyed(self, func: Any, where: str) -> None:
        return

    # Rolling results

    def reduce(self, func: Callable[[Any, Any], Any] | f.ReduceFunction) -> DataStream:
        """For each record, all records of its key so far folded into one; in batch mode, only the last of them."""
        check_function(func, "reduce", (f.ReduceFunction,), ("reduce",))
        return self._rolling("Reduce", func)

    def sum(self, position_to_sum: int | str = 0) -> DataStream:
        """The rolling sum of a field; the other fields are those of the key's first record."""
        return self._aggregate("sum", position_to_sum)

    def min(self, position_to_min: int | str = 0) -> DataStream:
        """The rolling minimum of a field; the other fields are those of the key's first record."""
        return self._aggregate("min", position_to_min)

    def max(self, position_to_max: int | str = 0) -> DataStream:
        """The rolling maximum of a field; the other fields are those of the key's first record."""
        return self._aggregate("max", position_to_max)

    def min_by(self, position_to_min_by: int | str = 0, first: bool = True) -> DataStream:
        """The record with the least value of a field so far; of equal ones the first, or the last."""
        return self._aggregate("min_by", position_to_min_by, first)

    def max_by(self, position_to_max_by: int | str = 0, first: bool = True) -> DataStream:
        """The record with the greatest value of a field so far; of equal ones the first, or the last."""
        return self._aggregate("max_by", position_to_max_by, first)

    def _aggregate(self, kind: str, position: int | str, first: bool = True) -> DataStream:
        check_position(position, self._known, kind)
        return self._rolling("Keyed Aggregation", field_aggregate(kind, position, first))

    def _rolling(self, name: str, func: Any) -> DataStream:
        function = typed(func, self._declared, Results.ONE, "reduce")
        return self._transform(name, ReduceOperator(UserFunction(function, "reduce")), self._declared, self._known)

    # Windows and joins

    def window(self, window_assigner: WindowAssigner[Any, Any]) -> WindowedStream:
        """Windows of each key."""
        from millrace.datastream.windowed_stream import WindowedStream

        return WindowedStream(self, window_assigner)

    def count_window(self, size: int, slide: int = 0) -> WindowedStream:
        """Windows of ``size`` records of a key, a new one every ``slide`` records; only full windows give a result."""
        from millrace.datastream.windowed_stream import count_assigner

        return self.window(count_assigner(size, slide, "count_window"))

    def time_window(self, size: Any, slide: Any = None) -> WindowedStream:
        """Windows of event time: tumbling, or sliding if ``slide`` is given."""
        from millrace.datastream.windowed_stream import time_assigner

        return self.window(time_assigner(size, slide))

    def interval_join(self, other_stream: KeyedStream) -> IntervalJoin:
        """Pairs of records of a key whose timestamps are near each other: ``.between(lower, upper).process(...)``."""
        from millrace.datastream.joined import IntervalJoin

        if not isinstance(other_stream, KeyedStream):
            message = "interval_join takes a keyed stream: call key_by(...) on the other stream first"
            raise GraphError(message)
        self._check_stream(other_stream, "interval_join")
        return IntervalJoin(self, other_stream)

    # What a keyed stream cannot do

    def _set_on(self, what: str) -> NoReturn:
        message = (
            f"{what}() cannot be called on a keyed stream: call it before key_by(...), or on the operator after it"
        )
        raise GraphError(message)

    def _one_output(self, what: str) -> Node:
        self._set_on(what)

    def _partitioned(self, partitioner: Partitioner) -> DataStream:
        method = {"GLOBAL": "global_", "CUSTOM": "partition_custom"}.get(
            partitioner.ship_strategy, partitioner.ship_strategy.lower()
        )
        message = (
            f"{method}() cannot be called on a keyed stream, whose records already have a task: "
            "call it before key_by(...), or on the operator after it"
        )
        raise GraphError(message)

    def cache(self) -> CachedDataStream:
        """Not on a keyed stream."""
        self._set_on("cache")

    def _transform(
        self,
        name: str,
        operator: Operator,
        declared: TypeInformation | None = None,
        known: TypeInformation | None = None,
        *,
        keyed: bool = True,
        edges: list[Edge] | None = None,
    ) -> DataStream:
        return super()._transform(name, operator, declared, known, keyed=keyed, edges=edges)
