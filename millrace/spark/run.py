"""One run of a job: prepared, run as one batch plan or epoch by epoch, and cleaned up."""

from __future__ import annotations

import shutil
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, Final

from pyspark.sql import SparkSession

from millrace.common.completable_future import CompletableFuture
from millrace.common.configuration import Configuration
from millrace.common.job_id import JobID
from millrace.common.time import Duration
from millrace.common.watermark_strategy import (
    BoundedOutOfOrdernessWatermarks,
    NoWatermarksGenerator,
    WatermarkStrategy,
)
from millrace.errors import ConfigurationError, JobError
from millrace.graph.compile import JobGraph
from millrace.graph.executor import JobSettings
from millrace.graph.node import NodeKind
from millrace.runtime.alignment import alignment_of
from millrace.runtime.beginning import begin, prepare
from millrace.runtime.control import SavepointDesk, SavepointRequest
from millrace.runtime.coordinator import SourceCoordinator
from millrace.runtime.ledger import EpochResult, Ledger, collect_result, operator_entries
from millrace.runtime.mapping import restore_path
from millrace.runtime.recovery import Patience, RestartPolicy
from millrace.runtime.restore import fingerprint
from millrace.runtime.sink import Sink, SinkOperator
from millrace.spark.epochs import EpochLoop, EpochSettings
from millrace.spark.order import EPOCH_PROPERTY, EpochOrder
from millrace.spark.plan import JobPlan
from millrace.spark.progress import ProgressKeeper
from millrace.state.fence import Fence
from millrace.state.storage import Storage

__all__ = ["JobRun"]

CHECKPOINT_DIR: Final = "execution.checkpointing.dir"
MAX_RECORDS: Final = "pipeline.epoch.max-records"
RETAINED: Final = "execution.checkpointing.num-retained"
MIN_PAUSE: Final = "execution.checkpointing.min-pause"
TIMEOUT: Final = "execution.checkpointing.timeout"
OWNER_TIMEOUT: Final = "execution.checkpointing.owner-timeout"
SAVEPOINT_DIR: Final = "execution.checkpointing.savepoint-dir"
_WATERMARK_INTERVAL_MS: Final = 200
_DEFAULT_MAX_RECORDS: Final = 500_000


