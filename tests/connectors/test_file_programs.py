"""Whole programs between files: with crashes at the commit, and on Spark."""

from __future__ import annotations

import json
import resource
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millrace.common import Configuration, Encoder, Row, Types, WatermarkStrategy
from millrace.connectors.files import CsvSource, JsonSink, ParquetSink, ParquetSource, TextSink
from millrace.datastream import StreamExecutionEnvironment
from millrace.datastream.connectors import DeliveryGuarantee, Sink, Source
from millrace.datastream.connectors.file_system import (
    BucketAssigner,
    FileSink,
    FileSource,
    OutputFileConfig,
    RollingPolicy,
    StreamFormat,
)
from millrace.datastream.connectors.number_seq import NumberSequenceSource
from millrace.datastream.formats.csv import (
    CsvBulkWriters,
    CsvReaderFormat,
    CsvRowDeserializationSchema,
    CsvRowSerializationSchema,
    CsvSchema,
)
from millrace.datastream.formats.json import JsonRowDeserializationSchema, JsonRowSerializationSchema
from millrace.datastream.formats.parquet import ParquetBulkWriters, ParquetColumnarRowInputFormat
from millrace.errors import ConfigurationError
from millrace.runtime.source import ReadRange, read_interleaved
from millrace.testing import LocalRun

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class PowerCut(Exception):
    """The driver is gone."""


class DyingSink(JsonSink):
    """Dies at a commit, when a given number of its files have their names."""

    def __init__(self, path: Path, dies_after: int | None) -> None:
        super().__init__(path, bucket_assigner=lambda record: f"digit={record['n'] % 3}")
        self._dies_after = dies_after

    def commit(self, committables: Sequence[Any]) -> None:
        if self._dies_after is not None:
            super().commit(committables[: self._dies_after])
            raise PowerCut
        super().commit(committables)


def visible(folder: Path) -> list[Path]:
    return sorted(p for p in folder.rglob("*") if p.is_file() and not p.name.startswith("."))


def json_lines(folder: Path) -> list[Any]:
    return [json.loads(line) for path in visible(folder) for line in path.read_text().splitlines()]


def run_until_power_cut(folder: Path, epochs: int, dies_after: int | None) -> bool:
    """Start the program, and go on where it was; True if it came to its end."""
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
    source = FileSource(folder / "in", StreamFormat.text_line_format(), split_bytes=40)
    lines = env.from_source(source, WatermarkStrategy.no_watermarks(), "lines")
    sink = DyingSink(folder / "out", None)
    sink.open()
    lines.map(lambda line: {"n": int(line)}).rebalance().sink_to(sink)
    run = LocalRun(env, storage=str(folder / "checkpoints"))
    for _ in range(epochs):
        if run.done:
            break
        run.run_epoch(3)
    if run.done:
        return True
    sink._dies_after = dies_after
    if dies_after is None:
        return False
    with pytest.raises(PowerCut):
        run.run_epoch(3)
    return False


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), st.none() | st.integers(0, 5)), max_size=6))
def test_every_number_is_in_the_output_once_wherever_the_driver_dies(cuts: list[tuple[int, int | None]]) -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "in").mkdir()
        (folder / "in" / "numbers.txt").write_text("".join(f"{number}\n" for number in range(60)))
        done = False
        for epochs, dies_after in cuts:
            done = run_until_power_cut(folder, epochs, dies_after)
            found = [record["n"] for record in json_lines(folder / "out")]
            assert len(found) == len(set(found))
        if not done:
            assert run_until_power_cut(folder, 1_000, None)
        # The last commit may still be due: starting the program once more makes up for it.
        run_until_power_cut(folder, 0, None)
        assert sorted(record["n"] for record in json_lines(folder / "out")) == list(range(60))
        assert all(f"digit={json.loads(p.read_text().split()[0])['n'] % 3}" in str(p) for p in visible(folder / "out"))


def test_a_thousand_small_files_do_not_need_a_thousand_open_files(tmp_path: Path) -> None:
    for number in range(1_000):
        (tmp_path / f"{number}.txt").write_text(f"{number}\n")
    source = FileSource(tmp_path, StreamFormat.text_line_format())
    ranges = [ReadRange("files", s, p, source.advance(s, p, None)[0], True) for s, p in source.splits(1).items()]
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (300, hard))
    try:
        found = [int(line) for _, batch in read_interleaved({"files": source}, ranges) for line in batch.values]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert sorted(found) == list(range(1_000))


