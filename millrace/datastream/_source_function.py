"""A SourceFunction as a source."""

from __future__ import annotations

import base64
import pickle
from typing import Any

from millrace.common.cloudpickles import by_value
from millrace.common.constants import LONG_MIN
from millrace.common.typeinfo import TypeInformation
from millrace.connectors.socket import DriverFedSource, Feed
from millrace.datastream.functions import SourceFunction
from millrace.errors import GraphError
from millrace.runtime.operator import Batch
from millrace.runtime.timer_service import require_time

__all__ = ["FunctionSource"]

_Record = tuple[Any, int]


class FunctionSource(DriverFedSource[_Record]):
    """Runs a SourceFunction in a thread of the driver.

    >>> class Two(SourceFunction):
    ...     def run(self, ctx):
    ...         ctx.collect_with_timestamp("a", 5)
    ...         ctx.collect_with_timestamp("b", 6)
    >>> source = FunctionSource(Two())
    >>> source.start().join()
    >>> end, finished = source.advance("0", [0, []], None)
    >>> [(batch.values, batch.timestamps) for batch in source.read("0", [0, []], end)], finished
    ([(['a', 'b'], [5, 6])], True)
    """

    def __init__(self, function: SourceFunction, type_info: TypeInformation | None = None) -> None:
        super().__init__()
        _refuse_checkpoint_methods(function)
        self._function = function
        self._type_info = type_info

    def feed(self, feed: Feed[_Record], skip: int) -> None:
        context = _Context(feed, skip, None if self._type_info is None else self._type_info.coercer())
        self._function.open(None)  # type: ignore[arg-type]  # The driver has no task to tell of.
        try:
            given = self._function.run(context)
            for value in given if given is not None else ():
                context.collect(value)
        except _JobOver:
            return
        finally:
            self._function.close()

    def close(self) -> None:
        super().close()
        self._function.cancel()

    def pack(self, records: list[_Record]) -> str:
        return base64.b64encode(by_value(records)).decode("ascii")

    def unpack(self, packed: str) -> Batch:
        records: list[_Record] = pickle.loads(base64.b64decode(packed))
        times = [time for _, time in records]
        has_times = any(time != LONG_MIN for time in times)
        return Batch([value for value, _ in records], times if has_times else None)

    def __getstate__(self) -> dict[str, Any]:
        # Tasks only unpack records; the function never leaves the driver, so it may hold what cannot be pickled.
        return {**super().__getstate__(), "_function": None, "_type_info": None}

    def __repr__(self) -> str:
        return f"FunctionSource({type(self._function).__name__})"


def _refuse_checkpoint_methods(function: SourceFunction) -> None:
    methods = ("initialize_state", "snapshot_state", "restore_state", "notify_checkpoint_complete")
    found = [name for name in methods if callable(getattr(function, name, None))]
    if found:
        message = (
            f"add_source: {type(function).__name__} has {found[0]}(), which would never be called: a SourceFunction "
            "runs anew after a restart, and what was taken before is skipped. Leave the method out, or write a "
            "millrace.runtime.source.Source, whose positions are part of every checkpoint"
        )
        raise GraphError(message)


class _JobOver(BaseException):
    """Ends ``run`` from within ``collect``: not an Exception, so that functions which catch those end as well."""


class _Context(SourceFunction.SourceContext):
    def __init__(self, feed: Feed[_Record], skip: int, coerce: Any) -> None:
        self._feed = feed
        self._skip = skip
        self._coerce = coerce

    def collect(self, value: Any) -> None:
        self._add(value, LONG_MIN)

    def collect_with_timestamp(self, value: Any, timestamp: int) -> None:
        self._add(value, require_time(timestamp, "collect_with_timestamp"))

    def _add(self, value: Any, time: int) -> None:
        if self._skip > 0:
            self._skip -= 1
        elif not self._feed.put((value if self._coerce is None else self._coerce(value), time)):
            raise _JobOver
