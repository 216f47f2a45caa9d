"""How the sink lays out the records of a part; lines of text and of JSON."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, BinaryIO

from millrace.common.serialization import Encoder
from millrace.connectors.files.records import json_text
from millrace.errors import GraphError

__all__ = ["EncodedLines", "JsonLines", "PartFormat", "PartWriter", "RowFormat", "RowPart"]


class PartWriter(ABC):
    """Writes the records of one part into a stream that somebody else opens and closes."""

    size: int = 0
    """Bytes that have reached the stream."""

    @abstractmethod
    def add(self, values: Sequence[Any], max_size: int | None) -> int:
        """Take records until the part has ``max_size`` bytes; says how many were taken, at least one."""

    def finish(self) -> None:
        """Write what is still missing at the end of the part."""
        return


class PartFormat(ABC):
    """How the records of a part are laid out. Pickled with the sink; ``start`` is called for each part."""

    @abstractmethod
    def start(self, stream: BinaryIO) -> PartWriter:
        """A writer for a new part."""


class RowFormat(PartFormat):
    """A format in which a part is its records one after the other, maybe with a header.

    >>> import io
    >>> class Shouted(RowFormat):
    ...     def encode(self, value): return value.upper().encode() + b"!"
    >>> stream = io.BytesIO()
    >>> Shouted().start(stream).add(["a", "b"], None)
    2
    >>> stream.getvalue()
    b'A!B!'
    """

    def start(self, stream: BinaryIO) -> PartWriter:
        return RowPart(self, stream)

    def header(self, first: Any) -> bytes:
        """What stands at the beginning of a part whose first record this is."""
        return b""

    @abstractmethod
    def encode(self, value: Any) -> bytes:
        """One record."""

    def encode_all(self, values: Sequence[Any]) -> bytes:
        """Many records; override it where that is quicker."""
        return b"".join(map(self.encode, values))


class RowPart(PartWriter):
    """Writes record after record, and stops exactly where the part is large enough."""

    def __init__(self, layout: RowFormat, stream: BinaryIO) -> None:
        self._format = layout
        self._stream = stream
        self._begun = False

    def add(self, values: Sequence[Any], max_size: int | None) -> int:
        if not self._begun:
            self._begun = True
            self._write(self._format.header(values[0]))
        data = self._format.encode_all(values)
        if max_size is None or self.size + len(data) < max_size:
            self._write(data)
            return len(values)
        for taken, value in enumerate(values, 1):
            self._write(self._format.encode(value))
            if self.size >= max_size:
                return taken
        return len(values)

    def _write(self, data: bytes) -> None:
        self._stream.write(data)
        self.size += len(data)


class EncodedLines(RowFormat):
    """Whatever an encoder makes of each record.

    >>> EncodedLines(Encoder.simple_string_encoder()).encode(("a", 1))
    b"('a', 1)\\n"
    """

    def __init__(self, encoder: Encoder) -> None:
        if not isinstance(encoder, Encoder):
            message = f"{encoder!r} is no Encoder: use Encoder.simple_string_encoder() or a subclass of Encoder"
            raise GraphError(message)
        self._encoder = encoder

    def encode(self, value: Any) -> bytes:
        return self._encoder.encode(value)


class JsonLines(RowFormat):
    """One JSON text a line.

    >>> JsonLines().encode({"a": 1})
    b'{"a":1}\\n'
    """

    def encode(self, value: Any) -> bytes:
        return f"{json_text(value)}\n".encode()

    def encode_all(self, values: Sequence[Any]) -> bytes:
        return "".join([f"{json_text(value)}\n" for value in values]).encode()
