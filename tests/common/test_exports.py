from __future__ import annotations

import importlib
import pkgutil

import millrace.common


def test_exported_names() -> None:
    assert millrace.common.__all__ == [
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


def test_every_module_lists_what_it_exports() -> None:
    for module_info in pkgutil.iter_modules(millrace.common.__path__):
        module = importlib.import_module(f"millrace.common.{module_info.name}")
        assert [name for name in module.__all__ if not hasattr(module, name)] == []
