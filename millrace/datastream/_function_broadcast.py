"""Broadcast process functions: a stream of data next to a stream that every task sees in full."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

from millrace.common.output_tag import OutputTag
from millrace.datastream._function_basic import Function
from millrace.runtime.operators.broadcast import BroadcastContext, ReadOnlyBroadcastContext
from millrace.runtime.operators.process import TimeDomain
from millrace.runtime.timer_service import TimerService
from millrace.state.descriptors import MapStateDescriptor, StateDescriptor
from millrace.state.handles import BroadcastState, ReadOnlyBroadcastState

__all__ = ["BaseBroadcastProcessFunction", "BroadcastProcessFunction", "KeyedBroadcastProcessFunction"]

IN1 = TypeVar("IN1")
IN2 = TypeVar("IN2")
OUT = TypeVar("OUT")
KEY = TypeVar("KEY")


class BaseBroadcastProcessFunction(Function):
    """What the two kinds of broadcast process functions have in common.

    >>> issubclass(KeyedBroadcastProcessFunction, BaseBroadcastProcessFunction)
    True
    """

    class BaseContext(ABC):
        """Time and side outputs."""

        @abstractmethod
        def timestamp(self) -> int | None:
            """The record's timestamp, None if it has none."""

        @abstractmethod
        def current_processing_time(self) -> int:
            """The clock of this task, in milliseconds."""

        @abstractmethod
        def current_watermark(self) -> int:
            """Event time as far as this task knows it."""

        @abstractmethod
        def output(self, tag: OutputTag, value: Any) -> None:
            """Send a value to a side output."""

    class Context(BaseContext):
        """The broadcast side: may write broadcast state."""

        @abstractmethod
        def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> BroadcastState[Any, Any]:
            """The map that all tasks keep a copy of."""

    class ReadOnlyContext(BaseContext):
        """The data side: may only read broadcast state."""

        @abstractmethod
        def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> ReadOnlyBroadcastState[Any, Any]:
            """The map as the broadcast side has left it."""


class BroadcastProcessFunction(BaseBroadcastProcessFunction, Generic[IN1, IN2, OUT]):
    """Joins a stream without keys with a broadcast stream.

    >>> rules = MapStateDescriptor("rules")
    >>> class Check(BroadcastProcessFunction):
    ...     def process_element(self, value, ctx):
    ...         if value in ctx.get_broadcast_state(rules):
    ...             yield value
    ...     def process_broadcast_element(self, value, ctx):
    ...         ctx.get_broadcast_state(rules)[value] = True
    """

    class Context(BaseBroadcastProcessFunction.Context):
        """The context of the broadcast side."""

    class ReadOnlyContext(BaseBroadcastProcessFunction.ReadOnlyContext):
        """The context of the data side."""

    @abstractmethod
    def process_element(self, value: IN1, ctx: BroadcastProcessFunction.ReadOnlyContext) -> Iterable[OUT] | None:
        """Called for each record of the data side."""

    @abstractmethod
    def process_broadcast_element(self, value: IN2, ctx: BroadcastProcessFunction.Context) -> Iterable[OUT] | None:
        """Called in every task for each record of the broadcast side."""


class KeyedBroadcastProcessFunction(BaseBroadcastProcessFunction, Generic[KEY, IN1, IN2, OUT]):
    """Joins a keyed stream, with its state and timers, with a broadcast stream.

    >>> rules = MapStateDescriptor("rules")
    >>> class Limit(KeyedBroadcastProcessFunction):
    ...     def process_element(self, value, ctx):
    ...         limit = ctx.get_broadcast_state(rules).get(ctx.get_current_key())
    ...         if limit is None or value <= limit:
    ...             yield value
    ...     def process_broadcast_element(self, value, ctx):
    ...         key, limit = value
    ...         ctx.get_broadcast_state(rules)[key] = limit
    """

    class Context(BaseBroadcastProcessFunction.Context):
        """The context of the broadcast side."""

        @abstractmethod
        def apply_to_keyed_state(self, state_descriptor: StateDescriptor, function: Callable[[Any, Any], None]) -> None:
            """Call ``function(key, state)`` for every key of this task that has a value in the given keyed state."""

    class ReadOnlyContext(BaseBroadcastProcessFunction.ReadOnlyContext):
        """The context of the data side."""

        @abstractmethod
        def timer_service(self) -> TimerService:
            """Time and timers."""

        @abstractmethod
        def get_current_key(self) -> Any:
            """The key of the record."""

    class OnTimerContext(ReadOnlyContext):
        """The context of on_timer."""

        @abstractmethod
        def time_domain(self) -> TimeDomain:
            """Which clock has rung."""

    @abstractmethod
    def process_element(self, value: IN1, ctx: KeyedBroadcastProcessFunction.ReadOnlyContext) -> Iterable[OUT] | None:
        """Called for each record of the keyed side."""

    @abstractmethod
    def process_broadcast_element(self, value: IN2, ctx: KeyedBroadcastProcessFunction.Context) -> Iterable[OUT] | None:
        """Called in every task for each record of the broadcast side."""

    def on_timer(self, timestamp: int, ctx: KeyedBroadcastProcessFunction.OnTimerContext) -> Iterable[OUT] | None:
        """Called when a timer of the keyed side fires."""
        return None


BroadcastProcessFunction.Context.register(BroadcastContext)
BroadcastProcessFunction.ReadOnlyContext.register(ReadOnlyBroadcastContext)
KeyedBroadcastProcessFunction.Context.register(BroadcastContext)
KeyedBroadcastProcessFunction.ReadOnlyContext.register(ReadOnlyBroadcastContext)
KeyedBroadcastProcessFunction.OnTimerContext.register(ReadOnlyBroadcastContext)
