"""The two ends of the 64-bit time line, which carry meaning of their own."""

from __future__ import annotations

from typing import Final

__all__ = ["LONG_MAX", "LONG_MIN"]

LONG_MIN: Final = -(2**63)
"""As a timestamp: the record has none. As a watermark: nothing is known yet."""

LONG_MAX: Final = 2**63 - 1
"""As a watermark: the end of the input. As a time: never."""
