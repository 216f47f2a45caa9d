"""Two streams joined by key and time."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from millrace.common.output_tag import OutputTag
from millrace.common.time import millis
from millrace.common.typeinfo import TypeInformation
from millrace.datastream import functions as f
from millrace.datastream._checks import check_function
from millrace.datastream._keys import key_partitioner
from millrace.datastream._typed import Results, check_type, typed
from millrace.datastream.data_stream import DataStream
from millrace.datastream.keyed_stream import KeyedStream
from millrace.datastream.windowed_stream import WindowedStream
from millrace.errors import GraphError
from millrace.graph.partitioners import KeyBy
from millrace.runtime.functions import UserFunction
from millrace.runtime.operators.interval_join import IntervalJoinOperator, JoinContext
from millrace.runtime.operators.stateless import MapOperator

if TYPE_CHECKING:
    from millrace.runtime.context import RuntimeContext
    from millrace.runtime.windows.assigners import WindowAssigner
    from millrace.runtime.windows.evictors import Evictor
    from millrace.runtime.windows.trigger import Trigger

__all__ = ["CoGroupedStreams", "IntervalJoin", "JoinedStreams", "TaggedUnion"]

f.ProcessJoinFunction.Context.register(JoinContext)


class TaggedUnion(NamedTuple):
    """A record of one of two streams: what assigners, triggers and evictors of a window join see.

    >>> TaggedUnion(0, "a").is_one(), TaggedUnion(1, "b").get_two()
    (True, 'b')
    """

    side: int
    value: Any

    def is_one(self) -> bool:
        """Whether the record is of the first stream."""
        return self.side == 0

    def is_two(self) -> bool:
        """Whether the record is of the second stream."""
        return self.side == 1

    def get_one(self) -> Any:
        """The record, if it is of the first stream, else None."""
        return self.value if self.side == 0 else None

    def get_two(self) -> Any:
        """The record, if it is of the second stream, else None."""
        return self.value if self.side == 1 else None


class _WindowJoin:
    """The steps that a window join and a co-group share: where, equal_to, window."""

    _NAME = ""

    def __init__(self, first: DataStream, second: DataStream) -> None:
        self._streams = (first, second)
        self._keys: list[KeyBy] = []
        self._window: WindowedStream | None = None

    def where(self, key_selector: Any, key_type: TypeInformation | None = None) -> Self:
        """The key of the first stream's records: a function, or a field."""
        if self._keys:
            raise GraphError(f"{self._NAME}: where(...) was called twice; the second stream's key is equal_to(...)")
        known = self._streams[0]._known
        self._keys.append(key_partitioner((key_selector,), key_type, known, f"{self._NAME}(...).where"))
        return self

    def equal_to(self, key_selector: Any, key_type: TypeInformation | None = None) -> Self:
        """The key of the second stream's records, equal to the first's for records that belong together."""
        if len(self._keys) != 1:
            raise GraphError(f"{self._NAME}: call where(...) once, then equal_to(...) once")
        known = self._streams[1]._known
        self._keys.append(key_partitioner((key_selector,), key_type, known, f"{self._NAME}(...).equal_to"))
        return self

    def window(self, assigner: WindowAssigner[Any, Any]) -> Self:
        """The windows in which records meet."""
        if len(self._keys) != 2:
            raise GraphError(f"{self._NAME}: call where(...) and equal_to(...) before window(...)")
        inputs = [entry for side in (0, 1) for entry in self._tagged(side)._inputs]
        self._window = WindowedStream(KeyedStream(self._streams[0]._env, inputs), assigner)
        return self

    def trigger(self, trigger: Trigger[Any, Any]) -> Self:
        """Say when a window gives a result, instead of the assigner's own way."""
        self._windowed("trigger").trigger(trigger)
        return self

    def evictor(self, evictor: Evictor[Any, Any]) -> Self:
        """Say which records leave a window before or after its function is called."""
        self._windowed("evictor").evictor(evictor)
        return self

    def allowed_lateness(self, time_ms: Any) -> Self:
        """Keep windows for this long after their end, so that late records still count."""
        self._windowed("allowed_lateness").allowed_lateness(time_ms)
        return self

    def _windowed(self, method: str) -> WindowedStream:
        if self._window is None:
            raise GraphError(f"{self._NAME}: call where(...), equal_to(...) and window(...) before {method}(...)")
        return self._window

    def _tagged(self, side: int) -> DataStream:
        """A stream's records with the number of the stream, on their way to the task of their key."""
        stream, key = self._streams[side], self._keys[side]
        operator = MapOperator(UserFunction(_Tag(side), "map"))
        tagged = DataStream._transform(stream, f"Tag {self._NAME} input {side + 1}", operator)
        tagged._inherit_parallelism(stream)
        partitioner = KeyBy(_KeyOfTagged(key.selector), key.function, key.key_type, key.label)
        return tagged._partitioned(partitioner)

    def _apply(self, function: f.WindowFunction[Any, Any, Any, Any], declared: TypeInformation | None) -> DataStream:
        return self._windowed("apply").apply(function, declared)


