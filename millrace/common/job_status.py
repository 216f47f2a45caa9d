"""Where a job is in its life."""

from __future__ import annotations

from enum import Enum

__all__ = ["JobStatus"]


class JobStatus(Enum):
    """Where a job is in its life.

    >>> JobStatus.FINISHED.is_globally_terminal_state(), JobStatus.RESTARTING.is_terminal_state()
    (True, False)
    """

    CREATED = "CREATED"
    RUNNING = "RUNNING"
    FAILING = "FAILING"
    FAILED = "FAILED"
    CANCELLING = "CANCELLING"
    CANCELED = "CANCELED"
    FINISHED = "FINISHED"
    RESTARTING = "RESTARTING"
    SUSPENDED = "SUSPENDED"
    RECONCILING = "RECONCILING"

    def is_globally_terminal_state(self) -> bool:
        """The job is over for good: nothing will pick it up again."""
        return self in (JobStatus.FAILED, JobStatus.CANCELED, JobStatus.FINISHED)

    def is_terminal_state(self) -> bool:
        """The job is over here; a suspended one may go on elsewhere."""
        return self is JobStatus.SUSPENDED or self.is_globally_terminal_state()
