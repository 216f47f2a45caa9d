"""Broadcast state: a data stream processed with rules that another stream brings to every task."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NoReturn, TypeVar

from millrace.common.output_tag import OutputTag
from millrace.errors import StateError
from millrace.runtime.context import refuse_unkeyed
from millrace.runtime.functions import UserFunction
from millrace.runtime.operator import Batch, OperatorContext, last_taken
from millrace.runtime.operators.process import ProcessContext, ProcessOperator, SideOutputs
from millrace.runtime.timer_service import TimerService
from millrace.state.backend import NO_KEY
from millrace.state.descriptors import MapStateDescriptor, StateDescriptor
from millrace.state.handles import BroadcastState, ReadOnlyBroadcastState, State
from millrace.state.operator_state import BroadcastView

__all__ = ["BroadcastContext", "BroadcastProcessOperator", "ReadOnlyBroadcastContext"]

T = TypeVar("T")


class _BroadcastKey:
    """The current key while the broadcast side runs: not hashable, so that keyed state and timers refuse it."""

    __slots__ = ()

    def __hash__(self) -> NoReturn:
        raise StateError(
            "process_broadcast_element() has no key, so it has no keyed state and no timers: "
            "use ctx.apply_to_keyed_state(descriptor, function) to visit the state of every key"
        )


_BROADCAST_KEY: Final = _BroadcastKey()


class ReadOnlyBroadcastContext(ProcessContext):
    """What process_element and on_timer see: all that a process function has, and the broadcast state to read."""

    __slots__ = ("_find",)

    def __init__(
        self,
        service: TimerService,
        side: SideOutputs,
        find: Callable[[MapStateDescriptor], ReadOnlyBroadcastState[Any, Any]],
    ) -> None:
        super().__init__(service, side)
        self._find = find

    def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> ReadOnlyBroadcastState[Any, Any]:
        """The broadcast state, to read."""
        return self._find(state_descriptor)


class BroadcastContext:
    """What process_broadcast_element sees: the broadcast state to change, and the keyed state of all keys."""

    __slots__ = ("_apply", "_find", "_read")

    def __init__(
        self,
        read: ReadOnlyBroadcastContext,
        find: Callable[[MapStateDescriptor], BroadcastState[Any, Any]],
        apply: Callable[[StateDescriptor, Callable[[Any, Any], Any]], None],
    ) -> None:
        self._read = read
        self._find = find
        self._apply = apply

    def timestamp(self) -> int | None:
        """The record's timestamp, or None if it has none."""
        return self._read.timestamp()

    def current_processing_time(self) -> int:
        """The clock of this task."""
        return self._read.current_processing_time()

    def current_watermark(self) -> int:
        """Event time as far as this task knows it."""
        return self._read.current_watermark()

    def output(self, tag: OutputTag, value: Any) -> None:
        """Send to a side output, with the record's timestamp."""
        self._read.output(tag, value)

    def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> BroadcastState[Any, Any]:
        """The broadcast state, to read and to change. Every task must change its copy in the same way."""
        return self._find(state_descriptor)

    def apply_to_keyed_state(self, state_descriptor: StateDescriptor, function: Callable[[Any, Any], Any]) -> None:
        """Call ``function(key, state)`` for every key of this task that has something in a keyed state."""
        self._apply(state_descriptor, function)


class BroadcastProcessOperator(ProcessOperator):
    """Runs BroadcastProcessFunction and KeyedBroadcastProcessFunction: data on side 0, the broadcast stream on side 1.

    ``function`` names ``process_element``. Broadcast state can be changed from side 1 only (rule 27).

    >>> from millrace.testing import harness_for
    >>> rules = MapStateDescriptor("rules")
    >>> class Allowed:
    ...     def process_element(self, value, ctx):
    ...         return [value] if value in ctx.get_broadcast_state(rules) else None
    ...     def process_broadcast_element(self, value, ctx):
    ...         ctx.get_broadcast_state(rules)[value] = True
    >>> harness = harness_for(Allowed(), broadcast_state=rules)
    >>> harness.process_broadcast_element("tea")
    >>> harness.process_batch(["rum", "tea"])
    >>> harness.outputs()
    ['tea']
    """

    def __init__(self, function: UserFunction, descriptors: tuple[MapStateDescriptor, ...], keyed: bool) -> None:
        super().__init__(function, second="process_broadcast_element")
        self.descriptors = descriptors
        self.keyed = keyed

    def open(self) -> None:
        """Find the broadcast state and open the function."""
        operator_state = self.context.store.operator
        states = {descriptor.name: operator_state.broadcast_state(descriptor) for descriptor in self.descriptors}
        views = {name: BroadcastView(state) for name, state in states.items()}
        super().open()
        read = ReadOnlyBroadcastContext(self._service, self._side, _finder(views, self.context))
        self._process_context = read
        self._broadcast_context = BroadcastContext(read, _finder(states, self.context), self._apply_to_keyed_state)

    def process(self, batch: Batch, side: int = 0) -> None:
        """Data on side 0, rules on side 1."""
        if side == 0:
            super().process(batch)
        else:
            self._process_broadcast(batch)

    def _process_broadcast(self, batch: Batch) -> None:
        call, context, read = self._call_for(1), self._broadcast_context, self._process_context
        self.context.store.keyed.current_key = _BROADCAST_KEY if self.keyed else NO_KEY
        read._domain = None
        records = iter(batch.values)
        try:
            for value, time in zip(records, batch.times(), strict=True):
                read._time = time
                result = call(value, context)
                if result is not None:
                    self._collect(result, time)
        except Exception as error:
            raise self.failure(error, last_taken(records, batch.values), f"{self.second}()") from error
        self._flush()

    def _apply_to_keyed_state(self, descriptor: StateDescriptor, function: Callable[[Any, Any], Any]) -> None:
        if not self.keyed:
            refuse_unkeyed(self.context, f"apply_to_keyed_state({descriptor.get_name()!r})")
        keyed = self.context.store.keyed
        state: State = keyed.get_state(descriptor)
        try:
            for key in keyed.keys(descriptor.get_name()):
                keyed.current_key = key
                function(key, state)
        finally:
            keyed.current_key = _BROADCAST_KEY


def _finder(states: Mapping[str, T], context: OperatorContext) -> Callable[[MapStateDescriptor], T]:
    """Finds a broadcast state by its descriptor, or says which ones there are."""

    def find(descriptor: MapStateDescriptor) -> T:
        found = states.get(descriptor.get_name())
        if found is None:
            known = ", ".join(map(repr, states)) or "none"
            message = (
                f"{context.name} (uid {context.uid}) asks for the broadcast state {descriptor.get_name()!r}, and was "
                f"connected with {known}: add the descriptor to stream.broadcast(...)"
            )
            raise StateError(message)
        return found

    return find
