"""Whether a program runs as a stream or as a batch."""

from __future__ import annotations

from enum import Enum

__all__ = ["RuntimeExecutionMode"]


class RuntimeExecutionMode(Enum):
    """Whether a program runs as a stream, as a batch, or as its sources suggest.

    In BATCH mode, keyed operators see one key after the other, rolling results are emitted once per key, and the only
    watermark is the one at the end. AUTOMATIC means BATCH when every source comes to an end.

    >>> RuntimeExecutionMode("BATCH")
    <RuntimeExecutionMode.BATCH: 'BATCH'>
    """

    STREAMING = "STREAMING"
    BATCH = "BATCH"
    AUTOMATIC = "AUTOMATIC"
