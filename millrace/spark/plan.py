"""From a compiled job to one Spark plan, the same over batch and over streaming DataFrames."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from millrace.common.cloudpickles import by_value
from millrace.errors import GraphError
from millrace.graph.compile import OWN_SOURCES, JobGraph, Stage
from millrace.runtime.chunk import ChunkRow
from millrace.runtime.spec import StageSpec, stage_spec
from millrace.spark.stage import CHUNK_SCHEMA, PARTITION_COLUMN, StageCode, stage_function

__all__ = ["JobPlan", "SparkSource", "main_classes_of_program"]


@dataclass(frozen=True)
class SparkSource:
    """A DataFrame as the source of a stream: Spark reads it, batch or streaming."""

    data_frame: DataFrame

    @property
    def bounded(self) -> bool:
        """Whether it is a batch DataFrame."""
        return not self.data_frame.isStreaming


class JobPlan:
    """The stages of a job as code for Spark, and the plan that runs them."""

    def __init__(
        self,
        job: JobGraph,
        job_id: str,
        *,
        batch: bool,
        parameters: dict[str, str],
        config: Mapping[str, str] | None = None,
    ) -> None:
        self.job = job
        self.specs = [stage_spec(job, stage, batch=batch, parameters=parameters, config=config) for stage in job.stages]
        classes = by_value(main_classes_of_program())
        self.codes = {
            spec.stage: StageCode(job_id, spec.stage, spec.level, spec.external, _pickled(spec), classes)
            for spec in self.specs
        }

    def build(self, spark: SparkSession, *, streaming: bool) -> DataFrame:
        """The plan: read at level 0, then an exchange and a Python stage for each further level."""
        rows = self._sources(spark, streaming)
        order = [ChunkRow._fields[index] for index in (4, 2, 3)]
        for level in range(1, self.job.depth + 1):
            (stage,) = self.job.stages_of(level)
            rows = rows.repartitionById(stage.tasks, "target")
            if not streaming:
                # Spark sorts and spills; a streaming plan may not sort, there the stage sorts its few chunks itself.
                rows = rows.sortWithinPartitions(*order)
            rows = rows.mapInArrow(stage_function(self.codes[stage.id]), CHUNK_SCHEMA)
        return rows

    def external_sources(self) -> list[SparkSource]:
        """The sources that Spark reads."""
        return [node.node.external for node in self.job.nodes if node.node.external is not None]

    def _sources(self, spark: SparkSession, streaming: bool) -> DataFrame:
        # The tasks that read for themselves come first, so that their partition ids are their indexes.
        stages = sorted(self.job.stages_of(0), key=lambda stage: stage.group != OWN_SOURCES)
        frames = [self._source(spark, stage, streaming) for stage in stages]
        rows = frames[0]
        for frame in frames[1:]:
            rows = rows.union(frame)
        if streaming and all(stage.group != OWN_SOURCES for stage in stages):
            # Nothing of ours to read: a tick keeps processing time going when no data comes.
            rows = rows.union(_ticks(spark, 1, streaming).mapInArrow(_nothing, CHUNK_SCHEMA))
        return rows

    def _source(self, spark: SparkSession, stage: Stage, streaming: bool) -> DataFrame:
        if stage.group == OWN_SOURCES:
            frame = _ticks(spark, stage.tasks, streaming)
        else:
            (external,) = (node.node.external for node in stage.nodes if node.node.external is not None)
            frame = external.data_frame
            if streaming:
                # Partitions of a streaming source may come and go; more of them than tasks would only cost.
                frame = frame.coalesce(stage.tasks)
            frame = frame.withColumn(PARTITION_COLUMN, F.spark_partition_id())
        return frame.mapInArrow(stage_function(self.codes[stage.id]), CHUNK_SCHEMA)


def _ticks(spark: SparkSession, tasks: int, streaming: bool) -> DataFrame:
    """One row for each task that reads its sources itself: the row says nothing, the epoch's order does."""
    if not streaming:
        return spark.range(0, tasks, 1, tasks)
    reader = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", tasks).option("numPartitions", tasks)
    return reader.load()


def _nothing(batches: Any) -> Any:
    for _ in batches:
        pass
    return iter(())


def _pickled(spec: StageSpec) -> bytes:
    try:
        return by_value(spec)
    except Exception as error:
        culprit = next((entry for entry in spec.operators if not _can_pickle(entry.operator)), None)
        where = f"operator {culprit.name!r}" if culprit is not None else "the program"
        message = (
            f"{where} cannot be sent to the workers: {error}. Open connections, locks and the like in "
            "open() instead of "
            "capturing them in the function"
        )
        raise GraphError(message) from error


def _can_pickle(value: Any) -> bool:
    try:
        by_value(value)
    except Exception:
        return False
    return True


def main_classes_of_program() -> dict[str, type]:
    """The classes of the program that is being run: workers have another main module and must be told."""
    main = sys.modules.get("__main__")
    found = {
        name: value
        for name, value in vars(main).items()
        if inspect.isclass(value) and value.__module__ == "__main__" and name == value.__qualname__
    }
    return {name: value for name, value in found.items() if _can_pickle(value)}
