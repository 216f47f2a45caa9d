"""Streams of records without keys."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, overload

from millrace.common.execution_config import ExecutionConfig
from millrace.common.output_tag import OutputTag
from millrace.common.typeinfo import TypeInformation, Types
from millrace.common.watermark_strategy import WatermarkStrategy
from millrace.connectors.collection import CollectionSource
from millrace.datastream import functions as f
from millrace.datastream._checks import check_function, check_travels, refuse_keyed_features
from millrace.datastream._keys import key_partitioner
from millrace.datastream._operator_settings import OperatorSettings
from millrace.datastream._projection import project
from millrace.datastream._sinks import SinkMethods
from millrace.datastream._typed import Results, check_type, typed
from millrace.errors import GraphError
from millrace.graph.node import Edge, Node, NodeKind
from millrace.graph.partitioners import Broadcast, Custom, Forward, Global, Partitioner, Rebalance, Rescale, Shuffle
from millrace.runtime.functions import UserFunction
from millrace.runtime.operator import Operator
from millrace.runtime.operators.process import ProcessOperator
from millrace.runtime.operators.stateless import FilterOperator, FlatMapOperator, MapOperator
from millrace.state.descriptors import MapStateDescriptor

if TYPE_CHECKING:
    from millrace.datastream.broadcast import BroadcastConnectedStream, BroadcastStream
    from millrace.datastream.cached import CachedDataStream
    from millrace.datastream.connected_streams import ConnectedStreams
    from millrace.datastream.environment import StreamExecutionEnvironment
    from millrace.datastream.joined import CoGroupedStreams, JoinedStreams
    from millrace.datastream.keyed_stream import KeyedStream
    from millrace.datastream.split_stream import SplitStream
    from millrace.datastream.windowed_stream import AllWindowedStream
    from millrace.runtime.windows.assigners import WindowAssigner

__all__ = ["DataStream"]

Input = tuple[Node, str | None, Partitioner | None]
"""What a stream reads: an operator, one of its side outputs (None: the main one), and how records find their task."""


class DataStream(SinkMethods, OperatorSettings):
    """A stream of records. Every method makes a new stream and leaves this one as it is.

    >>> from millrace.datastream import StreamExecutionEnvironment
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> words = env.from_elements("to be", "or not").flat_map(lambda line: line.split())
    >>> words.get_name()
    'FlatMap'
    """

    def __init__(
        self,
        env: StreamExecutionEnvironment,
        inputs: Sequence[Input],
        declared: TypeInformation | None = None,
        known: TypeInformation | None = None,
        *,
        behind: Node | None = None,
    ) -> None:
        self._env = env
        self._inputs = tuple(inputs)
        self._declared = declared
        """The type the program has declared: results are narrowed to it."""
        self._known = declared if known is None else known
        """The declared type, or one that follows from the records."""
        self._behind = behind
        """The source that a watermark operator belongs to: settings of the stream are the source's."""

    # About the stream

    def get_name(self) -> str:
        """The name of the operator that gives this stream."""
        return self._set_on("get_name")[0].name

    def get_type(self) -> TypeInformation:
        """The type of the records, as far as it was declared or is that of their source."""
        return Types.PICKLED_BYTE_ARRAY() if self._known is None or self._known.guessed else self._known

    def get_execution_environment(self) -> StreamExecutionEnvironment:
        """The environment this stream belongs to."""
        return self._env

    def get_execution_config(self) -> ExecutionConfig:
        """The execution settings of the environment."""
        return self._env.get_config()

    def _set_on(self, what: str) -> tuple[Node, Node | None]:
        node = self._one_output(what)
        return (node, None) if self._behind is None else (self._behind, node)

    def _one_output(self, what: str) -> Node:
        """The operator whose main output this stream is."""
        node, tag, partitioner = self._inputs[0]
        if len(self._inputs) > 1 or tag is not None or partitioner is not None:
            kind = (
                "a union" if len(self._inputs) > 1 else "a side output" if tag is not None else "a repartitioned stream"
            )
            message = f"{what}() speaks of one operator, and {kind} is none: call it on the operator before or after"
            raise GraphError(message)
        return node

    # Record by record

    def map(self, func: Callable[[Any], Any] | f.MapFunction, output_type: TypeInformation | None = None) -> DataStream:
        """One record for each record."""
        check_function(func, "map", (f.MapFunction,), ("map",))
        self._check_unkeyed(func, "map")
        function = typed(func, check_type(output_type, "map"), Results.ONE, "map")
        return self._transform("Map", MapOperator(UserFunction(function, "map")), output_type)

    def flat_map(
        self, func: Callable[[Any], Any] | f.FlatMapFunction, output_type: TypeInformation | None = None
    ) -> DataStream:
        """Any number of records for each record: the function returns an iterable, yields, or returns None."""
        check_function(func, "flat_map", (f.FlatMapFunction,), ("flat_map",))
        self._check_unkeyed(func, "flat_map")
        function = typed(func, check_type(output_type, "flat_map"), Results.MANY, "flat_map")
        return self._transform("FlatMap", FlatMapOperator(UserFunction(function, "flat_map")), output_type)

    def filter(self, func: Callable[[Any], bool] | f.FilterFunction) -> DataStream:
        """The records that the function says yes to."""
        check_function(func, "filter", (f.FilterFunction,), ("filter",))
        self._check_unkeyed(func, "filter")
        operator = FilterOperator(UserFunction(func, "filter"))
        return self._transform("Filter", operator, self._declared, self._known)

    def process(
        self, func: f.ProcessFunction | Callable[..., Any], output_type: TypeInformation | None = None
    ) -> DataStream:
        """Any number of records for each record, with its time and with side outputs."""
        if isinstance(func, f.KeyedProcessFunction | f.KeyedBroadcastProcessFunction | f.KeyedCoProcessFunction):
            message = f"process: {type(func).__name__} needs a keyed stream: call key_by(...) first"
            raise GraphError(message)
        check_function(func, "process", (f.ProcessFunction,), ("process_element",))
        self._check_unkeyed(func, "process")
        function = typed(func, check_type(output_type, "process"), Results.MANY, "process_element")
        return self._transform("PROCESS", ProcessOperator(UserFunction(function, "process_element")), output_type)

    def project(self, *field_indexes: int | str) -> DataStream:
        """Only these fields of each record, in this order."""
        function, output_type = project(field_indexes, self._known)
        operator = MapOperator(UserFunction(function, "project"))
        declared = None if self._declared is None else output_type
        return self._transform("Projection", operator, declared, output_type, keyed=False)

    def assign_timestamps_and_watermarks(self, watermark_strategy: WatermarkStrategy) -> DataStream:
        """Give records their event time, and the stream its watermarks; those of earlier operators end here."""
        if not isinstance(watermark_strategy, WatermarkStrategy):
            message = f"assign_timestamps_and_watermarks takes a WatermarkStrategy, not {watermark_strategy!r}"
            raise GraphError(message)
        check_travels(watermark_strategy, "assign_timestamps_and_watermarks")
        operator = self._env._watermarks_operator(watermark_strategy)
        stream = self._transform("Timestamps/Watermarks", operator, self._declared, self._known, keyed=False)
        # Watermarks are made where the records are read, as long as nobody says otherwise.
        stream._inherit_parallelism(self)
        return stream

    def _check_unkeyed(self, func: Any, where: str) -> None:
        refuse_keyed_features(func, where)

    # By key, by window, together with other streams

    def key_by(self, key_selector: Any, *more: Any, key_type: TypeInformation | None = None) -> KeyedStream:
        """The stream divided by key: a function, a KeySelector, the name or position of a field, or several of them."""
        from millrace.datastream.keyed_stream import KeyedStream

        partitioner = key_partitioner((key_selector, *more), key_type, self._known)
        source = self._inputs[0][0].source
        if isinstance(source, CollectionSource) and partitioner.function is None:
            # The records are at hand: a field that is not there is found now rather than in a task.
            partitioner.selector(source.first)
        inputs = [(node, tag, partitioner) for node, tag, _ in self._inputs]
        return KeyedStream(self._env, inputs, self._declared, self._known)

    def window_all(self, window_assigner: WindowAssigner[Any, Any]) -> AllWindowedStream:
        """Windows over the whole stream; one task sees all records."""
        from millrace.datastream.windowed_stream import AllWindowedStream

        return AllWindowedStream(self, window_assigner)

    def count_window_all(self, size: int, slide: int = 0) -> AllWindowedStream:
        """Windows of ``size`` records over the whole stream, a new one every ``slide`` records."""
        from millrace.datastream.windowed_stream import count_assigner

        return self.window_all(count_assigner(size, slide, "count_window_all"))

    def time_window_all(self, size: Any, slide: Any = None) -> AllWindowedStream:
        """Windows of event time over the whole stream: tumbling, or sliding if ``slide`` is given."""
        from millrace.datastream.windowed_stream import time_assigner

        return self.window_all(time_assigner(size, slide))

    def union(self, *streams: DataStream) -> DataStream:
        """One stream of the records of all these streams."""
        if not streams:
            raise GraphError("union of nothing: pass at least one stream")
        for stream in streams:
            self._check_stream(stream, "union")
        every = (self, *streams)
        inputs = [entry for stream in every for entry in stream._inputs]
        same = all(stream._known == self._known for stream in streams)
        return DataStream(self._env, inputs, self._declared if same else None, self._known if same else None)

    @overload
    def connect(self, ds: DataStream) -> ConnectedStreams: ...

    @overload
    def connect(self, ds: BroadcastStream) -> BroadcastConnectedStream: ...

    def connect(self, ds: DataStream | BroadcastStream) -> ConnectedStreams | BroadcastConnectedStream:
        """Two streams of different types, to be handled by one function that sees both."""
        from millrace.datastream.broadcast import BroadcastConnectedStream, BroadcastStream
        from millrace.datastream.connected_streams import ConnectedStreams

        if isinstance(ds, BroadcastStream):
            self._check_stream(ds.input_stream, "connect")
            return BroadcastConnectedStream(self, ds, ds.broadcast_state_descriptors)
        self._check_stream(ds, "connect")
        return ConnectedStreams(self, ds)

    def join(self, other_stream: DataStream) -> JoinedStreams:
        """Pairs of records with equal keys in the same window: ``.where(...).equal_to(...).window(...).apply(...)``."""
        from millrace.datastream.joined import JoinedStreams

        self._check_stream(other_stream, "join")
        return JoinedStreams(self, other_stream)

    def co_group(self, other_stream: DataStream) -> CoGroupedStreams:
        """All records that two streams have for a key in a window, also if one has none."""
        from millrace.datastream.joined import CoGroupedStreams

        self._check_stream(other_stream, "co_group")
        return CoGroupedStreams(self, other_stream)

    def _check_stream(self, stream: Any, where: str) -> None:
        if not isinstance(stream, DataStream):
            message = f"{where} takes a stream, not {stream!r}"
            raise GraphError(message)
        if stream._env is not self._env:
            message = f"{where}: the streams belong to two environments; make both of them from the same env"
            raise GraphError(message)

    # Side outputs

    def get_side_output(self, output_tag: OutputTag) -> DataStream:
        """What the operator sends to this side output."""
        if not isinstance(output_tag, OutputTag):
            message = f'get_side_output takes an OutputTag, not {output_tag!r}: OutputTag("late"), for example'
            raise GraphError(message)
        node = self._one_output("get_side_output")
        return DataStream(self._env, [(node, output_tag.tag_id, None)], output_tag.type_info)

    def split(self, output_selector: Callable[[Any], Any]) -> SplitStream:
        """Give each record one name or several; ``select(name)`` of the result reads those with a name."""
        from millrace.datastream.split_stream import SplitStream

        return SplitStream(self, output_selector)

    # How records find their task

    def shuffle(self) -> DataStream:
        """Records spread evenly, without a pattern."""
        return self._partitioned(Shuffle())

    def rebalance(self) -> DataStream:
        """Records dealt out to all tasks in turn."""
        return self._partitioned(Rebalance())

    def rescale(self) -> DataStream:
        """Records dealt out in turn to the share of tasks that belongs to the sending task."""
        return self._partitioned(Rescale())

    def forward(self) -> DataStream:
        """Records stay in their task."""
        return self._partitioned(Forward())

    def global_(self) -> DataStream:
        """All records to the first task. ``getattr(stream, "global")`` is the same."""
        return self._partitioned(Global())

    def to_global(self) -> DataStream:
        """Another name of global_()."""
        return self.global_()

    def broadcast(
        self,
        broadcast_state_descriptor: MapStateDescriptor | None = None,
        *other_broadcast_state_descriptors: MapStateDescriptor,
    ) -> Any:
        """Every record to every task; with descriptors, a BroadcastStream that fills their state."""
        from millrace.datastream.broadcast import BroadcastStream

        repeated = self._partitioned(Broadcast())
        if broadcast_state_descriptor is None:
            return repeated
        return BroadcastStream(repeated, [broadcast_state_descriptor, *other_broadcast_state_descriptors])

    def partition_custom(
        self,
        partitioner: Callable[[Any, int], int] | f.Partitioner,
        key_selector: Callable[[Any], Any] | f.KeySelector | int | str,
    ) -> DataStream:
        """Records to the task that ``partitioner(key, number_of_tasks)`` names."""
        check_function(partitioner, "partition_custom", (f.Partitioner,), ("partition",))
        selector = key_partitioner((key_selector,), None, self._known, "partition_custom")
        partition: Any = getattr(partitioner, "partition", partitioner)
        functions = tuple(each for each in (partitioner, selector.function) if each is not None)
        return self._partitioned(Custom(partition, selector.selector, functions))

    def cache(self) -> CachedDataStream:
        """A stream to be used by several jobs of the program."""
        from millrace.datastream.cached import CachedDataStream

        self._one_output("cache")
        return CachedDataStream(self)

    def _partitioned(self, partitioner: Partitioner) -> DataStream:
        inputs = [(node, tag, partitioner) for node, tag, _ in self._inputs]
        return DataStream(self._env, inputs, self._declared, self._known)

    # Building the graph

    def _edges(self, side: int = 0) -> list[Edge]:
        return [Edge(node, partitioner, tag, side) for node, tag, partitioner in self._inputs]

    def _transform(
        self,
        name: str,
        operator: Operator,
        declared: TypeInformation | None = None,
        known: TypeInformation | None = None,
        *,
        keyed: bool = False,
        edges: list[Edge] | None = None,
    ) -> DataStream:
        """The stream that an operator makes of this one."""
        node = self._env._new_node(name, NodeKind.OPERATOR, self._edges() if edges is None else edges)
        node.operator = operator
        node.keyed = keyed
        node.output_type = declared if known is None else known
        return DataStream(self._env, [(node, None, None)], declared, node.output_type)

    def _inherit_parallelism(self, upstream: DataStream) -> None:
        """Run as many tasks as the operators before, so that records stay where they are."""
        (node, _, _) = self._inputs[0]
        widths = {(before.parallelism, before.non_parallel) for before, _, _ in upstream._inputs}
        if len(widths) == 1 and all(partitioner is None for _, _, partitioner in upstream._inputs):
            node.parallelism, node.non_parallel = widths.pop()


# `global` is a keyword, so that no method can be defined with this name.
setattr(DataStream, "global", DataStream.global_)
