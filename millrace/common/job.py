"""Everything about a job as seen from outside: its name, its state, its handle and its result.

>>> JobStatus.RUNNING.is_terminal_state()
False
"""

from __future__ import annotations

from millrace.common.completable_future import CompletableFuture
from millrace.common.job_client import JobClient
from millrace.common.job_execution_result import JobExecutionResult
from millrace.common.job_id import JobID
from millrace.common.job_status import JobStatus

__all__ = ["CompletableFuture", "JobClient", "JobExecutionResult", "JobID", "JobStatus"]