class JoinedStreams(_WindowJoin):
    """Pairs of records of two streams that have equal keys and share a window.

    >>> from millrace.common import Time
    >>> from millrace.datastream import StreamExecutionEnvironment
    >>> from millrace.datastream.window import TumblingEventTimeWindows
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> orders, payments = env.from_elements(("o1", 5)), env.from_elements(("o1", "paid"))
    >>> joined = (
    ...     orders.join(payments).where(0).equal_to(0)
    ...     .window(TumblingEventTimeWindows.of(Time.minutes(1)))
    ...     .apply(lambda order, payment: (*order, payment[1]))
    ... )
    """

    _NAME = "join"

    def apply(self, function: Any, output_type: TypeInformation | None = None) -> DataStream:
        """What becomes of each pair: a JoinFunction, a FlatJoinFunction, or a function of two records."""
        self._windowed("apply")
        check_function(function, "join(...).apply", (f.JoinFunction, f.FlatJoinFunction), ("join",))
        call = getattr(function, "join", function)
        flat = isinstance(function, f.FlatJoinFunction) or inspect.isgeneratorfunction(call)
        return self._apply(_JoinPairs(function, flat), check_type(output_type, "join(...).apply"))


class CoGroupedStreams(_WindowJoin):
    """All records that two streams have for a key in a window, also if one of them has none.

    >>> from millrace.common import Time
    >>> from millrace.datastream import StreamExecutionEnvironment
    >>> from millrace.datastream.window import TumblingEventTimeWindows
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> left, right = env.from_elements(("a", 1)), env.from_elements(("a", 2))
    >>> sizes = (
    ...     left.co_group(right).where(0).equal_to(0)
    ...     .window(TumblingEventTimeWindows.of(Time.minutes(1)))
    ...     .apply(lambda first, second: [(len(first), len(second))])
    ... )
    """

    _NAME = "co_group"

    def apply(self, function: Any, output_type: TypeInformation | None = None) -> DataStream:
        """What becomes of each key and window: a CoGroupFunction, or a function of two lists."""
        self._windowed("apply")
        check_function(function, "co_group(...).apply", (f.CoGroupFunction,), ("co_group",))
        return self._apply(_CoGroups(function), check_type(output_type, "co_group(...).apply"))


