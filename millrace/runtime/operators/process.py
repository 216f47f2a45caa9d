"""Process functions: a user's function with time, timers, keyed state and side outputs, on one input or two."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any

from millrace.common.constants import LONG_MIN
from millrace.common.output_tag import OutputTag
from millrace.runtime.functions import UserFunction
from millrace.runtime.operator import Batch, RecordFailure, last_taken
from millrace.runtime.operators.stateless import FunctionOperator
from millrace.runtime.timer_service import TimerService
from millrace.state.backend import NO_KEY

__all__ = ["ProcessContext", "ProcessOperator", "TimeDomain"]


class TimeDomain(Enum):
    """Which clock a timer runs by.

    >>> TimeDomain.EVENT_TIME.value
    0
    """

    EVENT_TIME = 0
    PROCESSING_TIME = 1


class ProcessContext:
    """What a process function sees of the record it is at: its time, its key, timers, side outputs."""

    __slots__ = ("_domain", "_keyed", "_service", "_side", "_time")

    def __init__(self, service: TimerService, side: SideOutputs) -> None:
        self._service = service
        self._keyed = service.keyed
        self._side = side
        self._time = LONG_MIN
        self._domain: TimeDomain | None = None

    def timestamp(self) -> int | None:
        """The record's timestamp, or None if it has none; in on_timer, the timer's time."""
        return None if self._time == LONG_MIN else self._time

    def timer_service(self) -> TimerService:
        """Time and timers."""
        return self._service

    def get_current_key(self) -> Any:
        """The key of the record or timer."""
        return self._keyed.current_key

    def time_domain(self) -> TimeDomain | None:
        """In on_timer: which clock has rung."""
        return self._domain

    def output(self, tag: OutputTag, value: Any) -> None:
        """Send to a side output, with the record's timestamp."""
        self._side.add(tag, value, self._time if self._domain is not TimeDomain.PROCESSING_TIME else LONG_MIN)

    def current_processing_time(self) -> int:
        """The clock of this task."""
        return self._service.current_processing_time()

    def current_watermark(self) -> int:
        """Event time as far as this task knows it."""
        return self._service.current_watermark()


class SideOutputs:
    """Collects what goes to side outputs until the batch is done."""

    def __init__(self) -> None:
        self.pending: dict[str, tuple[list[Any], list[int]]] = {}

    def add(self, tag: OutputTag, value: Any, time: int) -> None:
        """Keep a value for the side output."""
        if not isinstance(tag, OutputTag):
            message = f"a side output is named by an OutputTag, not by {tag!r}: OutputTag('late'), for example"
            raise TypeError(message)
        values, times = self.pending.setdefault(tag.tag_id, ([], []))
        coerce = tag.type_info.coercer() if tag.type_info is not None else None
        values.append(value if coerce is None else coerce(value))
        times.append(time)


class ProcessOperator(FunctionOperator):
    """Runs ProcessFunction, KeyedProcessFunction and their two-input forms."""

    def __init__(self, function: UserFunction, second: str | None = None) -> None:
        super().__init__(function)
        self.second = second

    def open(self) -> None:
        self._service = TimerService(self.context)
        self._side = SideOutputs()
        self._values: list[Any] = []
        self._times: list[int] = []
        self._process_context = ProcessContext(self._service, self._side)
        self._on_timer = self.function.bound("on_timer")
        super().open()

    def process(self, batch: Batch, side: int = 0) -> None:
        call = self._call_for(side)
        context, keyed = self._process_context, self.context.store.keyed
        context._domain = None
        records = iter(batch.values)
        try:
            if batch.keys is None or not self.context.keyed:
                keyed.current_key = NO_KEY
                for value, time in zip(records, batch.times(), strict=True):
                    context._time = time
                    result = call(value, context)
                    if result is not None:
                        self._collect(result, time)
            else:
                for key, value, time in zip(batch.keys, records, batch.times(), strict=True):
                    keyed.current_key = key
                    context._time = time
                    result = call(value, context)
                    if result is not None:
                        self._collect(result, time)
        except Exception as error:
            raise self.failure(error, last_taken(records, batch.values)) from error
        self._flush()

    def on_watermark(self, watermark: int) -> None:
        self._service.advance_watermark(watermark)
        self._fire(self.context.store.event_timers.pop_due, watermark, TimeDomain.EVENT_TIME)
        self.output.emit_watermark(watermark)

    def on_processing_time(self, now: int) -> None:
        self._fire(self.context.store.processing_timers.pop_due, now, TimeDomain.PROCESSING_TIME)

    def restart_time(self) -> None:
        self._service.advance_watermark(LONG_MIN)

    def next_processing_time(self) -> int | None:
        return self.context.store.processing_timers.peek()

    def _call_for(self, side: int) -> Callable[..., Any]:
        if side == 0:
            return self.function.call
        assert self.second is not None
        return getattr(self.function.function, self.second)  # type: ignore[no-any-return]

    def _fire(self, pop_due: Callable[[int], tuple[int, Any, Any] | None], limit: int, domain: TimeDomain) -> None:
        context, keyed = self._process_context, self.context.store.keyed
        context._domain = domain
        while (timer := pop_due(limit)) is not None:
            time, key, _ = timer
            keyed.current_key = key
            context._time = time
            if self._on_timer is None:
                continue
            try:
                result = self._on_timer(time, context)
                if result is not None:
                    # A processing-time timer has no event time to give to its results.
                    self._collect(result, time if domain is TimeDomain.EVENT_TIME else LONG_MIN)
            except Exception as error:
                raise RecordFailure(error, self.context, f"on_timer({time})", f"timer of key {key!r}") from error
        context._domain = None
        self._flush()

    def _collect(self, result: Iterable[Any], time: int) -> None:
        values, times = self._values, self._times
        if not isinstance(result, Iterable):
            message = (
                f"returned {result!r}, which cannot be iterated: yield each result, or return a list of them "
                "(None for no result)"
            )
            raise TypeError(message)
        for item in result:
            if type(item) is tuple and len(item) == 2 and isinstance(item[0], OutputTag):
                self._side.add(item[0], item[1], time)
            else:
                values.append(item)
                times.append(time)

    def _flush(self) -> None:
        if self._values:
            values, times = self._values, self._times
            self._values, self._times = [], []
            self.output.emit(Batch(values, times))
        if self._side.pending:
            pending, self._side.pending = self._side.pending, {}
            for tag, (values, times) in pending.items():
                self.output.emit_side(tag, Batch(values, times))
