"""From what a program says about its windows to the operator that runs them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from millrace.common.output_tag import OutputTag
from millrace.errors import GraphError
from millrace.runtime.windows.aligned import AlignedWindowOperator
from millrace.runtime.windows.assigners import (
    DynamicEventTimeSessionWindows,
    EventTimeSessionWindows,
    MergingWindowAssigner,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
    WindowAssigner,
)
from millrace.runtime.windows.base import WindowingOperator
from millrace.runtime.windows.contents import AggregateContents, Contents, ListContents, ReduceContents
from millrace.runtime.windows.evictors import Evictor
from millrace.runtime.windows.functions import WindowFunctionCall, WindowFunctionKind
from millrace.runtime.windows.operator import WindowOperator
from millrace.runtime.windows.sessions import SessionWindowOperator
from millrace.runtime.windows.trigger import Trigger
from millrace.runtime.windows.triggers import EventTimeTrigger, PurgingTrigger

__all__ = ["WindowSpec", "make_window_operator"]


@dataclass(frozen=True)
class WindowSpec:
    """All that a program says about a window: what can be wrong with it is found when it is made.

    At most one of ``reduce`` and ``aggregate``; with neither, the window keeps all records and needs a function.

    >>> spec = WindowSpec(TumblingEventTimeWindows.of(1000), reduce=max)
    >>> type(make_window_operator(spec)).__name__
    'AlignedWindowOperator'
    """

    assigner: WindowAssigner[Any, Any]
    trigger: Trigger[Any, Any] | None = None
    """None: the assigner's default."""
    evictor: Evictor[Any, Any] | None = None
    allowed_lateness: int = 0
    late_tag: OutputTag | None = None
    reduce: Any = None
    """A function of two values, or an object with reduce()."""
    aggregate: Any = None
    """An AggregateFunction."""
    function_kind: WindowFunctionKind = WindowFunctionKind.PASS_THROUGH
    function: Any = None
    name: str = field(default="window", compare=False)
    """For messages."""

    def __post_init__(self) -> None:
        self._check_lateness()
        self._check_merging()
        self._check_contents()

    @property
    def effective_trigger(self) -> Trigger[Any, Any]:
        """The trigger chosen, or the assigner's own."""
        return self.assigner.get_default_trigger(None) if self.trigger is None else self.trigger

    @property
    def merging(self) -> bool:
        """Whether windows may grow together."""
        return isinstance(self.assigner, MergingWindowAssigner)

    def make_contents(self) -> Contents:
        """What the window keeps of its records."""
        if self.reduce is not None:
            return ReduceContents(self.reduce)
        return ListContents() if self.aggregate is None else AggregateContents(self.aggregate)

    def _fail(self, problem: str, fix: str) -> None:
        message = f"{self.name}: {problem}. {fix}"
        raise GraphError(message)

    def _check_lateness(self) -> None:
        if self.allowed_lateness < 0:
            self._fail(
                f"the allowed lateness is {self.allowed_lateness} ms",
                "Use zero or more: allowed_lateness(5000) accepts records up to five seconds late",
            )

    def _check_merging(self) -> None:
        if not self.merging:
            return
        trigger = self.effective_trigger
        if not trigger.can_merge():
            self._fail(
                f"{trigger!r} cannot merge windows, and {self.assigner!r} needs that",
                "Use one that can, such as EventTimeTrigger or CountTrigger, or override can_merge() and on_merge()",
            )
        if self.aggregate is not None:
            merge = getattr(self.aggregate, "merge", None)
            if not callable(merge) or getattr(merge, "__isabstractmethod__", False):
                self._fail(
                    f"{type(self.aggregate).__name__} has no merge(), and {self.assigner!r} needs it for sessions that "
                    "grow together",
                    "Add merge(self, acc_a, acc_b) that returns the accumulator of both",
                )

    def _check_contents(self) -> None:
        if self.reduce is not None and self.aggregate is not None:
            self._fail("both reduce and aggregate are given", "Use one of them")
        if self.evictor is not None and (self.reduce is not None or self.aggregate is not None):
            way = "reduce" if self.reduce is not None else "aggregate"
            self._fail(
                f"an evictor needs all records of a window, but {way}() keeps only their result",
                "Use apply() or process() with the evictor, or leave the evictor out",
            )
        for method in ("create_accumulator", "add", "get_result"):
            if self.aggregate is not None and not callable(getattr(self.aggregate, method, None)):
                self._fail(
                    f"{self.aggregate!r} has no {method}()",
                    "aggregate() takes an AggregateFunction with create_accumulator, add, get_result and merge",
                )
        if self.reduce is not None and not callable(getattr(self.reduce, "reduce", self.reduce)):
            self._fail(f"{self.reduce!r} can not be called", "Give reduce() a function of two values")
        if self.function_kind is not WindowFunctionKind.PASS_THROUGH:
            method = "process" if self.function_kind.value.startswith("process") else "apply"
            if not callable(getattr(self.function, method, self.function)):
                self._fail(f"{self.function!r} can not be called", f"Give a function, or an object with {method}()")


def make_window_operator(spec: WindowSpec, general: bool = False) -> WindowingOperator:
    """The operator for a window: a fast one where it gives the same results, else, or if told so, the general one."""
    contents = spec.make_contents()
    function = WindowFunctionCall(spec.function_kind, spec.function)
    lateness, late_tag = spec.allowed_lateness, spec.late_tag
    trigger = spec.effective_trigger
    purging = isinstance(trigger, PurgingTrigger)
    at_watermark = type(trigger.nested_trigger if isinstance(trigger, PurgingTrigger) else trigger) is EventTimeTrigger
    # What a purged window has of its own until it is forgotten, only the general operator knows.
    plain = not purging or lateness == 0
    if at_watermark and spec.evictor is None and not general:
        assigner = spec.assigner
        if type(assigner) in (TumblingEventTimeWindows, SlidingEventTimeWindows) and (plain or not function.clears):
            assert isinstance(assigner, (TumblingEventTimeWindows, SlidingEventTimeWindows))
            return AlignedWindowOperator(
                assigner, contents, function, purging=purging, lateness=lateness, late_tag=late_tag
            )
        if type(assigner) in (EventTimeSessionWindows, DynamicEventTimeSessionWindows) and plain:
            assert isinstance(assigner, (EventTimeSessionWindows, DynamicEventTimeSessionWindows))
            return SessionWindowOperator(assigner, contents, function, lateness=lateness, late_tag=late_tag)
    return WindowOperator(
        spec.assigner, trigger, contents, function, evictor=spec.evictor, lateness=lateness, late_tag=late_tag
    )
