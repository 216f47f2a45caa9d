"""Between values and bytes, at the edges of a job: what a source reads and a sink writes."""

from __future__ import annotations

import codecs
from abc import ABC, abstractmethod
from typing import Any

from millrace.common.row import Row
from millrace.common.typeinfo import TypeInformation, Types

__all__ = [
    "ByteArraySchema",
    "DeserializationSchema",
    "Encoder",
    "RowFieldExtractorSchema",
    "SerializationSchema",
    "SimpleStringSchema",
]


class SerializationSchema(ABC):
    """Turns a value into the bytes of one message.

    >>> class Upper(SerializationSchema):
    ...     def serialize(self, value): return value.upper().encode()
    >>> Upper().serialize("a")
    b'A'
    """

    @abstractmethod
    def serialize(self, value: Any) -> bytes:
        """The bytes that stand for the value."""


class DeserializationSchema(ABC):
    """Turns the bytes of one message into a value.

    >>> class Number(DeserializationSchema):
    ...     def deserialize(self, message): return int(message)
    >>> Number().deserialize(b"42")
    42
    """

    @abstractmethod
    def deserialize(self, message: bytes) -> Any:
        """The value that the bytes stand for."""

    def is_end_of_stream(self, next_element: Any) -> bool:
        """Whether this value ends the stream; it is then not part of it."""
        return False

    def get_produced_type(self) -> TypeInformation:
        """The type of the values; any Python object unless a subclass says more."""
        return Types.PICKLED_BYTE_ARRAY()


class SimpleStringSchema(SerializationSchema, DeserializationSchema):
    """Text, in the given character set.

    >>> SimpleStringSchema().serialize("é")
    b'\\xc3\\xa9'
    """

    def __init__(self, charset: str = "UTF-8") -> None:
        self.charset = _known_charset("SimpleStringSchema", charset)

    def serialize(self, value: Any) -> bytes:
        """The text's bytes."""
        if not isinstance(value, str):
            message = f"SimpleStringSchema writes text, not {value!r}; turn it into text first, as with map(str)"
            raise TypeError(message)
        return value.encode(self.charset)

    def deserialize(self, message: bytes) -> str:
        """The text of the bytes."""
        return bytes(message).decode(self.charset)

    def get_produced_type(self) -> TypeInformation:
        """Text."""
        return Types.STRING()


class ByteArraySchema(SerializationSchema, DeserializationSchema):
    """Bytes as they are.

    >>> ByteArraySchema().deserialize(bytearray(b"ab"))
    b'ab'
    """

    def serialize(self, value: Any) -> bytes:
        """The same bytes."""
        return _as_bytes("ByteArraySchema", value)

    def deserialize(self, message: bytes) -> bytes:
        """The same bytes."""
        return bytes(message)

    def get_produced_type(self) -> TypeInformation:
        """An array of bytes."""
        return Types.PRIMITIVE_ARRAY(Types.BYTE())


class RowFieldExtractorSchema(SerializationSchema):
    """Writes one field of a row, which holds bytes; for instance the key of a Kafka record.

    A field that is None or missing gives no bytes.

    >>> RowFieldExtractorSchema(0).serialize(Row(b"key", b"value"))
    b'key'
    """

    def __init__(self, field_index: int) -> None:
        if field_index < 0:
            raise ValueError(f"RowFieldExtractorSchema: field {field_index} does not exist; fields count from 0")
        self.field_index = field_index

    def serialize(self, value: Any) -> bytes:
        """The bytes of the field."""
        if value is None:
            return b""
        if not isinstance(value, Row | tuple | list):
            raise TypeError(f"RowFieldExtractorSchema takes fields out of rows, not out of {value!r}")
        content = value[self.field_index] if self.field_index < len(value) else None
        return b"" if content is None else _as_bytes(f"RowFieldExtractorSchema({self.field_index})", content)


class Encoder(ABC):
    """Turns a value into what is appended to a file for it.

    >>> Encoder.simple_string_encoder().encode(("a", 1))
    b"('a', 1)\\n"
    """

    @abstractmethod
    def encode(self, value: Any) -> bytes:
        """The bytes to append for the value."""

    @staticmethod
    def simple_string_encoder(charset_name: str = "UTF-8") -> Encoder:
        """One line for each value: the text that `str` gives for it."""
        return _LineEncoder(charset_name)


class _LineEncoder(Encoder):
    def __init__(self, charset: str) -> None:
        self._charset = _known_charset("Encoder.simple_string_encoder", charset)

    def encode(self, value: Any) -> bytes:
        return f"{value}\n".encode(self._charset)


def _known_charset(where: str, charset: str) -> str:
    try:
        return codecs.lookup(charset).name
    except LookupError:
        raise ValueError(f"{where}: the character set {charset!r} is unknown; use one such as UTF-8") from None


def _as_bytes(where: str, value: Any) -> bytes:
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    raise TypeError(f"{where} writes bytes, not {value!r}; encode it first, as with value.encode()")
