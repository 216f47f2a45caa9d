"""Files as sources and sinks, under the names that PyFlink programs import them by.

>>> import tempfile
>>> from millrace.common import Encoder
>>> sink = FileSink.for_row_format(tempfile.mkdtemp(), Encoder.simple_string_encoder()).build()
>>> sink.volatile
False
"""

from __future__ import annotations

from millrace.connectors.files.buckets import BucketAssigner
from millrace.connectors.files.read_formats import BulkFormat, StreamFormat
from millrace.connectors.files.rolling import OutputFileConfig, RollingPolicy
from millrace.connectors.files.sink import FileSink, FileSinkBuilder
from millrace.connectors.files.source import FileSource, FileSourceBuilder

__all__ = [
    "BucketAssigner",
    "BulkFormat",
    "FileSink",
    "FileSinkBuilder",
    "FileSource",
    "FileSourceBuilder",
    "OutputFileConfig",
    "RollingPolicy",
    "StreamFormat",
]
