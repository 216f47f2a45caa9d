"""A range of whole numbers as a source."""

from __future__ import annotations

from millrace.connectors.sequence import NumberSequenceSource

__all__ = ["NumberSequenceSource"]
