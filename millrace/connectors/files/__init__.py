"""Files as sources and as exactly-once sinks: text, CSV, JSON lines and Parquet, on local disks and elsewhere.

>>> import tempfile
>>> sink = CsvSink(tempfile.mkdtemp(), header=True)
>>> sink.volatile
False
"""

from __future__ import annotations

from millrace.connectors.files.buckets import BucketAssigner
from millrace.connectors.files.rolling import OutputFileConfig, RollingPolicy
from millrace.connectors.files.sink import CsvSink, FileSink, JsonSink, ParquetSink, TextSink
from millrace.connectors.files.source import CsvSource, FileSource, JsonSource, ParquetSource

__all__ = [
    "BucketAssigner",
    "CsvSink",
    "CsvSource",
    "FileSink",
    "FileSource",
    "JsonSink",
    "JsonSource",
    "OutputFileConfig",
    "ParquetSink",
    "ParquetSource",
    "RollingPolicy",
    "TextSink",
]
