"""Which clock a timer runs by."""

from __future__ import annotations

from millrace.runtime.operators.process import TimeDomain

__all__ = ["TimeDomain"]
