"""The old switch between event time and processing time."""

from __future__ import annotations

from enum import Enum

__all__ = ["TimeCharacteristic"]


class TimeCharacteristic(Enum):
    """Which time a program meant as a whole, before each operator said it itself; kept for programs that set it.

    >>> TimeCharacteristic.EventTime.value
    2
    """

    ProcessingTime = 0
    IngestionTime = 1
    EventTime = 2
