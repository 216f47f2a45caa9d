from __future__ import annotations

import pickle
import threading
from concurrent.futures import CancelledError
from typing import Any

import pytest

from millrace.common.job import CompletableFuture, JobClient, JobExecutionResult, JobID, JobStatus

HEX = "0123456789abcdef0123456789abcdef"


def test_job_id() -> None:
    assert str(JobID(HEX)) == JobID(HEX).to_hex_string() == HEX
    assert JobID(HEX.upper()) == JobID(HEX)
    assert hash(JobID(HEX)) == hash(JobID(HEX))
    assert repr(JobID(HEX)) == f"JobID('{HEX}')"
    assert JobID() != JobID()
    assert len(str(JobID())) == 32
    assert pickle.loads(pickle.dumps(JobID(HEX))) == JobID(HEX)


@pytest.mark.parametrize("text", ["", "abc", HEX + "0", "x" * 32])
def test_job_id_refuses_other_text(text: str) -> None:
    with pytest.raises(ValueError, match="must be 32 hexadecimal digits"):
        JobID(text)


def test_job_status() -> None:
    assert [status.name for status in JobStatus if status.is_globally_terminal_state()] == [
        "FAILED",
        "CANCELED",
        "FINISHED",
    ]
    assert [status.name for status in JobStatus if status.is_terminal_state()] == [
        "FAILED",
        "CANCELED",
        "FINISHED",
        "SUSPENDED",
    ]
    assert len(JobStatus) == 10


def test_job_execution_result() -> None:
    result = JobExecutionResult(JobID(HEX), 1_500, {"lines": 3})
    assert result.get_job_id() == JobID(HEX)
    assert result.get_net_runtime() == 1_500
    assert result.get_accumulator_result("lines") == 3
    assert result.get_all_accumulator_results() == {"lines": 3}
    assert result.is_job_execution_result()
    assert result.get_accumulator_result("words") is None


def test_future_set_by_another_thread() -> None:
    future = CompletableFuture[str]()
    assert not future.done()
    thread = threading.Thread(target=future.set_result, args=("there",))
    thread.start()
    assert future.result(timeout=10) == "there"
    thread.join()
    assert future.done()
    assert not future.cancelled()
    assert future.exception() is None


def test_future_that_fails() -> None:
    error = ValueError("no")
    future = CompletableFuture[int].failed(error)
    assert future.exception() is error
    with pytest.raises(ValueError, match="no"):
        future.result()


def test_future_that_is_cancelled() -> None:
    future = CompletableFuture[int]()
    assert future.cancel()
    assert future.cancelled()
    with pytest.raises(CancelledError):
        future.result()
    assert not CompletableFuture.completed(1).cancel()


def test_future_times_out() -> None:
    with pytest.raises(TimeoutError):
        CompletableFuture[int]().result(timeout=0)


def test_supplied_future() -> None:
    assert CompletableFuture.supply_async(lambda: 42).result(timeout=10) == 42
    failing: CompletableFuture[float] = CompletableFuture.supply_async(lambda: 1 / 0)
    assert isinstance(failing.exception(timeout=10), ZeroDivisionError)


def test_done_callback() -> None:
    seen: list[int] = []
    future = CompletableFuture[int]()
    future.add_done_callback(lambda done: seen.append(done.result()))
    assert seen == []
    future.set_result(5)
    assert seen == [5]


class FinishedJob(JobClient):
    def get_job_id(self) -> JobID:
        return JobID(HEX)

    def get_job_status(self) -> CompletableFuture[JobStatus]:
        return CompletableFuture.completed(JobStatus.FINISHED)

    def cancel(self) -> CompletableFuture[None]:
        return CompletableFuture.completed(None)

    def stop_with_savepoint(
        self, advance_to_end_of_event_time: bool, savepoint_directory: str | None = None
    ) -> CompletableFuture[str]:
        return CompletableFuture.completed(f"{savepoint_directory}/stop")

    def trigger_savepoint(self, savepoint_directory: str | None = None) -> CompletableFuture[str]:
        return CompletableFuture.completed(f"{savepoint_directory}/savepoint")

    def get_accumulators(self) -> CompletableFuture[dict[str, Any]]:
        return CompletableFuture.completed({"lines": 3})

    def get_job_execution_result(self) -> CompletableFuture[JobExecutionResult]:
        return CompletableFuture.completed(JobExecutionResult(self.get_job_id(), 10))


def test_job_client_contract() -> None:
    client: JobClient = FinishedJob()
    assert client.get_job_status().result() is JobStatus.FINISHED
    assert client.stop_with_savepoint(True, "dir").result() == "dir/stop"
    assert client.get_job_execution_result().result().get_net_runtime() == 10
    assert JobClient.__abstractmethods__ == {
        "get_job_id",
        "get_job_status",
        "cancel",
        "stop_with_savepoint",
        "trigger_savepoint",
        "get_accumulators",
        "get_job_execution_result",
    }
