"""User functions, whether objects with a method or plain callables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from millrace.runtime.context import RuntimeContext
from millrace.runtime.operator import OperatorContext, RecordFailure

__all__ = ["UserFunction"]


class UserFunction:
    """A function object with the method to call, or a plain callable.

    >>> UserFunction(lambda value: value + 1, "map").call(1)
    2
    """

    def __init__(self, function: Any, method: str) -> None:
        self.function = function
        self.method = method

    @property
    def call(self) -> Callable[..., Any]:
        """What to call with a record."""
        bound = getattr(self.function, self.method, None)
        return bound if callable(bound) else self.function  # type: ignore[no-any-return]

    def bound(self, method: str) -> Callable[..., Any] | None:
        """Another method of the same function object, if it has one."""
        return getattr(self.function, method, None)

    @property
    def rich(self) -> bool:
        """Whether the function has a life cycle, and so may hold state."""
        return callable(getattr(self.function, "open", None))

    @property
    def name(self) -> str:
        """For messages and default names."""
        return getattr(self.function, "__name__", type(self.function).__name__)

    def open(self, context: OperatorContext) -> None:
        """Give a rich function its runtime context."""
        if self.rich:
            try:
                self.function.open(RuntimeContext(context))
            except Exception as error:
                raise RecordFailure(error, context, "open()", None) from error

    def close(self) -> None:
        """Let a rich function go."""
        close = getattr(self.function, "close", None)
        if self.rich and callable(close):
            close()