class IntervalJoin:
    """Pairs of records of a key where the right one is between ``lower`` and ``upper`` after the left one.

    >>> from millrace.common import Time
    >>> from millrace.datastream import StreamExecutionEnvironment
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> clicks, orders = env.from_elements(("u", "click")).key_by(0), env.from_elements(("u", "order")).key_by(0)
    >>> pairs = clicks.interval_join(orders).between(Time.minutes(0), Time.minutes(10)).process(lambda a, b: [(a, b)])
    """

    def __init__(self, left: KeyedStream, right: KeyedStream) -> None:
        self._left = left
        self._right = right
        self._bounds: tuple[int, int] | None = None
        self._shift = (0, 0)
        self._late_tags: list[OutputTag | None] = [None, None]

    def in_event_time(self) -> Self:
        """The join is in event time; it is so anyway."""
        return self

    def between(self, lower_bound: Any, upper_bound: Any) -> Self:
        """How long after the left record the right one may come, from and to, both included; negative for before."""
        lower, upper = millis(lower_bound), millis(upper_bound)
        if lower > upper:
            message = f"between: the lower bound of {lower} ms is above the upper bound of {upper} ms; swap them"
            raise GraphError(message)
        self._bounds = (lower, upper)
        return self

    def lower_bound_exclusive(self) -> Self:
        """Leave out pairs exactly at the lower bound."""
        self._shift = (1, self._shift[1])
        return self

    def upper_bound_exclusive(self) -> Self:
        """Leave out pairs exactly at the upper bound."""
        self._shift = (self._shift[0], 1)
        return self

    def side_output_left_late_data(self, output_tag: OutputTag) -> Self:
        """Send left records that come too late to a side output."""
        self._late_tags[0] = _tag(output_tag, "side_output_left_late_data")
        return self

    def side_output_right_late_data(self, output_tag: OutputTag) -> Self:
        """Send right records that come too late to a side output."""
        self._late_tags[1] = _tag(output_tag, "side_output_right_late_data")
        return self

    def process(
        self, process_join_function: f.ProcessJoinFunction | Any, output_type: TypeInformation | None = None
    ) -> DataStream:
        """What becomes of each pair: a ProcessJoinFunction, or a function of two records that gives an iterable."""
        if self._bounds is None:
            raise GraphError("interval_join: call between(lower, upper) before process(...)")
        where = "interval_join(...).process"
        check_function(process_join_function, where, (f.ProcessJoinFunction,), ("process_element",))
        declared = check_type(output_type, where)
        given = process_join_function
        with_context = given if callable(getattr(given, "process_element", None)) else _OfPair(given)
        function = UserFunction(typed(with_context, declared, Results.MANY, "process_element"), "process_element")
        lower, upper = self._bounds[0] + self._shift[0], self._bounds[1] - self._shift[1]
        left_tag, right_tag = (None if tag is None else tag.tag_id for tag in self._late_tags)
        operator = IntervalJoinOperator(function, lower, upper, left_tag, right_tag)
        edges = [*self._left._edges(0), *self._right._edges(1)]
        return self._left._transform("Interval Join", operator, declared, keyed=True, edges=edges)


def _tag(tag: Any, method: str) -> OutputTag:
    if not isinstance(tag, OutputTag):
        message = f'{method} takes an OutputTag, not {tag!r}: OutputTag("late"), for example'
        raise GraphError(message)
    return tag


class _Tag:
    def __init__(self, side: int) -> None:
        self.side = side

    def __call__(self, value: Any) -> TaggedUnion:
        return TaggedUnion(self.side, value)


class _KeyOfTagged:
    def __init__(self, selector: Any) -> None:
        self.selector = selector

    def __call__(self, value: TaggedUnion) -> Any:
        return self.selector(value[1])


class _OfPair(f.ProcessJoinFunction):
    """A plain function of two records."""

    def __init__(self, function: Any) -> None:
        self.function = function

    def process_element(self, left: Any, right: Any, ctx: Any) -> Iterable[Any] | None:
        results: Iterable[Any] | None = self.function(left, right)
        return results


class _OfTwoStreams(f.WindowFunction[Any, Any, Any, Any]):
    """A window function that calls another function with the records of the two streams."""

    def __init__(self, function: Any) -> None:
        self.function = function

    def open(self, runtime_context: RuntimeContext) -> None:
        if callable(getattr(self.function, "open", None)):
            self.function.open(runtime_context)

    def close(self) -> None:
        if callable(getattr(self.function, "close", None)):
            self.function.close()


class _JoinPairs(_OfTwoStreams):
    def __init__(self, function: Any, flat: bool) -> None:
        super().__init__(function)
        self.flat = flat

    def apply(self, key: Any, window: Any, inputs: Iterable[Any]) -> Iterator[Any]:
        join = getattr(self.function, "join", self.function)
        firsts, seconds = _apart(inputs)
        for first in firsts:
            for second in seconds:
                if self.flat:
                    yield from join(first, second) or ()
                else:
                    yield join(first, second)


class _CoGroups(_OfTwoStreams):
    def apply(self, key: Any, window: Any, inputs: Iterable[Any]) -> Iterable[Any] | None:
        co_group = getattr(self.function, "co_group", self.function)
        results: Iterable[Any] | None = co_group(*_apart(inputs))
        return results


def _apart(inputs: Iterable[Any]) -> tuple[list[Any], list[Any]]:
    sides: tuple[list[Any], list[Any]] = ([], [])
    for side, value in inputs:
        sides[side].append(value)
    return sides
