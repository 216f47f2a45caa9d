from __future__ import annotations

import datetime
import io
from collections import namedtuple
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from millrace.common import Instant, Row, Types
from millrace.connectors.files import CsvSink, CsvSource, FileSource, JsonSink, JsonSource, ParquetSink, ParquetSource
from millrace.connectors.files.csv_format import CsvFormat, CsvLines, CsvStyle
from millrace.connectors.files.part_formats import JsonLines
from millrace.connectors.files.records import field_values, json_text
from millrace.errors import ConfigurationError, GraphError
from millrace.runtime.context import RuntimeContext
from millrace.runtime.operator import OperatorContext
from millrace.runtime.sink import Sink
from millrace.state.store import OperatorStore

Pair = namedtuple("Pair", ["word", "count"])


@dataclass
class Word:
    word: str
    count: int


class Colour(Enum):
    RED = "red"


WORDS = [("a", 1), ("b, c", 2), ('d "e"\nf', 3), ("", 4), ("é", 5)]
WORD_TYPE = Types.ROW_NAMED(["word", "count"], [Types.STRING(), Types.INT()])
WORD_ROWS = [Row("word", "count")(word, count) for word, count in WORDS]
WORD_DICTS = [{"word": word, "count": count} for word, count in WORDS]

SHAPES: dict[str, list[Any]] = {
    "rows": WORD_ROWS,
    "dicts": WORD_DICTS,
    "dataclasses": [Word(word, count) for word, count in WORDS],
    "named tuples": [Pair(word, count) for word, count in WORDS],
}

EVERY_TYPE = Types.ROW_NAMED(
    ["s", "i", "f", "b", "dec", "big", "day", "time", "at", "instant", "bytes", "list", "map", "row", "pair"],
    [
        Types.STRING(),
        Types.SHORT(),
        Types.FLOAT(),
        Types.BOOLEAN(),
        Types.BIG_DEC(),
        Types.BIG_INT(),
        Types.SQL_DATE(),
        Types.SQL_TIME(),
        Types.SQL_TIMESTAMP(),
        Types.INSTANT(),
        Types.PRIMITIVE_ARRAY(Types.BYTE()),
        Types.LIST(Types.DOUBLE()),
        Types.MAP(Types.STRING(), Types.LIST(Types.INT())),
        Types.ROW_NAMED(["x", "m"], [Types.INT(), Types.MAP(Types.STRING(), Types.INT())]),
        Types.TUPLE([Types.INT(), Types.STRING()]),
    ],
)
EVERY_VALUE = EVERY_TYPE.coerce(
    (
        "text",
        -5,
        0.5,
        True,
        Decimal("12.5"),
        10**30,
        datetime.date(2024, 2, 29),
        datetime.time(12, 30, 0, 5000),
        datetime.datetime(2024, 2, 29, 12, 30, 0, 5),  # noqa: DTZ001
        Instant(1_700_000_000, 123_456_000),
        b"\x00\xff",
        [1.0, 2.5],
        {"a": [1, 2]},
        (7, {"k": 1}),
        (8, "p"),
    )
)
NOTHING = EVERY_TYPE.coerce([None] * 15)


def write(sink: Sink[Any], records: list[Any]) -> None:
    context = OperatorContext("sink", "sink-1", OperatorStore(lambda: 0), lambda: 0)
    writer = sink.create_writer(RuntimeContext(context))
    writer.write_batch(records, None)
    sink.commit(list(writer.prepare_commit()))


def read(source: FileSource) -> list[Any]:
    return [
        record
        for split, start in source.splits(1).items()
        for batch in source.read(split, start, source.advance(split, start, None)[0])
        for record in batch
    ]


def one_file(folder: Path) -> Path:
    (path,) = (p for p in folder.iterdir() if not p.name.startswith("."))
    return path


@pytest.mark.parametrize("shape", SHAPES)
def test_csv_round_trip(tmp_path: Path, shape: str) -> None:
    write(CsvSink(tmp_path), SHAPES[shape])
    assert one_file(tmp_path).read_text().splitlines()[0] == "word,count"
    assert read(CsvSource(tmp_path)) == [{"word": word, "count": str(count)} for word, count in WORDS]
    assert read(CsvSource(tmp_path, type_info=WORD_TYPE)) == WORD_ROWS


