"""Window functions, triggers and evictors by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from millrace.common.output_tag import OutputTag
from millrace.errors import GraphError
from millrace.runtime.windows.build import WindowSpec, make_window_operator
from millrace.runtime.windows.functions import WindowFunctionKind
from millrace.testing.harness import OperatorHarness

__all__ = ["window_harness"]


def window_harness(
    assigner: Any,
    function: Any = None,
    *,
    key_selector: Callable[[Any], Any],
    reduce: Any = None,
    aggregate: Any = None,
    trigger: Any = None,
    evictor: Any = None,
    allowed_lateness: int = 0,
    late_tag: OutputTag | None = None,
) -> OperatorHarness:
    """A harness around the very operator that ``key_by(...).window(assigner)`` runs.

    ``function`` is a ProcessWindowFunction, a WindowFunction or a callable of (key, window, records); ``reduce`` or
    ``aggregate`` may stand alone or before it.

    >>> from millrace.datastream.window import TumblingEventTimeWindows
    >>> windows = TumblingEventTimeWindows.of(10)
    >>> with window_harness(windows, key_selector=lambda r: r[0], reduce=lambda a, b: (a[0], a[1] + b[1])) as harness:
    ...     harness.process_element(("a", 1), 3)
    ...     harness.process_element(("a", 2), 9)
    ...     harness.process_watermark(8)
    ...     harness.process_watermark(9)
    ...     harness.get_output()
    [(('a', 3), 9)]
    """
    kind = WindowFunctionKind.PASS_THROUGH
    if callable(getattr(function, "process", None)):
        kind = WindowFunctionKind.PROCESS
    elif function is not None:
        kind = WindowFunctionKind.APPLY
    elif reduce is None and aggregate is None:
        message = "window_harness needs something to do: give it a function, reduce= or aggregate="
        raise GraphError(message)
    spec = WindowSpec(
        assigner,
        trigger,
        evictor,
        allowed_lateness,
        late_tag,
        reduce=reduce,
        aggregate=aggregate,
        function_kind=kind,
        function=function,
    )
    return OperatorHarness(make_window_operator(spec), key_selector=key_selector)
