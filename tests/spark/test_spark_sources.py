"""Spark DataFrames as sources, and streams as DataFrames."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from millrace.common import Configuration, Time, WatermarkStrategy
from millrace.datastream import StreamExecutionEnvironment as Environment
from millrace.datastream.window import TumblingEventTimeWindows
from millrace.errors import GraphError


def collected(stream: Any) -> list[Any]:
    with stream.execute_and_collect() as results:
        return list(results)


def test_a_batch_data_frame_is_a_source(spark: SparkSession) -> None:
    frame = spark.createDataFrame([("a", 1), ("b", 2), ("a", 3)], "name string, n long").repartition(3)
    env = Environment.get_execution_environment().set_parallelism(2)
    sums = env.from_spark(frame).key_by("name").sum("n").map(lambda row: (row.name, row.n))
    assert max(n for name, n in collected(sums) if name == "a") == 4


def test_event_time_of_a_data_frame(spark: SparkSession) -> None:
    frame = spark.range(0, 100, 1, 4).selectExpr("id % 3 AS key", "id * 100 AS at")
    env = Environment.get_execution_environment().set_parallelism(2)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda row, _: row.at)
    counts = (
        env.from_spark(frame)
        .assign_timestamps_and_watermarks(strategy)
        .key_by(lambda row: row.key)
        .window(TumblingEventTimeWindows.of(Time.seconds(1)))
        .apply(lambda key, window, rows: [(key, window.start, len(list(rows)))])
    )
    results = collected(counts)
    assert sum(count for _, _, count in results) == 100
    assert len({(key, start) for key, start, _ in results}) == len(results) == 30


def test_an_empty_data_frame(spark: SparkSession) -> None:
    env = Environment.get_execution_environment().set_parallelism(2)
    frame = spark.createDataFrame([], "n long")
    assert collected(env.from_spark(frame).union(env.from_spark(frame)).key_by("n").sum("n")) == []


def test_a_streaming_data_frame_is_a_source(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for part in range(3):
        lines = [json.dumps({"name": f"k{n % 2}", "n": n}) for n in range(part * 4, part * 4 + 4)]
        (folder / f"{part}.json").write_text("\n".join(lines))
    stream = spark.readStream.schema("name string, n long").option("maxFilesPerTrigger", 1).json(str(folder))
    env = Environment.get_execution_environment().set_parallelism(2)
    counts = env.from_spark(stream).map(lambda row: (row.name, 1)).key_by(0).sum(1)
    seen = []
    with counts.execute_and_collect() as results:
        for _ in range(12):
            seen.append(next(results))
    assert sorted(seen) == sorted((f"k{key}", n) for key in range(2) for n in range(1, 7))


def test_a_streaming_data_frame_is_not_read_twice_after_a_restart(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    schema = "n long"

    def run(expected: int) -> list[Any]:
        config = Configuration.from_dict({"execution.checkpointing.dir": str(tmp_path / "ckpt")})
        env = Environment.get_execution_environment(config).set_parallelism(2)
        env.enable_checkpointing(1000)
        stream = spark.readStream.schema(schema).json(str(folder))
        sums = env.from_spark(stream).map(lambda row: ("all", row.n)).key_by(0).sum(1)
        seen: list[Any] = []
        with sums.execute_and_collect() as results:
            while len(seen) < expected:
                seen.append(next(results))
        return seen

    (folder / "1.json").write_text('{"n": 1}\n{"n": 2}')
    assert run(2)[-1] == ("all", 3)
    (folder / "2.json").write_text('{"n": 10}')
    assert run(1) == [("all", 13)]


@dataclass
class Person:
    name: str
    age: int


def test_a_stream_as_a_data_frame(spark: SparkSession) -> None:
    env = Environment.get_execution_environment().set_parallelism(2)
    frame = env.from_collection([Person("ann", 30), Person("bob", 25)]).map(lambda p: p).to_spark()
    assert frame.where("age > 26").collect()[0]["name"] == "ann"
    env = Environment.get_execution_environment().set_parallelism(2)
    typed = env.from_sequence(1, 4).to_spark("n int")
    assert typed.schema.simpleString() == "struct<n:int>"
    assert sorted(row.n for row in typed.collect()) == [1, 2, 3, 4]


def test_an_endless_stream_has_no_data_frame() -> None:
    env = Environment.get_execution_environment()
    with pytest.raises(GraphError, match="bounded"):
        env.from_generator(lambda n: n).to_spark()


def test_an_error_in_the_job_is_raised_by_to_spark(spark: SparkSession) -> None:
    env = Environment.get_execution_environment().set_parallelism(2)
    with pytest.raises(ZeroDivisionError):
        env.from_elements(0).map(lambda n: 1 // n).to_spark()
