"""User functions, whether objects with a method or plain callables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from millrace.runtime.checkpointed import CheckpointHooks, hooks_of
from millrace.runtime.context import RuntimeContext
from millrace.runtime.operator import OperatorContext, RecordFailure

__all__ = ["UserFunction"]


class UserFunction:
    """A function object with the method to call, or a plain callable.

    >>> UserFunction(lambda value: value + 1, "map").call(1)
    2
    """

    _hooks: CheckpointHooks | None = None

    def __init__(self, function: Any, method: str, role: str = "") -> None:
        self.function = function
        self.method = method
        self.role = role

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
        return callable(getattr(self.function, "open", None)) or callable(self.bound("initialize_state"))

    @property
    def name(self) -> str:
        """For messages and default names."""
        return getattr(self.function, "__name__", type(self.function).__name__)

    def open(self, context: OperatorContext) -> None:
        """Give a rich function its state and its runtime context."""
        self._hooks = hooks_of(self.function, context, self.role)
        if self._hooks is not None:
            self._hooks.initialize()
        open_function = self.bound("open")
        if callable(open_function):
            try:
                open_function(RuntimeContext(context))
            except Exception as error:
                raise RecordFailure(error, context, "open()", None) from error

    @property
    def keeps_state(self) -> bool:
        """Whether an open function remembers something that only a new one can be restored with."""
        return self._hooks is not None and self._hooks.keeps_state

    def snapshot(self, checkpoint_id: int) -> None:
        """Let the function write down its state: at the end of an epoch, before the task takes the delta."""
        if self._hooks is not None:
            self._hooks.snapshot(checkpoint_id)

    def checkpoint_complete(self, checkpoint_id: int) -> None:
        """Tell the function that a checkpoint is safe."""
        if self._hooks is not None:
            self._hooks.notify("notify_checkpoint_complete", checkpoint_id)

    def checkpoint_aborted(self, checkpoint_id: int) -> None:
        """Tell the function that a checkpoint has come to nothing."""
        if self._hooks is not None:
            self._hooks.notify("notify_checkpoint_aborted", checkpoint_id)

    def close(self) -> None:
        """Let a rich function go."""
        close = getattr(self.function, "close", None)
        if self.rich and callable(close):
            close()
