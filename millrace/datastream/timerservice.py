"""Time and timers."""

from __future__ import annotations

from millrace.runtime.timer_service import TimerService

__all__ = ["TimerService"]
