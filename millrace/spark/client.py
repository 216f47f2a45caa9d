"""The handle on a job that runs on Spark."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from pyspark import inheritable_thread_target

from millrace.common.completable_future import CompletableFuture
from millrace.common.job_client import JobClient
from millrace.common.job_execution_result import JobExecutionResult
from millrace.common.job_id import JobID
from millrace.common.job_status import JobStatus
from millrace.errors import JobError
from millrace.spark.progress import Progress
from millrace.spark.run import JobRun

__all__ = ["SparkJobClient"]


class SparkJobClient(JobClient):
    """Watches and steers one run; the run itself has a thread of its own."""

    def __init__(self, run: JobRun) -> None:
        self._run = run
        self._status = JobStatus.CREATED
        self._result: CompletableFuture[JobExecutionResult] = CompletableFuture()
        self._thread = threading.Thread(
            target=inheritable_thread_target(run.spark)(self._work), name=f"millrace-{run.job.name}", daemon=True
        )

    def start(self) -> None:
        """Let the job run."""
        self._status = JobStatus.RUNNING
        self._thread.start()

    def get_job_id(self) -> JobID:
        return self._run.job_id

    def get_job_status(self) -> CompletableFuture[JobStatus]:
        waits = self._status is JobStatus.RUNNING and self._run.restarting
        return CompletableFuture.completed(JobStatus.RESTARTING if waits else self._status)

    def cancel(self) -> CompletableFuture[None]:
        if not self._result.done():
            self._status = JobStatus.CANCELLING
            self._run.stop()
            self._thread.join()
        return CompletableFuture.completed(None)

    def get_accumulators(self) -> CompletableFuture[dict[str, Any]]:
        return CompletableFuture.completed(dict(self._run.progress.latest.metrics))

    def get_job_execution_result(self) -> CompletableFuture[JobExecutionResult]:
        return self._result

    def trigger_savepoint(self, savepoint_directory: str | None = None) -> CompletableFuture[str]:
        return self._run.savepoint(savepoint_directory)

    def stop_with_savepoint(
        self, advance_to_end_of_event_time: bool, savepoint_directory: str | None = None
    ) -> CompletableFuture[str]:
        return self._run.savepoint(savepoint_directory, stop=True, drain=advance_to_end_of_event_time)

    def progress(self) -> Progress:
        """The job as of its last epoch."""
        return self._run.progress.latest

    def on_progress(self, listener: Callable[[Progress], None]) -> None:
        """Call ``listener`` after every epoch, on the job's own thread."""
        self._run.progress.listen(listener)

    def _work(self) -> None:
        begun = time.monotonic()
        try:
            self._run.run()
        except BaseException as error:
            if self._run.stopped:
                self._end(JobStatus.CANCELED, JobError(f"job {self._run.job.name!r} was cancelled"))
            else:
                self._end(JobStatus.FAILED, error)
            return
        if self._run.stopped:
            self._end(JobStatus.CANCELED, JobError(f"job {self._run.job.name!r} was cancelled"))
            return
        self._status = JobStatus.FINISHED
        runtime = int((time.monotonic() - begun) * 1000)
        self._result.set_result(JobExecutionResult(self._run.job_id, runtime, dict(self._run.progress.latest.metrics)))

    def _end(self, status: JobStatus, error: BaseException) -> None:
        self._status = status
        self._result.set_exception(error)
