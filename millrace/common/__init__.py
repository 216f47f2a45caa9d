"""Value types shared by all of Millrace: times, types, rows, watermarks, settings and the handles on a job.

>>> from millrace.common import Row, Time, Types
>>> Types.ROW_NAMED(["word", "count"], [Types.STRING(), Types.INT()]).coerce(("a", 1))
Row(word='a', count=1)
"""

from __future__ import annotations

from millrace.common.completable_future import CompletableFuture
from millrace.common.config_options import ConfigOption, ConfigOptions
from millrace.common.configuration import Configuration
from millrace.common.execution_config import ExecutionConfig
from millrace.common.job_client import JobClient
from millrace.common.job_execution_result import JobExecutionResult
from millrace.common.job_id import JobID
from millrace.common.job_status import JobStatus
from millrace.common.restart_strategy import RestartStrategies, RestartStrategyConfiguration
from millrace.common.row import Row, RowKind
from millrace.common.serialization import (
    ByteArraySchema,
    DeserializationSchema,
    Encoder,
    RowFieldExtractorSchema,
    SerializationSchema,
    SimpleStringSchema,
)
from millrace.common.time import Duration, Instant, Time
from millrace.common.typeinfo import TypeInformation, Types
from millrace.common.watermark_strategy import (
    TimestampAssigner,
    Watermark,
    WatermarkGenerator,
    WatermarkOutput,
    WatermarkStrategy,
)

__all__ = [
    "ByteArraySchema",
    "CompletableFuture",
    "ConfigOption",
    "ConfigOptions",
    "Configuration",
    "DeserializationSchema",
    "Duration",
    "Encoder",
    "ExecutionConfig",
    "Instant",
    "JobClient",
    "JobExecutionResult",
    "JobID",
    "JobStatus",
    "RestartStrategies",
    "RestartStrategyConfiguration",
    "Row",
    "RowFieldExtractorSchema",
    "RowKind",
    "SerializationSchema",
    "SimpleStringSchema",
    "Time",
    "TimestampAssigner",
    "TypeInformation",
    "Types",
    "Watermark",
    "WatermarkGenerator",
    "WatermarkOutput",
    "WatermarkStrategy",
]
