from __future__ import annotations

from typing import Any

import pytest

from millrace.common.configuration import Configuration
from millrace.common.restart_strategy import RestartStrategies, RestartStrategyConfiguration
from millrace.errors import ConfigurationError


def test_strategies_carry_their_numbers() -> None:
    fixed = RestartStrategies.fixed_delay_restart(4, 10_000)
    assert (fixed.restart_attempts, fixed.delay_between_attempts_ms) == (4, 10_000)
    rate = RestartStrategies.failure_rate_restart(5, 10_000, 5_000)
    assert (rate.max_failure_rate, rate.failure_interval_ms, rate.delay_between_attempts_ms) == (5, 10_000, 5_000)
    growing = RestartStrategies.exponential_delay_restart()
    assert (growing.initial_backoff_ms, growing.max_backoff_ms, growing.backoff_multiplier) == (1_000, 60_000, 1.5)
    assert (growing.reset_backoff_threshold_ms, growing.jitter_factor) == (3_600_000, 0.1)


def test_strategies_are_values() -> None:
    assert RestartStrategies.no_restart() == RestartStrategies.no_restart()
    assert len({RestartStrategies.no_restart(), RestartStrategies.fall_back_restart()}) == 2
    assert isinstance(RestartStrategies.no_restart(), RestartStrategyConfiguration)
    assert isinstance(
        RestartStrategies.fixed_delay_restart(1, 1), RestartStrategies.FixedDelayRestartStrategyConfiguration
    )


@pytest.mark.parametrize(
    ("strategy", "description"),
    [
        (RestartStrategies.no_restart(), "no restart"),
        (RestartStrategies.fall_back_restart(), "as configured for the cluster"),
        (RestartStrategies.fixed_delay_restart(3, 10), "up to 3 restarts, 10 ms apart"),
        (RestartStrategies.failure_rate_restart(2, 20, 10), "up to 2 failures within 20 ms, restarts 10 ms apart"),
        (RestartStrategies.exponential_delay_restart(), "restarts after 1000 ms, growing to 60000 ms"),
    ],
)
def test_descriptions(strategy: RestartStrategyConfiguration, description: str) -> None:
    assert strategy.get_description() == description


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, RestartStrategies.fall_back_restart()),
        ({"restart-strategy.type": "none"}, RestartStrategies.no_restart()),
        ({"restart-strategy": "off"}, RestartStrategies.no_restart()),
        ({"restart-strategy.type": "fixed-delay"}, RestartStrategies.fixed_delay_restart(1, 1_000)),
        (
            {
                "restart-strategy.type": "fixed-delay",
                "restart-strategy.fixed-delay.attempts": "3",
                "restart-strategy.fixed-delay.delay": "10 s",
            },
            RestartStrategies.fixed_delay_restart(3, 10_000),
        ),
        ({"restart-strategy.type": "failure-rate"}, RestartStrategies.failure_rate_restart(1, 60_000, 1_000)),
        (
            {
                "restart-strategy.type": "failure-rate",
                "restart-strategy.failure-rate.max-failures-per-interval": 4,
                "restart-strategy.failure-rate.failure-rate-interval": "5 min",
                "restart-strategy.failure-rate.delay": "2 s",
            },
            RestartStrategies.failure_rate_restart(4, 300_000, 2_000),
        ),
        ({"restart-strategy.type": "exponential-delay"}, RestartStrategies.exponential_delay_restart()),
        (
            {
                "restart-strategy.type": "exponential-delay",
                "restart-strategy.exponential-delay.initial-backoff": "2 s",
                "restart-strategy.exponential-delay.max-backoff": "8 s",
                "restart-strategy.exponential-delay.backoff-multiplier": "2.0",
                "restart-strategy.exponential-delay.reset-backoff-threshold": "1 min",
                "restart-strategy.exponential-delay.jitter-factor": "0",
            },
            RestartStrategies.exponential_delay_restart(2_000, 8_000, 2.0, 60_000, 0.0),
        ),
    ],
)
def test_from_configuration(settings: dict[str, Any], expected: RestartStrategyConfiguration) -> None:
    assert RestartStrategies.from_configuration(Configuration.from_dict(settings)) == expected


def test_unknown_type_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="restart-strategy.type: 'often' is unknown; use none, fixed-delay"):
        RestartStrategies.from_configuration(Configuration.from_dict({"restart-strategy.type": "often"}))


def test_numbers_out_of_range_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="fixed_delay_restart: counts and delays must not be negative"):
        RestartStrategies.fixed_delay_restart(-1, 0)
    with pytest.raises(ConfigurationError, match="failure interval must be longer than 0 ms"):
        RestartStrategies.failure_rate_restart(1, 0, 0)
    with pytest.raises(ConfigurationError, match="longest pause is shorter than the first"):
        RestartStrategies.exponential_delay_restart(initial_backoff=10, max_backoff=9)
    with pytest.raises(ConfigurationError, match="the multiplier is at least 1"):
        RestartStrategies.exponential_delay_restart(backoff_multiplier=0.5)
