"""The environment as PyFlink programs know it."""

from __future__ import annotations

from collections.abc import Callable

from millrace.common.configuration import Configuration
from millrace.common.job_client import JobClient
from millrace.common.job_execution_result import JobExecutionResult
from millrace.datastream.environment import StreamExecutionEnvironment as MillraceEnvironment
from millrace.pyflink.failures import as_gateway_error
from millrace.pyflink.finder import install_here
from millrace.pyflink.java_environment import JavaEnvironment

__all__ = ["StreamExecutionEnvironment"]


class StreamExecutionEnvironment(MillraceEnvironment):
    """Millrace's environment, with PyFlink's defaults and the corners of it that programs reach for.

    >>> settings = Configuration.from_dict({"parallelism.default": "3"})
    >>> env = StreamExecutionEnvironment.get_execution_environment(settings)
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

    def _preparations(self) -> tuple[Callable[[], None], ...]:
        # Functions import pyflink, too: in their modules, and in their bodies.
        return (install_here, *super()._preparations())
