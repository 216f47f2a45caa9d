"""A stream that every task sees in full, next to one that is divided."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from millrace.common.typeinfo import TypeInformation
from millrace.datastream import functions as f
from millrace.datastream._checks import check_function, refuse_keyed_features
from millrace.datastream._typed import Results, check_type, typed
from millrace.datastream.data_stream import DataStream
from millrace.datastream.keyed_stream import KeyedStream
from millrace.errors import GraphError
from millrace.runtime.functions import UserFunction
from millrace.runtime.operators.broadcast import BroadcastProcessOperator
from millrace.state.descriptors import MapStateDescriptor

__all__ = ["BroadcastConnectedStream", "BroadcastStream"]


class BroadcastStream:
    """A stream sent to every task, with the descriptors of the state it fills; made by ``stream.broadcast(...)``.

    >>> from millrace.datastream import StreamExecutionEnvironment
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> rules = env.from_elements(("limit", 5)).broadcast(MapStateDescriptor("rules"))
    >>> rules.broadcast_state_descriptors
    [MapStateDescriptor('rules', any -> any)]
    """

    def __init__(self, input_stream: DataStream, broadcast_state_descriptors: Sequence[MapStateDescriptor]) -> None:
        for descriptor in broadcast_state_descriptors:
            if not isinstance(descriptor, MapStateDescriptor):
                message = f'broadcast takes MapStateDescriptors, not {descriptor!r}: MapStateDescriptor("rules", ...)'
                raise GraphError(message)
        self.input_stream = input_stream
        self.broadcast_state_descriptors = list(broadcast_state_descriptors)


class BroadcastConnectedStream:
    """A stream together with a broadcast stream, for one function that sees both.

    >>> from millrace.datastream import BroadcastProcessFunction, StreamExecutionEnvironment
    >>> rules = MapStateDescriptor("rules")
    >>> class Known(BroadcastProcessFunction):
    ...     def process_element(self, value, ctx):
    ...         if value in ctx.get_broadcast_state(rules):
    ...             yield value
    ...     def process_broadcast_element(self, value, ctx):
    ...         ctx.get_broadcast_state(rules)[value] = True
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> known = env.from_elements(1, 2).connect(env.from_elements(2).broadcast(rules)).process(Known())
    """

    def __init__(
        self,
        non_broadcast_stream: DataStream,
        broadcast_stream: BroadcastStream,
        broadcast_state_descriptors: Sequence[MapStateDescriptor],
    ) -> None:
        self.non_broadcast_stream = non_broadcast_stream
        self.broadcast_stream = broadcast_stream
        self.broadcast_state_descriptors = list(broadcast_state_descriptors)

    def process(
        self,
        func: f.BroadcastProcessFunction[Any, Any, Any] | f.KeyedBroadcastProcessFunction[Any, Any, Any, Any],
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Any number of records for each record of either side; only the broadcast side writes the broadcast state."""
        where = "connect(broadcast_stream).process"
        keyed = isinstance(self.non_broadcast_stream, KeyedStream)
        if isinstance(func, f.KeyedBroadcastProcessFunction) and not keyed:
            message = f"{where}: {type(func).__name__} needs a keyed stream: call key_by(...) first"
            raise GraphError(message)
        kind = f.KeyedBroadcastProcessFunction if keyed else f.BroadcastProcessFunction
        methods = ("process_element", "process_broadcast_element")
        check_function(func, where, (kind,), methods, plain=False)
        if not keyed:
            refuse_keyed_features(func, where)
        declared = check_type(output_type, where)
        function = UserFunction(typed(func, declared, Results.MANY, *methods, "on_timer"), methods[0])
        operator = BroadcastProcessOperator(function, tuple(self.broadcast_state_descriptors), keyed)
        edges = [*self.non_broadcast_stream._edges(0), *self.broadcast_stream.input_stream._edges(1)]
        name = "Keyed Co-Process-Broadcast" if keyed else "Co-Process-Broadcast"
        return self.non_broadcast_stream._transform(name, operator, declared, keyed=keyed, edges=edges)
