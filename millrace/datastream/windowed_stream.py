"""Streams divided into windows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, ClassVar, Self

from millrace.common.output_tag import OutputTag
from millrace.common.time import millis
from millrace.common.typeinfo import TypeInformation, Types
from millrace.datastream import functions as f
from millrace.datastream._checks import check_function, check_travels
from millrace.datastream._keys import check_position
from millrace.datastream._typed import Results, TypedAggregate, check_type, typed
from millrace.errors import GraphError
from millrace.graph.node import Edge
from millrace.graph.partitioners import Global
from millrace.runtime.operators.rolling import field_aggregate
from millrace.runtime.windows.assigners import (
    MergingWindowAssigner,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
    WindowAssigner,
)
from millrace.runtime.windows.build import WindowSpec, make_window_operator
from millrace.runtime.windows.counting import CountSlidingWindowAssigner, CountTumblingWindowAssigner
from millrace.runtime.windows.evictors import Evictor
from millrace.runtime.windows.functions import WindowFunctionKind
from millrace.runtime.windows.trigger import Trigger

if TYPE_CHECKING:
    from millrace.datastream.data_stream import DataStream
    from millrace.datastream.environment import StreamExecutionEnvironment

__all__ = ["AllWindowedStream", "WindowedStream", "count_assigner", "time_assigner"]


class _Windowed:
    """What windows of keys and windows over all records have in common."""

    _APPLY: ClassVar[type]
    _PROCESS: ClassVar[type]
    _APPLY_KIND: ClassVar[WindowFunctionKind]
    _PROCESS_KIND: ClassVar[WindowFunctionKind]
    _METHOD: ClassVar[str]

    def __init__(self, stream: DataStream, window_assigner: WindowAssigner[Any, Any]) -> None:
        if not isinstance(window_assigner, WindowAssigner):
            message = (
                f"{self._METHOD} takes a window assigner, not {window_assigner!r}: "
                "TumblingEventTimeWindows.of(Time.seconds(10)), for example"
            )
            raise GraphError(message)
        check_travels(window_assigner, self._METHOD)
        self._stream = stream
        self._assigner = window_assigner
        self._trigger: Trigger[Any, Any] | None = None
        self._evictor: Evictor[Any, Any] | None = None
        self._lateness = 0
        self._late_tag: OutputTag | None = None

    def get_execution_environment(self) -> StreamExecutionEnvironment:
        """The environment the stream belongs to."""
        return self._stream.get_execution_environment()

    def get_input_type(self) -> TypeInformation:
        """The type of the records in the windows."""
        return self._stream.get_type()

    # How windows behave

    def trigger(self, trigger: Trigger[Any, Any]) -> Self:
        """Say when a window gives a result, instead of the assigner's own way."""
        if not isinstance(trigger, Trigger):
            message = f"trigger takes a Trigger, not {trigger!r}: CountTrigger.of(100), for example"
            raise GraphError(message)
        check_travels(trigger, "trigger")
        self._trigger = trigger
        return self

    def evictor(self, evictor: Evictor[Any, Any]) -> Self:
        """Say which records leave a window before or after its function is called; not with reduce and aggregate."""
        if not isinstance(evictor, Evictor):
            message = f"evictor takes an Evictor, not {evictor!r}: CountEvictor.of(100), for example"
            raise GraphError(message)
        check_travels(evictor, "evictor")
        self._evictor = evictor
        return self

    def allowed_lateness(self, time_ms: Any) -> Self:
        """Keep windows of event time for this long after their end, so that late records still count."""
        self._lateness = millis(time_ms)
        return self

    def side_output_late_data(self, output_tag: OutputTag) -> Self:
        """Send records that come too late for all their windows to a side output instead of dropping them."""
        if not isinstance(output_tag, OutputTag):
            message = f'side_output_late_data takes an OutputTag, not {output_tag!r}: OutputTag("late"), for example'
            raise GraphError(message)
        self._late_tag = output_tag
        return self

    # What is made of a window

    def reduce(
        self,
        reduce_function: Callable[[Any, Any], Any] | f.ReduceFunction,
        window_function: Any = None,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """All records of a window folded into one as they come; ``window_function`` sees the result at the end."""
        check_function(reduce_function, "reduce", (f.ReduceFunction,), ("reduce",))
        reduce = typed(reduce_function, self._stream._declared, Results.ONE, "reduce")
        return self._reduced(reduce, window_function, check_type(output_type, "reduce"))

    def aggregate(
        self,
        aggregate_function: f.AggregateFunction,
        window_function: Any = None,
        accumulator_type: TypeInformation | None = None,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """All records of a window gathered in an accumulator as they come; ``window_function`` sees the result."""
        methods = ("create_accumulator", "add", "get_result")
        check_function(aggregate_function, "aggregate", (f.AggregateFunction,), methods, plain=False)
        self._check_merge(aggregate_function)
        declared, accumulators = check_type(output_type, "aggregate"), check_type(accumulator_type, "aggregate")
        result_type = declared if window_function is None else None
        aggregate = TypedAggregate(aggregate_function, accumulators, result_type)
        kind, function = self._window_function(window_function, declared)
        narrows = any(each is not None and each.coercer() is not None for each in (accumulators, result_type))
        return self._built(kind, function, declared, aggregate=aggregate if narrows else aggregate_function)

    def apply(self, window_function: Any, output_type: TypeInformation | None = None) -> DataStream:
        """Results of all records of a window, which are kept until then."""
        check_function(window_function, "apply", (self._APPLY,), ("apply",))
        declared = check_type(output_type, "apply")
        function = typed(window_function, declared, Results.MANY, "apply")
        return self._built(self._APPLY_KIND, function, declared)

    def process(self, process_window_function: Any, output_type: TypeInformation | None = None) -> DataStream:
        """Results of all records of a window, with time, state of the window, and side outputs."""
        check_function(process_window_function, "process", (self._PROCESS,), ("process",))
        declared = check_type(output_type, "process")
        function = typed(process_window_function, declared, Results.MANY, "process")
        return self._built(self._PROCESS_KIND, function, declared)

    def sum(self, position_to_sum: int | str = 0) -> DataStream:
        """The sum of a field; the other fields are those of the window's first record."""
        return self._field("sum", position_to_sum)

    def min(self, position_to_min: int | str = 0) -> DataStream:
        """The minimum of a field; the other fields are those of the window's first record."""
        return self._field("min", position_to_min)

    def max(self, position_to_max: int | str = 0) -> DataStream:
        """The maximum of a field; the other fields are those of the window's first record."""
        return self._field("max", position_to_max)

    def min_by(self, position_to_min_by: int | str = 0, first: bool = True) -> DataStream:
        """The record with the least value of a field; of equal ones the first, or the last."""
        return self._field("min_by", position_to_min_by, first)

    def max_by(self, position_to_max_by: int | str = 0, first: bool = True) -> DataStream:
        """The record with the greatest value of a field; of equal ones the first, or the last."""
        return self._field("max_by", position_to_max_by, first)

    def count(self) -> DataStream:
        """The number of records in a window."""
        stream = self.aggregate(_Count())
        stream._known = Types.LONG()
        return stream

    # Building the graph

    def _field(self, kind: str, position: int | str, first: bool = True) -> DataStream:
        check_position(position, self._stream._known, kind)
        reduce = typed(field_aggregate(kind, position, first), self._stream._declared, Results.ONE, "reduce")
        return self._reduced(reduce, None, None)

    def _reduced(self, reduce: Any, window_function: Any, declared: TypeInformation | None) -> DataStream:
        if window_function is None and declared is not None and declared.coercer() is not None:
            # A window with one record is never reduced, so the type is applied to what comes out of the window.
            function = typed(_Contents(), declared, Results.MANY, "apply")
            return self._built(self._APPLY_KIND, function, declared, reduce=reduce)
        kind, function = self._window_function(window_function, declared)
        known = None if window_function is not None or declared is not None else self._stream._known
        kept = self._stream._declared if window_function is None and declared is None else declared
        return self._built(kind, function, kept, known, reduce=reduce)

    def _window_function(
        self, window_function: Any, declared: TypeInformation | None
    ) -> tuple[WindowFunctionKind, Any]:
        if window_function is None:
            return WindowFunctionKind.PASS_THROUGH, None
        processes = isinstance(window_function, self._PROCESS) or callable(getattr(window_function, "process", None))
        method = "process" if processes else "apply"
        check_function(window_function, "the window function", (self._APPLY, self._PROCESS), (method,))
        kind = self._PROCESS_KIND if processes else self._APPLY_KIND
        return kind, typed(window_function, declared, Results.MANY, method)

    def _check_merge(self, aggregate: Any) -> None:
        merging = isinstance(self._assigner, MergingWindowAssigner)
        if (
            merging
            and isinstance(aggregate, f.AggregateFunction)
            and type(aggregate).merge is f.AggregateFunction.merge
        ):
            message = (
                f"{type(aggregate).__name__} has no merge(), and {self._assigner!r} needs it for windows that grow "
                "together: add merge(self, acc_a, acc_b) that returns the accumulator of both"
            )
            raise GraphError(message)

    def _built(
        self,
        kind: WindowFunctionKind,
        function: Any,
        declared: TypeInformation | None,
        known: TypeInformation | None = None,
        *,
        reduce: Any = None,
        aggregate: Any = None,
    ) -> DataStream:
        name = type(self._assigner).__name__
        spec = WindowSpec(
            self._assigner,
            self._trigger,
            self._evictor,
            self._lateness,
            self._late_tag,
            reduce,
            aggregate,
            kind,
            function,
            name,
        )
        stream = self._stream._transform(
            name, make_window_operator(spec), declared, known, keyed=True, edges=self._window_edges()
        )
        self._finish(stream)
        return stream

    def _window_edges(self) -> list[Edge]:
        return self._stream._edges()

    def _finish(self, stream: DataStream) -> None:
        return


class WindowedStream(_Windowed):
    """The windows of each key of a keyed stream; what is made of them is a stream again.

    The timestamp of a result is the last one that belongs to its window, so windows can follow windows.

    >>> from millrace.common import Time
    >>> from millrace.datastream import StreamExecutionEnvironment
    >>> from millrace.datastream.window import TumblingEventTimeWindows
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> rides = env.from_elements(("a", 1), ("b", 2))
    >>> totals = rides.key_by(0).window(TumblingEventTimeWindows.of(Time.minutes(1))).sum(1)
    >>> totals.get_name()
    'TumblingEventTimeWindows'
    """

    _APPLY = f.WindowFunction
    _PROCESS = f.ProcessWindowFunction
    _APPLY_KIND = WindowFunctionKind.APPLY
    _PROCESS_KIND = WindowFunctionKind.PROCESS
    _METHOD = "window"


class AllWindowedStream(_Windowed):
    """Windows over a whole stream; one task sees all records.

    >>> from millrace.datastream import StreamExecutionEnvironment
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> pairs = env.from_sequence(1, 10).count_window_all(2).reduce(lambda a, b: a + b)
    """

    _APPLY = f.AllWindowFunction
    _PROCESS = f.ProcessAllWindowFunction
    _APPLY_KIND = WindowFunctionKind.APPLY_ALL
    _PROCESS_KIND = WindowFunctionKind.PROCESS_ALL
    _METHOD = "window_all"

    def _window_edges(self) -> list[Edge]:
        return [Edge(node, Global(keyed=True), tag) for node, tag, _ in self._stream._inputs]

    def _finish(self, stream: DataStream) -> None:
        stream.force_non_parallel()


class _Contents:
    """A window function that gives what the window holds."""

    def apply(self, *args: Any) -> Iterable[Any]:
        """The contents, which are the last argument in both forms of window functions."""
        contents: Iterable[Any] = args[-1]
        return contents


class _Count(f.AggregateFunction):
    def create_accumulator(self) -> int:
        return 0

    def add(self, value: Any, accumulator: int) -> int:
        return accumulator + 1

    def get_result(self, accumulator: int) -> int:
        return accumulator

    def merge(self, acc_a: int, acc_b: int) -> int:
        return acc_a + acc_b


def count_assigner(size: int, slide: int, where: str) -> WindowAssigner[Any, Any]:
    """The assigner of count windows; a slide of 0, or one as long as the window, means that windows do not overlap."""
    for name, value in (("size", size), ("slide", slide)):
        if isinstance(value, bool) or not isinstance(value, int) or value < (1 if name == "size" else 0):
            message = f"{where}: the {name} is {value!r}; use a whole number of records above 0"
            raise GraphError(message)
    if slide > size:
        message = f"{where}: the slide of {slide} records is larger than the window of {size}; use {size} or less"
        raise GraphError(message)
    if slide in (0, size):
        return CountTumblingWindowAssigner.of(size)
    return CountSlidingWindowAssigner.of(size, slide)


def time_assigner(size: Any, slide: Any) -> WindowAssigner[Any, Any]:
    """The assigner of time_window(size[, slide])."""
    return TumblingEventTimeWindows.of(size) if slide is None else SlidingEventTimeWindows.of(size, slide)
