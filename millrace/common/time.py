"""Lengths of time and points in time, as the API takes them.

A program may say a length of time as a `Time`, a `Duration`, a `datetime.timedelta` or a plain number of milliseconds;
`millis` turns any of them into the one form the runtime works with.
"""

from __future__ import annotations

import operator
import re
from datetime import timedelta
from functools import total_ordering
from typing import Final, SupportsIndex

from millrace.errors import ConfigurationError

__all__ = ["Duration", "Instant", "Time", "millis", "parse_duration"]

_NANOS_PER_MILLI: Final = 1_000_000
_NANOS_PER_SECOND: Final = 1_000_000_000


@total_ordering
class Time:
    """A length of time in whole milliseconds: the size of a window, a gap, a lateness.

    >>> Time.seconds(5).to_milliseconds()
    5000
    >>> Time.minutes(1) == Time(60_000)
    True
    """

    __slots__ = ("_millis",)

    def __init__(self, milliseconds: SupportsIndex) -> None:
        self._millis = operator.index(milliseconds)

    @staticmethod
    def milliseconds(milliseconds: SupportsIndex) -> Time:
        """The given number of milliseconds."""
        return Time(milliseconds)

    @staticmethod
    def seconds(seconds: SupportsIndex) -> Time:
        """The given number of seconds."""
        return Time(operator.index(seconds) * 1_000)

    @staticmethod
    def minutes(minutes: SupportsIndex) -> Time:
        """The given number of minutes."""
        return Time(operator.index(minutes) * 60_000)

    @staticmethod
    def hours(hours: SupportsIndex) -> Time:
        """The given number of hours."""
        return Time(operator.index(hours) * 3_600_000)

    @staticmethod
    def days(days: SupportsIndex) -> Time:
        """The given number of days of 24 hours."""
        return Time(operator.index(days) * 86_400_000)

    def to_milliseconds(self) -> int:
        """This length as a number of milliseconds."""
        return self._millis

    def __eq__(self, other: object) -> bool:
        return self._millis == other._millis if isinstance(other, Time) else NotImplemented

    def __lt__(self, other: Time) -> bool:
        return self._millis < other._millis if isinstance(other, Time) else NotImplemented

    def __hash__(self) -> int:
        return hash((Time, self._millis))

    def __repr__(self) -> str:
        return f"Time.milliseconds({self._millis})"


@total_ordering
class Duration:
    """A length of time in nanoseconds: an out-of-orderness bound, an idle timeout, a time to live.

    >>> Duration.of_seconds(5).to_millis()
    5000
    >>> Duration.of_minutes(1) == Duration.of_seconds(60)
    True
    """

    __slots__ = ("_nanos",)

    def __init__(self, nanos: SupportsIndex = 0) -> None:
        self._nanos = operator.index(nanos)

    @staticmethod
    def of_days(days: SupportsIndex) -> Duration:
        """The given number of days of 24 hours."""
        return Duration(operator.index(days) * 86_400 * _NANOS_PER_SECOND)

    @staticmethod
    def of_hours(hours: SupportsIndex) -> Duration:
        """The given number of hours."""
        return Duration(operator.index(hours) * 3_600 * _NANOS_PER_SECOND)

    @staticmethod
    def of_minutes(minutes: SupportsIndex) -> Duration:
        """The given number of minutes."""
        return Duration(operator.index(minutes) * 60 * _NANOS_PER_SECOND)

    @staticmethod
    def of_seconds(seconds: SupportsIndex) -> Duration:
        """The given number of seconds."""
        return Duration(operator.index(seconds) * _NANOS_PER_SECOND)

    @staticmethod
    def of_millis(millis: SupportsIndex) -> Duration:
        """The given number of milliseconds."""
        return Duration(operator.index(millis) * _NANOS_PER_MILLI)

    @staticmethod
    def of_nanos(nanos: SupportsIndex) -> Duration:
        """The given number of nanoseconds."""
        return Duration(nanos)

    def to_millis(self) -> int:
        """This length in whole milliseconds, rounded down."""
        return self._nanos // _NANOS_PER_MILLI

    def to_nanos(self) -> int:
        """This length in nanoseconds."""
        return self._nanos

    def __eq__(self, other: object) -> bool:
        return self._nanos == other._nanos if isinstance(other, Duration) else NotImplemented

    def __lt__(self, other: Duration) -> bool:
        return self._nanos < other._nanos if isinstance(other, Duration) else NotImplemented

    def __hash__(self) -> int:
        return hash((Duration, self._nanos))

    def __repr__(self) -> str:
        if self._nanos % _NANOS_PER_MILLI:
            return f"Duration.of_nanos({self._nanos})"
        return f"Duration.of_millis({self.to_millis()})"


