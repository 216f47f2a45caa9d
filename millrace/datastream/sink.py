"""The end of a stream."""

from __future__ import annotations

from millrace.datastream._operator_settings import OperatorSettings
from millrace.graph.node import Node

__all__ = ["DataStreamSink"]


class DataStreamSink(OperatorSettings):
    """A sink that a stream was given to; what can be said about an operator can be said about it.

    >>> from millrace.datastream import StreamExecutionEnvironment
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> sink = env.from_elements(1, 2).print().name("out").set_parallelism(1)
    """

    def __init__(self, node: Node) -> None:
        self._node = node

    def _set_on(self, what: str) -> tuple[Node, Node | None]:
        return self._node, None