class JobRun:
    """Everything that one execution of a job holds on the driver."""

    def __init__(self, job: JobGraph, settings: JobSettings, spark: SparkSession) -> None:
        self.job = job
        self.settings = settings
        self.spark = spark
        self.job_id = JobID()
        self.progress = ProgressKeeper()
        location = settings.config.get(CHECKPOINT_DIR)
        # What the job starts from has a say in the plan: the number of key groups cannot change.
        self._beginning = prepare(job, settings.config, Storage(location) if location else None)
        self.plan = JobPlan(
            job, str(self.job_id), batch=settings.batch, parameters=settings.parameters, config=settings.config
        )
        self.started = 0.0
        self._stop = threading.Event()
        self._loop: EpochLoop | None = None
        self._policy = RestartPolicy.from_settings(settings.config)
        self._desk = SavepointDesk(Storage(location) if location else None)
        self._restarting = False
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
        config = self.settings.config
        asked = paced or self.settings.checkpointing or MAX_RECORDS in config or restore_path(config) is not None
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
            self._desk.close()
            for part in opened:
                part.close()

    def savepoint(self, directory: str | None, *, stop: bool = False, drain: bool = False) -> CompletableFuture[str]:
        """Ask for a savepoint after the epoch that is under way."""
        target = directory or self.settings.config.get(SAVEPOINT_DIR)
        if target is None:
            message = (
                "a savepoint needs a directory: pass one, or call env.set_default_savepoint_directory(...) "
                f"({SAVEPOINT_DIR})"
            )
            return CompletableFuture.failed(JobError(message))
        if not self.in_epochs:
            message = (
                "this job runs as one batch and has no state between epochs to save: call enable_checkpointing(...), "
                f"or set {MAX_RECORDS}"
            )
            return CompletableFuture.failed(JobError(message))
        request = SavepointRequest(target, stop, drain)
        self._desk.put(request)
        return request.path

    @property
    def restarting(self) -> bool:
        """Whether the job waits to run again after a failure."""
        return self._restarting or (self._loop is not None and self._loop.restarting)

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
        result: EpochResult | None = None
        while result is None:
            try:
                result = self._collect_once()
            except Exception as error:
                pause = None if self.stopped else self._policy.pause(error, time.monotonic())
                if pause is None:
                    raise
                self._restarting = True
                self._stop.wait(pause)
                self._restarting = False
        for uid, items in result.committables().items():
            self._sinks[uid].commit(items)
        for uid, items in result.shown:
            self._sinks[uid].commit(items)
        self.progress.take(1, result)

    def _collect_once(self) -> EpochResult:
        coordinator = SourceCoordinator(self._sources)
        plan = coordinator.plan(None)
        order = EpochOrder(uuid.uuid4().hex, 1, None, plan=plan.to_json(), last=True)
        context = self.spark.sparkContext
        context.setJobGroup(str(self.job_id), self.job.name, interruptOnCancel=True)
        context.setLocalProperty(EPOCH_PROPERTY, order.to_json())
        return collect_result(self.plan.build(self.spark, streaming=False).collect())

    def _run_epochs(self) -> None:
        """Epoch after epoch through foreachBatch, each made real by its manifest."""
        config = self.settings.config
        location = config.get(CHECKPOINT_DIR)
        run = uuid.uuid4().hex
        with _scratch_folder() as scratch:
            storage = Storage(location or scratch)
            owner_timeout = self._seconds(OWNER_TIMEOUT, 60)
            fence = Fence(storage, run, self.job.name, owner_timeout or 60.0) if location else None
            with fence or nullcontext():
                coordinator = SourceCoordinator(self._sources, alignment_of(self.plan.specs))
                ledger = Ledger(storage, self._sinks, int(config.get(RETAINED, "1")), run=run, fence=fence)
                place = location or scratch if self._external else scratch
                settings = self._epoch_settings(f"{place}/spark")
                self._loop = EpochLoop(
                    self.spark,
                    self.plan,
                    coordinator,
                    ledger,
                    self.progress,
                    settings,
                    policy=self._policy,
                    patience=Patience.from_settings(config),
                    desk=self._desk,
                )
                if self._stop.is_set():
                    return
                start = begin(self._beginning, ledger, coordinator, self.job, config, settings.fingerprint)
                self._loop.start_from(start)
                self._loop.run()

    @property
    def _external(self) -> bool:
        return bool(self.plan.external_sources())

    def _epoch_settings(self, spark_checkpoint: str) -> EpochSettings:
        config = self.settings.config
        return EpochSettings(
            name=self.job.name,
            fingerprint=fingerprint(self.plan.specs),
            operators=operator_entries(self.plan.specs),
            max_records=int(config.get(MAX_RECORDS, _DEFAULT_MAX_RECORDS)),
            idle_tick_ms=self._idle_tick(),
            spark_checkpoint=spark_checkpoint,
            min_pause_s=self._seconds(MIN_PAUSE, 0) or 0.0,
            timeout_s=self._seconds(TIMEOUT, None),
        )

    def _seconds(self, key: str, default: float | None) -> float | None:
        """A length of time among the settings, in seconds."""
        config = Configuration.from_dict(self.settings.config)
        if not config.contains_key(key):
            return default
        return config.get_duration(key, Duration.of_millis(0)).to_millis() / 1000

    def _idle_tick(self) -> int | None:
        """How often an epoch is needed without data: idle sources want to be noticed, generators to be asked."""
        ticks = []
        for node in self.job.nodes:
            strategy = getattr(node.node.operator, "strategy", None)
            if not isinstance(strategy, WatermarkStrategy):
                continue
            if strategy.idle_timeout_ms is not None:
                ticks.append(max(20, strategy.idle_timeout_ms // 2))
            if not isinstance(strategy.create_generator(), BoundedOutOfOrdernessWatermarks | NoWatermarksGenerator):
                ticks.append(_WATERMARK_INTERVAL_MS)
        return min(ticks, default=None)

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
        if self.settings.batch and restore_path(self.settings.config) is not None:
            message = "BATCH mode cannot start from a savepoint: use RuntimeExecutionMode.STREAMING"
            raise ConfigurationError(message)
        for node in self.job.nodes:
            if node.node.kind is NodeKind.SOURCE and node.node.source is None and node.node.external is None:
                message = f"source {node.name!r} has nothing to read from"
                raise JobError(message)


@contextmanager
def _scratch_folder() -> Iterator[str]:
    folder = tempfile.mkdtemp(prefix="millrace-")
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
