"""Two streams handled by one function."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millrace.common.typeinfo import TypeInformation
from millrace.datastream import functions as f
from millrace.datastream._checks import check_function, refuse_keyed_features
from millrace.datastream._typed import Results, check_type, typed
from millrace.datastream.keyed_stream import KeyedStream
from millrace.errors import GraphError
from millrace.runtime.functions import UserFunction
from millrace.runtime.operator import Operator
from millrace.runtime.operators.co import co_flat_map, co_map
from millrace.runtime.operators.process import ProcessOperator

if TYPE_CHECKING:
    from millrace.datastream.data_stream import DataStream
    from millrace.datastream.environment import StreamExecutionEnvironment

__all__ = ["ConnectedStreams"]


class ConnectedStreams:
    """Two streams, of different types perhaps, for a function with a method for each; keyed, they share state.

    >>> from millrace.datastream import CoMapFunction, StreamExecutionEnvironment
    >>> class Text(CoMapFunction):
    ...     def map1(self, value): return str(value)
    ...     def map2(self, value): return value
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> texts = env.from_elements(1, 2).connect(env.from_elements("a")).map(Text())
    """

    def __init__(self, stream1: DataStream, stream2: DataStream) -> None:
        self.stream1 = stream1
        self.stream2 = stream2

    def get_execution_environment(self) -> StreamExecutionEnvironment:
        """The environment the streams belong to."""
        return self.stream1.get_execution_environment()

    def key_by(
        self, key_selector1: Any, key_selector2: Any, key_type: TypeInformation | None = None
    ) -> ConnectedStreams:
        """Both streams divided by key; records of equal keys meet in one task, with common state."""
        first = self.stream1.key_by(key_selector1, key_type=key_type)
        return ConnectedStreams(first, self.stream2.key_by(key_selector2, key_type=key_type))

    def map(self, func: f.CoMapFunction, output_type: TypeInformation | None = None) -> DataStream:
        """One record for each record of either stream."""
        check_function(func, "connect(...).map", (f.CoMapFunction,), ("map1", "map2"), plain=False)
        declared = self._checked(func, output_type, "map")
        function = typed(func, declared, Results.ONE, "map1", "map2")
        return self._transform("Co-Map", co_map(function), declared)

    def flat_map(self, func: f.CoFlatMapFunction, output_type: TypeInformation | None = None) -> DataStream:
        """Any number of records for each record of either stream."""
        check_function(func, "connect(...).flat_map", (f.CoFlatMapFunction,), ("flat_map1", "flat_map2"), plain=False)
        declared = self._checked(func, output_type, "flat_map")
        function = typed(func, declared, Results.MANY, "flat_map1", "flat_map2")
        return self._transform("Co-Flat Map", co_flat_map(function), declared)

    def process(
        self, func: f.CoProcessFunction | f.KeyedCoProcessFunction, output_type: TypeInformation | None = None
    ) -> DataStream:
        """Any number of records for each record, with time and side outputs, and on keyed streams state and timers."""
        if not self._keyed and isinstance(func, f.KeyedCoProcessFunction):
            message = f"process: {type(func).__name__} needs keyed streams: call key_by(...) first, on both"
            raise GraphError(message)
        kinds = (f.KeyedCoProcessFunction, f.CoProcessFunction) if self._keyed else (f.CoProcessFunction,)
        methods = ("process_element1", "process_element2")
        check_function(func, "connect(...).process", kinds, methods, plain=False)
        declared = self._checked(func, output_type, "process")
        function = typed(func, declared, Results.MANY, *methods, "on_timer")
        name = "Keyed Co-Process" if self._keyed else "Co-Process"
        return self._transform(name, ProcessOperator(UserFunction(function, methods[0]), second=methods[1]), declared)

    @property
    def _keyed(self) -> bool:
        first, second = isinstance(self.stream1, KeyedStream), isinstance(self.stream2, KeyedStream)
        if first != second:
            message = (
                "connect: one of the streams has keys and the other has none; call key_by(...) on both or on neither"
            )
            raise GraphError(message)
        return first

    def _checked(self, func: Any, output_type: TypeInformation | None, method: str) -> TypeInformation | None:
        if not self._keyed:
            refuse_keyed_features(func, f"connect(...).{method}")
        return check_type(output_type, f"connect(...).{method}")

    def _transform(self, name: str, operator: Operator, declared: TypeInformation | None) -> DataStream:
        edges = [*self.stream1._edges(0), *self.stream2._edges(1)]
        return self.stream1._transform(name, operator, declared, keyed=self._keyed, edges=edges)