def test_csv_without_a_header(tmp_path: Path) -> None:
    write(CsvSink(tmp_path, header=False, delimiter=";"), WORDS)
    assert one_file(tmp_path).read_text().startswith("a;1\n")
    assert read(CsvSource(tmp_path, False, type_info=WORD_TYPE, delimiter=";")) == WORD_ROWS
    assert read(CsvSource(tmp_path, False, columns=["w", "n"], delimiter=";"))[0] == {"w": "a", "n": "1"}
    with pytest.raises(GraphError, match="CSV without a header needs names"):
        CsvSource(tmp_path, header=False)


def test_csv_of_every_type(tmp_path: Path) -> None:
    write(CsvSink(tmp_path, columns=EVERY_TYPE), [EVERY_VALUE, NOTHING])
    first, second = read(CsvSource(tmp_path, type_info=EVERY_TYPE))
    assert first == EVERY_VALUE
    # An empty cell of text is a text: CSV cannot tell it from None.
    assert second.s == ""
    assert list(second)[1:] == [None] * 14


def test_csv_columns_are_found_by_the_names_of_the_header(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"\xef\xbb\xbfcount,more,word\r\n1,x,a\r\n\r\n2,y,b")
    assert read(CsvSource(path, type_info=WORD_TYPE)) == [Row("word", "count")("a", 1), Row("word", "count")("b", 2)]
    path.write_text("word,number\na,1\n")
    with pytest.raises(GraphError, match="a.csv has no column 'count'"):
        read(CsvSource(path, type_info=WORD_TYPE))


