"""How a stream tells event time: where a record's timestamp comes from, and what the records seen so far promise.

A `WatermarkStrategy` is a recipe that travels to every source split. There it makes one `WatermarkGenerator`, which
sees the split's records in order and emits watermarks: "no record with a timestamp at or below this is to come".
"""

from __future__ import annotations

import copy
import inspect
import operator
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import Any

from millrace.common.constants import LONG_MIN
from millrace.common.time import Duration, Time, millis
from millrace.errors import ConfigurationError

__all__ = [
    "AssignerFunction",
    "BoundedOutOfOrdernessWatermarks",
    "NoWatermarksGenerator",
    "TimestampAssigner",
    "Watermark",
    "WatermarkAlignment",
    "WatermarkGenerator",
    "WatermarkOutput",
    "WatermarkStrategy",
    "bounded_watermark",
]

AssignerFunction = Callable[[Any, int], int]
"""Takes a value and the timestamp it has so far (`LONG_MIN` if none), gives its event time in milliseconds."""


class Watermark(int):
    """A watermark is its timestamp, and may be used wherever a plain number of milliseconds may.

    >>> Watermark(41).timestamp + 1
    42
    """

    __slots__ = ()

    @property
    def timestamp(self) -> int:
        """Milliseconds since 1970; no record at or below it is to come."""
        return int(self)

    def __repr__(self) -> str:
        return f"Watermark({int(self)})"


class WatermarkOutput(ABC):
    """Where a generator sends its watermarks; the runtime provides it.

    >>> class Printed(WatermarkOutput):
    ...     def emit_watermark(self, watermark): print("watermark", watermark)
    ...     def mark_idle(self): print("idle")
    ...     def mark_active(self): print("active")
    >>> generator = BoundedOutOfOrdernessWatermarks(bound_ms=10)
    >>> generator.on_event("a", 100, Printed())
    >>> generator.on_periodic_emit(Printed())
    watermark 89
    """

    @abstractmethod
    def emit_watermark(self, watermark: int) -> None:
        """Promise that no record at or below `watermark` (a number or a `Watermark`) is to come.

        A watermark that is not above the last one is ignored.
        """

    @abstractmethod
    def mark_idle(self) -> None:
        """Let the rest of the job go on without waiting for this split's watermark."""

    @abstractmethod
    def mark_active(self) -> None:
        """Take part in the job's watermark again."""


class WatermarkGenerator(ABC):
    """Makes watermarks out of the records of one split, at a record (punctuated) or from time to time (periodic).

    >>> class AtEveryTenth(WatermarkGenerator):
    ...     def on_event(self, event, timestamp, output):
    ...         if timestamp % 10 == 0:
    ...             output.emit_watermark(timestamp)
    ...     def on_periodic_emit(self, output): pass
    >>> strategy = WatermarkStrategy.for_generator(AtEveryTenth)
    """

    @abstractmethod
    def on_event(self, event: Any, timestamp: int, output: WatermarkOutput) -> None:
        """Called for every record, after the record itself went on; a watermark emitted here follows the record."""

    @abstractmethod
    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        """Called now and then, whether or not there were records."""


def bounded_watermark(max_timestamp: int, bound: int) -> int:
    """Records may trail the highest timestamp by `bound` milliseconds, so everything older than that is complete.

    >>> bounded_watermark(1_000, 100)
    899
    """
    return max(max_timestamp - bound - 1, LONG_MIN)


class BoundedOutOfOrdernessWatermarks(WatermarkGenerator):
    """Periodic watermarks for records that arrive at most `bound_ms` milliseconds behind the newest one.

    >>> generator = BoundedOutOfOrdernessWatermarks(bound_ms=5)
    >>> generator.advance(100)
    >>> generator.advance(90)
    >>> generator.max_timestamp
    100
    """

    def __init__(self, bound_ms: int) -> None:
        self.bound_ms = bound_ms
        # Chosen so that the watermark before the first record is LONG_MIN to the millisecond and never below it.
        self.max_timestamp = LONG_MIN + bound_ms + 1

    def advance(self, timestamp: int) -> None:
        """Take note of a timestamp, or of the highest one of a whole batch: the two are the same to this generator."""
        self.max_timestamp = max(self.max_timestamp, timestamp)

    def on_event(self, event: Any, timestamp: int, output: WatermarkOutput) -> None:
        """Take note of the record's timestamp."""
        self.max_timestamp = max(self.max_timestamp, timestamp)

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        """Emit what the timestamps so far promise."""
        output.emit_watermark(bounded_watermark(self.max_timestamp, self.bound_ms))


