"""The order of an epoch: what the driver tells every task through a local property of the Spark job."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any, Final

__all__ = ["EPOCH_PROPERTY", "EpochOrder"]

EPOCH_PROPERTY: Final = "millrace.epoch"


@dataclass(frozen=True)
class EpochOrder:
    """One epoch's work, the same for all tasks.

    ``base`` is the epoch whose manifest holds the state to start from (0: none), ``attempts`` the Spark attempt that
    made each task's part of it. ``plan`` is the read plan, or the name of the file that holds it when it is long.
    ``snapshot`` is the place and epoch of a savepoint, or of another job's checkpoint, to start from instead.
    """

    run: str
    epoch: int
    storage: str | None
    base: int = 0
    same_graph: bool = True
    attempts: dict[str, int] = field(default_factory=dict)
    plan: dict[str, Any] | str = field(default_factory=dict)
    last: bool = False
    streaming: bool = False
    full: list[str] = field(default_factory=list)
    snapshot: tuple[str, int] | None = None

    def to_json(self) -> str:
        """For the local property."""
        return json.dumps(asdict(self), separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> EpochOrder:
        """What ``to_json`` gave."""
        return cls(**json.loads(text))
