"""How records of an edge find the task they go to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

__all__ = [
    "Broadcast",
    "Custom",
    "Forward",
    "Global",
    "KeyBy",
    "Partitioner",
    "Rebalance",
    "Rescale",
    "Shuffle",
]


@dataclass(frozen=True)
class Partitioner:
    """Base of all; ``ship_strategy`` is the word Flink's plans use for it.

    >>> Rebalance().ship_strategy
    'REBALANCE'
    """

    ship_strategy: ClassVar[str] = ""

    @property
    def is_exchange(self) -> bool:
        """Whether records may leave their task, so that Spark has to shuffle."""
        return True


@dataclass(frozen=True)
class Forward(Partitioner):
    """Stay in the task."""

    ship_strategy: ClassVar[str] = "FORWARD"

    @property
    def is_exchange(self) -> bool:
        return False


@dataclass(frozen=True)
class Rebalance(Partitioner):
    """Round-robin over all tasks."""

    ship_strategy: ClassVar[str] = "REBALANCE"


@dataclass(frozen=True)
class Rescale(Partitioner):
    """Round-robin over the tasks that are this task's share."""

    ship_strategy: ClassVar[str] = "RESCALE"


@dataclass(frozen=True)
class Shuffle(Partitioner):
    """Spread evenly without a pattern, though the same way in every replay."""

    ship_strategy: ClassVar[str] = "SHUFFLE"


@dataclass(frozen=True)
class Broadcast(Partitioner):
    """Every record to every task."""

    ship_strategy: ClassVar[str] = "BROADCAST"


@dataclass(frozen=True)
class Global(Partitioner):
    """Everything to task 0; records get one common key when ``keyed`` is set, as windows over all records need it."""

    ship_strategy: ClassVar[str] = "GLOBAL"
    keyed: bool = False


@dataclass(frozen=True)
class KeyBy(Partitioner):
    """To the task that owns the key group of the record's key."""

    ship_strategy: ClassVar[str] = "HASH"
    selector: Callable[[Any], Any]
    function: Any = None
    key_type: Any = None
    label: str = "key"


@dataclass(frozen=True)
class Custom(Partitioner):
    """To the task a user's function names."""

    ship_strategy: ClassVar[str] = "CUSTOM"
    partition: Callable[[Any, int], int]
    selector: Callable[[Any], Any]
    functions: tuple[Any, ...] = ()
