"""What a checkpoint promises."""

from __future__ import annotations

from enum import Enum

__all__ = ["CheckpointingMode"]


class CheckpointingMode(Enum):
    """What a checkpoint promises about records and state after a failure.

    Millrace commits state, positions and sinks of an epoch together, so a job that asks for AT_LEAST_ONCE gets the
    stronger promise as well.

    >>> CheckpointingMode.EXACTLY_ONCE.name
    'EXACTLY_ONCE'
    """

    EXACTLY_ONCE = 0
    AT_LEAST_ONCE = 1
