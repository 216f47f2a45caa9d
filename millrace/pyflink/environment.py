"""The environment as PyFlink programs know it."""

from __future__ import annotations

from typing import Any

from millrace.common.configuration import Configuration
from millrace.common.job_client import JobClient
from millrace.common.job_execution_result import JobExecutionResult
from millrace.datastream.environment import StreamExecutionEnvironment as MillraceEnvironment
from millrace.graph.compile import JobGraph
from millrace.graph.node import Node
from millrace.pyflink.failures import as_gateway_error
from millrace.pyflink.finder import install_here
from millrace.pyflink.java_environment import JavaEnvironment

__all__ = ["StreamExecutionEnvironment"]


class StreamExecutionEnvironment(MillraceEnvironment):
    """Millrace's environment, with PyFlink's defaults and the corners of it that programs reach for.

    >>> env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict({"parallelism.default": "3"}))
    >>> env.get_parallelism(), env.is_chaining_enabled()
    (3, True)
    """

    @staticmethod
    def get_execution_environment(configuration: Configuration | None = None) -> StreamExecutionEnvironment:
        """A new environment with these settings."""
        return StreamExecutionEnvironment(configuration)

    def execute(self, job_name: str | None = None) -> JobExecutionResult:
        """Run the program and wait until it has ended."""
        try:
            return super().execute(job_name)
        except Exception as error:
            raise as_gateway_error(error) from error.__cause__

    def execute_async(self, job_name: str | None = "Flink Streaming Job") -> JobClient:
        """Start the program and return a handle on the running job."""
        return super().execute_async(job_name)

    @property
    def _j_stream_execution_environment(self) -> JavaEnvironment:
        return JavaEnvironment(self)

    def _compile(self, job_name: str | None, nodes: list[Node] | None = None) -> JobGraph:
        job = super()._compile(job_name, nodes)
        for node in job.nodes:
            for part in (node.node.operator, node.node.source):
                if hasattr(part, "__dict__"):
                    part.__dict__.setdefault("_names", _PyFlinkNames())
        return job


class _PyFlinkNames:
    """Travels with an operator: where it arrives, `import pyflink` inside of a function finds Millrace, too."""

    def __reduce__(self) -> tuple[Any, ...]:
        return install_here, ()
