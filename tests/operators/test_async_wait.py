from __future__ import annotations

import asyncio
import threading

import pytest

from millrace.datastream.async_function import AsyncFunction, AsyncRetryStrategy
from millrace.datastream.async_retry_predicates import empty_result_predicate, has_exception_predicate
from millrace.errors import GraphError
from millrace.testing import harness_for


class Double(AsyncFunction):
    async def async_invoke(self, value):
        await asyncio.sleep(0)
        return [2 * value]


@pytest.mark.parametrize("ordered", [True, False])
def test_results_keep_their_timestamps_and_do_not_overtake_the_watermark(ordered: bool) -> None:
    with harness_for(Double(), ordered=ordered) as harness:
        harness.process_batch([1, 2], [1, 2])
        harness.process_watermark(2)
        harness.process_element(3, 3)
        events = harness.events()
    assert sorted(events[:2]) == [("record", 2, 1), ("record", 4, 2)]
    assert events[2:] == [("watermark", 2), ("record", 6, 3)]


class LastFirst(AsyncFunction):
    """Every record waits for the one after it: they finish in reverse order, and only if all of them run at once."""

    def open(self, runtime_context):
        self.done = [asyncio.Event() for _ in range(5)]

    async def async_invoke(self, value):
        if value < 4:
            await self.done[value + 1].wait()
        self.done[value].set()
        return [value, -value] if value else []


def test_ordered_results_come_in_the_order_of_the_input() -> None:
    with harness_for(LastFirst(), ordered=True, capacity=5) as harness:
        harness.process_batch(range(5), range(5))
        assert harness.get_output() == [(1, 1), (-1, 1), (2, 2), (-2, 2), (3, 3), (-3, 3), (4, 4), (-4, 4)]


def test_unordered_results_come_in_the_order_of_completion() -> None:
    with harness_for(LastFirst(), ordered=False, capacity=5) as harness:
        harness.process_batch(range(5), range(5))
        assert harness.get_output() == [(4, 4), (-4, 4), (3, 3), (-3, 3), (2, 2), (-2, 2), (1, 1), (-1, 1)]


def test_records_without_timestamps_give_results_without() -> None:
    with harness_for(Double()) as harness:
        harness.process_batch([1, 2])
        assert harness.get_output() == [(2, None), (4, None)]


class Counted(AsyncFunction):
    def __init__(self):
        self.in_flight = 0
        self.most = 0

    async def async_invoke(self, value):
        self.in_flight += 1
        self.most = max(self.most, self.in_flight)
        for _ in range(value % 3):
            await asyncio.sleep(0)
        self.in_flight -= 1
        return [value]


@pytest.mark.parametrize(("capacity", "most"), [(1, 1), (3, 3), (100, 20)])
def test_no_more_than_capacity_are_in_flight(capacity: int, most: int) -> None:
    function = Counted()
    with harness_for(function, capacity=capacity) as harness:
        harness.process_batch([2] * 20)
        assert harness.outputs() == [2] * 20
    assert function.most == most


class Hangs(AsyncFunction):
    async def async_invoke(self, value):
        if value == "slow":
            await asyncio.Event().wait()
        return [value]


class HangsPolitely(Hangs):
    def timeout(self, value):
        return [f"{value}: timeout"]


def test_a_timeout_fails_unless_the_function_handles_it() -> None:
    with harness_for(Hangs(), timeout_ms=5, name="lookup") as harness:
        with pytest.raises(TimeoutError, match="override timeout") as raised:
            harness.process_batch(["fast", "slow"])
    assert raised.value.__notes__ == ["in operator 'lookup' (uid lookup), subtask 0, timeout()", "record: 'slow'"]


def test_a_plain_coroutine_function_that_times_out_says_what_to_do() -> None:
    async def hang(value):
        await asyncio.Event().wait()

    with harness_for(hang, operation="async", timeout_ms=5) as harness:
        with pytest.raises(
            TimeoutError, match="not finished within 5 ms: allow it a longer timeout, or define timeout"
        ):
            harness.process_element(1)


def test_a_timeout_can_give_results() -> None:
    with harness_for(HangsPolitely(), timeout_ms=5) as harness:
        harness.process_batch(["slow", "fast"], [1, 2])
        assert harness.get_output() == [("slow: timeout", 1), ("fast", 2)]


class RaisesTimeout(HangsPolitely):
    async def async_invoke(self, value):
        raise TimeoutError("the database was slow")


def test_a_timeout_error_of_the_function_itself_is_not_our_timeout() -> None:
    with harness_for(RaisesTimeout(), timeout_ms=60_000) as harness:
        with pytest.raises(TimeoutError, match="the database was slow"):
            harness.process_element(1)


class Flaky(AsyncFunction):
    """Gives one outcome after the other: an exception is raised, a list returned."""

    def __init__(self, *outcomes):
        self.outcomes = list(outcomes)
        self.attempts = 0

    async def async_invoke(self, value):
        outcome = self.outcomes[self.attempts]
        self.attempts += 1
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def timeout(self, value):
        return ["timeout"]


def retry(attempts, result=empty_result_predicate, error=has_exception_predicate):
    return AsyncRetryStrategy.fixed_delay(attempts, 0, result, error)


