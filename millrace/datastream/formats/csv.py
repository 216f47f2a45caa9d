"""CSV for file sources and sinks, and rows as CSV messages."""

from __future__ import annotations

import io
from typing import Any

from millrace.common.serialization import DeserializationSchema, SerializationSchema
from millrace.common.typeinfo import RowTypeInfo, TypeInformation, Types
from millrace.connectors.files.csv_format import CsvFormat, CsvLines, CsvStyle
from millrace.errors import ConfigurationError

__all__ = [
    "CsvBulkWriters",
    "CsvReaderFormat",
    "CsvRowDeserializationSchema",
    "CsvRowSerializationSchema",
    "CsvSchema",
    "CsvSchemaBuilder",
]


class CsvSchema:
    """The columns and marks of a CSV file.

    >>> schema = CsvSchema.builder().add_string_column("word").add_number_column("count").build()
    >>> len(schema), schema.row_type
    (2, Types.ROW_NAMED(['word', 'count'], [Types.STRING(), Types.LONG()]))
    """

    def __init__(self, row_type: RowTypeInfo, style: CsvStyle, use_header: bool) -> None:
        self.row_type = row_type
        self.style = style
        self.use_header = use_header

    @staticmethod
    def builder() -> CsvSchemaBuilder:
        """Begin without columns, with commas between cells and without a header."""
        return CsvSchemaBuilder()

    def size(self) -> int:
        """How many columns there are."""
        return len(self.row_type.field_names)

    def __len__(self) -> int:
        return self.size()


class CsvSchemaBuilder:
    """Puts a schema together, column by column.

    >>> CsvSchemaBuilder().add_boolean_column("ok").set_column_separator(";").build().style.delimiter
    ';'
    """

    def __init__(self) -> None:
        self._columns: dict[str, TypeInformation] = {}
        self._separators: dict[str, str] = {}
        self._marks: dict[str, Any] = {}
        self._use_header = False

    def add_string_column(self, name: str) -> CsvSchemaBuilder:
        """A column of text."""
        return self._add(name, Types.STRING())

    def add_number_column(self, name: str, number_type: TypeInformation | None = None) -> CsvSchemaBuilder:
        """A column of numbers; whole ones of 64 bits unless a type is given."""
        return self._add(name, number_type or Types.LONG())

    def add_boolean_column(self, name: str) -> CsvSchemaBuilder:
        """A column of true and false."""
        return self._add(name, Types.BOOLEAN())

    def add_array_column(
        self, name: str, separator: str = ";", element_type: TypeInformation | None = None
    ) -> CsvSchemaBuilder:
        """A column of lists, with a separator between the elements in a cell."""
        self._separators[name] = separator
        return self._add(name, Types.LIST(element_type or Types.STRING()))

    def add_columns_from(self, schema: CsvSchema) -> CsvSchemaBuilder:
        """All columns of another schema."""
        self._separators.update(schema.style.list_separators)
        for name, type_info in zip(schema.row_type.field_names, schema.row_type.field_types, strict=True):
            self._add(name, type_info)
        return self

    def set_column_separator(self, char: str) -> CsvSchemaBuilder:
        """What stands between cells."""
        return self._set("delimiter", char)

    def set_quote_char(self, char: str) -> CsvSchemaBuilder:
        """What stands around cells that hold other marks."""
        return self._set("quote", char)

    def disable_quote_char(self) -> CsvSchemaBuilder:
        """Cells are not quoted."""
        return self._set("quote", None)

    def set_escape_char(self, char: str) -> CsvSchemaBuilder:
        """What stands before a mark that is meant as it is."""
        return self._set("escape", char)

    def set_null_value(self, null_value: str) -> CsvSchemaBuilder:
        """The cell that stands for None."""
        return self._set("null", null_value)

    def set_allow_comments(self, allow: bool = True) -> CsvSchemaBuilder:
        """Whether lines that begin with # are skipped."""
        return self._set("comments", allow)

    def set_use_header(self, use: bool = True) -> CsvSchemaBuilder:
        """Whether the first line names the columns; they are then found by name."""
        self._use_header = use
        return self

    def build(self) -> CsvSchema:
        """The schema."""
        if not self._columns:
            raise ConfigurationError(
                "a CSV schema needs columns: call add_string_column(...) and the like before build()"
            )
        row_type = Types.ROW_NAMED(list(self._columns), list(self._columns.values()))
        return CsvSchema(row_type, CsvStyle(**self._marks, list_separators=dict(self._separators)), self._use_header)

    def _add(self, name: str, type_info: TypeInformation) -> CsvSchemaBuilder:
        if name in self._columns:
            raise ConfigurationError(f"the CSV column {name!r} occurs twice; rename one of them")
        self._columns[name] = type_info
        return self

    def _set(self, mark: str, value: Any) -> CsvSchemaBuilder:
        self._marks[mark] = value
        return self


class CsvReaderFormat(CsvFormat):
    """Rows out of CSV files, for ``FileSource.for_record_stream_format``.

    >>> import io
    >>> layout = CsvReaderFormat.for_schema(CsvSchema.builder().add_number_column("n").build())
    >>> list(layout.read(io.BytesIO(b"1\\n2\\n"), 0, None, "numbers.csv"))
    [[Row(n=1), Row(n=2)]]
    """

    def __init__(self, schema: CsvSchema) -> None:
        super().__init__(schema.use_header, type_info=schema.row_type, style=schema.style)

    @staticmethod
    def for_schema(schema: CsvSchema) -> CsvReaderFormat:
        """A format for files with these columns."""
        return CsvReaderFormat(schema)


