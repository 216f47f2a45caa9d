"""Parquet for file sources and sinks."""

from __future__ import annotations

from millrace.common.typeinfo import RowTypeInfo
from millrace.connectors.files.parquet_format import ParquetFormat, ParquetParts

__all__ = ["ParquetBulkWriters", "ParquetColumnarRowInputFormat"]


class ParquetColumnarRowInputFormat(ParquetFormat):
    """Rows of the given type out of Parquet files, for ``FileSource.for_bulk_file_format``.

    >>> from millrace.common import Types
    >>> ParquetColumnarRowInputFormat(Types.ROW_NAMED(["word"], [Types.STRING()])).by_line
    False
    """

    def __init__(self, row_type: RowTypeInfo) -> None:
        super().__init__(row_type)


class ParquetBulkWriters:
    """Parquet for ``FileSink.for_bulk_format``.

    >>> from millrace.common import Types
    >>> layout = ParquetBulkWriters.for_row_type(Types.ROW_NAMED(["word"], [Types.STRING()]))
    """

    @staticmethod
    def for_row_type(row_type: RowTypeInfo, compression: str = "snappy") -> ParquetParts:
        """Files with the columns of the type."""
        return ParquetParts(row_type, compression)
