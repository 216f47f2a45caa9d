"""Parquet files, written and read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO, Final

import pyarrow as pa
import pyarrow.parquet as pq

from millrace.common.typeinfo import RowTypeInfo, TupleTypeInfo, TypeInformation
from millrace.connectors.collection import BATCH_RECORDS
from millrace.connectors.files.arrow_types import arrow_type, from_arrow, to_arrow
from millrace.connectors.files.part_formats import PartFormat, PartWriter
from millrace.connectors.files.read_formats import BulkFormat
from millrace.connectors.files.records import PLAIN_VALUE, field_names, field_values
from millrace.errors import ConfigurationError, GraphError

__all__ = ["ParquetFormat", "ParquetParts"]

ROW_GROUP_RECORDS: Final = 65_536
_COMPRESSIONS: Final = ("snappy", "gzip", "zstd", "lz4", "brotli", "none")


class ParquetParts(PartFormat):
    """Parquet, in row groups of some ten thousand records.

    The columns come from the declared type; without one, from the first row group of each part, in which each column
    must have a value that shows its type.

    >>> import io
    >>> stream = io.BytesIO()
    >>> part = ParquetParts().start(stream)
    >>> part.add([{"word": "a", "count": 1}], None), part.finish()
    (1, None)
    >>> pq.read_table(io.BytesIO(stream.getvalue())).to_pylist()
    [{'word': 'a', 'count': 1}]
    """

    def __init__(self, type_info: TypeInformation | None = None, compression: str = "snappy") -> None:
        if compression not in _COMPRESSIONS:
            raise ConfigurationError(f"Parquet with compression {compression!r}: use {', '.join(_COMPRESSIONS)}")
        self._schema = None if type_info is None else _schema(type_info)
        self._compression = compression

    def start(self, stream: BinaryIO) -> PartWriter:
        return _ParquetPart(stream, self._schema, self._compression)


class _ParquetPart(PartWriter):
    def __init__(self, stream: BinaryIO, schema: Any, compression: str) -> None:
        self._stream = stream
        self._schema = schema
        self._compression = compression
        self._records: list[Any] = []
        self._writer: Any = None

    def add(self, values: Sequence[Any], max_size: int | None) -> int:
        self._records += values
        if len(self._records) >= ROW_GROUP_RECORDS:
            self._write_group()
        return len(values)

    def finish(self) -> None:
        if self._records:
            self._write_group()
        if self._writer is not None:
            self._writer.close()

    def _write_group(self) -> None:
        records, self._records = self._records, []
        names = tuple(self._schema.names) if self._schema is not None else _all_names(records)
        rows = [field_values(record, names) for record in records]
        columns = [self._column(name, column) for name, column in zip(names, zip(*rows, strict=True), strict=True)]
        table = pa.Table.from_arrays(columns, names=list(names))
        if self._schema is None:
            self._schema = table.schema
        if self._writer is None:
            self._writer = pq.ParquetWriter(self._stream, self._schema, compression=self._compression)
        self._writer.write_table(table, row_group_size=len(records))
        self.size = self._stream.tell()

    def _column(self, name: str, values: Sequence[Any]) -> Any:
        wanted = None if self._schema is None else self._schema.field(name).type
        try:
            return pa.array([to_arrow(value, wanted) for value in values], wanted)
        except (pa.ArrowException, TypeError, OverflowError) as error:
            message = f"column {name!r} of a Parquet file"
            message += "" if wanted is None else f" of type {wanted}"
            message += f": {error}. Declare the columns with ParquetSink(path, type_info=Types.ROW_NAMED(...))"
            raise ValueError(message) from error


def _all_names(records: list[Any]) -> tuple[str, ...]:
    """The columns of all these records in the order in which they first occur: dicts may lack some."""
    if not isinstance(records[0], dict):
        return field_names(records[0])
    return tuple(dict.fromkeys(name for record in records for name in field_names(record)))


def _schema(type_info: TypeInformation) -> Any:
    kind = arrow_type(type_info)
    if isinstance(type_info, RowTypeInfo | TupleTypeInfo):
        return pa.schema(list(kind))
    return pa.schema([(PLAIN_VALUE, kind)])


class ParquetFormat(BulkFormat):
    """The rows of a Parquet file as dicts, or as rows of the declared type; a position is the number of a row.

    >>> ParquetFormat(columns=["word"]).by_line
    False
    """

    def __init__(self, type_info: RowTypeInfo | None = None, columns: Sequence[str] | None = None) -> None:
        self._type_info = type_info
        self._columns = list(columns) if columns is not None else None

    def extent(self, file: BinaryIO) -> int:
        return int(pq.ParquetFile(file).metadata.num_rows)

    def end_after(self, file: BinaryIO, start: int, limit: int) -> int:
        return start + limit

    def read(self, file: BinaryIO, start: int, end: int | None, name: str) -> Iterator[list[Any]]:
        parquet = pq.ParquetFile(file)
        declared = self._type_info
        columns = self._columns if declared is None else list(declared.field_names)
        absent = [column for column in columns or () if column not in parquet.schema_arrow.names]
        if absent:
            message = f"{name} has no column {absent[0]!r}: it has {', '.join(parquet.schema_arrow.names)}"
            raise GraphError(message)
        convert = None if declared is None else from_arrow(declared)
        end = parquet.metadata.num_rows if end is None else end
        groups, first = _row_groups(parquet.metadata, start, end)
        for batch in parquet.iter_batches(BATCH_RECORDS, row_groups=groups, columns=columns) if groups else ():
            last = first + batch.num_rows
            if last > start and first < end:
                cut = batch.slice(max(start - first, 0), min(end, last) - max(start, first))
                yield cut.to_pylist() if convert is None else [convert(row) for row in cut.to_pylist()]
            first = last


def _row_groups(metadata: Any, start: int, end: int) -> tuple[list[int], int]:
    """The row groups that hold these rows, and the number of the first row in them."""
    groups: list[int] = []
    begin = first = 0
    for index in range(metadata.num_row_groups):
        stop = begin + metadata.row_group(index).num_rows
        if stop > start and begin < end:
            if not groups:
                first = begin
            groups.append(index)
        begin = stop
    return groups, first
