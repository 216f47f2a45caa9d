"""A value that is still to come."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Generic, TypeVar

__all__ = ["CompletableFuture"]

T = TypeVar("T")


class CompletableFuture(Generic[T]):
    """A value that another thread will set: wait for it with `result`, or ask whether it is there with `done`.

    >>> future = CompletableFuture[int]()
    >>> future.done()
    False
    >>> future.set_result(7)
    >>> future.result()
    7
    >>> CompletableFuture.supply_async(lambda: 6 * 7).result(timeout=10)
    42
    """

    def __init__(self, future: Future[T] | None = None) -> None:
        self._future: Future[T] = Future() if future is None else future

    @staticmethod
    def completed(value: T) -> CompletableFuture[T]:
        """A future whose value is there already."""
        future = CompletableFuture[T]()
        future.set_result(value)
        return future

    @staticmethod
    def failed(error: BaseException) -> CompletableFuture[T]:
        """A future that has failed already."""
        future = CompletableFuture[T]()
        future.set_exception(error)
        return future

    @staticmethod
    def supply_async(supplier: Callable[[], T]) -> CompletableFuture[T]:
        """Call the function in a thread of its own; the future is what it returns or raises."""
        future = CompletableFuture[T]()

        def run() -> None:
            if not future._future.set_running_or_notify_cancel():
                return
            try:
                value = supplier()
            except BaseException as error:  # Whatever it is belongs to whoever asks for the result.
                future.set_exception(error)
            else:
                future.set_result(value)

        threading.Thread(target=run, name="millrace-future", daemon=True).start()
        return future

    def cancel(self) -> bool:
        """Give up on the value; False if it is there already or being worked on."""
        return self._future.cancel()

    def cancelled(self) -> bool:
        """Whether the value was given up."""
        return self._future.cancelled()

    def done(self) -> bool:
        """Whether there is nothing to wait for any more: value, failure or cancellation."""
        return self._future.done()

    def result(self, timeout: float | None = None) -> T:
        """Wait for the value, at most `timeout` seconds; raises what went wrong, if something did."""
        return self._future.result(timeout)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Wait, and give what went wrong instead of raising it; None if nothing did."""
        return self._future.exception(timeout)

    def set_result(self, result: T) -> None:
        """Provide the value and wake up who waits for it."""
        self._future.set_result(result)

    def set_exception(self, error: BaseException) -> None:
        """Let the future fail and wake up who waits for it."""
        self._future.set_exception(error)

    def add_done_callback(self, callback: Callable[[CompletableFuture[T]], object]) -> None:
        """Call the function with this future as soon as it is done; at once if it is."""
        self._future.add_done_callback(lambda _: callback(self))