class IngestionTimeWatermarks(WatermarkGenerator):
    """Event time is the clock: it goes on even when no record comes.

    >>> IngestionTimeWatermarks().on_event("record", 5, None)
    """

    def on_event(self, event: Any, timestamp: int, output: WatermarkOutput) -> None:
        return

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        output.emit_watermark(_now(None, LONG_MIN) - 1)


class NoWatermarksGenerator(WatermarkGenerator):
    """Emits nothing: for streams that only use processing time.

    >>> isinstance(WatermarkStrategy.no_watermarks().create_generator(), NoWatermarksGenerator)
    True
    """

    def on_event(self, event: Any, timestamp: int, output: WatermarkOutput) -> None:
        """Nothing follows from a record."""

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        """Nothing follows from the passing of time."""


class TimestampAssigner(ABC):
    """Reads a record's event time out of the record.

    >>> class ByField(TimestampAssigner):
    ...     def extract_timestamp(self, value, record_timestamp):
    ...         return value["at"]
    >>> strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(ByField())
    """

    @abstractmethod
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        """The event time of `value` in milliseconds; `record_timestamp` is the one it has, `LONG_MIN` if none."""


@dataclass(frozen=True)
class WatermarkAlignment:
    """Splits of one group wait for each other when one of them runs ahead by more than `max_drift_ms`.

    >>> WatermarkAlignment("orders", max_drift_ms=20_000, update_interval_ms=1_000).group
    'orders'
    """

    group: str
    max_drift_ms: int
    update_interval_ms: int


