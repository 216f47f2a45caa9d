"""Async I/O: a user's coroutine called for many records at once.

The records of a batch, which never has a watermark in it, are all awaited before ``process`` returns. So nothing
overtakes a watermark, and nothing is in flight when an epoch ends: there is nothing to write into a checkpoint, because
an epoch that fails is replayed as a whole, with all the records that had been in flight (rule 37).

The function lives in a thread of its own with a running asyncio loop, from ``open`` to ``close``: clients that want a
running loop can be made in ``open``, and it works in notebooks, whose own loop is busy already.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from inspect import isawaitable
from threading import Thread
from typing import Any, TypeVar

from millrace.errors import GraphError
from millrace.runtime.functions import UserFunction
from millrace.runtime.operator import Batch, RecordFailure, preview
from millrace.runtime.operators.stateless import FunctionOperator

__all__ = ["AsyncWaitOperator"]

T = TypeVar("T")


class AsyncWaitOperator(FunctionOperator):
    """Awaits ``async_invoke(value)`` for up to ``capacity`` records at a time; results take the record's timestamp.

    ``ordered`` gives results in the order of the input, else they come in the order of completion. A record that takes
    longer than ``timeout_ms``, all retries included, gives what ``timeout(value)`` returns, or fails; 0 means no limit.
    ``retry_strategy`` (an AsyncRetryStrategy) says which results and errors call for another attempt, and when.

    >>> from millrace.testing import harness_for
    >>> async def look_up(value):
    ...     await asyncio.sleep(0)
    ...     return [value + 1]
    >>> with harness_for(look_up, operation="async", capacity=10) as harness:
    ...     harness.process_batch([1, 2, 3])
    ...     harness.outputs()
    [2, 3, 4]
    """

    def __init__(
        self, function: UserFunction, timeout_ms: int, capacity: int, ordered: bool, retry_strategy: Any = None
    ) -> None:
        if timeout_ms < 0:
            message = f"the timeout of async I/O is {timeout_ms} ms: use a positive time, or 0 for no limit"
            raise GraphError(message)
        if capacity < 1:
            message = f"the capacity of async I/O is {capacity}: at least one record must be in flight, use 1 or more"
            raise GraphError(message)
        super().__init__(function)
        self.timeout_ms = timeout_ms
        self.capacity = capacity
        self.ordered = ordered
        self.retry_strategy = retry_strategy
        self._loop: _LoopThread | None = None

    def open(self) -> None:
        """Start the loop and open the function in it."""
        self._call = self.function.call
        self._retry_on_result, self._retry_on_error = _predicates(self.retry_strategy)
        loop = _LoopThread(self.context.name)
        try:
            loop.run(_inside_loop(super().open))
        except BaseException:
            loop.close()
            raise
        self._loop = loop

    def close(self) -> None:
        """Close the function in its loop, then the loop."""
        if self._loop is None:
            return
        loop, self._loop = self._loop, None
        try:
            loop.run(_inside_loop(super().close))
        finally:
            loop.close()

    def process(self, batch: Batch, side: int = 0) -> None:
        """Await the results of all records, and emit them."""
        assert self._loop is not None
        try:
            finished = self._loop.run(self._await_all(batch.values))
        except _Failed as failed:
            failure = RecordFailure(failed.error, self.context, failed.what, batch.values[failed.index])
            raise failure from failed.error
        if self.ordered:
            finished.sort(key=_by_index)
        times = batch.timestamps
        values = [value for _, results in finished for value in results]
        if values:
            repeated = None if times is None else [times[index] for index, results in finished for _ in results]
            self.output.emit(Batch(values, repeated))

    async def _await_all(self, values: list[Any]) -> list[tuple[int, list[Any]]]:
        """(index, results) of each record, in the order of completion."""
        waiting = iter(enumerate(values))
        finished: list[tuple[int, list[Any]]] = []
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(self.capacity, len(values))):
                    group.create_task(self._work(waiting, finished))
        except ExceptionGroup as errors:
            # One failure cancels the others; two of the same moment are as good as one.
            raise errors.exceptions[0] from None
        return finished

    async def _work(self, waiting: Iterator[tuple[int, Any]], finished: list[tuple[int, list[Any]]]) -> None:
        """One of ``capacity`` workers: takes the next record as soon as it is done with the one before."""
        for index, value in waiting:
            try:
                results = await self._one(value)
            except asyncio.CancelledError as error:
                task = asyncio.current_task()
                if task is not None and task.cancelling():
                    raise
                # Not our doing: the function has awaited something that was cancelled.
                raise _Failed(index, error, self.function.method) from error
            except _TimeoutFailed as error:
                raise _Failed(index, error.error, "timeout") from error
            except BaseException as error:
                # SystemExit, too: inside a task it would stop the loop, and whoever waits for it would wait for ever.
                raise _Failed(index, error, self.function.method) from error
            finished.append((index, results))

    async def _one(self, value: Any) -> list[Any]:
        try:
            async with asyncio.timeout(self.timeout_ms / 1000 or None) as deadline:
                return await self._attempts(value)
        except TimeoutError:
            if not deadline.expired():
                raise
        try:
            return self._checked(self._timed_out(value), "timeout")
        except Exception as error:
            raise _TimeoutFailed(error) from error

    async def _attempts(self, value: Any) -> list[Any]:
        attempt = 1
        while True:
            try:
                awaitable = self._call(value)
                results = await awaitable if isawaitable(awaitable) else _not_awaitable(self.function, awaitable)
            except Exception as error:
                if not self._again(attempt, self._retry_on_error, error):
                    raise
            else:
                if not self._again(attempt, self._retry_on_result, results):
                    return self._checked(results, self.function.method)
            await asyncio.sleep(self.retry_strategy.get_backoff_time_millis(attempt) / 1000)
            attempt += 1

    def _again(self, attempt: int, predicate: Callable[[Any], bool] | None, outcome: Any) -> bool:
        return predicate is not None and predicate(outcome) and bool(self.retry_strategy.can_retry(attempt))

    def _timed_out(self, value: Any) -> Any:
        timeout = self.function.bound("timeout")
        if timeout is not None:
            return timeout(value)
        message = (
            f"{self.function.method}() of {self.context.name} has not finished within {self.timeout_ms} ms: "
            "allow it a longer timeout, or define timeout(value) and return what stands for the result"
        )
        raise TimeoutError(message)

    def _checked(self, results: Any, method: str) -> list[Any]:
        if isinstance(results, list):
            return results
        where = f"{method}() of {self.function.name} in {self.context.name} (uid {self.context.uid})"
        if results is None:
            raise TypeError(f"The result of AsyncFunction cannot be none: {where} must return a list, [] for no result")
        message = f"The result of AsyncFunction should be of list type: {where} returned {preview(results)}"
        raise TypeError(message)


class _Failed(Exception):
    """The record at ``index`` has failed, for good."""

    def __init__(self, index: int, error: BaseException, method: str) -> None:
        super().__init__(index)
        self.index = index
        self.error = error
        self.what = f"{method}()"


class _TimeoutFailed(Exception):
    """The function's timeout() has failed, not its coroutine."""

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error = error


class _LoopThread:
    """An asyncio loop that runs in a thread of its own, and is asked from another one."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, name=f"async I/O of {name}", daemon=True)
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the loop and wait for it."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    def close(self) -> None:
        """Cancel what still runs and end the thread."""
        self.run(_cancel_the_rest())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _cancel_the_rest() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    await asyncio.get_running_loop().shutdown_asyncgens()


async def _inside_loop(call: Callable[[], None]) -> None:
    call()


def _not_awaitable(function: UserFunction, result: Any) -> Any:
    message = f"{function.method}() of {function.name} returned {preview(result)} at once: define it with async def"
    raise TypeError(message)


def _predicates(strategy: Any) -> tuple[Callable[[Any], bool] | None, Callable[[Any], bool] | None]:
    """Which results and which errors call for another attempt."""
    predicate = None if strategy is None else strategy.get_retry_predicate()
    if predicate is None:
        return None, None
    return predicate.result_predicate(), predicate.exception_predicate()


def _by_index(entry: tuple[int, list[Any]]) -> int:
    return entry[0]
