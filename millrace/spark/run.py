"""One run of a job: prepared, run as one batch plan or epoch by epoch, and cleaned up."""

from __future__ import annotations

import shutil
import tempfile
import threading
import time
import uuid
from typing import Any, Final

from pyspark.sql import SparkSession

from millrace.common.job_id import JobID
from millrace.errors import ConfigurationError, JobError
from millrace.graph.compile import JobGraph
from millrace.graph.executor import JobSettings
from millrace.graph.node import NodeKind
from millrace.runtime.coordinator import SourceCoordinator
from millrace.runtime.ledger import Ledger, collect_result, operator_entries
from millrace.runtime.restore import fingerprint
from millrace.runtime.sink import Sink, SinkOperator
from millrace.spark.epochs import EpochLoop, EpochSettings
from millrace.spark.order import EPOCH_PROPERTY, EpochOrder
from millrace.spark.plan import JobPlan
from millrace.spark.progress import ProgressKeeper
from millrace.state.manifest import latest_epoch
from millrace.state.storage import Storage

__all__ = ["JobRun"]

CHECKPOINT_DIR: Final = "execution.checkpointing.dir"
MAX_RECORDS: Final = "pipeline.epoch.max-records"
RETAINED: Final = "execution.checkpointing.num-retained"
_DEFAULT_MAX_RECORDS: Final = 500_000


class JobRun:
    """Everything that one execution of a job holds on the driver."""

    def __init__(self, job: JobGraph, settings: JobSettings, spark: SparkSession) -> None:
        self.job = job
        self.settings = settings
        self.spark = spark
        self.job_id = JobID()
        self.progress = ProgressKeeper()
        self.plan = JobPlan(job, str(self.job_id), batch=settings.batch, parameters=settings.parameters)
        self.started = 0.0
        self._stop = threading.Event()
        self._loop: EpochLoop | None = None
        nodes = [(node.uid, node) for node in job.nodes]
        self._sources = {uid: (n.node.source, n.parallelism) for uid, n in nodes if n.node.source is not None}
        self._sinks: dict[str, Sink[Any]] = {
            uid: n.node.operator.sink for uid, n in nodes if isinstance(n.node.operator, SinkOperator)
        }
        self._check_sources()

    @property
    def in_epochs(self) -> bool:
        """Unbounded jobs, and bounded ones that asked for checkpoints or for epochs of a certain size."""
        paced = any(source.paced for source, _ in self._sources.values())
        asked = paced or self.settings.checkpointing or MAX_RECORDS in self.settings.config
        return not self.job.bounded or (asked and not self.settings.batch and not self.plan.external_sources())

    def run(self) -> None:
        """Run to the end, or until stopped. Raises what made it fail."""
        self.started = time.monotonic()
        opened: list[Any] = []
        try:
            for part in (*(source for source, _ in self._sources.values()), *self._sinks.values()):
                part.open()
                opened.append(part)
            if self.in_epochs:
                self._run_epochs()
            else:
                self._run_once()
        finally:
            for part in opened:
                part.close()

    def stop(self) -> None:
        """End the run as soon as the epoch that is under way allows."""
        self._stop.set()
        if self._loop is not None:
            self._loop.stop()
        else:
            self.spark.sparkContext.cancelJobGroup(str(self.job_id))

    @property
    def stopped(self) -> bool:
        """Whether somebody asked for the end."""
        return self._stop.is_set()

    def _run_once(self) -> None:
        """Bounded input: one plan over batch DataFrames, collected once."""
        coordinator = SourceCoordinator(self._sources)
        plan = coordinator.plan(None)
        order = EpochOrder(uuid.uuid4().hex, 1, None, plan=plan.to_json(), last=True)
        context = self.spark.sparkContext
        context.setJobGroup(str(self.job_id), self.job.name, interruptOnCancel=True)
        context.setLocalProperty(EPOCH_PROPERTY, order.to_json())
        rows = self.plan.build(self.spark, streaming=False).collect()
        result = collect_result(rows)
        for uid, items in result.committables().items():
            self._sinks[uid].commit(items)
        for uid, items in result.shown:
            self._sinks[uid].commit(items)
        self.progress.take(1, result)

    def _run_epochs(self) -> None:
        """Epoch after epoch through foreachBatch, each made real by its manifest."""
        location = self.settings.config.get(CHECKPOINT_DIR)
        scratch = tempfile.mkdtemp(prefix="millrace-")
        try:
            storage = Storage(location or scratch)
            coordinator = SourceCoordinator(self._sources)
            ledger = Ledger(storage, self._sinks, int(self.settings.config.get(RETAINED, "1")))
            self._loop = EpochLoop(
                self.spark,
                self.plan,
                coordinator,
                ledger,
                self.progress,
                EpochSettings(
                    name=self.job.name,
                    fingerprint=fingerprint(self.plan.specs),
                    operators=operator_entries(self.plan.specs),
                    max_records=int(self.settings.config.get(MAX_RECORDS, _DEFAULT_MAX_RECORDS)),
                    idle_tick_ms=self._idle_tick(),
                    spark_checkpoint=f"{location or scratch}/spark"
                    if self.plan.external_sources()
                    else f"{scratch}/spark",
                ),
            )
            if self._stop.is_set():
                return
            last = latest_epoch(storage)
            if last is not None:
                self._loop.resume(last)
            self._loop.run()
        finally:
            shutil.rmtree(scratch, ignore_errors=True)

    def _idle_tick(self) -> int | None:
        """How often an epoch is needed without data, so that idle sources are noticed."""
        strategies = (getattr(node.node.operator, "strategy", None) for node in self.job.nodes)
        timeouts = [s.idle_timeout_ms for s in strategies if s is not None and s.idle_timeout_ms is not None]
        return max(20, min(timeouts) // 2) if timeouts else None

    def _check_sources(self) -> None:
        external = self.plan.external_sources()
        bounded = [source.bounded for source in external]
        if external and any(bounded) and not self.job.bounded:
            message = (
                "a batch DataFrame (from_spark) cannot be mixed with an unbounded source: Spark does not "
                "run both in one plan. "
                "Read it with spark.readStream, or collect it into from_collection"
            )
            raise ConfigurationError(message)
        for node in self.job.nodes:
            if node.node.kind is NodeKind.SOURCE and node.node.source is None and node.node.external is None:
                message = f"source {node.name!r} has nothing to read from"
                raise JobError(message)