@total_ordering
class Instant:
    """A point on the UTC time line: whole seconds since 1970 and the nanoseconds after them.

    >>> Instant.of_epoch_milli(1_500)
    Instant(seconds=1, nanos=500000000)
    >>> Instant.of_epoch_milli(-1).to_epoch_milli()
    -1
    """

    __slots__ = ("nanos", "seconds")

    def __init__(self, seconds: SupportsIndex, nanos: SupportsIndex = 0) -> None:
        self.seconds = operator.index(seconds)
        self.nanos = operator.index(nanos)
        if not 0 <= self.nanos < _NANOS_PER_SECOND:
            message = f"Instant: nanos must be from 0 to 999999999, not {self.nanos}; carry the rest over to seconds"
            raise ValueError(message)

    @staticmethod
    def of_epoch_milli(epoch_milli: SupportsIndex) -> Instant:
        """The point this many milliseconds after (negative: before) 1970-01-01T00:00:00Z."""
        seconds, rest = divmod(operator.index(epoch_milli), 1_000)
        return Instant(seconds, rest * _NANOS_PER_MILLI)

    def to_epoch_milli(self) -> int:
        """Milliseconds since 1970-01-01T00:00:00Z, rounded down."""
        return self.seconds * 1_000 + self.nanos // _NANOS_PER_MILLI

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Instant):
            return NotImplemented
        return (self.seconds, self.nanos) == (other.seconds, other.nanos)

    def __lt__(self, other: Instant) -> bool:
        if not isinstance(other, Instant):
            return NotImplemented
        return (self.seconds, self.nanos) < (other.seconds, other.nanos)

    def __hash__(self) -> int:
        return hash((self.seconds, self.nanos))

    def __repr__(self) -> str:
        return f"Instant(seconds={self.seconds}, nanos={self.nanos})"


def millis(value: Time | Duration | timedelta | SupportsIndex) -> int:
    """Any way of saying a length of time, as whole milliseconds; fractions of a millisecond are cut off downwards.

    >>> millis(Time.seconds(1)), millis(Duration.of_seconds(1)), millis(timedelta(seconds=1)), millis(1000)
    (1000, 1000, 1000, 1000)
    """
    if isinstance(value, Time):
        return value.to_milliseconds()
    if isinstance(value, Duration):
        return value.to_millis()
    if isinstance(value, timedelta):
        return value // timedelta(milliseconds=1)
    try:
        return operator.index(value)
    except TypeError:
        message = (
            f"{value!r} is not a length of time: pass a Time, a Duration, a datetime.timedelta "
            "or a whole number of milliseconds"
        )
        raise TypeError(message) from None


_UNIT_NANOS: Final = {
    **dict.fromkeys(("d", "day", "days"), 86_400 * _NANOS_PER_SECOND),
    **dict.fromkeys(("h", "hour", "hours"), 3_600 * _NANOS_PER_SECOND),
    **dict.fromkeys(("min", "m", "minute", "minutes"), 60 * _NANOS_PER_SECOND),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), _NANOS_PER_SECOND),
    **dict.fromkeys(("ms", "milli", "millis", "millisecond", "milliseconds", ""), _NANOS_PER_MILLI),
    **dict.fromkeys(("us", "µs", "micro", "micros", "microsecond", "microseconds"), 1_000),
    **dict.fromkeys(("ns", "nano", "nanos", "nanosecond", "nanoseconds"), 1),
}
_DURATION_TEXT: Final = re.compile(r"\s*(\d+)\s*([a-zµ]*)\s*")


def parse_duration(text: str) -> Duration:
    """A length of time as configuration files write it; a number without a unit means milliseconds.

    >>> parse_duration("10 s") == Duration.of_seconds(10)
    True
    >>> parse_duration("250").to_millis()
    250
    """
    match = _DURATION_TEXT.fullmatch(text.lower())
    unit = _UNIT_NANOS.get(match[2]) if match else None
    if match is None or unit is None:
        message = (
            f"{text!r} is no length of time: write a whole number and one of d, h, min, s, ms, us, ns, as in '10 s'"
        )
        raise ConfigurationError(message)
    return Duration(int(match[1]) * unit)
