"""What all connectors are made of, and the promise that a sink is asked for."""

from __future__ import annotations

from enum import Enum

from millrace.runtime.sink import Sink
from millrace.runtime.source import Source

__all__ = ["DeliveryGuarantee", "Sink", "Source"]


class DeliveryGuarantee(Enum):
    """How often a record may reach the outside when the job fails and starts again.

    >>> DeliveryGuarantee.EXACTLY_ONCE.name
    'EXACTLY_ONCE'
    """

    EXACTLY_ONCE = 0
    AT_LEAST_ONCE = 1
    NONE = 2
