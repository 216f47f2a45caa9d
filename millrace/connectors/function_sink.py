"""A user's sink function, or any callable, as a sink."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable
from typing import Any

from millrace.common.constants import LONG_MIN
from millrace.runtime.context import RuntimeContext
from millrace.runtime.functions import UserFunction
from millrace.runtime.sink import Sink, SinkWriter

__all__ = ["FunctionSink", "RecordContext"]


class RecordContext:
    """What a sink function is told about the record at hand.

    >>> context = RecordContext()
    >>> context.time = 5
    >>> context.timestamp()
    5
    """

    __slots__ = ("time",)

    def __init__(self) -> None:
        self.time = LONG_MIN

    def timestamp(self) -> int | None:
        """The record's timestamp, None if it has none."""
        return None if self.time == LONG_MIN else self.time

    def current_processing_time(self) -> int:
        """The clock, in milliseconds."""
        return time.time_ns() // 1_000_000


class FunctionSink(Sink[Any]):
    """Gives each record to a function: an object with ``invoke(value, context)`` or ``write(value)``, or a callable.

    ``open(runtime_context)`` and ``close()`` are called if the object has them, and so are the methods of a
    CheckpointedFunction, ListCheckpointed or CheckpointListener.

    >>> taken = []
    >>> writer = FunctionSink(taken.append).create_writer(None)
    >>> writer.write("a", None)
    >>> taken
    ['a']
    """

    def __init__(self, function: Any) -> None:
        self.function = function

    def create_writer(self, context: RuntimeContext) -> SinkWriter[Any]:
        return _FunctionWriter(self.function, context)


class _FunctionWriter(SinkWriter[Any]):
    def __init__(self, function: Any, runtime_context: RuntimeContext | None) -> None:
        self._function = UserFunction(function, "invoke")
        self._task = None if runtime_context is None else runtime_context._context
        if self._task is not None:
            self._function.open(self._task)
        self._context = RecordContext()
        self._call = _value_and_context(function, self._context)

    def write(self, value: Any, timestamp: int | None) -> None:
        self._context.time = LONG_MIN if timestamp is None else timestamp
        self._call(value)

    def prepare_commit(self) -> tuple[()]:
        if self._task is not None:
            self._function.snapshot(self._task.epoch)
        return ()

    @property
    def can_catch_up(self) -> bool:
        return not self._function.keeps_state

    def checkpoint_complete(self, checkpoint_id: int) -> None:
        self._function.checkpoint_complete(checkpoint_id)

    def checkpoint_aborted(self, checkpoint_id: int) -> None:
        self._function.checkpoint_aborted(checkpoint_id)

    def close(self) -> None:
        close = self._function.bound("close")
        if callable(close):
            close()


def _value_and_context(function: Any, context: RecordContext) -> Callable[[Any], Any]:
    """What to call with a value; looked up once, so that a record costs one call."""
    for name in ("invoke", "write"):
        method = getattr(function, name, None)
        if callable(method):
            return _bound(method, context)
    return _bound(function, context)


def _bound(function: Callable[..., Any], context: RecordContext) -> Callable[[Any], Any]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:
        return function  # A built-in without a signature takes the value alone.
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if len([p for p in positional if p.default is p.empty]) >= 2:
        return lambda value: function(value, context)
    return function
