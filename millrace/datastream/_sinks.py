"""The methods that end a stream."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from millrace.common.typeinfo import TypeInformation
from millrace.connectors.collect_sink import CollectSink
from millrace.connectors.function_sink import FunctionSink
from millrace.connectors.print_sink import PrintSink
from millrace.datastream import functions as f
from millrace.datastream._checks import check_function, check_travels
from millrace.datastream.closeable_iterator import CloseableIterator
from millrace.datastream.sink import DataStreamSink
from millrace.errors import GraphError
from millrace.graph.executor import default_executor
from millrace.graph.node import Edge, Node, NodeKind
from millrace.graph.partitioners import Partitioner
from millrace.runtime.sink import Sink, SinkOperator

if TYPE_CHECKING:
    from millrace.datastream.environment import StreamExecutionEnvironment

__all__ = ["SinkMethods"]


class SinkMethods(ABC):
    """How streams end: printed, collected, written to a sink, or as a Spark DataFrame."""

    _env: StreamExecutionEnvironment
    _inputs: tuple[tuple[Node, str | None, Partitioner | None], ...]

    @abstractmethod
    def get_type(self) -> TypeInformation:
        """The type of the records."""

    @abstractmethod
    def _edges(self, side: int = 0) -> list[Edge]:
        """The edges to an operator that reads this stream."""

    def print(self, sink_identifier: str | None = None) -> DataStreamSink:
        """Print each record on the terminal of this program, as ``2> value`` with the number of its task."""
        return self._end(PrintSink(sink_identifier, type_info=self.get_type()), "Print to Std. Out")

    def print_to_err(self, sink_identifier: str | None = None) -> DataStreamSink:
        """Print each record on the standard error stream of this program."""
        sink = PrintSink(sink_identifier, to_stderr=True, type_info=self.get_type())
        return self._end(sink, "Print to Std. Err")

    def add_sink(self, sink_func: f.SinkFunction | Any) -> DataStreamSink:
        """Give each record to a function: a SinkFunction, an object with ``write(value)``, or a callable."""
        if isinstance(sink_func, Sink):
            return self.sink_to(sink_func)
        plain = callable(sink_func) or callable(getattr(sink_func, "write", None))
        check_function(sink_func, "add_sink", (f.SinkFunction,), ("invoke",), plain=plain)
        base = f.SinkFunction
        if (
            isinstance(sink_func, base)
            and type(sink_func).invoke is base.invoke
            and type(sink_func).write is base.write
        ):
            message = f"add_sink: {type(sink_func).__name__} has to define invoke(value, context) or write(value)"
            raise GraphError(message)
        return self._end(FunctionSink(sink_func), "Unnamed")

    def sink_to(self, sink: Sink[Any]) -> DataStreamSink:
        """Write each record to a sink."""
        if not isinstance(sink, Sink):
            hint = "add_sink(...)" if isinstance(sink, f.SinkFunction) or callable(sink) else "a connector's sink"
            message = f"sink_to takes a Sink, not {sink!r}: use {hint}"
            raise GraphError(message)
        check_travels(sink, "sink_to")
        return self._end(sink, getattr(sink, "name", None) or "Writer")

    def execute_and_collect(self, job_execution_name: str | None = None, limit: int | None = None) -> Any:
        """Run the program and give this stream's records: an iterator over all, or a list of the first ``limit``.

        >>> from millrace.datastream import StreamExecutionEnvironment
        >>> def first_two(stream):
        ...     return stream.execute_and_collect(limit=2)
        """
        if limit is not None and limit < 1:
            message = f"execute_and_collect: limit={limit}; use 1 or more, or leave it out for all records"
            raise GraphError(message)
        sink = CollectSink()
        node = self._sink_node(sink, "Collect Stream Sink")
        try:
            client = self._env.execute_async(job_execution_name or "DataStream Collect")
        except BaseException:
            # The program was not run: it must not keep a sink that nobody reads.
            self._env._nodes.remove(node)
            raise
        results = CloseableIterator(sink.records, client)
        if limit is None:
            return results
        with results:
            return [record for _, record in zip(range(limit), results, strict=False)]

    def to_spark(self, schema: Any = None) -> Any:
        """This stream, which has to be bounded, as a Spark DataFrame; other sinks of the program are not run.

        ``schema`` is a Spark schema, or its text (``"word string, n long"``); without it, it follows from the records.
        """
        from millrace.datastream.environment import _require_bounded

        node = self._sink_node(CollectSink(), "Spark DataFrame")
        self._env._nodes.remove(node)
        job = self._env._compile("DataStream to Spark", [node])
        _require_bounded(job, "to_spark()")
        return default_executor().to_data_frame(job, self._env._job_settings(job), schema)

    def _end(self, sink: Sink[Any], name: str) -> DataStreamSink:
        node = self._env._new_node(name, NodeKind.SINK, self._edges())
        node.operator = SinkOperator(sink)
        return DataStreamSink(node)

    def _sink_node(self, sink: Sink[Any], name: str) -> Node:
        """A sink that runs where the records are: they come to the driver anyway, in the order of their task."""
        node = self._end(sink, name)._node
        widths = {(before.parallelism, before.non_parallel) for before, _, _ in self._inputs}
        if len(widths) == 1 and all(partitioner is None for _, _, partitioner in self._inputs):
            node.parallelism, node.non_parallel = widths.pop()
        return node