@dataclass(frozen=True, eq=False)
class WatermarkStrategy:
    """How timestamps and watermarks of a stream come about. Immutable: each `with_...` gives a new strategy.

    >>> strategy = (
    ...     WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(5))
    ...     .with_timestamp_assigner(lambda event: event["at"])
    ...     .with_idleness(Duration.of_minutes(1))
    ... )
    >>> strategy.timestamp_assigner({"at": 7}, 0), strategy.idle_timeout_ms
    (7, 60000)
    """

    generator_supplier: Callable[[], WatermarkGenerator]
    timestamp_assigner: AssignerFunction | None = None
    idle_timeout_ms: int | None = None
    alignment: WatermarkAlignment | None = None

    @staticmethod
    def for_monotonous_timestamps() -> WatermarkStrategy:
        """Timestamps within a split never go backwards."""
        return WatermarkStrategy(partial(BoundedOutOfOrdernessWatermarks, 0))

    @staticmethod
    def for_bounded_out_of_orderness(max_out_of_orderness: Duration | Time | timedelta | int) -> WatermarkStrategy:
        """Records arrive at most this much behind the newest record of their split."""
        bound = _at_least(0, max_out_of_orderness, "for_bounded_out_of_orderness", "the bound")
        return WatermarkStrategy(partial(BoundedOutOfOrdernessWatermarks, bound))

    @staticmethod
    def no_watermarks() -> WatermarkStrategy:
        """Event time does not advance; timestamps may still be assigned."""
        return WatermarkStrategy(NoWatermarksGenerator)

    @staticmethod
    def for_ingestion_time() -> WatermarkStrategy:
        """A record's time is when this operator first sees it, by the clock of the machine; nothing is ever late."""
        return WatermarkStrategy(IngestionTimeWatermarks, _now)

    @staticmethod
    def for_generator(generator: Callable[[], WatermarkGenerator] | WatermarkGenerator) -> WatermarkStrategy:
        """A generator of your own: its class, a function that makes one, or one to be copied for every split."""
        if isinstance(generator, WatermarkGenerator):
            return WatermarkStrategy(partial(copy.deepcopy, generator))
        if not callable(generator):
            message = (
                f"for_generator: {generator!r} cannot make watermark generators; "
                "pass a WatermarkGenerator, its class, or a function without arguments that returns one"
            )
            raise TypeError(message)
        return WatermarkStrategy(generator)

    def with_timestamp_assigner(self, timestamp_assigner: TimestampAssigner | Callable[..., int]) -> WatermarkStrategy:
        """Timestamps come from this assigner, or from a function of (value) or of (value, record_timestamp).

        What a function is given depends on how many arguments it requires: a second one that has a default keeps it.
        """
        return replace(self, timestamp_assigner=_two_argument_form(timestamp_assigner))

    def with_idleness(self, idle_timeout: Duration | Time | timedelta | int) -> WatermarkStrategy:
        """A split that gives no record for longer than this no longer holds the job's watermark back."""
        return replace(self, idle_timeout_ms=_at_least(1, idle_timeout, "with_idleness", "the timeout"))

    def with_watermark_alignment(
        self,
        watermark_group: str,
        max_allowed_watermark_drift: Duration | Time | timedelta | int,
        update_interval: Duration | Time | timedelta | int | None = None,
    ) -> WatermarkStrategy:
        """Splits of the same group stop reading while they are ahead of the slowest by more than the drift."""
        alignment = WatermarkAlignment(
            watermark_group,
            _at_least(0, max_allowed_watermark_drift, "with_watermark_alignment", "the drift"),
            1_000
            if update_interval is None
            else _at_least(1, update_interval, "with_watermark_alignment", "the update interval"),
        )
        return replace(self, alignment=alignment)

    def create_generator(self) -> WatermarkGenerator:
        """A generator of its own for one split."""
        generator = self.generator_supplier()
        if not isinstance(generator, WatermarkGenerator):
            message = (
                f"for_generator: {self.generator_supplier!r} returned {generator!r}, which is no WatermarkGenerator; "
                "return an instance of a subclass of WatermarkGenerator"
            )
            raise TypeError(message)
        return generator


def _now(value: Any, record_timestamp: int) -> int:
    return time.time_ns() // 1_000_000


def _at_least(least: int, value: Duration | Time | timedelta | int, method: str, what: str) -> int:
    length = millis(value)
    if length < least:
        raise ConfigurationError(f"{method}: {what} must be at least {least} ms, not {length} ms")
    return length


def _two_argument_form(assigner: TimestampAssigner | Callable[..., int]) -> AssignerFunction:
    """Looks at the assigner once, here, so that the runtime can call it blindly for every record."""
    if isinstance(assigner, TimestampAssigner):
        return assigner.extract_timestamp
    if not callable(assigner):
        message = (
            f"with_timestamp_assigner: {assigner!r} assigns no timestamps; pass a TimestampAssigner, "
            "or a function of (value) or of (value, record_timestamp)"
        )
        raise TypeError(message)
    if _takes_record_timestamp(assigner):
        return assigner
    of_value = assigner

    def from_value(value: Any, _record_timestamp: int) -> int:
        return of_value(value)

    return from_value


def _takes_record_timestamp(function: Callable[..., Any]) -> bool:
    # The getters of `operator` claim to take any number of arguments, and are used with one.
    if isinstance(function, operator.itemgetter | operator.attrgetter | operator.methodcaller):
        return False
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:
        return False  # A built-in without a signature, such as `int`.
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    required = sum(p.default is p.empty for p in positional)
    takes_any_number = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    needs_keyword = any(p.kind is p.KEYWORD_ONLY and p.default is p.empty for p in parameters)
    if required > 2 or needs_keyword or not (positional or takes_any_number):
        message = (
            f"with_timestamp_assigner: {function!r} cannot be called as an assigner is: "
            "let it take (value) or (value, record_timestamp)"
        )
        raise TypeError(message)
    return required == 2 or takes_any_number
