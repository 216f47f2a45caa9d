"""An executor that runs nothing: it takes the job, and the program ends there."""

from __future__ import annotations

from typing import Any, NoReturn

from millrace.graph.compile import JobGraph
from millrace.graph.executor import Executor, JobSettings

__all__ = ["Captured", "CapturingExecutor"]


class Captured(BaseException):
    """Carries a job out of the program that wanted to start it; no `except Exception` of the program stops it."""

    def __init__(self, job: JobGraph, settings: JobSettings) -> None:
        super().__init__(job.name)
        self.job = job
        self.settings = settings


class CapturingExecutor(Executor):
    """Ends the program where a job would start."""

    def submit(self, job: JobGraph, settings: JobSettings) -> NoReturn:
        raise Captured(job, settings)

    def to_data_frame(self, job: JobGraph, settings: JobSettings, schema: Any) -> NoReturn:
        raise Captured(job, settings)

    def spark_source(self, data_frame: Any) -> Any:
        from millrace.spark.executor import SparkExecutor

        return SparkExecutor().spark_source(data_frame)
