"""A harness for a user's function: finds the operator that runs it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from millrace.common.output_tag import OutputTag
from millrace.errors import GraphError
from millrace.runtime.fields import key_of_fields
from millrace.runtime.functions import UserFunction
from millrace.runtime.operator import Operator
from millrace.runtime.operators.async_wait import AsyncWaitOperator
from millrace.runtime.operators.broadcast import BroadcastProcessOperator
from millrace.runtime.operators.co import co_flat_map, co_map
from millrace.runtime.operators.interval_join import IntervalJoinOperator
from millrace.runtime.operators.process import ProcessOperator
from millrace.runtime.operators.rolling import ReduceOperator
from millrace.runtime.operators.stateless import FilterOperator, FlatMapOperator, MapOperator
from millrace.state.descriptors import MapStateDescriptor
from millrace.testing.harness import OperatorHarness

__all__ = ["harness_for"]

_METHODS: Final = {
    "broadcast": "process_broadcast_element",
    "co_process": "process_element1",
    "process": "process_element",
    "co_map": "map1",
    "co_flat_map": "flat_map1",
    "async": "async_invoke",
    "reduce": "reduce",
    "flat_map": "flat_map",
    "filter": "filter",
    "map": "map",
}
"""Operation -> the method that only its functions have, the most telling ones first."""

_TWO_INPUTS: Final = frozenset({"broadcast", "co_process", "co_map", "co_flat_map", "interval_join"})


def harness_for(
    function: Any,
    key_selector: Any = None,
    *,
    second_key_selector: Any = None,
    operation: str | None = None,
    broadcast_state: MapStateDescriptor | Sequence[MapStateDescriptor] = (),
    interval: tuple[int, int] | None = None,
    late_tags: tuple[OutputTag | None, OutputTag | None] = (None, None),
    timeout_ms: int = 0,
    capacity: int = 100,
    ordered: bool = True,
    retry_strategy: Any = None,
    **settings: Any,
) -> OperatorHarness:
    """A harness around the operator that runs ``function`` in a job.

    What the function is shows in its methods: MapFunction, FlatMapFunction, FilterFunction, ReduceFunction,
    ProcessFunction, KeyedProcessFunction, their Co- and Broadcast- forms, ProcessJoinFunction and AsyncFunction. A
    plain callable is a map function unless ``operation`` says "filter", "flat_map", "reduce", "process" or "async".

    ``key_selector`` (a callable, a KeySelector, a field name or position) makes the stream keyed, and
    ``second_key_selector`` the second one; without it the first serves for both, except for a broadcast stream.
    ``broadcast_state`` gives the descriptors of a broadcast function, ``interval=(lower, upper)`` the inclusive bounds
    in ms of an interval join with its ``late_tags=(left, right)``, and ``timeout_ms``, ``capacity``, ``ordered`` and
    ``retry_strategy`` are for async functions. Other ``settings`` go to `OperatorHarness`.

    >>> from millrace.state import ValueStateDescriptor
    >>> class CountPerUser:
    ...     def open(self, context):
    ...         self.count = context.get_state(ValueStateDescriptor("count"))
    ...     def process_element(self, user, ctx):
    ...         self.count.update((self.count.value() or 0) + 1)
    ...         ctx.timer_service().register_event_time_timer(ctx.timestamp() + 10)
    ...     def on_timer(self, timestamp, ctx):
    ...         yield ctx.get_current_key(), self.count.value()
    >>> with harness_for(CountPerUser(), key_selector=lambda user: user) as harness:
    ...     harness.process_element("ann", 1)
    ...     harness.process_element("ann", 2)
    ...     harness.process_watermark(11)
    ...     harness.get_output(), harness.num_event_time_timers()
    ([(('ann', 2), 11)], 1)
    """
    if operation is None:
        operation = "interval_join" if interval is not None else _operation_of(function)
    first = _selector(key_selector)
    second = _selector(second_key_selector)
    if second is None and operation != "broadcast":
        second = first
    if operation in ("reduce", "interval_join") and first is None:
        message = f"{operation} works on keyed streams: give key_selector=lambda value: value.id, for example"
        raise GraphError(message)
    two_inputs = operation in _TWO_INPUTS
    operator: Operator
    if operation == "broadcast":
        descriptors = (broadcast_state,) if isinstance(broadcast_state, MapStateDescriptor) else tuple(broadcast_state)
        operator = BroadcastProcessOperator(UserFunction(function, "process_element"), descriptors, first is not None)
    elif operation == "interval_join":
        if interval is None:
            raise GraphError("an interval join needs its bounds: interval=(-1000, 1000), for example")
        left, right = (None if tag is None else tag.tag_id for tag in late_tags)
        operator = IntervalJoinOperator(UserFunction(function, "process_element"), *interval, left, right)
    elif operation == "async":
        invoke = UserFunction(function, "async_invoke")
        operator = AsyncWaitOperator(invoke, timeout_ms, capacity, ordered, retry_strategy)
    else:
        operator = _plain(function, operation)
    settings.setdefault("name", UserFunction(function, operation).name)
    return OperatorHarness(
        operator,
        key_selector=first,
        second_key_selector=second if two_inputs else None,
        inputs=2 if two_inputs else 1,
        **settings,
    )


def _plain(function: Any, operation: str) -> Operator:
    match operation:
        case "process":
            return ProcessOperator(UserFunction(function, "process_element"))
        case "co_process":
            return ProcessOperator(UserFunction(function, "process_element1"), second="process_element2")
        case "co_map":
            return co_map(function)
        case "co_flat_map":
            return co_flat_map(function)
        case "map":
            return MapOperator(UserFunction(function, "map"))
        case "flat_map":
            return FlatMapOperator(UserFunction(function, "flat_map"))
        case "filter":
            return FilterOperator(UserFunction(function, "filter"))
        case "reduce":
            return ReduceOperator(UserFunction(function, "reduce"))
    message = f"unknown operation {operation!r}: use one of {', '.join(sorted([*_METHODS, 'interval_join']))}"
    raise GraphError(message)


def _operation_of(function: Any) -> str:
    for operation, method in _METHODS.items():
        if callable(getattr(function, method, None)):
            return operation
    if callable(function):
        return "map"
    message = (
        f"{function!r} is no function of a stream: it has none of the methods {', '.join(_METHODS.values())} "
        "and cannot be called"
    )
    raise GraphError(message)


def _selector(selector: Any) -> Callable[[Any], Any] | None:
    if isinstance(selector, (str, int)):
        return key_of_fields((selector,))
    chosen: Callable[[Any], Any] | None = getattr(selector, "get_key", selector)
    return chosen
