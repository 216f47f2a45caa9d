"""Rows as JSON messages, in both directions."""

from __future__ import annotations

import json
from typing import Any

from millrace.common.serialization import DeserializationSchema, SerializationSchema
from millrace.common.typeinfo import TypeInformation
from millrace.connectors.files.parsing import json_parser
from millrace.connectors.files.records import json_text
from millrace.errors import ConfigurationError

__all__ = ["JsonRowDeserializationSchema", "JsonRowSerializationSchema"]


class JsonRowDeserializationSchema(DeserializationSchema):
    """Reads a row of the given type from a JSON object.

    >>> from millrace.common import Types
    >>> row_type = Types.ROW_NAMED(["word", "count"], [Types.STRING(), Types.INT()])
    >>> schema = JsonRowDeserializationSchema.builder().type_info(row_type).build()
    >>> schema.deserialize(b'{"word": "a", "count": 1}')
    Row(word='a', count=1)
    """

    def __init__(
        self, type_info: TypeInformation, fail_on_missing_field: bool = False, ignore_parse_errors: bool = False
    ) -> None:
        if fail_on_missing_field and ignore_parse_errors:
            message = "JSON: fail_on_missing_field and ignore_parse_errors exclude each other; choose one"
            raise ConfigurationError(message)
        self._type_info = type_info
        self._fail_on_missing_field = fail_on_missing_field
        self._ignore_parse_errors = ignore_parse_errors
        self._parse = json_parser(type_info, fail_on_missing=fail_on_missing_field)

    @staticmethod
    def builder() -> JsonRowDeserializationSchema.Builder:
        """Begin with nothing but the defaults."""
        return JsonRowDeserializationSchema.Builder()

    def deserialize(self, message: bytes) -> Any:
        """The row; None for what cannot be read, if that is to be ignored."""
        try:
            return self._parse(json.loads(message))
        except (ValueError, TypeError, AttributeError) as error:
            if self._ignore_parse_errors:
                return None
            shown = bytes(message[:200])
            text = f"{shown!r} cannot be read as {self._type_info!r}: {error}. ignore_parse_errors() leaves it out"
            raise ValueError(text) from error

    def get_produced_type(self) -> TypeInformation:
        """The type of the rows."""
        return self._type_info

    def __reduce__(self) -> tuple[Any, ...]:
        # Parsers are closures: they are built again on the other side rather than pickled.
        arguments = (self._type_info, self._fail_on_missing_field, self._ignore_parse_errors)
        return JsonRowDeserializationSchema, arguments

    class Builder:
        """Puts a schema together."""

        def __init__(self) -> None:
            self._type_info: TypeInformation | None = None
            self._fail_on_missing_field = False
            self._ignore_parse_errors = False

        def type_info(self, type_info: TypeInformation) -> JsonRowDeserializationSchema.Builder:
            """The type of the rows."""
            self._type_info = type_info
            return self

        def fail_on_missing_field(self) -> JsonRowDeserializationSchema.Builder:
            """A field that an object lacks is an error instead of None."""
            self._fail_on_missing_field = True
            return self

        def ignore_parse_errors(self) -> JsonRowDeserializationSchema.Builder:
            """What cannot be read is None instead of an error."""
            self._ignore_parse_errors = True
            return self

        def build(self) -> JsonRowDeserializationSchema:
            """The schema."""
            if self._type_info is None:
                raise ConfigurationError("JSON rows need a type: call type_info(Types.ROW_NAMED(...)) before build()")
            return JsonRowDeserializationSchema(self._type_info, self._fail_on_missing_field, self._ignore_parse_errors)


class JsonRowSerializationSchema(SerializationSchema):
    """Writes a row as a JSON object; with a type, as rows of that type.

    >>> from millrace.common import Row, Types
    >>> row_type = Types.ROW_NAMED(["word", "count"], [Types.STRING(), Types.INT()])
    >>> JsonRowSerializationSchema.builder().with_type_info(row_type).build().serialize(Row("a", 1))
    b'{"word":"a","count":1}'
    """

    def __init__(self, type_info: TypeInformation | None = None) -> None:
        self._type_info = type_info

    @staticmethod
    def builder() -> JsonRowSerializationSchema.Builder:
        """Begin without a type."""
        return JsonRowSerializationSchema.Builder()

    def serialize(self, value: Any) -> bytes:
        """The bytes of the JSON text."""
        return json_text(value if self._type_info is None else self._type_info.coerce(value)).encode()

    class Builder:
        """Puts a schema together."""

        def __init__(self) -> None:
            self._type_info: TypeInformation | None = None

        def with_type_info(self, type_info: TypeInformation) -> JsonRowSerializationSchema.Builder:
            """The type that gives the fields their names."""
            self._type_info = type_info
            return self

        def build(self) -> JsonRowSerializationSchema:
            """The schema."""
            return JsonRowSerializationSchema(self._type_info)
