"""A stream that several jobs of a program use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millrace.datastream.data_stream import DataStream
from millrace.errors import GraphError
from millrace.graph.node import Node

if TYPE_CHECKING:
    from typing import NoReturn

__all__ = ["CachedDataStream"]


class CachedDataStream(DataStream):
    """A stream that later jobs of the program may go on from.

    Millrace keeps the way the stream is made rather than its records: each job that uses it computes it again, with the
    same result, since sources can be read again. ``to_spark()`` and Spark's own ``cache()`` keep the records.

    >>> from millrace.datastream import StreamExecutionEnvironment
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> cached = env.from_sequence(1, 3).map(lambda n: n * n).cache()
    >>> cached.invalidate()
    """

    def __init__(self, stream: DataStream) -> None:
        super().__init__(stream._env, stream._inputs, stream._declared, stream._known)

    def invalidate(self) -> None:
        """Accepted for programs that call it: there are no kept records to forget."""
        return

    def cache(self) -> CachedDataStream:
        """This stream itself."""
        return self

    def _set_on(self, what: str) -> tuple[Node, Node | None]:
        if what == "get_name":
            return super()._set_on(what)
        self._refuse(what)

    def _refuse(self, what: str) -> NoReturn:
        message = f"{what}() cannot be called on a cached stream: call it before cache()"
        raise GraphError(message)
