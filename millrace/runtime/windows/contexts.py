"""What the window operator hands to assigners, triggers and evictors."""

from __future__ import annotations

from typing import Any

from millrace.metrics import MetricGroup
from millrace.runtime.context import RuntimeContext
from millrace.runtime.operator import OperatorContext
from millrace.runtime.timer_service import require_time
from millrace.runtime.windows.assigners import WindowAssigner
from millrace.runtime.windows.evictors import Evictor
from millrace.runtime.windows.trigger import Trigger
from millrace.state.descriptors import StateDescriptor
from millrace.state.handles import State
from millrace.state.operator_state import Cell

__all__ = ["AssignerContext", "PaneContext"]


class AssignerContext(WindowAssigner.WindowAssignerContext):
    """For the assigner. ``now`` is read once for each record, so that all that is decided for it has one time."""

    __slots__ = ("_runtime", "now")

    def __init__(self, context: OperatorContext) -> None:
        self._runtime = RuntimeContext(context)
        self.now = 0

    def get_current_processing_time(self) -> int:
        return self.now

    def get_runtime_context(self) -> RuntimeContext:
        return self._runtime


class PaneContext(Trigger.OnMergeContext, Evictor.EvictorContext):
    """For trigger and evictor: one object, pointed at the window at hand before each call; the key is the store's."""

    __slots__ = ("_context", "_event", "_keyed", "_processing", "_watermark", "merged", "window")

    def __init__(self, context: OperatorContext, watermark: Cell[int]) -> None:
        self._context = context
        self._keyed = context.store.keyed
        self._event = context.store.event_timers
        self._processing = context.store.processing_timers
        self._watermark = watermark
        self.window: Any = None
        self.merged: list[Any] = []

    def get_current_processing_time(self) -> int:
        return self._context.clock()

    def get_metric_group(self) -> MetricGroup:
        return self._context.metrics

    def get_current_watermark(self) -> int:
        return self._watermark.value

    def register_processing_time_timer(self, time: int) -> None:
        self._processing.register(self._checked(time), self._keyed.current_key, self.window)

    def register_event_time_timer(self, time: int) -> None:
        self._event.register(self._checked(time), self._keyed.current_key, self.window)

    def delete_processing_time_timer(self, time: int) -> None:
        self._processing.delete(time, self._keyed.current_key, self.window)

    def delete_event_time_timer(self, time: int) -> None:
        self._event.delete(time, self._keyed.current_key, self.window)

    def get_partitioned_state(self, state_descriptor: StateDescriptor) -> State:
        return self._keyed.get_state(state_descriptor, self.window)

    def merge_partitioned_state(self, state_descriptor: StateDescriptor) -> None:
        self._keyed.merge_namespaces(state_descriptor, self.window, self.merged)

    def _checked(self, time: int) -> int:
        if type(time) is not int:
            return require_time(time, f"the trigger of {self._context.name} registers a timer")
        return time
