"""CSV files, written and read."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, BinaryIO, Final

from millrace.common.row import make_row
from millrace.common.typeinfo import RowTypeInfo, TypeInformation
from millrace.connectors.collection import BATCH_RECORDS
from millrace.connectors.files.parsing import cell_parser
from millrace.connectors.files.part_formats import PartWriter, RowFormat, RowPart
from millrace.connectors.files.read_formats import StreamFormat, unreadable
from millrace.connectors.files.records import cell_text, field_names, field_values
from millrace.errors import GraphError

__all__ = ["CsvFormat", "CsvLines", "CsvStyle"]

_WRITTEN_AS_THEY_ARE: Final = frozenset({str, int, float})


@dataclass(frozen=True)
class CsvStyle:
    """The marks of a CSV file, the same for writing and reading.

    ``list_separators`` names columns of lists whose elements stand in one cell with a separator between them; lists in
    other columns are JSON.

    >>> CsvStyle(delimiter=";").write([["a", "b;c"]])
    'a;"b;c"\\n'
    """

    delimiter: str = ","
    quote: str | None = '"'
    escape: str | None = None
    null: str = ""
    comments: bool = False
    list_separators: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        try:
            csv.reader([], **self._marks())
        except (TypeError, ValueError) as error:
            raise GraphError(f"CSV with {self._marks()}: {error}") from error

    def write(self, rows: Sequence[Sequence[Any]]) -> str:
        """Rows of cells as lines."""
        lines = _Lines()
        csv.writer(lines, lineterminator=_Lines.END, **self._marks()).writerows(rows)
        return "".join(lines)

    def rows(self, lines: Iterator[str]) -> Iterator[list[str]]:
        """The rows in these lines; empty lines are skipped, and so are comments."""
        if self.comments:
            lines = (line for line in lines if not line.startswith("#"))
        return filter(None, csv.reader(lines, **self._marks()))

    def cell(self, column: str, value: Any) -> str:
        """A value as a cell of this column."""
        if value is None:
            return self.null
        if column in self.list_separators:
            return self.list_separators[column].join(map(cell_text, value))
        return cell_text(value)

    def parser(self, column: str, type_info: TypeInformation) -> Callable[[str], Any]:
        """Reads a cell of this column."""
        separator = self.list_separators.get(column)
        null = self.null
        if separator is None:
            parse = cell_parser(type_info)
        else:
            element = cell_parser(getattr(type_info, "element_type", type_info))

            def parse(text: str) -> Any:
                return [element(item) for item in text.split(separator)] if text else []

        return (lambda text: None if text == null else parse(text)) if null else parse

    def _marks(self) -> dict[str, Any]:
        quoting = csv.QUOTE_NONE if self.quote is None else csv.QUOTE_MINIMAL
        return {"delimiter": self.delimiter, "quotechar": self.quote, "escapechar": self.escape, "quoting": quoting}


class _Lines(list[str]):
    """Takes the rows of a CSV writer. Told to end them with both marks, it quotes cells that hold either of them."""

    END: Final = "\r\n"

    def write(self, line: str) -> None:
        self.append(line[:-2] + "\n")


class CsvLines(RowFormat):
    """Comma-separated values. The columns are those given, or the fields of a part's first record.

    >>> layout = CsvLines()
    >>> layout.header({"word": "a", "count": 1}), layout.encode({"word": "a, b", "count": 1})
    (b'word,count\\n', b'"a, b",1\\n')
    """

    def __init__(
        self,
        *,
        header: bool = True,
        columns: Sequence[str] | RowTypeInfo | None = None,
        style: CsvStyle | None = None,
    ) -> None:
        names = columns.get_field_names() if isinstance(columns, RowTypeInfo) else columns
        self._with_header = header
        self._columns = () if names is None else tuple(names)
        self._style = style or CsvStyle()

    def start(self, stream: BinaryIO) -> PartWriter:
        """Each part takes its columns from its own first record."""
        return RowPart(CsvLines(header=self._with_header, columns=self._columns, style=self._style), stream)

    def header(self, first: Any) -> bytes:
        self._columns = self._columns or field_names(first)
        return self._style.write([self._columns]).encode() if self._with_header else b""

    def encode(self, value: Any) -> bytes:
        return self.encode_all((value,))

    def encode_all(self, values: Sequence[Any]) -> bytes:
        columns, cell = self._columns, self._style.cell
        rows = [
            [
                item if item.__class__ in _WRITTEN_AS_THEY_ARE else cell(name, item)
                for name, item in zip(columns, field_values(value, columns), strict=True)
            ]
            for value in values
        ]
        return self._style.write(rows).encode()


class CsvFormat(StreamFormat):
    """Comma-separated values: dicts of text, or rows of the declared type.

    The columns are those of the header, of the type, or as given. A header and a type are matched by name. Quoted cells
    may hold line ends, so a file is entered only where a record is known to begin.

    >>> import io
    >>> list(CsvFormat().read(io.BytesIO(b'word,note\\na,"x, y"\\n'), 0, None, "a.csv"))
    [[{'word': 'a', 'note': 'x, y'}]]
    """

    def __init__(
        self,
        header: bool = True,
        *,
        type_info: RowTypeInfo | None = None,
        columns: Sequence[str] | None = None,
        style: CsvStyle | None = None,
        ignore_parse_errors: bool = False,
    ) -> None:
        if not header and type_info is None and columns is None:
            raise GraphError("CSV without a header needs names: pass type_info=Types.ROW_NAMED(...) or columns=[...]")
        self._header = header
        self._type_info = type_info
        self._columns = tuple(columns) if columns is not None else None
        self._style = style or CsvStyle()
        self._ignore = ignore_parse_errors

    def end_after(self, file: BinaryIO, start: int, limit: int) -> int:
        lines = _CountedLines(file, start, None)
        rows = self._style.rows(lines)
        if start == 0 and self._header:
            next(rows, None)
        for _ in islice(rows, limit):
            pass
        return lines.taken

    def read(self, file: BinaryIO, start: int, end: int | None, name: str) -> Iterator[list[Any]]:
        found = next(self._style.rows(_CountedLines(file, 0, None)), []) if self._header and start > 0 else None
        rows = self._style.rows(_CountedLines(file, start, end))
        if self._header and start == 0:
            found = next(rows, None)
            if found is None:
                return
        convert = self._converter(found, name)
        while batch := list(islice(rows, BATCH_RECORDS)):
            records = []
            for row in batch:
                try:
                    records.append(convert(row))
                except (ValueError, TypeError) as error:
                    if not self._ignore:
                        raise unreadable(name, row, error) from error
            yield records

    def _converter(self, header: list[str] | None, name: str) -> Callable[[list[str]], Any]:
        declared = self._type_info
        names = list(self._columns or header or (declared.field_names if declared is not None else ()))
        width = len(names)
        if declared is None:
            return lambda row: dict(zip(names, _cells(row, width), strict=True))
        if self._columns is not None or (header is not None and declared.is_named):
            missing = [column for column in declared.field_names if column not in names]
            if missing:
                raise GraphError(f"{name} has no column {missing[0]!r}: its columns are {', '.join(names)}")
            places = [names.index(column) for column in declared.field_names]
        else:
            places = list(range(len(declared.field_names)))
        parsers = [
            (place, self._style.parser(column, kind))
            for place, column, kind in zip(places, declared.field_names, declared.field_types, strict=True)
        ]
        row_names = declared.field_names if declared.is_named else None

        def convert(row: list[str]) -> Any:
            cells = _cells(row, width)
            return make_row([parse(cells[place]) for place, parse in parsers], row_names)

        return convert


def _cells(row: list[str], width: int) -> list[str]:
    if len(row) != width:
        raise ValueError(f"{len(row)} cells instead of {width}")
    return row


class _CountedLines(Iterator[str]):
    """The lines between two positions, and how far they have been taken: CSV takes as many as a record needs."""

    def __init__(self, file: BinaryIO, start: int, end: int | None) -> None:
        file.seek(start)
        self._file = file
        self._end = end
        self.taken = start

    def __next__(self) -> str:
        line = b"" if self._end is not None and self.taken >= self._end else self._file.readline()
        if not line:
            raise StopIteration
        text = line.decode("utf-8-sig" if self.taken == 0 else "utf-8")
        self.taken += len(line)
        return text
