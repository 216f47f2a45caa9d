"""Interval join: pairs of records of one key whose timestamps are near each other.

Every record is matched against the other side on arrival and kept for as long as a record of the other side may still
come that matches it. What is kept of a key is a pair of lists, times and values, in time order: a match is a slice.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from typing import Any, Final, NoReturn, TypeAlias

from millrace.common.constants import LONG_MAX, LONG_MIN
from millrace.common.output_tag import OutputTag
from millrace.errors import GraphError, TimeError
from millrace.runtime.context import refuse_unkeyed
from millrace.runtime.functions import UserFunction
from millrace.runtime.operator import Batch, preview
from millrace.runtime.operators.process import ProcessOperator, SideOutputs
from millrace.state.table import VOID

__all__ = ["IntervalJoinOperator", "JoinContext", "cleanup_time", "is_late"]

_SIDES: Final = ("left", "right")
"""Names of the two inputs, and the namespaces of their timers."""

_Buffer: TypeAlias = tuple[list[int], list[Any]]


def is_late(timestamp: int, watermark: int) -> bool:
    """Whether a record comes too late to be joined (rule 24); unlike windows, one at the watermark itself does not.

    >>> [is_late(timestamp, 10) for timestamp in (9, 10, 11)]
    [True, False, False]
    """
    return timestamp < watermark


def cleanup_time(timestamp: int, reach: int) -> int:
    """The watermark at which a record that matches others up to ``reach`` ms later is let go (rule 25).

    >>> cleanup_time(10, 5), cleanup_time(10, -5)
    (15, 10)
    """
    return min(timestamp + max(reach, 0), LONG_MAX)


class JoinContext:
    """What a ProcessJoinFunction sees of the pair it is at."""

    __slots__ = ("_left", "_right", "_side")

    def __init__(self, side: SideOutputs) -> None:
        self._side = side
        self._left = LONG_MIN
        self._right = LONG_MIN

    def get_left_timestamp(self) -> int:
        """The timestamp of the left record."""
        return self._left

    def get_right_timestamp(self) -> int:
        """The timestamp of the right record."""
        return self._right

    def get_timestamp(self) -> int:
        """The timestamp of the result: the later of the two."""
        return max(self._left, self._right)

    def output(self, tag: OutputTag, value: Any) -> None:
        """Send to a side output, with the timestamp of the result."""
        self._side.add(tag, value, self.get_timestamp())


class IntervalJoinOperator(ProcessOperator):
    """Joins left and right records of a key where ``left + lower <= right <= left + upper``, in event time.

    ``function`` has ``process_element(left, right, ctx)`` or is called with ``(left, right)``; it yields or returns its
    results. Both bounds are inclusive. Late records go to the side output named by their side's tag, or are dropped.

    >>> from millrace.testing import harness_for
    >>> harness = harness_for(lambda left, right: [left + right], key_selector=len, interval=(0, 5))
    >>> harness.process_element1("l", 10)
    >>> harness.process_batch("rst", [15, 16, 9], side=1)
    >>> harness.get_output()
    [('lr', 15)]
    """

    def __init__(
        self,
        function: UserFunction,
        lower: int,
        upper: int,
        left_late_tag: str | None = None,
        right_late_tag: str | None = None,
    ) -> None:
        if lower > upper:
            message = (
                f"no pair can match in an interval join from {lower} to {upper} ms (exclusive bounds move by 1 ms): "
                "use between(lower, upper) with lower <= upper, or inclusive bounds"
            )
            raise GraphError(message)
        super().__init__(function)
        # By side: how far the other record may be from this one, from and to.
        self._reach = ((lower, upper), (-upper, -lower))
        self._late_tags = (left_late_tag, right_late_tag)

    def open(self) -> None:
        """Find the buffers and open the function."""
        tables = [self.context.store.keyed.table(f"interval-join/{name}") for name in _SIDES]
        # VOID's pane and set of changes are the same objects for ever, restored or not.
        self._panes: list[dict[Any, _Buffer]] = [table.pane(VOID) for table in tables]
        self._touched = [table.touched(VOID) for table in tables]
        self._late_dropped = self.context.metrics.counter("numLateRecordsDropped")
        super().open()
        self._join_context = JoinContext(self._side)
        self._with_context = callable(self.function.bound(self.function.method))
        self._call = self.function.call

    def process(self, batch: Batch, side: int = 0) -> None:
        """Keep each record and match it with what is kept of the other side."""
        if batch.keys is None:
            refuse_unkeyed(self.context, "an interval join")
        keyed, watermark = self.context.store.keyed, self._service.current_watermark()
        others, touched = self._panes[1 - side], self._touched[side]
        lowest, highest = self._reach[side]
        late_values: list[Any] = []
        late_times: list[int] = []
        for key, value, time in zip(batch.keys, batch.values, batch.times(), strict=True):
            if time == LONG_MIN:
                self._refuse(value, side)
            if is_late(time, watermark):
                late_values.append(value)
                late_times.append(time)
                continue
            self._keep(side, key, value, time)
            touched.add(key)
            held = others.get(key)
            if held is not None:
                times, values = held
                start = bisect_left(times, time + lowest)
                stop = bisect_right(times, time + highest, start)
                if start < stop:
                    keyed.current_key = key
                    self._match(value, time, times[start:stop], values[start:stop], side)
        self._flush()
        if late_values:
            self._late(Batch(late_values, late_times), side)

    def on_watermark(self, watermark: int) -> None:
        """Let go of the records that nothing can match any more."""
        self._service.advance_watermark(watermark)
        timers = self.context.store.event_timers
        while (timer := timers.pop_due(watermark)) is not None:
            _, key, name = timer
            self._clean(_SIDES.index(name), key, watermark)
        self.output.emit_watermark(watermark)

    def _keep(self, side: int, key: Any, value: Any, time: int) -> None:
        held = self._panes[side].get(key)
        if held is None:
            self._panes[side][key] = ([time], [value])
            self._wake(side, key, time)
            return
        times, values = held
        if time >= times[-1]:
            times.append(time)
            values.append(value)
            return
        index = bisect_right(times, time)
        times.insert(index, time)
        values.insert(index, value)
        if index == 0:
            self._wake(side, key, time)

    def _wake(self, side: int, key: Any, earliest: int) -> None:
        # A timer for the earliest record is enough: when it rings, it is set anew for what then is the earliest.
        timers, (_, highest) = self.context.store.event_timers, self._reach[side]
        timers.register(cleanup_time(earliest, highest), key, _SIDES[side])

    def _clean(self, side: int, key: Any, watermark: int) -> None:
        held = self._panes[side].get(key)
        if held is None:
            return
        times, values = held
        _, highest = self._reach[side]
        gone = bisect_right(times, watermark, key=lambda time: cleanup_time(time, highest))
        if gone:
            self._touched[side].add(key)
        if gone == len(times):
            del self._panes[side][key]
            return
        del times[:gone], values[:gone]
        self._wake(side, key, times[0])

    def _match(self, value: Any, time: int, times: list[int], values: list[Any], side: int) -> None:
        context, call = self._join_context, self._call
        for other_time, other in zip(times, values, strict=True):
            if side == 0:
                left, right = value, other
                context._left, context._right = time, other_time
            else:
                left, right = other, value
                context._left, context._right = other_time, time
            try:
                result = call(left, right, context) if self._with_context else call(left, right)
                if result is not None:
                    self._collect(self._iterable(result), max(time, other_time))
            except Exception as error:
                raise self.failure(error, (left, right)) from error

    def _iterable(self, result: Any) -> Iterable[Any]:
        if isinstance(result, Iterable):
            return result
        message = (
            f"the function of an interval join answered {preview(result)}, which is not iterable: "
            "yield each result, or return a list of them"
        )
        raise TypeError(message)

    def _late(self, late: Batch, side: int) -> None:
        tag = self._late_tags[side]
        if tag is None:
            self._late_dropped.inc(len(late))
        else:
            self.output.emit_side(tag, late)

    def _refuse(self, value: Any, side: int) -> NoReturn:
        message = (
            f"{self.context.name} (uid {self.context.uid}): the record {preview(value)} of the {_SIDES[side]} stream "
            "has no timestamp, and an interval join works in event time only. Call assign_timestamps_and_watermarks("
            "WatermarkStrategy.for_bounded_out_of_orderness(...).with_timestamp_assigner(...)) on both streams"
        )
        raise self.failure(TimeError(message), value)
