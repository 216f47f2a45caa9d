"""Streams through functions that wait."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millrace.common.time import millis
from millrace.common.typeinfo import TypeInformation
from millrace.datastream._checks import check_function
from millrace.datastream._typed import Results, check_type, typed
from millrace.datastream.async_function import AsyncFunction, AsyncRetryStrategy
from millrace.errors import GraphError
from millrace.runtime.functions import UserFunction
from millrace.runtime.operators.async_wait import AsyncWaitOperator

if TYPE_CHECKING:
    from millrace.datastream.data_stream import DataStream

__all__ = ["AsyncDataStream"]


class AsyncDataStream:
    """Applies an AsyncFunction to a stream: up to ``capacity`` records wait at the same time.

    Ordered results come in the order of the records; unordered ones as soon as they are there, though never past a
    watermark. A record that takes longer than ``timeout`` fails the job, unless the function's ``timeout`` answers it.

    >>> from millrace.common import Time
    >>> from millrace.datastream import AsyncFunction, StreamExecutionEnvironment
    >>> class Lookup(AsyncFunction):
    ...     async def async_invoke(self, value): return [value]
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> found = AsyncDataStream.ordered_wait(env.from_elements(1, 2), Lookup(), Time.seconds(5))
    """

    @staticmethod
    def unordered_wait(
        data_stream: DataStream,
        async_function: AsyncFunction[Any, Any],
        timeout: Any,
        capacity: int = 100,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Results as soon as they are there."""
        return _wait("unordered_wait", data_stream, async_function, timeout, capacity, None, output_type)

    @staticmethod
    def unordered_wait_with_retry(
        data_stream: DataStream,
        async_function: AsyncFunction[Any, Any],
        timeout: Any,
        async_retry_strategy: AsyncRetryStrategy[Any],
        capacity: int = 100,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Results as soon as they are there; attempts that fail are made again as the strategy says."""
        where = "unordered_wait_with_retry"
        return _wait(where, data_stream, async_function, timeout, capacity, async_retry_strategy, output_type)

    @staticmethod
    def ordered_wait(
        data_stream: DataStream,
        async_function: AsyncFunction[Any, Any],
        timeout: Any,
        capacity: int = 100,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Results in the order of the records."""
        return _wait("ordered_wait", data_stream, async_function, timeout, capacity, None, output_type)

    @staticmethod
    def ordered_wait_with_retry(
        data_stream: DataStream,
        async_function: AsyncFunction[Any, Any],
        timeout: Any,
        async_retry_strategy: AsyncRetryStrategy[Any],
        capacity: int = 100,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Results in the order of the records; attempts that fail are made again as the strategy says."""
        where = "ordered_wait_with_retry"
        return _wait(where, data_stream, async_function, timeout, capacity, async_retry_strategy, output_type)


def _wait(
    where: str,
    stream: DataStream,
    function: AsyncFunction[Any, Any],
    timeout: Any,
    capacity: int,
    retry: AsyncRetryStrategy[Any] | None,
    output_type: TypeInformation | None,
) -> DataStream:
    from millrace.datastream.data_stream import DataStream

    if not isinstance(stream, DataStream):
        message = f"{where} takes a stream first, not {stream!r}"
        raise GraphError(message)
    if retry is not None and not isinstance(retry, AsyncRetryStrategy):
        message = (
            f"{where} takes an AsyncRetryStrategy, not {retry!r}: AsyncRetryStrategy.fixed_delay(3, 100), for example"
        )
        raise GraphError(message)
    if stream._env._configuration.get_string("python.execution-mode", "process") == "thread":
        message = (
            f"{where}: AsyncFunction is still not supported for 'thread' mode; leave python.execution-mode at process"
        )
        raise GraphError(message)
    check_function(function, where, (AsyncFunction,), ("async_invoke",), plain=False)
    declared = check_type(output_type, where)
    user = UserFunction(typed(function, declared, Results.AWAITED, "async_invoke"), "async_invoke")
    operator = AsyncWaitOperator(user, millis(timeout), capacity, where.startswith("ordered"), retry)
    return stream._transform("async wait operator", operator, declared, keyed=False)