def test_csv_that_cannot_be_read_is_named_or_left_out(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("word,count\na,1\nb\nc,many\nd,99999999999\ne,5\n")
    with pytest.raises(ValueError, match=r"a\.csv: \['b'\] cannot be read: 1 cells instead of 2"):
        read(CsvSource(path, type_info=WORD_TYPE))
    assert [row.word for row in read(CsvSource(path, type_info=WORD_TYPE, ignore_parse_errors=True))] == ["a", "e"]


def test_csv_marks() -> None:
    style = CsvStyle("|", quote="'", escape="\\", null="NULL", comments=True, list_separators={"tags": ";"})
    type_info = Types.ROW_NAMED(["word", "tags"], [Types.STRING(), Types.LIST(Types.INT())])
    layout = CsvLines(columns=type_info, style=style)
    stream = io.BytesIO()
    layout.start(stream).add([("a|b", [1, 2]), (None, [])], None)
    assert stream.getvalue() == b"word|tags\n'a|b'|1;2\nNULL|\n"
    text = io.BytesIO(b"word|tags\n# a comment\n" + stream.getvalue().partition(b"\n")[2])
    rows = list(CsvFormat(type_info=type_info, style=style).read(text, 0, None, "a.csv"))
    assert rows == [[Row("word", "tags")("a|b", [1, 2]), Row("word", "tags")(None, [])]]


@pytest.mark.parametrize("shape", SHAPES)
def test_json_round_trip(tmp_path: Path, shape: str) -> None:
    write(JsonSink(tmp_path), SHAPES[shape])
    assert read(JsonSource(tmp_path)) == WORD_DICTS
    assert read(JsonSource(tmp_path, type_info=WORD_TYPE)) == WORD_ROWS


def test_json_of_every_type(tmp_path: Path) -> None:
    write(JsonSink(tmp_path), [EVERY_VALUE, NOTHING])
    assert read(JsonSource(tmp_path, type_info=EVERY_TYPE)) == [EVERY_VALUE, NOTHING]


def test_json_of_anything() -> None:
    assert json_text(("a", 1)) == '["a",1]'
    assert json_text("a") == '"a"'
    assert json_text({"c": Colour.RED, "n": np.int64(3), "v": np.array([1, 2])}) == '{"c":"red","n":3,"v":[1,2]}'
    assert json_text(Row(Row(a=1), Word("b", 2))) == '{"f0":{"a":1},"f1":{"word":"b","count":2}}'
    assert JsonLines().encode("two\nlines") == b'"two\\nlines"\n'
    with pytest.raises(TypeError, match="of type set has no form in a file"):
        json_text({"a": {1}})


def test_json_that_cannot_be_read_is_named_or_left_out(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"word": "a", "count": 1}\n\n{"word": \n{"word": "b", "count": true}\n[]\n{"word": "c"}\n')
    with pytest.raises(ValueError, match=r"""a\.json: '{"word": ' cannot be read"""):
        read(JsonSource(path, type_info=WORD_TYPE))
    rows = read(JsonSource(path, type_info=WORD_TYPE, ignore_parse_errors=True))
    assert rows == [Row("word", "count")("a", 1), Row("word", "count")("c", None)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("type_info", [None, WORD_TYPE])
def test_parquet_round_trip(tmp_path: Path, shape: str, type_info: Any) -> None:
    write(ParquetSink(tmp_path, type_info=type_info), SHAPES[shape])
    assert read(ParquetSource(tmp_path)) == WORD_DICTS
    assert read(ParquetSource(tmp_path, type_info=WORD_TYPE)) == WORD_ROWS
    assert read(ParquetSource(tmp_path, columns=["count"]))[1] == {"count": 2}


def test_parquet_of_every_type(tmp_path: Path) -> None:
    write(ParquetSink(tmp_path, type_info=EVERY_TYPE, compression="zstd"), [EVERY_VALUE, NOTHING])
    assert read(ParquetSource(tmp_path, type_info=EVERY_TYPE)) == [EVERY_VALUE, NOTHING]
    assert str(pq.read_schema(one_file(tmp_path)).field("instant").type) == "timestamp[us, tz=UTC]"


def test_parquet_of_records_without_names(tmp_path: Path) -> None:
    write(ParquetSink(tmp_path / "tuples"), [("a", 1), ("b", 2)])
    assert read(ParquetSource(tmp_path / "tuples")) == [{"f0": "a", "f1": 1}, {"f0": "b", "f1": 2}]
    write(ParquetSink(tmp_path / "numbers", type_info=Types.INT()), [1, 2])
    assert read(ParquetSource(tmp_path / "numbers")) == [{"value": 1}, {"value": 2}]


def test_parquet_columns_that_only_some_dicts_have(tmp_path: Path) -> None:
    write(ParquetSink(tmp_path), [{"a": 1}, {"b": "x"}, {"a": 2, "b": None}])
    assert read(ParquetSource(tmp_path)) == [{"a": 1, "b": None}, {"a": None, "b": "x"}, {"a": 2, "b": None}]


def test_parquet_mistakes(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="compression 'zip'"):
        ParquetSink(tmp_path, compression="zip")
    with pytest.raises(ConfigurationError, match="has no form in a Parquet file"):
        ParquetSink(tmp_path, type_info=Types.ROW([Types.PICKLED_BYTE_ARRAY()]))
    with pytest.raises(ValueError, match=r"column 'a' of a Parquet file: .*ParquetSink\(path, type_info="):
        write(ParquetSink(tmp_path), [{"a": 1}, {"a": "x"}])
    with pytest.raises(ValueError, match="column 'count' of a Parquet file of type int32"):
        write(ParquetSink(tmp_path, type_info=WORD_TYPE), [("a", 2**40)])
    write(ParquetSink(tmp_path), WORD_DICTS)
    with pytest.raises(GraphError, match="has no column 'number'"):
        read(ParquetSource(tmp_path, columns=["number"]))


def test_fields_are_never_lost_silently() -> None:
    assert field_values({"b": 2}, ("a", "b")) == [None, 2]
    assert field_values(Row(b=1, a=2), ("b", "a")) == [1, 2]
    with pytest.raises(ValueError, match="the field 'c' of .* has no column"):
        field_values({"a": 1, "c": 2}, ("a", "b"))
    with pytest.raises(ValueError, match="has 3 fields, the file has the columns a, b"):
        field_values((1, 2, 3), ("a", "b"))
