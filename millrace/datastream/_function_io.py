"""Sources and sinks written as functions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from millrace.datastream._function_basic import Function

__all__ = ["SinkFunction", "SourceFunction"]


class SinkFunction(Function):
    """Takes the records of a stream one by one: override ``invoke(value, context)``, or ``write(value)``.

    Each task has an instance of its own. A record may be seen again after a failure; for output that must be exact,
    write a `millrace.runtime.sink.Sink` and use ``sink_to``.

    >>> class Shout(SinkFunction):
    ...     def write(self, value): print(value.upper())
    >>> Shout().invoke("hey", None)
    HEY
    """

    class Context(ABC):
        """What is known about a record besides its value."""

        @abstractmethod
        def timestamp(self) -> int | None:
            """The record's timestamp, None if it has none."""

        @abstractmethod
        def current_processing_time(self) -> int:
            """The clock, in milliseconds."""

    def invoke(self, value: Any, context: SinkFunction.Context) -> None:
        """Take one record."""
        self.write(value)

    def write(self, value: Any) -> None:
        """Take one record, for sinks that need nothing but the value."""
        message = f"{type(self).__name__} has to define invoke(value, context) or write(value)"
        raise NotImplementedError(message)


class SourceFunction(Function):
    """A source written as one function that runs in the driver: it yields records, or gives them to ``ctx.collect``.

    The stream ends when ``run`` returns. After a restart ``run`` starts anew and as many records are skipped as had
    been taken, so it has to give the same records again. For sources that are read by many tasks, write a
    `millrace.runtime.source.Source` and use ``from_source``.

    >>> class Squares(SourceFunction):
    ...     def run(self, ctx):
    ...         for n in range(3):
    ...             yield n * n
    >>> list(Squares().run(None))
    [0, 1, 4]
    """

    class SourceContext(ABC):
        """Where a source puts its records."""

        @abstractmethod
        def collect(self, value: Any) -> None:
            """Give one record, without a timestamp."""

        @abstractmethod
        def collect_with_timestamp(self, value: Any, timestamp: int) -> None:
            """Give one record with its timestamp in milliseconds."""

    @abstractmethod
    def run(self, ctx: SourceFunction.SourceContext) -> Iterable[Any] | None:
        """Give all records, by ``yield`` or through ``ctx``; either form, not both."""

    def cancel(self) -> None:
        """The job stops: make ``run`` return soon."""
        return
