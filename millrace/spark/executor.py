"""Runs compiled jobs on Spark."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, SparkSession

from millrace.common.job_client import JobClient
from millrace.graph.compile import JobGraph
from millrace.graph.executor import Executor, JobSettings
from millrace.spark.client import SparkJobClient
from millrace.spark.data_frame import job_as_data_frame
from millrace.spark.plan import SparkSource
from millrace.spark.run import JobRun
from millrace.spark.session import get_session

__all__ = ["SparkExecutor"]


class SparkExecutor(Executor):
    """Runs each job on the active Spark session, or on one it starts."""

    def submit(self, job: JobGraph, settings: JobSettings) -> JobClient:
        client = SparkJobClient(JobRun(job, settings, session_for(settings)))
        client.start()
        return client

    def to_data_frame(self, job: JobGraph, settings: JobSettings, schema: Any) -> DataFrame:
        return job_as_data_frame(job, settings, session_for(settings), schema)

    def spark_source(self, data_frame: Any) -> SparkSource:
        if not isinstance(data_frame, DataFrame):
            message = f"from_spark() takes a Spark DataFrame, not {type(data_frame).__name__}"
            raise TypeError(message)
        return SparkSource(data_frame)


def session_for(settings: JobSettings) -> SparkSession:
    """The session a job runs on; ``spark.*`` keys of its configuration are Spark's."""
    spark_settings = {key: value for key, value in settings.config.items() if key.startswith("spark.")}
    return get_session(spark_settings)