def test_a_pyflink_program_with_files(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("a;1;x|y\nb;2;\n")
    schema = (
        CsvSchema.builder()
        .add_string_column("word")
        .add_number_column("count", Types.INT())
        .add_array_column("tags", "|")
        .set_column_separator(";")
        .build()
    )
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    source = FileSource.for_record_stream_format(CsvReaderFormat.for_schema(schema), str(tmp_path / "in.csv"))
    rows = env.from_source(source.process_static_file_set().build(), WatermarkStrategy.no_watermarks(), "csv")
    out = str(tmp_path / "out")
    rows.sink_to(FileSink.for_bulk_format(f"{out}/csv", CsvBulkWriters.for_schema(schema)).build())
    rows.map(lambda row: row.word).sink_to(
        FileSink.for_row_format(f"{out}/text", Encoder.simple_string_encoder())
        .with_bucket_check_interval(1000)
        .with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
        .with_rolling_policy(RollingPolicy.on_checkpoint_rolling_policy())
        .with_output_file_config(OutputFileConfig.builder().with_part_suffix(".txt").build())
        .build()
    )
    parquet = ParquetBulkWriters.for_row_type(schema.row_type)
    rows.sink_to(FileSink.for_bulk_format(f"{out}/parquet", parquet).build())
    LocalRun(env).run()
    assert [path.read_text() for path in visible(tmp_path / "out" / "csv")] == ["a;1;x|y\nb;2;\n"]
    assert [path.read_text() for path in visible(tmp_path / "out" / "text")] == ["a\nb\n"]
    back = FileSource.for_bulk_file_format(ParquetColumnarRowInputFormat(schema.row_type), f"{out}/parquet").build()
    ((split, start),) = back.splits(1).items()
    make = Row("word", "count", "tags")
    assert list(back.read(split, start, 2)) == [[make("a", 1, ["x", "y"]), make("b", 2, [])]]


def test_messages_as_csv_and_json() -> None:
    row_type = Types.ROW_NAMED(["word", "count"], [Types.STRING(), Types.INT()])
    row = Row("word", "count")("a,b", 1)
    to_csv = CsvRowSerializationSchema.Builder(row_type).set_line_delimiter("").build()
    from_csv = CsvRowDeserializationSchema.Builder(row_type).set_ignore_parse_errors(True).build()
    assert to_csv.serialize(row) == b'"a,b",1'
    assert from_csv.deserialize(b'"a,b",1') == row
    assert from_csv.deserialize(b"a,many") is None
    builder = JsonRowDeserializationSchema.builder().type_info(row_type)
    assert JsonRowSerializationSchema.builder().build().serialize(row) == b'{"word":"a,b","count":1}'
    assert builder.build().deserialize(b'{"word": "a,b", "count": 1}') == row
    assert builder.build().deserialize(b"{}") == Row("word", "count")(None, None)
    with pytest.raises(ValueError, match="the field word, count is missing"):
        builder.fail_on_missing_field().build().deserialize(b"{}")
    with pytest.raises(ConfigurationError, match="exclude each other"):
        builder.ignore_parse_errors().build()
    assert (
        JsonRowDeserializationSchema.builder().type_info(row_type).ignore_parse_errors().build().deserialize(b"{")
        is None
    )


def test_names_that_pyflink_programs_import() -> None:
    assert [guarantee.name for guarantee in DeliveryGuarantee] == ["EXACTLY_ONCE", "AT_LEAST_ONCE", "NONE"]
    assert issubclass(FileSink, Sink)
    assert issubclass(FileSource, Source)
    assert issubclass(NumberSequenceSource, Source)


@pytest.mark.parametrize("checkpoints", [False, True])
def test_files_on_spark(spark: SparkSession, tmp_path: Path, checkpoints: bool) -> None:
    config = Configuration()
    if checkpoints:
        config.set_string("pipeline.epoch.max-records", "40")
        config.set_string("execution.checkpointing.dir", str(tmp_path / "checkpoints"))
    env = StreamExecutionEnvironment.get_execution_environment(config).set_parallelism(2)
    env.from_collection(list(range(100))).rebalance().sink_to(TextSink(tmp_path / "text"))
    env.from_collection([("a", 1), ("b", 2)]).sink_to(ParquetSink(tmp_path / "parquet"))
    env.execute()
    assert sorted(int(line) for path in visible(tmp_path / "text") for line in path.read_text().split()) == list(
        range(100)
    )
    assert sorted(map(tuple, spark.read.parquet(str(tmp_path / "parquet")).collect())) == [("a", 1), ("b", 2)]
    assert sorted(row[0] for row in spark.read.text(str(tmp_path / "text")).collect())[:2] == ["0", "1"]

    (tmp_path / "in.csv").write_text("word,count\na,1\nb,2\na,3\n")
    row_type = Types.ROW_NAMED(["word", "count"], [Types.STRING(), Types.INT()])
    rows = env.from_source(CsvSource(tmp_path / "in.csv", type_info=row_type), WatermarkStrategy.no_watermarks(), "csv")
    source = ParquetSource(tmp_path / "parquet")
    pairs = env.from_source(source, WatermarkStrategy.no_watermarks(), "parquet").map(lambda r: (r["f0"], r["f1"]))
    counts = rows.map(lambda row: (row.word, row.count)).union(pairs)
    if checkpoints:
        config.set_string("execution.checkpointing.dir", str(tmp_path / "checkpoints of the second job"))
        env.configure(config)
    assert sorted(counts.execute_and_collect()) == [("a", 1), ("a", 1), ("a", 3), ("b", 2), ("b", 2)]
