"""Functions that keep state of their task besides that of keys: what they are given, and when they are called."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from millrace.runtime.context import RuntimeContext
from millrace.runtime.operator import OperatorContext, RecordFailure
from millrace.state.descriptors import ListStateDescriptor, MapStateDescriptor
from millrace.state.handles import BroadcastState, ListState
from millrace.state.operator_state import OperatorState

__all__ = [
    "CheckpointHooks",
    "FunctionInitializationContext",
    "FunctionSnapshotContext",
    "OperatorStateStore",
    "hooks_of",
    "restore_unions",
]

LIST_CHECKPOINTED: Final = "list-checkpointed"
"""The list state that holds what a ListCheckpointed function returns."""


class OperatorStateStore:
    """State that belongs to a task rather than to a key.

    >>> store = OperatorStateStore(OperatorState())
    >>> store.get_list_state(ListStateDescriptor("buffer")).add("a")
    >>> list(store.get_list_state(ListStateDescriptor("buffer")).get())
    ['a']
    """

    def __init__(self, state: OperatorState) -> None:
        self._state = state

    def get_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        """A list whose elements are dealt out to the tasks, one by one, when the parallelism changes."""
        return self._state.list_state(state_descriptor)

    def get_union_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        """A list of which a restored task gets the elements of all tasks."""
        return self._state.union_list_state(state_descriptor)

    def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> BroadcastState[Any, Any]:
        """A map that is the same in all tasks, as long as all of them change it in the same way."""
        return self._state.broadcast_state(state_descriptor)


class FunctionInitializationContext:
    """What initialize_state() gets: the way to all state of the function.

    >>> from millrace.state.store import OperatorStore
    >>> context = OperatorContext("buffer", "buffer-1", OperatorStore(), lambda: 0)
    >>> FunctionInitializationContext(context).is_restored()
    False
    """

    def __init__(self, context: OperatorContext) -> None:
        self._context = context

    def is_restored(self) -> bool:
        """Whether the task goes on from a checkpoint or savepoint, rather than from the beginning."""
        return self._context.restored

    def get_operator_state_store(self) -> OperatorStateStore:
        """State of the task."""
        return OperatorStateStore(self._context.store.operator)

    def get_keyed_state_store(self) -> RuntimeContext:
        """State by key; refused with an error if the stream has no keys."""
        return RuntimeContext(self._context)


class FunctionSnapshotContext:
    """What snapshot_state() gets: which checkpoint it is for.

    >>> FunctionSnapshotContext(3, 1000).get_checkpoint_id()
    3
    """

    def __init__(self, checkpoint_id: int, timestamp: int) -> None:
        self._checkpoint_id = checkpoint_id
        self._timestamp = timestamp

    def get_checkpoint_id(self) -> int:
        """The number of the checkpoint; later ones have greater numbers."""
        return self._checkpoint_id

    def get_checkpoint_timestamp(self) -> int:
        """When the task got to the checkpoint, in milliseconds of its clock."""
        return self._timestamp


class CheckpointHooks:
    """Calls the methods that a function has for checkpoints.

    A function with ``initialize_state`` is a CheckpointedFunction, one with ``restore_state`` is ListCheckpointed; what
    counts are the methods, not the base class.
    """

    def __init__(self, function: Any, context: OperatorContext, role: str) -> None:
        self._function = function
        self._context = context
        self._initialize = _method(function, "initialize_state")
        self._restore = None if self._initialize is not None else _method(function, "restore_state")
        self._snapshot = _method(function, "snapshot_state")
        self._list = ListStateDescriptor(f"{LIST_CHECKPOINTED}-{role}" if role else LIST_CHECKPOINTED)

    @property
    def keeps_state(self) -> bool:
        """Whether the function holds in its own attributes what it will write down: only a new one can be restored."""
        return self._initialize is not None or self._restore is not None or self._snapshot is not None

    def initialize(self) -> None:
        """Before open()."""
        if self._initialize is not None:
            self._call("initialize_state()", self._initialize, FunctionInitializationContext(self._context))
        elif self._restore is not None:
            stored = self._context.store.operator.list_state(self._list)
            if self._context.restored:
                self._call("restore_state()", self._restore, list(stored.get()))

    def snapshot(self, checkpoint_id: int) -> None:
        """At the end of an epoch, before its state is written."""
        if self._snapshot is None:
            return
        now = self._context.clock()
        if self._initialize is not None or self._restore is None:
            self._call("snapshot_state()", self._snapshot, FunctionSnapshotContext(checkpoint_id, now))
            return
        elements = self._call("snapshot_state()", self._snapshot, checkpoint_id, now)
        self._context.store.operator.list_state(self._list).update(() if elements is None else elements)

    def notify(self, method: str, checkpoint_id: int) -> None:
        """Tell the function what became of a checkpoint, if it listens."""
        call = _method(self._function, method)
        if call is not None:
            self._call(f"{method}()", call, checkpoint_id)

    def _call(self, what: str, call: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return call(*arguments)
        except Exception as error:
            raise RecordFailure(error, self._context, what, None) from error


def hooks_of(function: Any, context: OperatorContext, role: str = "") -> CheckpointHooks | None:
    """The hooks of a function, or None if it has no method for checkpoints.

    ``role`` keeps apart two functions of one operator.
    """
    names = ("initialize_state", "restore_state", "snapshot_state")
    if any(_method(function, name) is not None for name in (*names, *_NOTIFICATIONS)):
        return CheckpointHooks(function, context, role)
    return None


_NOTIFICATIONS: Final = ("notify_checkpoint_complete", "notify_checkpoint_aborted")


def _method(function: Any, name: str) -> Callable[..., Any] | None:
    found = getattr(function, name, None)
    return found if callable(found) else None


def restore_unions(states: Mapping[str, OperatorState], others: Callable[[str], list[dict[str, Any]]]) -> None:
    """Give restored tasks the union lists of all tasks, where there are any.

    ``states`` are the operator states of one task by uid, restored from its own snapshot; ``others(uid)`` gives the
    fulls of the operator in all tasks, in their order, and is asked only for operators with union lists.
    """
    for uid, state in states.items():
        names = state.union_names()
        if names:
            united = OperatorState.redistribute([full["operator"] for full in others(uid)], 1)[0]
            state.apply({address: content for address, content in united.items() if address[0] == "union list"})
