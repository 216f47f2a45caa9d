from __future__ import annotations

import pytest

from millrace.common.restart_strategy import RestartStrategies
from millrace.runtime.recovery import Patience, RestartPolicy
from millrace.state.fence import FencedError


def pauses(policy: RestartPolicy, times: list[float]) -> list[float | None]:
    return [policy.pause_after_failure(time) for time in times]


def test_without_a_strategy_the_first_failure_is_the_last() -> None:
    assert pauses(RestartPolicy.from_settings({}), [0]) == [None]
    assert pauses(RestartPolicy.from_settings({"restart-strategy.type": "none"}), [0]) == [None]


def test_fixed_delay() -> None:
    config = {"restart-strategy.type": "fixed-delay", "restart-strategy.fixed-delay.attempts": "2"}
    config["restart-strategy.fixed-delay.delay"] = "250 ms"
    assert pauses(RestartPolicy.from_settings(config), [0, 0, 0, 0]) == [0.25, 0.25, None, None]


def test_failure_rate_counts_within_its_interval() -> None:
    policy = RestartPolicy(RestartStrategies.failure_rate_restart(2, 10_000, 100))
    assert pauses(policy, [0, 5, 10.001, 15.001, 15.002]) == [0.1, 0.1, 0.1, 0.1, None]


def test_failure_rate_at_the_very_end_of_the_interval() -> None:
    policy = RestartPolicy(RestartStrategies.failure_rate_restart(1, 1_000, 0))
    assert pauses(policy, [0, 1]) == [0, None]
    policy = RestartPolicy(RestartStrategies.failure_rate_restart(1, 1_000, 0))
    assert pauses(policy, [0, 1.001]) == [0, 0]


def test_exponential_delay_grows_and_is_reset() -> None:
    strategy = RestartStrategies.exponential_delay_restart(1_000, 5_000, 2.0, 60_000, 0.1)
    policy = RestartPolicy(strategy, jitter=lambda: 0.0)
    assert pauses(policy, [0, 1, 3, 7, 12]) == [1, 2, 4, 5, 5]
    assert pauses(policy, [12 + 65, 77 + 65.001, 143]) == [5, 1, 2]


def test_jitter_stays_within_its_share() -> None:
    strategy = RestartStrategies.exponential_delay_restart(1_000, 5_000, 2.0, 60_000, 0.25)
    assert pauses(RestartPolicy(strategy, jitter=lambda: 1.0), [0]) == [1.25]
    assert pauses(RestartPolicy(strategy, jitter=lambda: -1.0), [0]) == [0.75]


def test_a_driver_that_was_fenced_off_does_not_try_again() -> None:
    policy = RestartPolicy(RestartStrategies.fixed_delay_restart(9, 0))
    assert policy.pause(FencedError("x"), 0) is None
    assert policy.pause(KeyboardInterrupt(), 0) is None
    assert policy.pause(ValueError("x"), 0) == 0


def test_the_last_error_says_how_often_it_was_tried() -> None:
    policy = RestartPolicy(RestartStrategies.fixed_delay_restart(2, 500))
    for _ in range(2):
        assert policy.pause(ValueError("x"), 0) == 0.5
    error = ValueError("x")
    assert policy.pause(error, 0) is None
    assert error.__notes__ == ["restarted 2 times before (up to 2 restarts, 500 ms apart)"]


@pytest.mark.parametrize(("tolerable", "answers"), [(0, [False]), (2, [True, True, False])])
def test_checkpoints_may_fail_so_often_in_a_row(tolerable: int, answers: list[bool]) -> None:
    key = "execution.checkpointing.tolerable-failed-checkpoints"
    patience = Patience.from_settings({key: str(tolerable)})
    assert [patience.lasts() for _ in answers] == answers
    patience.restore()
    assert [patience.lasts() for _ in answers] == answers
