"""What happens after a failure: whether an epoch is tried again, and when."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from millrace.common.configuration import Configuration
from millrace.common.restart_strategy import RestartStrategies, RestartStrategyConfiguration
from millrace.errors import JobError
from millrace.state.fence import FencedError

__all__ = ["CheckpointFailure", "Patience", "RestartPolicy"]


class CheckpointFailure(JobError):
    """State or a manifest could not be written, or not in time. The epoch did not happen and may be run again."""


class RestartPolicy:
    """Answers each failure with a pause before the next attempt, or with None: no further attempt.

    Without a configured strategy there is none, with checkpoints or without: an exception of the user's code is shown
    at once rather than repeated for ever.

    >>> policy = RestartPolicy(RestartStrategies.fixed_delay_restart(2, 500))
    >>> [policy.pause_after_failure(now_s=float(n)) for n in range(3)]
    [0.5, 0.5, None]
    """

    def __init__(
        self, strategy: RestartStrategyConfiguration, jitter: Callable[[], float] = lambda: random.uniform(-1, 1)
    ) -> None:
        self.strategy = strategy
        self.failures = 0
        self._jitter = jitter
        self._recent: deque[float] = deque()
        self._backoff = 0.0

    @classmethod
    def from_settings(cls, config: Mapping[str, str]) -> RestartPolicy:
        """The policy of the ``restart-strategy.*`` settings."""
        return cls(RestartStrategies.from_configuration(Configuration.from_dict(config)))

    def pause_after_failure(self, now_s: float) -> float | None:
        """Seconds to wait before the next attempt; None if there is to be none."""
        self.failures += 1
        match self.strategy:
            case RestartStrategies.FixedDelayRestartStrategyConfiguration(attempts, delay):
                return delay / 1000 if self.failures <= attempts else None
            case RestartStrategies.FailureRateRestartStrategyConfiguration(rate, interval, delay):
                self._recent.append(now_s)
                while self._recent and now_s - self._recent[0] > interval / 1000:
                    self._recent.popleft()
                return delay / 1000 if len(self._recent) <= rate else None
            case RestartStrategies.ExponentialDelayRestartStrategyConfiguration(first, longest, factor, reset, jitter):
                quiet = self._recent and now_s - self._recent[-1] > (reset + self._backoff) / 1000
                self._backoff = first if quiet or not self._backoff else min(self._backoff * factor, longest)
                self._recent = deque([now_s])
                return max(0.0, self._backoff * (1 + jitter * self._jitter()) / 1000)
            case _:
                return None

    def pause(self, error: BaseException, now_s: float) -> float | None:
        """Like ``pause_after_failure``, for an error: some leave no hope. Notes on the last one how often it was
        tried."""
        if isinstance(error, FencedError) or not isinstance(error, Exception):
            return None
        pause = self.pause_after_failure(now_s)
        if pause is None and self.failures > 1:
            times = "once" if self.failures == 2 else f"{self.failures - 1} times"
            error.add_note(f"restarted {times} before ({self.strategy.get_description()})")
        return pause


class Patience:
    """Counts checkpoints that failed in a row.

    >>> patience = Patience(tolerable=1)
    >>> patience.lasts(), patience.lasts()
    (True, False)
    """

    def __init__(self, tolerable: int) -> None:
        self._tolerable = tolerable
        self._failed = 0

    @classmethod
    def from_settings(cls, config: Mapping[str, Any]) -> Patience:
        """As ``execution.checkpointing.tolerable-failed-checkpoints`` says."""
        return cls(int(config.get("execution.checkpointing.tolerable-failed-checkpoints", 0)))

    def lasts(self) -> bool:
        """A checkpoint failed: whether that is tolerated."""
        self._failed += 1
        return self._failed <= self._tolerable

    def restore(self) -> None:
        """A checkpoint succeeded."""
        self._failed = 0
