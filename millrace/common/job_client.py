"""The handle on a job that has been submitted."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from millrace.common.completable_future import CompletableFuture
from millrace.common.job_execution_result import JobExecutionResult
from millrace.common.job_id import JobID
from millrace.common.job_status import JobStatus

__all__ = ["JobClient"]


class JobClient(ABC):
    """Watches and steers a job that `execute_async` submitted; every answer is a future.

    >>> def wait(client: JobClient) -> int:
    ...     return client.get_job_execution_result().result().get_net_runtime()
    """

    @abstractmethod
    def get_job_id(self) -> JobID:
        """The job's id."""

    @abstractmethod
    def get_job_status(self) -> CompletableFuture[JobStatus]:
        """Where the job is in its life."""

    @abstractmethod
    def cancel(self) -> CompletableFuture[None]:
        """Stop the job at once, without a savepoint."""

    @abstractmethod
    def stop_with_savepoint(
        self, advance_to_end_of_event_time: bool, savepoint_directory: str | None = None
    ) -> CompletableFuture[str]:
        """Stop the job after a savepoint, and give the savepoint's path.

        With `advance_to_end_of_event_time`, the end of time is announced first, so that all event-time timers fire.
        """

    @abstractmethod
    def trigger_savepoint(self, savepoint_directory: str | None = None) -> CompletableFuture[str]:
        """Write a savepoint while the job goes on, and give its path."""

    @abstractmethod
    def get_accumulators(self) -> CompletableFuture[dict[str, Any]]:
        """The values of all accumulators as of now."""

    @abstractmethod
    def get_job_execution_result(self) -> CompletableFuture[JobExecutionResult]:
        """The result of the job, once it has ended."""
