"""The user's window function, whatever its form, behind one call."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from enum import Enum
from typing import Any

from millrace.common.output_tag import OutputTag
from millrace.errors import StateError
from millrace.runtime.functions import UserFunction
from millrace.runtime.operator import OperatorContext
from millrace.runtime.windows.emitter import Emitter
from millrace.state.backend import KeyedState
from millrace.state.descriptors import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    ValueStateDescriptor,
)
from millrace.state.handles import AggregatingState, ListState, MapState, ReducingState, State, ValueState
from millrace.state.operator_state import Cell
from millrace.state.table import VOID

__all__ = ["WindowContext", "WindowFunctionCall", "WindowFunctionKind", "WindowStateStore"]


class WindowFunctionKind(Enum):
    """How the window function is called.

    >>> WindowFunctionKind.APPLY.value
    'apply'
    """

    PASS_THROUGH = ""
    """No function: the contents are the result."""
    APPLY = "apply"
    """WindowFunction.apply(key, window, inputs)"""
    APPLY_ALL = "apply_all"
    """AllWindowFunction.apply(window, inputs)"""
    PROCESS = "process"
    """ProcessWindowFunction.process(key, context, elements)"""
    PROCESS_ALL = "process_all"
    """ProcessAllWindowFunction.process(context, elements)"""


class WindowStateStore:
    """Keyed state of a window function, of one window or of all windows of the key.

    >>> from millrace.state.descriptors import ValueStateDescriptor
    >>> keyed = KeyedState(clock=lambda: 0)
    >>> keyed.current_key = "a"
    >>> WindowStateStore(keyed, VOID).get_state(ValueStateDescriptor("fired")).update(1)
    >>> keyed.keys("fired")
    ['a']
    """

    __slots__ = ("_keyed", "_namespace")

    def __init__(self, keyed: KeyedState, namespace: Hashable) -> None:
        self._keyed = keyed
        self._namespace = namespace

    def get_state(self, state_descriptor: ValueStateDescriptor) -> ValueState[Any]:
        """One value."""
        return self._get(state_descriptor)  # type: ignore[return-value]

    def get_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        """A list."""
        return self._get(state_descriptor)  # type: ignore[return-value]

    def get_map_state(self, state_descriptor: MapStateDescriptor) -> MapState[Any, Any]:
        """A map."""
        return self._get(state_descriptor)  # type: ignore[return-value]

    def get_reducing_state(self, state_descriptor: ReducingStateDescriptor) -> ReducingState[Any]:
        """A value that each add() is folded into."""
        return self._get(state_descriptor)  # type: ignore[return-value]

    def get_aggregating_state(self, state_descriptor: AggregatingStateDescriptor) -> AggregatingState[Any, Any]:
        """An accumulator."""
        return self._get(state_descriptor)  # type: ignore[return-value]

    def _get(self, descriptor: StateDescriptor) -> State:
        return self._keyed.get_state(descriptor, self._namespace)


class _NoWindowState(WindowStateStore):
    def _get(self, descriptor: StateDescriptor) -> State:
        message = (
            f"state {descriptor.get_name()!r}: windows that merge, such as sessions, have no state of their own, "
            "because it could not be merged with them. Use context.global_state() instead, or keep it in "
            "the contents of "
            "the window, with aggregate()"
        )
        raise StateError(message)


class WindowContext:
    """What a process window function sees besides the elements: the window, time, state, side outputs.

    >>> def process(key, context, elements):
    ...     yield key, context.window().start, sum(elements)
    """

    __slots__ = ("_clock", "_current", "_emitter", "_keyed", "_merging", "_watermark")

    def __init__(self, context: OperatorContext, watermark: Cell[int], emitter: Emitter, merging: bool) -> None:
        self._clock = context.clock
        self._keyed = context.store.keyed
        self._watermark = watermark
        self._emitter = emitter
        self._merging = merging
        self._current: Any = None

    def window(self) -> Any:
        """The window at hand."""
        return self._current

    def current_processing_time(self) -> int:
        """The clock of this task, in milliseconds."""
        return self._clock()

    def current_watermark(self) -> int:
        """Event time as far as this task knows it."""
        return self._watermark.value

    def window_state(self) -> WindowStateStore:
        """State of this key and window; clear it in clear(). Not for windows that merge."""
        return (_NoWindowState if self._merging else WindowStateStore)(self._keyed, self._current)

    def global_state(self) -> WindowStateStore:
        """State of this key, the same for all its windows."""
        return WindowStateStore(self._keyed, VOID)

    def output(self, tag: OutputTag, value: Any) -> None:
        """Send to a side output, with the window's last timestamp."""
        self._emitter.side(tag, value, self._current.max_timestamp())


class WindowFunctionCall:
    """A user's window function, of any kind: an object with the method, or a plain callable.

    >>> call = WindowFunctionCall(WindowFunctionKind.APPLY, lambda key, window, inputs: [(key, sum(inputs))])
    >>> call.emit("a", None, [1, 2])
    [('a', 3)]
    """

    def __init__(self, kind: WindowFunctionKind = WindowFunctionKind.PASS_THROUGH, function: Any = None) -> None:
        self.kind = kind
        self.passes = kind is WindowFunctionKind.PASS_THROUGH
        self._processes = kind in (WindowFunctionKind.PROCESS, WindowFunctionKind.PROCESS_ALL)
        self._user = UserFunction(function, "process" if self._processes else "apply")
        clear = self._user.bound("clear") if self._processes else None
        self._clear: Callable[[WindowContext], Any] | None = clear
        self.clears = callable(clear)
        self._context: Any = None

    @property
    def name(self) -> str:
        """For messages."""
        return f"{self._user.method}()"

    @property
    def function(self) -> UserFunction | None:
        """The user's function, if there is one."""
        return None if self.passes else self._user

    def open(self, context: OperatorContext, watermark: Cell[int], emitter: Emitter, merging: bool) -> None:
        """Give the function its runtime context."""
        self._context = WindowContext(context, watermark, emitter, merging)
        if not self.passes:
            self._user.open(context)

    def close(self) -> None:
        """Let the function go."""
        if not self.passes:
            self._user.close()

    def emit(self, key: Any, window: Any, elements: list[Any]) -> Iterable[Any] | None:
        """The results for the contents of one window."""
        kind = self.kind
        if kind is WindowFunctionKind.PASS_THROUGH:
            return elements
        if kind is WindowFunctionKind.APPLY:
            return self._user.call(key, window, elements)  # type: ignore[no-any-return]
        if kind is WindowFunctionKind.APPLY_ALL:
            return self._user.call(window, elements)  # type: ignore[no-any-return]
        self._context._current = window
        if kind is WindowFunctionKind.PROCESS:
            return self._user.call(key, self._context, elements)  # type: ignore[no-any-return]
        return self._user.call(self._context, elements)  # type: ignore[no-any-return]

    def clear(self, window: Any) -> None:
        """The window goes: let the function clear its state; the current key is the window's."""
        if self._clear is not None:
            self._context._current = window
            self._clear(self._context)