@pytest.mark.parametrize(
    ("outcomes", "attempts", "results"),
    [
        ([["ok"]], 1, ["ok"]),
        ([[], ["ok"]], 2, ["ok"]),
        ([OSError(), [], ["ok"]], 3, ["ok"]),
        # Two retries are allowed: the third outcome is final, whatever it is.
        ([[], [], [], ["never"]], 3, []),
    ],
)
def test_retries(outcomes: list, attempts: int, results: list) -> None:
    function = Flaky(*outcomes)
    with harness_for(function, retry_strategy=retry(2)) as harness:
        harness.process_element(1)
        assert harness.outputs() == results
    assert function.attempts == attempts


def test_the_last_error_is_raised_when_retries_are_used_up() -> None:
    function = Flaky(OSError("first"), OSError("second"))
    with harness_for(function, retry_strategy=retry(1)) as harness, pytest.raises(OSError, match="second"):
        harness.process_element(1)


def test_only_what_the_predicates_name_is_tried_again() -> None:
    strategy = retry(5, None, lambda error: isinstance(error, OSError))
    for outcome in ([], ValueError("final")):
        function = Flaky(outcome)
        with harness_for(function, retry_strategy=strategy) as harness:
            if outcome == []:
                harness.process_element(1)
            else:
                with pytest.raises(ValueError, match="final"):
                    harness.process_element(1)
        assert function.attempts == 1


def test_no_restart_does_not_retry() -> None:
    function = Flaky([])
    with harness_for(function, retry_strategy=AsyncRetryStrategy.no_restart()) as harness:
        harness.process_element(1)
    assert function.attempts == 1


def test_the_timeout_includes_all_retries() -> None:
    strategy = AsyncRetryStrategy.fixed_delay(10, 60_000, empty_result_predicate, None)
    with harness_for(Flaky([], ["never"]), timeout_ms=5, retry_strategy=strategy) as harness:
        harness.process_element(1)
        assert harness.outputs() == ["timeout"]


async def answers_nothing(value):
    return None


async def answers_no_list(value):
    return value


def answers_at_once(value):
    return [value]


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (answers_nothing, "The result of AsyncFunction cannot be none"),
        (answers_no_list, "The result of AsyncFunction should be of list type"),
        (answers_at_once, "define it with async def"),
    ],
)
def test_results_must_be_lists(function: object, message: str) -> None:
    with harness_for(function, operation="async") as harness, pytest.raises(TypeError, match=message):
        harness.process_element(1)


class BadTimeout(Hangs):
    def timeout(self, value):
        return None


def test_the_result_of_timeout_must_be_a_list_too() -> None:
    with (
        harness_for(BadTimeout(), timeout_ms=5) as harness,
        pytest.raises(TypeError, match=r"timeout\(\) of BadTimeout"),
    ):
        harness.process_element("slow")


class Fails(AsyncFunction):
    """The others wait for ever: only a failure that cancels them lets the batch end."""

    async def async_invoke(self, value):
        if value == "bad":
            raise ZeroDivisionError("bad record")
        await asyncio.Event().wait()


def test_one_failure_ends_the_batch_and_names_its_record() -> None:
    with harness_for(Fails(), name="lookup", uid="lookup-1") as harness:
        with pytest.raises(ZeroDivisionError) as raised:
            harness.process_batch(["a", "bad", "b"])
    assert raised.value.__notes__ == [
        "in operator 'lookup' (uid lookup-1), subtask 0, async_invoke()",
        "record: 'bad'",
    ]


@pytest.mark.parametrize("error", [asyncio.CancelledError, SystemExit])
def test_no_exception_is_lost(error: type[BaseException]) -> None:
    async def give_up(value):
        raise error

    with harness_for(give_up, operation="async") as harness, pytest.raises(error):
        harness.process_element(1)


class LivesInItsLoop(AsyncFunction):
    """A client that must be made inside a running loop, used in it, and let go in it."""

    def open(self, runtime_context):
        self.loop, self.thread = asyncio.get_running_loop(), threading.current_thread()
        self.closed = False

    async def async_invoke(self, value):
        return [asyncio.get_running_loop() is self.loop and threading.current_thread() is self.thread]

    def close(self):
        self.closed = asyncio.get_running_loop() is self.loop


def test_open_invoke_and_close_share_one_loop() -> None:
    function = LivesInItsLoop()
    with harness_for(function) as harness:
        harness.process_element(1)
        harness.process_element(2)
        assert harness.outputs() == [True, True]
    assert function.closed
    assert not function.thread.is_alive()


def test_it_works_where_a_loop_is_already_running() -> None:
    async def as_in_a_notebook():
        with harness_for(Double()) as harness:
            harness.process_element(4)
            return harness.outputs()

    assert asyncio.run(as_in_a_notebook()) == [8]


class FailsToOpen(Double):
    def open(self, runtime_context):
        self.thread = threading.current_thread()
        raise ConnectionError("no database")


def test_a_failure_to_open_leaves_no_thread_behind() -> None:
    function = FailsToOpen()
    with pytest.raises(ConnectionError, match="no database"):
        harness_for(function).open()
    assert not function.thread.is_alive()


@pytest.mark.parametrize(
    ("settings", "message"), [({"capacity": 0}, "capacity of async I/O is 0"), ({"timeout_ms": -1}, "timeout .* is -1")]
)
def test_impossible_settings_are_refused(settings: dict, message: str) -> None:
    with pytest.raises(GraphError, match=message):
        harness_for(Double(), **settings)
