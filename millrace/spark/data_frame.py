"""A bounded stream as a Spark DataFrame."""

from __future__ import annotations

import dataclasses
import pickle
import uuid
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from millrace.common.row import Row
from millrace.errors import GraphError
from millrace.graph.compile import JobGraph
from millrace.graph.executor import JobSettings
from millrace.runtime.chunk import ChunkRow
from millrace.runtime.coordinator import SourceCoordinator
from millrace.spark.order import EPOCH_PROPERTY, EpochOrder
from millrace.spark.plan import JobPlan

__all__ = ["job_as_data_frame"]


def job_as_data_frame(job: JobGraph, settings: JobSettings, spark: SparkSession, schema: Any) -> DataFrame:
    """Run a bounded job and give what its one sink collected as a DataFrame.

    The records stay in Spark: the rows that would go to the driver are kept by Spark and decoded by its workers.
    Without a schema, the first record decides.
    """
    if not job.bounded:
        message = "to_spark() needs a bounded stream: a stream without end has no DataFrame. Use a sink instead"
        raise GraphError(message)
    plan = JobPlan(job, uuid.uuid4().hex, batch=settings.batch, parameters=settings.parameters, config=settings.config)
    sources = {node.uid: (node.node.source, node.parallelism) for node in job.nodes if node.node.source is not None}
    reads = SourceCoordinator(sources).plan(None)
    order = EpochOrder(uuid.uuid4().hex, 1, None, plan=reads.to_json(), last=True)
    spark.sparkContext.setLocalProperty(EPOCH_PROPERTY, order.to_json())
    rows = plan.build(spark, streaming=False).persist()
    try:
        first = _first_record(rows)
        struct = _schema(spark, schema, first)
    except BaseException:
        rows.unpersist()
        raise
    return rows.mapInArrow(_decoder(to_arrow_schema(struct), struct.names), struct)


def _first_record(rows: DataFrame) -> Any:
    """Run the job; its first record, or None. A failure of a task is raised here."""
    found: list[Any] = []
    for row in rows.select("blob").toLocalIterator():
        kind, *content = pickle.loads(bytes(row.blob))
        if kind == "error":
            raise content[0].rebuild()
        if kind == "commit" and not found:
            found.append(content[1][0])
    return found[0] if found else None


def _schema(spark: SparkSession, schema: Any, first: Any) -> StructType:
    if isinstance(schema, StructType):
        return schema
    if isinstance(schema, str):
        return spark.createDataFrame([], schema).schema
    if first is None:
        message = (
            "to_spark(): the stream is empty, so its columns are unknown. Give a schema: to_spark('name "
            "string, n long')"
        )
        raise GraphError(message)
    values, names = _fields(first)
    return spark.createDataFrame([tuple(values)], schema or names).schema


def _fields(record: Any) -> tuple[list[Any], list[str]]:
    """The columns of a record, and what they are called."""
    if isinstance(record, dict):
        return list(record.values()), [str(name) for name in record]
    if isinstance(record, Row):
        named = record.as_dict()
        return list(named.values()), list(named)
    if dataclasses.is_dataclass(record) and not isinstance(record, type):
        names = [field.name for field in dataclasses.fields(record)]
        return [getattr(record, name) for name in names], names
    if isinstance(record, tuple):
        names = list(getattr(record, "_fields", [f"_{index + 1}" for index in range(len(record))]))
        return list(record), names
    return [record], ["value"]


def _decoder(schema: pa.Schema, names: list[str]) -> Any:
    def decode(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return decode_records(schema, names, batches)

    return decode


def decode_records(schema: pa.Schema, names: list[str], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Collected records as columns."""
    index = ChunkRow._fields.index("blob")
    for batch in batches:
        for blob in batch.column(index).to_pylist():
            kind, *content = pickle.loads(blob)
            if kind != "commit":
                continue
            rows = [_fields(record)[0] for record in content[1]]
            columns = list(zip(*rows, strict=True))
            arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)
