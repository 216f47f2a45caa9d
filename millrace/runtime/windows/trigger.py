"""What a trigger is: it says, record by record and timer by timer, when a window gives a result."""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import Enum
from typing import Any, Generic, TypeVar

from millrace.errors import GraphError
from millrace.metrics import MetricGroup
from millrace.state.descriptors import StateDescriptor
from millrace.state.handles import State

__all__ = ["Trigger", "TriggerResult"]

T = TypeVar("T")
W = TypeVar("W")


class TriggerResult(Enum):
    """What is to happen to a window.

    FIRE gives a result and keeps the contents, PURGE drops the contents, FIRE_AND_PURGE does both in this order.

    >>> TriggerResult.FIRE.is_fire(), TriggerResult.FIRE.is_purge()
    (True, False)
    """

    CONTINUE = (False, False)
    FIRE_AND_PURGE = (True, True)
    FIRE = (True, False)
    PURGE = (False, True)

    def is_fire(self) -> bool:
        """Whether the window gives a result."""
        return self.value[0]

    def is_purge(self) -> bool:
        """Whether the window's contents go."""
        return self.value[1]


class Trigger(ABC, Generic[T, W]):
    """Decides when a window of a key gives a result.

    One object serves all keys and windows: what it must remember goes into ``ctx.get_partitioned_state(...)``, which
    belongs to the key and window at hand, and what must wake it is a timer set with ``ctx``.

    >>> class EveryElement(Trigger):
    ...     def on_element(self, element, timestamp, window, ctx):
    ...         return TriggerResult.FIRE
    ...     def on_processing_time(self, time, window, ctx):
    ...         return TriggerResult.CONTINUE
    ...     def on_event_time(self, time, window, ctx):
    ...         return TriggerResult.CONTINUE
    ...     def clear(self, window, ctx):
    ...         pass
    >>> EveryElement().can_merge()
    False
    """

    class TriggerContext(ABC):
        """Time, timers and state of the key and window at hand."""

        __slots__ = ()

        @abstractmethod
        def get_current_processing_time(self) -> int:
            """The clock of this task, in milliseconds."""

        @abstractmethod
        def get_metric_group(self) -> MetricGroup:
            """Where a trigger registers its own counters and gauges."""

        @abstractmethod
        def get_current_watermark(self) -> int:
            """Event time as far as this task knows it."""

        @abstractmethod
        def register_processing_time_timer(self, time: int) -> None:
            """Have on_processing_time called when the clock reaches ``time``."""

        @abstractmethod
        def register_event_time_timer(self, time: int) -> None:
            """Have on_event_time called when the watermark reaches ``time``."""

        @abstractmethod
        def delete_processing_time_timer(self, time: int) -> None:
            """Forget a timer; no-op if there is none."""

        @abstractmethod
        def delete_event_time_timer(self, time: int) -> None:
            """Forget a timer; no-op if there is none."""

        @abstractmethod
        def get_partitioned_state(self, state_descriptor: StateDescriptor) -> State:
            """State of this trigger for the key and window at hand."""

    class OnMergeContext(TriggerContext):
        """The context of on_merge: also brings together the state of the merged windows."""

        __slots__ = ()

        @abstractmethod
        def merge_partitioned_state(self, state_descriptor: StateDescriptor) -> None:
            """Fold the merged windows' state, list, reducing or aggregating, into that of the new window."""

    @abstractmethod
    def on_element(self, element: T, timestamp: int, window: W, ctx: Trigger.TriggerContext) -> TriggerResult:
        """A record has been added to the window."""

    @abstractmethod
    def on_processing_time(self, time: int, window: W, ctx: Trigger.TriggerContext) -> TriggerResult:
        """A processing-time timer of the window has come."""

    @abstractmethod
    def on_event_time(self, time: int, window: W, ctx: Trigger.TriggerContext) -> TriggerResult:
        """An event-time timer of the window has come."""

    def can_merge(self) -> bool:
        """Whether the trigger works on windows that merge, that is, sessions; if so it has an on_merge."""
        return False

    def on_merge(self, window: W, ctx: Trigger.OnMergeContext) -> None:
        """Several windows have become ``window``: merge their state, set the timers of the new window."""
        message = f"{self!r} cannot merge windows: override can_merge() and on_merge(), or use a trigger that has them"
        raise GraphError(message)

    @abstractmethod
    def clear(self, window: W, ctx: Trigger.TriggerContext) -> None:
        """The window goes: delete all state and timers that the trigger set for it."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


def fired(result: TriggerResult) -> TriggerResult:
    """The result, made into one that fires."""
    return TriggerResult.FIRE_AND_PURGE if result.is_purge() else TriggerResult.FIRE


def positive(value: int, what: str, example: str) -> int:
    """``value`` if it is above zero, else a GraphError that shows a call that works."""
    if value <= 0:
        message = f"{what} must be greater than zero, not {value}: write {example}, for example"
        raise GraphError(message)
    return value


def callable_of(function: Any, method: str) -> Any:
    """The method of a function object, or the plain callable itself."""
    bound = getattr(function, method, None)
    if callable(bound):
        return bound
    if callable(function):
        return function
    message = f"{function!r} can not be called: pass a function, or an object with a method {method}()"
    raise GraphError(message)
