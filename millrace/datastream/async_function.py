"""Functions that wait for the outside world without holding up the stream."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from millrace.datastream._function_basic import Function
from millrace.errors import GraphError

__all__ = ["AsyncFunction", "AsyncRetryPredicate", "AsyncRetryStrategy"]

IN = TypeVar("IN")
OUT = TypeVar("OUT")

ResultPredicate = Callable[[list[Any]], bool]
ExceptionPredicate = Callable[[Exception], bool]


class AsyncFunction(Function, Generic[IN, OUT]):
    """Makes a list of records of one record, in a coroutine; many of them are under way at the same time.

    >>> import asyncio
    >>> class Lookup(AsyncFunction):
    ...     async def async_invoke(self, value):
    ...         await asyncio.sleep(0)
    ...         return [value + 1]
    >>> asyncio.run(Lookup().async_invoke(1))
    [2]
    """

    @abstractmethod
    async def async_invoke(self, value: IN) -> list[OUT]:
        """The records that ``value`` becomes; always a list, empty for none."""

    def timeout(self, value: IN) -> list[OUT]:
        """The records instead, when ``async_invoke`` took too long; raises TimeoutError unless overridden."""
        message = f"{type(self).__name__}.async_invoke took too long for {value!r}; override timeout() to go on"
        raise TimeoutError(message)


class AsyncRetryPredicate(ABC, Generic[OUT]):
    """Says which outcomes of an attempt are worth another one.

    >>> strategy = AsyncRetryStrategy.fixed_delay(3, 100, exception_predicate=lambda error: isinstance(error, OSError))
    >>> strategy.get_retry_predicate().exception_predicate()(OSError())
    True
    """

    @abstractmethod
    def result_predicate(self) -> ResultPredicate | None:
        """A test for results to try again, or None if every result is fine."""

    @abstractmethod
    def exception_predicate(self) -> ExceptionPredicate | None:
        """A test for exceptions to try again, or None if an exception is final."""


class AsyncRetryStrategy(ABC, Generic[OUT]):
    """How often to try again, and how long to wait before.

    >>> strategy = AsyncRetryStrategy.exponential_backoff(4, 100, 500, 2.0)
    >>> [strategy.get_backoff_time_millis(attempt) for attempt in (1, 2, 3, 4)]
    [100, 200, 400, 500]
    >>> strategy.can_retry(4), strategy.can_retry(5)
    (True, False)
    """

    @abstractmethod
    def can_retry(self, current_attempts: int) -> bool:
        """Whether attempt number ``current_attempts``, counted from 1, may be followed by another one."""

    @abstractmethod
    def get_backoff_time_millis(self, current_attempts: int) -> int:
        """How long to wait after attempt number ``current_attempts``, counted from 1."""

    @abstractmethod
    def get_retry_predicate(self) -> AsyncRetryPredicate[OUT]:
        """Which outcomes are worth another attempt."""

    @staticmethod
    def no_restart() -> AsyncRetryStrategy[Any]:
        """Never try again."""
        return _Strategy(0, 0, 0, 1.0, None, None)

    @staticmethod
    def fixed_delay(
        max_attempts: int,
        backoff_time_millis: int,
        result_predicate: ResultPredicate | None = None,
        exception_predicate: ExceptionPredicate | None = None,
    ) -> AsyncRetryStrategy[Any]:
        """Try again up to ``max_attempts`` times, always after the same pause."""
        return _Strategy(
            max_attempts, backoff_time_millis, backoff_time_millis, 1.0, result_predicate, exception_predicate
        )

    @staticmethod
    def exponential_backoff(
        max_attempts: int,
        initial_delay: int,
        max_retry_delay: int,
        multiplier: float,
        result_predicate: ResultPredicate | None = None,
        exception_predicate: ExceptionPredicate | None = None,
    ) -> AsyncRetryStrategy[Any]:
        """Try again up to ``max_attempts`` times; pauses grow by ``multiplier`` up to ``max_retry_delay``."""
        return _Strategy(
            max_attempts, initial_delay, max_retry_delay, multiplier, result_predicate, exception_predicate
        )


class _Strategy(AsyncRetryStrategy[Any], AsyncRetryPredicate[Any]):
    def __init__(
        self,
        max_attempts: int,
        initial_delay: int,
        max_delay: int,
        multiplier: float,
        on_result: ResultPredicate | None,
        on_exception: ExceptionPredicate | None,
    ) -> None:
        if max_attempts < 0 or initial_delay < 0 or max_delay < initial_delay or multiplier < 1:
            message = (
                f"a retry strategy needs attempts and delays of at least 0, a longest delay not below the first and a "
                f"multiplier of at least 1, not {(max_attempts, initial_delay, max_delay, multiplier)}"
            )
            raise GraphError(message)
        self._max_attempts = max_attempts
        self._initial_delay = initial_delay
        self._max_delay = max_delay
        self._multiplier = multiplier
        self._on_result = on_result
        self._on_exception = on_exception

    def can_retry(self, current_attempts: int) -> bool:
        return current_attempts <= self._max_attempts

    def get_backoff_time_millis(self, current_attempts: int) -> int:
        grown = self._initial_delay * self._multiplier ** max(0, current_attempts - 1)
        return min(self._max_delay, int(grown))

    def get_retry_predicate(self) -> AsyncRetryPredicate[Any]:
        return self

    def result_predicate(self) -> ResultPredicate | None:
        return self._on_result

    def exception_predicate(self) -> ExceptionPredicate | None:
        return self._on_exception
