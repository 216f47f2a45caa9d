from __future__ import annotations

import pickle

import pytest

from millrace.common.row import Row
from millrace.common.serialization import (
    ByteArraySchema,
    DeserializationSchema,
    Encoder,
    RowFieldExtractorSchema,
    SerializationSchema,
    SimpleStringSchema,
)
from millrace.common.typeinfo import Types


def test_simple_string_schema() -> None:
    schema = SimpleStringSchema()
    assert schema.serialize("é") == b"\xc3\xa9"
    assert schema.deserialize(b"\xc3\xa9") == "é"
    assert schema.get_produced_type() == Types.STRING()
    assert not schema.is_end_of_stream("x")
    assert isinstance(schema, SerializationSchema)
    assert isinstance(schema, DeserializationSchema)


def test_other_character_set() -> None:
    schema = SimpleStringSchema("ISO-8859-1")
    assert schema.serialize("é") == b"\xe9"
    assert pickle.loads(pickle.dumps(schema)).deserialize(b"\xe9") == "é"
    with pytest.raises(ValueError, match="the character set 'UTF-9' is unknown"):
        SimpleStringSchema("UTF-9")


def test_simple_string_schema_writes_text_only() -> None:
    with pytest.raises(TypeError, match="writes text, not 5; turn it into text first"):
        SimpleStringSchema().serialize(5)


def test_byte_array_schema() -> None:
    schema = ByteArraySchema()
    assert schema.serialize(bytearray(b"ab")) == b"ab"
    assert schema.deserialize(b"ab") == b"ab"
    assert schema.get_produced_type() == Types.PRIMITIVE_ARRAY(Types.BYTE())
    with pytest.raises(TypeError, match="ByteArraySchema writes bytes, not 'a'; encode it first"):
        schema.serialize("a")


def test_row_field_extractor_schema() -> None:
    schema = RowFieldExtractorSchema(1)
    assert schema.serialize(Row(b"key", b"value")) == b"value"
    assert schema.serialize((b"key", b"value")) == b"value"
    assert schema.serialize(Row(b"key", None)) == b""
    assert schema.serialize(Row(b"key")) == b""
    assert schema.serialize(None) == b""
    with pytest.raises(TypeError, match=r"RowFieldExtractorSchema\(1\) writes bytes, not 5"):
        schema.serialize(Row(b"key", 5))
    with pytest.raises(TypeError, match="takes fields out of rows, not out of b'x'"):
        schema.serialize(b"x")
    with pytest.raises(ValueError, match="field -1 does not exist"):
        RowFieldExtractorSchema(-1)


def test_simple_string_encoder() -> None:
    assert Encoder.simple_string_encoder().encode("é") == b"\xc3\xa9\n"
    assert Encoder.simple_string_encoder("latin-1").encode("é") == b"\xe9\n"
    assert Encoder.simple_string_encoder().encode(Row(a=1)) == b"Row(a=1)\n"
