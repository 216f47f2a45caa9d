"""The epoch loop: Spark's micro-batches call it, it plans, runs and commits."""

from __future__ import annotations

import json
import threading
import time
import uuid
from dataclasses import dataclass, field
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from millrace.errors import JobError
from millrace.runtime.coordinator import EpochPlan, SourceCoordinator
from millrace.runtime.ledger import Ledger, collect_result, manifest_of
from millrace.spark.order import EPOCH_PROPERTY, EpochOrder
from millrace.spark.plan import JobPlan
from millrace.spark.progress import ProgressKeeper
from millrace.state.manifest import OperatorEntry

__all__ = ["EpochLoop", "EpochSettings"]

_POLL_SECONDS: Final = 0.005
_INLINE_PLAN: Final = 32 * 1024
_WATCH_SECONDS: Final = 0.02


@dataclass(frozen=True)
class EpochSettings:
    """What the loop needs to know of the job."""

    name: str
    fingerprint: str
    operators: dict[str, OperatorEntry] = field(default_factory=dict)
    max_records: int = 500_000
    idle_tick_ms: int | None = None
    spark_checkpoint: str = ""


class EpochLoop:
    """Runs the plan over streaming DataFrames: Spark calls ``_on_batch`` once for each micro-batch.

    Spark's micro-batch gives the rhythm and, for sources that Spark reads, the data; sources of our own are planned
    here, and the plan is logged before the epoch runs, so that a replay reads the same.
    """

    def __init__(
        self,
        spark: SparkSession,
        plan: JobPlan,
        coordinator: SourceCoordinator,
        ledger: Ledger,
        progress: ProgressKeeper,
        settings: EpochSettings,
    ) -> None:
        self._spark = spark
        self._plan = plan
        self._coordinator = coordinator
        self._ledger = ledger
        self._progress = progress
        self._settings = settings
        self._external = bool(plan.external_sources())
        self._run_id = uuid.uuid4().hex
        self._epoch = 0
        self._same_graph = True
        self._logged: EpochPlan | None = None
        self._next_timer: int | None = None
        self._last_run = 0.0
        self._stopping = threading.Event()
        self._over = threading.Event()
        self._error: BaseException | None = None

    def resume(self, epoch: int) -> None:
        """Go on after the last epoch of an earlier run of this job."""
        manifest = self._ledger.resume(epoch)
        self._epoch = epoch
        self._coordinator.restore(manifest.positions, manifest.finished, manifest.split_parallelism)
        self._same_graph = manifest.fingerprint == self._settings.fingerprint
        name = _plan_file(epoch + 1)
        if self._same_graph and self._ledger.storage.exists(name):
            self._logged = EpochPlan.from_json(json.loads(self._ledger.storage.read(name)))

    def run(self) -> None:
        """Run until the sources end, somebody stops it or an epoch fails."""
        if self._coordinator.done and not self._external:
            return
        frame = self._plan.build(self._spark, streaming=True)
        writer = frame.writeStream.foreachBatch(self._on_batch).option(
            "checkpointLocation", self._settings.spark_checkpoint
        )
        query = writer.start()
        try:
            while not self._over.wait(_WATCH_SECONDS) and not self._stopping.is_set():
                if not query.isActive:
                    break
        finally:
            failed = query.exception()
            query.stop()
        if self._error is not None:
            raise self._error
        if failed is not None and not self._stopping.is_set():
            raise JobError(f"Spark ended the job: {failed}")

    def stop(self) -> None:
        """End after the epoch that is under way."""
        self._stopping.set()

    def _on_batch(self, frame: DataFrame, batch_id: int) -> None:
        try:
            if self._error is None and not self._over.is_set():
                plan = self._next_plan(batch_id)
                if plan is not None:
                    self._run_epoch(frame, plan, batch_id)
        except BaseException as error:
            # Spark must not take the batch as done; the error itself is raised to the user by run().
            self._error = error
            self._over.set()
            raise

    def _next_plan(self, batch_id: int) -> EpochPlan | None:
        """Wait for something to do."""
        if self._external and self._ledger.last is not None and batch_id <= self._ledger.last.spark_batch:
            return None
        if self._logged is not None:
            plan, self._logged = self._logged, None
            return plan
        while not self._stopping.is_set():
            plan = self._coordinator.plan(self._settings.max_records)
            if not plan.empty or self._external or self._due():
                return plan
            self._stopping.wait(_POLL_SECONDS)
        return None

    def _due(self) -> bool:
        """Whether an epoch is needed though there is nothing to read: a timer, an idleness probe, the very first
        one."""
        if self._last_run == 0.0:
            return True
        if self._next_timer is not None and self._next_timer <= time.time() * 1000:
            return True
        tick = self._settings.idle_tick_ms
        return tick is not None and (time.monotonic() - self._last_run) * 1000 >= tick

    def _run_epoch(self, frame: DataFrame, plan: EpochPlan, batch_id: int) -> None:
        epoch = self._epoch + 1
        storage = self._ledger.storage
        content = plan.to_json()
        text = json.dumps(content)
        storage.write(_plan_file(epoch), text.encode())
        order = EpochOrder(
            self._run_id,
            epoch,
            storage.location,
            base=self._epoch,
            same_graph=self._same_graph,
            attempts=self._ledger.attempts() if self._same_graph else {},
            plan=content if len(text) <= _INLINE_PLAN else _plan_file(epoch),
            last=plan.last and not self._external,
            streaming=True,
            full=self._ledger.wants_full(),
        )
        frame.sparkSession.sparkContext.setLocalProperty(EPOCH_PROPERTY, order.to_json())
        result = collect_result(frame.collect())
        self._coordinator.confirm(plan)
        settings = self._settings
        manifest = manifest_of(epoch, self._coordinator, settings.fingerprint, settings.name, settings.operators)
        manifest.spark_batch = batch_id if self._external else -1
        manifest.done = order.last
        self._ledger.commit(manifest, result)
        storage.delete(_plan_file(epoch - 1))
        self._epoch = epoch
        self._same_graph = True
        self._next_timer = min((r.next_timer for r in result.reports if r.next_timer is not None), default=None)
        self._last_run = time.monotonic()
        self._progress.take(epoch, result)
        if order.last:
            self._over.set()


def _plan_file(epoch: int) -> str:
    return f"plans/{epoch:012d}.json"
