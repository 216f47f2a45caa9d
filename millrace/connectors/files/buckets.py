"""Which folder below the sink's path a record goes to."""

from __future__ import annotations

import datetime
import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from millrace.common.constants import LONG_MIN
from millrace.errors import ConfigurationError, GraphError, TimeError

__all__ = ["BucketAssigner", "BucketContext", "checked_bucket"]


class BucketContext:
    """The time of a record, in milliseconds since 1970."""

    __slots__ = ("_processing_time", "_timestamp")

    def __init__(self, timestamp: int | None, processing_time: int) -> None:
        self._timestamp = None if timestamp == LONG_MIN else timestamp
        self._processing_time = processing_time

    def timestamp(self) -> int | None:
        """The record's event time, None if it has none."""
        return self._timestamp

    def current_processing_time(self) -> int:
        """What the clock says."""
        return self._processing_time


class BucketAssigner(ABC):
    """Names the bucket of each record: a folder below the sink's path, or several with ``/`` between them.

    >>> by_country = BucketAssigner.of(lambda record: f"country={record['country']}")
    >>> by_country.get_bucket_id({"country": "FR"}, BucketContext(None, 0))
    'country=FR'
    """

    @abstractmethod
    def get_bucket_id(self, element: Any, context: BucketContext) -> str:
        """The bucket of a record; an empty name is the sink's path itself."""

    @staticmethod
    def base_path_bucket_assigner() -> BucketAssigner:
        """Everything directly in the sink's path."""
        return BasePathBuckets()

    @staticmethod
    def date_time_bucket_assigner(
        format_str: str = "yyyy-MM-dd--HH", timezone_id: str | None = None, event_time: bool = False
    ) -> BucketAssigner:
        """By date and time of writing or, with ``event_time``, by the record's own timestamp.

        The zone is the machine's unless one is given. The format's letters are those of Java: y, M, d, D, H, m, s, S.
        """
        return DateTimeBuckets(format_str, timezone_id, event_time)

    @staticmethod
    def of(function: Callable[[Any], str]) -> BucketAssigner:
        """By a function of the record."""
        if not callable(function):
            raise GraphError(f"a bucket assigner is a BucketAssigner or a function of the record, not {function!r}")
        return FunctionBuckets(function)


class BasePathBuckets(BucketAssigner):
    """One bucket: the sink's path.

    >>> BasePathBuckets().get_bucket_id("anything", BucketContext(None, 0))
    ''
    """

    def get_bucket_id(self, element: Any, context: BucketContext) -> str:
        return ""


class FunctionBuckets(BucketAssigner):
    """A bucket for each result of a function.

    >>> FunctionBuckets(lambda word: word[0]).get_bucket_id("abc", BucketContext(None, 0))
    'a'
    """

    def __init__(self, function: Callable[[Any], str]) -> None:
        self._function = function

    def get_bucket_id(self, element: Any, context: BucketContext) -> str:
        return self._function(element)


class DateTimeBuckets(BucketAssigner):
    """A bucket for each hour, or whatever the format can tell apart.

    >>> DateTimeBuckets("yyyy-MM-dd--HH", "Europe/Paris").get_bucket_id("a", BucketContext(None, 1_704_063_600_000))
    '2024-01-01--00'
    """

    def __init__(self, format_str: str, timezone_id: str | None = None, event_time: bool = False) -> None:
        self._pieces = _compiled(format_str)
        self._unit = 1 if any(letter == "S" for letter, _ in self._pieces) else 1_000
        self._event_time = event_time
        try:
            self._zone = None if timezone_id is None else ZoneInfo(timezone_id)
        except (ZoneInfoNotFoundError, ValueError):
            message = f"the time zone {timezone_id!r} is unknown: use a name such as 'UTC' or 'Europe/Paris'"
            raise ConfigurationError(message) from None
        self._last: tuple[int, str] | None = None

    def get_bucket_id(self, element: Any, context: BucketContext) -> str:
        time = context.timestamp() if self._event_time else context.current_processing_time()
        if time is None:
            message = (
                f"{element!r} has no timestamp for its bucket: call assign_timestamps_and_watermarks(...) before the "
                "sink, or leave out event_time=True"
            )
            raise TimeError(message)
        unit = time // self._unit
        if self._last is None or self._last[0] != unit:
            self._last = (unit, self._text(time))
        return self._last[1]

    def _text(self, time: int) -> str:
        seconds, millis = divmod(time, 1_000)
        point = datetime.datetime.fromtimestamp(seconds, datetime.UTC).replace(microsecond=millis * 1_000)
        local = point.astimezone(self._zone)
        return "".join(_LETTERS[letter](local, len(text)) if letter else text for letter, text in self._pieces)


def _number(value: int, width: int) -> str:
    return str(value).zfill(width)


_LETTERS: Final[dict[str, Callable[[datetime.datetime, int], str]]] = {
    "y": lambda at, width: _number(at.year % 100, 2) if width == 2 else _number(at.year, width),
    "M": lambda at, width: _number(at.month, width),
    "d": lambda at, width: _number(at.day, width),
    "D": lambda at, width: _number(at.timetuple().tm_yday, width),
    "H": lambda at, width: _number(at.hour, width),
    "m": lambda at, width: _number(at.minute, width),
    "s": lambda at, width: _number(at.second, width),
    "S": lambda at, width: f"{at.microsecond:06d}".ljust(width, "0")[:width],
}
_PIECE: Final = re.compile(r"'(?P<quoted>[^']*)'|(?P<letters>([A-Za-z])\3*)|(?P<other>[^A-Za-z']+)")


def _compiled(format_str: str) -> list[tuple[str, str]]:
    """The format as (letter, run of letters) and ("", plain text)."""
    pieces = []
    end = 0
    for match in _PIECE.finditer(format_str):
        if match.start() != end:
            break
        end = match.end()
        letters = match["letters"]
        if letters is None:
            pieces.append(("", (match["quoted"] or "'") if match["quoted"] is not None else match["other"]))
        elif letters[0] == "u":
            pieces.append(("y", letters))
        elif letters[0] in _LETTERS and not (letters[0] == "M" and len(letters) > 2):
            pieces.append((letters[0], letters))
        else:
            message = (
                f"bucket format {format_str!r}: {letters!r} is not supported; use numbers made of y, M, d, D, H, m, s, "
                "S, and put text into single quotes"
            )
            raise ConfigurationError(message)
    if end != len(format_str) or not pieces:
        raise ConfigurationError(
            f"bucket format {format_str!r}: a single quote has no partner, or there is nothing in it"
        )
    return pieces


def checked_bucket(bucket: Any) -> str:
    """A bucket's name, if it can be a folder that readers look into."""
    if isinstance(bucket, str):
        if not bucket:
            return bucket
        if all(part and not part.startswith((".", "_")) for part in bucket.split("/")):
            return bucket
    message = (
        f"{bucket!r} cannot be a bucket: it must be text without '..', without '/' at its ends, and no part of it may "
        "begin with '.' or '_', which readers ignore"
    )
    raise ValueError(message)
