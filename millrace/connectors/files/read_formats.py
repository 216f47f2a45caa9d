"""How the source finds records in a file; lines of text and of JSON."""

from __future__ import annotations

import codecs
import json
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, BinaryIO

from millrace.common.typeinfo import TypeInformation
from millrace.connectors.files.parsing import json_parser
from millrace.connectors.text import BLOCK_BYTES, bytes_of_lines, split_lines
from millrace.errors import GraphError

__all__ = ["BulkFormat", "FileFormat", "JsonFormat", "StreamFormat", "TextLineFormat", "unreadable"]


class FileFormat(ABC):
    """Reads the records of a file between two positions. What a position counts is up to the format."""

    steps: bool = True
    """Whether reading can begin in the middle; if not, a file is read in one go."""

    by_line: bool = False
    """Whether every line begins a record, so that a large file can be read from several places at once."""

    def extent(self, file: BinaryIO) -> int:
        """The position behind the last record."""
        return file.seek(0, 2)

    @abstractmethod
    def end_after(self, file: BinaryIO, start: int, limit: int) -> int:
        """The position ``limit`` records on, or behind the last one."""

    @abstractmethod
    def read(self, file: BinaryIO, start: int, end: int | None, name: str) -> Iterator[list[Any]]:
        """Lists of the records from ``start`` to ``end`` (None: all there are); ``name`` is for messages."""


class StreamFormat(FileFormat):
    """A format that is read record by record; positions count bytes.

    >>> import io
    >>> list(StreamFormat.text_line_format().read(io.BytesIO(b"to\\nbe\\n"), 3, 6, "words.txt"))
    [['be']]
    """

    @staticmethod
    def text_line_format(charset_name: str = "UTF-8") -> StreamFormat:
        """The lines of a text file, without their line ends."""
        return TextLineFormat(charset_name)


class BulkFormat(FileFormat):
    """A format that is read many records at a time, such as Parquet; positions count records."""


class TextLineFormat(StreamFormat):
    """Lines of text.

    >>> import io
    >>> TextLineFormat().end_after(io.BytesIO(b"to\\nbe\\nor\\n"), 0, 2)
    6
    """

    def __init__(self, charset: str = "UTF-8") -> None:
        try:
            self._charset = codecs.lookup(charset).name
        except LookupError:
            message = f"the charset {charset!r} is unknown: use 'UTF-8' or another name that Python knows"
            raise GraphError(message) from None
        # In charsets of two or four bytes a character, the bytes of a line end also occur elsewhere.
        self.steps = self.by_line = "\n".encode(self._charset) == b"\n"

    def end_after(self, file: BinaryIO, start: int, limit: int) -> int:
        file.seek(start)
        return start + bytes_of_lines(file, limit)

    def read(self, file: BinaryIO, start: int, end: int | None, name: str) -> Iterator[list[Any]]:
        for block in self._blocks(file, start, end):
            text = block.decode(self._charset)
            yield split_lines(text.removeprefix("\ufeff") if start == 0 else text)
            start = -1

    def _blocks(self, file: BinaryIO, start: int, end: int | None) -> Iterator[bytes]:
        """Whole lines, about a megabyte at a time."""
        if not self.steps:
            data = file.read()
            if data:
                yield data
            return
        if start:
            file.seek(start)
        at = start
        while end is None or at < end:
            block = file.read(BLOCK_BYTES if end is None else min(BLOCK_BYTES, end - at))
            if not block:
                return
            if not block.endswith(b"\n"):
                block += file.readline()
            at += len(block)
            yield block


class JsonFormat(TextLineFormat):
    """A JSON text a line: dicts, lists and so on, or values of the declared type. Empty lines are skipped.

    >>> import io
    >>> list(JsonFormat().read(io.BytesIO(b'{"a": 1}\\n'), 0, None, "a.json"))
    [[{'a': 1}]]
    """

    def __init__(self, type_info: TypeInformation | None = None, ignore_parse_errors: bool = False) -> None:
        super().__init__()
        self._parse = None if type_info is None else json_parser(type_info)
        self._type_info = type_info
        self._ignore = ignore_parse_errors

    def read(self, file: BinaryIO, start: int, end: int | None, name: str) -> Iterator[list[Any]]:
        parse = self._parse
        for lines in super().read(file, start, end, name):
            records = []
            for line in lines:
                if not line or line.isspace():
                    continue
                try:
                    value = json.loads(line)
                    records.append(value if parse is None else parse(value))
                except (ValueError, TypeError, AttributeError) as error:
                    if not self._ignore:
                        raise unreadable(name, line, error) from error
            yield records

    def __reduce__(self) -> tuple[Any, ...]:
        # Parsers are closures: they are built again on the other side rather than pickled.
        return JsonFormat, (self._type_info, self._ignore)


def unreadable(name: str, content: Any, error: Exception) -> ValueError:
    """The error for a record that is not what it should be: where, what, and how to go on without it."""
    text = repr(content)
    shown = text if len(text) <= 200 else text[:199] + "…"
    message = f"{name}: {shown} cannot be read: {error}. To leave such records out, set ignore_parse_errors=True"
    return ValueError(message)
