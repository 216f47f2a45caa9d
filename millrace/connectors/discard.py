"""A sink for nothing."""

from __future__ import annotations

from typing import Any

from millrace.runtime.context import RuntimeContext
from millrace.runtime.sink import Sink, SinkWriter

__all__ = ["DiscardSink"]


class DiscardSink(Sink[Any]):
    """Takes every record and drops it: for streams that only matter for what happens on the way.

    >>> DiscardSink().create_writer(None).prepare_commit()
    ()
    """

    def create_writer(self, context: RuntimeContext) -> SinkWriter[Any]:
        return _DiscardWriter()


class _DiscardWriter(SinkWriter[Any]):
    def write(self, value: Any, timestamp: int | None) -> None:
        return

    def write_batch(self, values: list[Any], timestamps: list[int] | None) -> None:
        return
