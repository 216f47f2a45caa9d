"""What happens to a job whose execution failed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from datetime import timedelta

from millrace.common.configuration import Configuration
from millrace.common.time import Duration
from millrace.errors import ConfigurationError

__all__ = ["RestartStrategies", "RestartStrategyConfiguration"]


class RestartStrategyConfiguration(ABC):
    """Base of the restart strategies; made by `RestartStrategies`.

    >>> RestartStrategies.no_restart().get_description()
    'no restart'
    """

    @abstractmethod
    def get_description(self) -> str:
        """The strategy in a few words."""


class RestartStrategies:
    """Makes the restart strategies. All delays and intervals are in milliseconds.

    >>> RestartStrategies.fixed_delay_restart(3, 1_000).get_description()
    'up to 3 restarts, 1000 ms apart'
    """

    @dataclass(frozen=True)
    class NoRestartStrategyConfiguration(RestartStrategyConfiguration):
        """The first failure ends the job."""

        def get_description(self) -> str:
            """The strategy in a few words."""
            return "no restart"

    @dataclass(frozen=True)
    class FallbackRestartStrategyConfiguration(RestartStrategyConfiguration):
        """Whatever the configuration says, or the default."""

        def get_description(self) -> str:
            """The strategy in a few words."""
            return "as configured for the cluster"

    @dataclass(frozen=True)
    class FixedDelayRestartStrategyConfiguration(RestartStrategyConfiguration):
        """A number of restarts, with the same pause before each."""

        restart_attempts: int
        delay_between_attempts_ms: int

        def __post_init__(self) -> None:
            _not_negative("fixed_delay_restart", self.restart_attempts, self.delay_between_attempts_ms)

        def get_restart_attempts(self) -> int:
            """How many restarts there are at most."""
            return self.restart_attempts

        def get_delay_between_attempts_interval(self) -> timedelta:
            """The pause before each."""
            return timedelta(milliseconds=self.delay_between_attempts_ms)

        def get_description(self) -> str:
            """The strategy in a few words."""
            return f"up to {self.restart_attempts} restarts, {self.delay_between_attempts_ms} ms apart"

    @dataclass(frozen=True)
    class FailureRateRestartStrategyConfiguration(RestartStrategyConfiguration):
        """Restarts as long as there are not too many failures within an interval."""

        max_failure_rate: int
        failure_interval_ms: int
        delay_between_attempts_ms: int

        def __post_init__(self) -> None:
            _not_negative("failure_rate_restart", self.max_failure_rate, self.delay_between_attempts_ms)
            if self.failure_interval_ms <= 0:
                raise ConfigurationError("failure_rate_restart: the failure interval must be longer than 0 ms")

        def get_max_failure_rate(self) -> int:
            """How many failures there may be within the interval."""
            return self.max_failure_rate

        def get_failure_interval(self) -> timedelta:
            """The interval."""
            return timedelta(milliseconds=self.failure_interval_ms)

        def get_delay_between_attempts_interval(self) -> timedelta:
            """The pause before each restart."""
            return timedelta(milliseconds=self.delay_between_attempts_ms)

        def get_description(self) -> str:
            """The strategy in a few words."""
            return (
                f"up to {self.max_failure_rate} failures within {self.failure_interval_ms} ms, "
                f"restarts {self.delay_between_attempts_ms} ms apart"
            )

    @dataclass(frozen=True)
    class ExponentialDelayRestartStrategyConfiguration(RestartStrategyConfiguration):
        """Restarts without end, with pauses that grow until the job has run well for a while."""

        initial_backoff_ms: int
        max_backoff_ms: int
        backoff_multiplier: float
        reset_backoff_threshold_ms: int
        jitter_factor: float

        def __post_init__(self) -> None:
            _not_negative("exponential_delay_restart", self.initial_backoff_ms, self.reset_backoff_threshold_ms)
            if self.max_backoff_ms < self.initial_backoff_ms:
                raise ConfigurationError("exponential_delay_restart: the longest pause is shorter than the first")
            if self.backoff_multiplier < 1 or not 0 <= self.jitter_factor <= 1:
                raise ConfigurationError("exponential_delay_restart: the multiplier is at least 1, the jitter 0 to 1")

        def get_description(self) -> str:
            """The strategy in a few words."""
            return f"restarts after {self.initial_backoff_ms} ms, growing to {self.max_backoff_ms} ms"

    @staticmethod
    def no_restart() -> NoRestartStrategyConfiguration:
        """The first failure ends the job."""
        return RestartStrategies.NoRestartStrategyConfiguration()

    @staticmethod
    def fall_back_restart() -> FallbackRestartStrategyConfiguration:
        """Whatever the configuration says, or the default."""
        return RestartStrategies.FallbackRestartStrategyConfiguration()

    @staticmethod
    def fixed_delay_restart(
        restart_attempts: int, delay_between_attempts: int
    ) -> FixedDelayRestartStrategyConfiguration:
        """At most this many restarts, with this pause before each."""
        return RestartStrategies.FixedDelayRestartStrategyConfiguration(restart_attempts, delay_between_attempts)

    @staticmethod
    def failure_rate_restart(
        failure_rate: int, failure_interval: int, delay_interval: int
    ) -> FailureRateRestartStrategyConfiguration:
        """Restarts until more than `failure_rate` failures fall into one interval."""
        return RestartStrategies.FailureRateRestartStrategyConfiguration(failure_rate, failure_interval, delay_interval)

    @staticmethod
    def exponential_delay_restart(
        initial_backoff: int = 1_000,
        max_backoff: int = 60_000,
        backoff_multiplier: float = 1.5,
        reset_backoff_threshold: int = 3_600_000,
        jitter_factor: float = 0.1,
    ) -> ExponentialDelayRestartStrategyConfiguration:
        """Restarts without end, each pause `backoff_multiplier` times the last, up to `max_backoff`."""
        return RestartStrategies.ExponentialDelayRestartStrategyConfiguration(
            initial_backoff, max_backoff, backoff_multiplier, reset_backoff_threshold, jitter_factor
        )

    @staticmethod
    def from_configuration(configuration: Configuration) -> RestartStrategyConfiguration:
        """The strategy that the `restart-strategy.*` settings describe; the fall-back if they name none.

        >>> settings = {"restart-strategy.type": "fixed-delay", "restart-strategy.fixed-delay.attempts": "3"}
        >>> RestartStrategies.from_configuration(Configuration.from_dict(settings)).get_description()
        'up to 3 restarts, 1000 ms apart'
        """
        legacy = configuration.get_string("restart-strategy", "")
        kind = configuration.get_string("restart-strategy.type", legacy).lower()

        def length(key: str, default_ms: int) -> int:
            return configuration.get_duration(f"restart-strategy.{key}", Duration.of_millis(default_ms)).to_millis()

        if not kind:
            return RestartStrategies.fall_back_restart()
        if kind in ("none", "off", "disable"):
            return RestartStrategies.no_restart()
        if kind in ("fixed-delay", "fixeddelay"):
            attempts = configuration.get_integer("restart-strategy.fixed-delay.attempts", 1)
            return RestartStrategies.fixed_delay_restart(attempts, length("fixed-delay.delay", 1_000))
        if kind in ("failure-rate", "failurerate"):
            return RestartStrategies.failure_rate_restart(
                configuration.get_integer("restart-strategy.failure-rate.max-failures-per-interval", 1),
                length("failure-rate.failure-rate-interval", 60_000),
                length("failure-rate.delay", 1_000),
            )
        if kind in ("exponential-delay", "exponentialdelay"):
            return RestartStrategies.exponential_delay_restart(
                length("exponential-delay.initial-backoff", 1_000),
                length("exponential-delay.max-backoff", 60_000),
                configuration.get_float("restart-strategy.exponential-delay.backoff-multiplier", 1.5),
                length("exponential-delay.reset-backoff-threshold", 3_600_000),
                configuration.get_float("restart-strategy.exponential-delay.jitter-factor", 0.1),
            )
        message = (
            f"restart-strategy.type: {kind!r} is unknown; use none, fixed-delay, failure-rate or exponential-delay"
        )
        raise ConfigurationError(message)


def _not_negative(method: str, *numbers: int) -> None:
    if any(number < 0 for number in numbers):
        raise ConfigurationError(f"{method}: counts and delays must not be negative, got {numbers}")