class CsvBulkWriters:
    """CSV for ``FileSink.for_bulk_format``.

    >>> layout = CsvBulkWriters.for_schema(CsvSchema.builder().add_number_column("n").build())
    >>> layout.encode((1,))
    b'1\\n'
    """

    @staticmethod
    def for_schema(schema: CsvSchema) -> CsvLines:
        """Files with the columns of the schema."""
        return CsvLines(header=schema.use_header, columns=schema.row_type, style=schema.style)


class CsvRowDeserializationSchema(DeserializationSchema):
    """Reads a row of the given type from a line of CSV.

    >>> row_type = Types.ROW_NAMED(["word", "count"], [Types.STRING(), Types.INT()])
    >>> CsvRowDeserializationSchema.Builder(row_type).set_field_delimiter(";").build().deserialize(b"a;1")
    Row(word='a', count=1)
    """

    def __init__(self, type_info: RowTypeInfo, style: CsvStyle, ignore_parse_errors: bool = False) -> None:
        self._type_info = type_info
        self._format = CsvFormat(False, type_info=type_info, style=style, ignore_parse_errors=ignore_parse_errors)

    def deserialize(self, message: bytes) -> Any:
        """The row; None for what cannot be read, if that is to be ignored."""
        for rows in self._format.read(io.BytesIO(message), 0, None, "CSV message"):
            if rows:
                return rows[0]
        return None

    def get_produced_type(self) -> TypeInformation:
        """The type of the rows."""
        return self._type_info

    class Builder:
        """Puts a schema together."""

        def __init__(self, type_info: RowTypeInfo) -> None:
            self._type_info = type_info
            self._marks: dict[str, Any] = {}
            self._ignore = False

        def set_field_delimiter(self, delimiter: str) -> CsvRowDeserializationSchema.Builder:
            """What stands between cells."""
            self._marks["delimiter"] = delimiter
            return self

        def set_quote_character(self, char: str) -> CsvRowDeserializationSchema.Builder:
            """What stands around cells that hold other marks."""
            self._marks["quote"] = char
            return self

        def set_escape_character(self, char: str) -> CsvRowDeserializationSchema.Builder:
            """What stands before a mark that is meant as it is."""
            self._marks["escape"] = char
            return self

        def set_null_literal(self, null_literal: str) -> CsvRowDeserializationSchema.Builder:
            """The cell that stands for None."""
            self._marks["null"] = null_literal
            return self

        def set_ignore_parse_errors(self, ignore_parse_errors: bool) -> CsvRowDeserializationSchema.Builder:
            """Whether what cannot be read is None instead of an error."""
            self._ignore = ignore_parse_errors
            return self

        def build(self) -> CsvRowDeserializationSchema:
            """The schema."""
            return CsvRowDeserializationSchema(self._type_info, CsvStyle(**self._marks), self._ignore)


class CsvRowSerializationSchema(SerializationSchema):
    """Writes a row as a line of CSV.

    >>> row_type = Types.ROW_NAMED(["word", "count"], [Types.STRING(), Types.INT()])
    >>> CsvRowSerializationSchema.Builder(row_type).build().serialize(("a", 1))
    b'a,1\\n'
    """

    def __init__(self, type_info: RowTypeInfo, style: CsvStyle, end: str = "\n") -> None:
        self._type_info = type_info
        self._layout = CsvLines(header=False, columns=type_info, style=style)
        self._end = end.encode()

    def serialize(self, value: Any) -> bytes:
        """The bytes of the line."""
        return self._layout.encode(self._type_info.coerce(value)).removesuffix(b"\n") + self._end

    class Builder:
        """Puts a schema together."""

        def __init__(self, type_info: RowTypeInfo) -> None:
            self._type_info = type_info
            self._marks: dict[str, Any] = {}
            self._end = "\n"

        def set_field_delimiter(self, delimiter: str) -> CsvRowSerializationSchema.Builder:
            """What stands between cells."""
            self._marks["delimiter"] = delimiter
            return self

        def set_line_delimiter(self, delimiter: str) -> CsvRowSerializationSchema.Builder:
            """What stands at the end of a line."""
            self._end = delimiter
            return self

        def set_quote_character(self, char: str) -> CsvRowSerializationSchema.Builder:
            """What stands around cells that hold other marks."""
            self._marks["quote"] = char
            return self

        def disable_quote_character(self) -> CsvRowSerializationSchema.Builder:
            """Cells are not quoted."""
            self._marks["quote"] = None
            return self

        def set_escape_character(self, char: str) -> CsvRowSerializationSchema.Builder:
            """What stands before a mark that is meant as it is."""
            self._marks["escape"] = char
            return self

        def set_null_literal(self, null_literal: str) -> CsvRowSerializationSchema.Builder:
            """The cell that stands for None."""
            self._marks["null"] = null_literal
            return self

        def build(self) -> CsvRowSerializationSchema:
            """The schema."""
            return CsvRowSerializationSchema(self._type_info, CsvStyle(**self._marks), self._end)
