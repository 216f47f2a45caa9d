"""What is left of a job once it has ended."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from millrace.common.job_id import JobID

__all__ = ["JobExecutionResult"]


class JobExecutionResult:
    """How long a job ran, and what its accumulators added up to.

    >>> result = JobExecutionResult(JobID(), net_runtime=1_500, accumulators={"lines": 3})
    >>> result.get_net_runtime(), result.get_accumulator_result("lines")
    (1500, 3)
    """

    def __init__(self, job_id: JobID, net_runtime: int, accumulators: Mapping[str, Any] | None = None) -> None:
        self._job_id = job_id
        self._net_runtime = net_runtime
        self._accumulators = dict(accumulators or {})

    def get_job_id(self) -> JobID:
        """The job's id."""
        return self._job_id

    def is_job_execution_result(self) -> bool:
        """True: the job has been executed."""
        return True

    def get_net_runtime(self) -> int:
        """Milliseconds from the start of the execution to its end."""
        return self._net_runtime

    def get_accumulator_result(self, accumulator_name: str) -> Any:
        """The final value of one accumulator, None if the job had none of this name."""
        return self._accumulators.get(accumulator_name)

    def get_all_accumulator_results(self) -> dict[str, Any]:
        """The final values of all accumulators, by name."""
        return dict(self._accumulators)

    def __repr__(self) -> str:
        return f"JobExecutionResult({self._job_id}, {self._net_runtime} ms, {self._accumulators!r})"
