"""Results that come back to the program that started the job."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from millrace.runtime.context import RuntimeContext
from millrace.runtime.sink import Sink, SinkWriter

__all__ = ["CallbackSink"]


class CallbackSink(Sink[Any]):
    """Calls a function of the driver with the results of every committed epoch: for live views, notebooks and tests.

    The function never leaves this process, so it may touch whatever it likes. It gets a list, in the order of the
    tasks.

    >>> seen = []
    >>> sink = CallbackSink(seen.extend)
    >>> sink.commit([["a", "b"], ["c"]])
    >>> seen
    ['a', 'b', 'c']
    """

    volatile = True

    def __init__(self, callback: Callable[[list[Any]], object]) -> None:
        self._callback: Callable[[list[Any]], object] | None = callback

    def __getstate__(self) -> dict[str, Any]:
        return {"_callback": None}

    def create_writer(self, context: RuntimeContext) -> SinkWriter[Any]:
        """Gathers records in the task."""
        return Gathering()

    def commit(self, committables: Sequence[Any]) -> None:
        """Hand them over."""
        assert self._callback is not None
        self._callback([value for values in committables for value in values])


class Gathering(SinkWriter[Any]):
    """Keeps records until the end of the epoch; the committable is the list of them."""

    def __init__(self) -> None:
        self._values: list[Any] = []

    def write(self, value: Any, timestamp: int | None) -> None:
        """Keep one."""
        self._values.append(value)

    def write_batch(self, values: list[Any], timestamps: list[int] | None) -> None:
        """Keep many."""
        self._values.extend(values)

    def prepare_commit(self) -> Sequence[Any]:
        """All that gathered since the last time."""
        if not self._values:
            return ()
        values, self._values = self._values, []
        return (values,)
