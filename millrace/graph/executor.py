"""What runs a compiled job. The API knows this interface; the Spark layer implements it."""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

from millrace.common.job_client import JobClient
from millrace.graph.compile import JobGraph

__all__ = ["Executor", "JobSettings", "default_executor"]

_DEFAULT = "millrace.spark.executor:SparkExecutor"


@dataclass(frozen=True)
class JobSettings:
    """How to run a job: whatever the program set on its environment."""

    batch: bool = False
    parallelism: int = 1
    config: dict[str, str] = field(default_factory=dict)
    parameters: dict[str, str] = field(default_factory=dict)
    checkpointing: bool = False
    checkpoint_interval_ms: int = -1


class Executor(ABC):
    """Starts jobs."""

    @abstractmethod
    def submit(self, job: JobGraph, settings: JobSettings) -> JobClient:
        """Start a job in the background. Errors before it runs are raised here, in the caller's process."""

    @abstractmethod
    def to_data_frame(self, job: JobGraph, settings: JobSettings, schema: Any) -> Any:
        """A bounded job whose one sink becomes a Spark DataFrame."""

    @abstractmethod
    def spark_source(self, data_frame: Any) -> Any:
        """The external source of a node for a Spark DataFrame: has ``bounded``."""


def default_executor() -> Executor:
    """The executor for Spark, loaded when a program first runs something."""
    module, name = _DEFAULT.split(":")
    executor: Executor = getattr(importlib.import_module(module), name)()
    return executor
