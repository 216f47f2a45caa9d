"""The epoch loop: Spark's micro-batches call it, it plans, runs and commits."""

from __future__ import annotations

import json
import logging
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession

from millrace.errors import JobError, RestoreError
from millrace.runtime.beginning import Start
from millrace.runtime.control import DRAINED, SavepointDesk, SavepointRequest, drain_plan
from millrace.runtime.coordinator import EpochPlan, SourceCoordinator
from millrace.runtime.ledger import EpochResult, Ledger, collect_result, manifest_of, tentatively
from millrace.runtime.recovery import CheckpointFailure, Patience, RestartPolicy
from millrace.spark.order import EPOCH_PROPERTY, EpochOrder
from millrace.spark.plan import JobPlan
from millrace.spark.progress import ProgressKeeper
from millrace.state.manifest import OperatorEntry

__all__ = ["EpochLoop", "EpochSettings"]

_SPARK_REST_SECONDS: Final = 0.1
_POLL_SECONDS: Final = 0.005
_INLINE_PLAN: Final = 32 * 1024
_WATCH_SECONDS: Final = 0.02
_log = logging.getLogger("millrace")


@dataclass(frozen=True)
class EpochSettings:
    """What the loop needs to know of the job. ``timeout_s`` is the longest an epoch may take, ``min_pause_s`` the
    shortest time from the end of one to the start of the next."""

    name: str
    fingerprint: str
    operators: dict[str, OperatorEntry] = field(default_factory=dict)
    max_records: int = 500_000
    idle_tick_ms: int | None = None
    spark_checkpoint: str = ""
    min_pause_s: float = 0.0
    timeout_s: float | None = None


class EpochLoop:
    """Runs the plan over streaming DataFrames: Spark calls ``_on_batch`` once for each micro-batch.

    Spark's micro-batch gives the rhythm and, for sources that Spark reads, the data; sources of our own are planned
    here, and the plan is logged before the epoch runs, so that a replay reads the same. After a failed epoch the query
    is started again, if the restart strategy says so.
    """

    def __init__(
        self,
        spark: SparkSession,
        plan: JobPlan,
        coordinator: SourceCoordinator,
        ledger: Ledger,
        progress: ProgressKeeper,
        settings: EpochSettings,
        *,
        policy: RestartPolicy,
        patience: Patience,
        desk: SavepointDesk,
    ) -> None:
        self._spark = spark
        self._plan = plan
        self._coordinator = coordinator
        self._ledger = ledger
        self._progress = progress
        self._settings = settings
        self._policy = policy
        self._patience = patience
        self._desk = desk
        self._external = bool(plan.external_sources())
        self._start = Start()
        self._epoch = 0
        self._same_graph = True
        self._planned: EpochPlan | None = None
        self._unsettled: tuple[int, EpochResult, bool] | None = None
        self._draining: SavepointRequest | None = None
        self._next_timer: int | None = None
        self._last_run = 0.0
        self._stopping = threading.Event()
        self._over = threading.Event()
        self._error: BaseException | None = None
        self.restarting = False

    def start_from(self, start: Start) -> None:
        """Go on where an earlier run, or a snapshot, ended. The sources are there already."""
        self._start = start
        self._epoch = start.epoch
        self._same_graph = start.same_graph
        name = _plan_file(start.epoch + 1)
        storage = self._ledger.storage
        if start.same_graph and start.snapshot is None and start.epoch and storage.exists(name):
            self._planned = EpochPlan.from_json(json.loads(storage.read(name)))

    def run(self) -> None:
        """Run until the sources end, somebody stops it or an epoch fails for good."""
        if self._coordinator.done and not self._external:
            return
        frame = self._plan.build(self._spark, streaming=True)
        try:
            while (error := self._run_query(frame)) is not None:
                if self._stopping.is_set() or not isinstance(error, Exception) or not self._may_go_on(error):
                    raise error
                self._error = None
                self._over.clear()
        finally:
            if self._draining is not None and not self._draining.path.done():
                self._draining.path.set_exception(JobError("the job ended before it was drained"))

    def _run_query(self, frame: DataFrame) -> BaseException | None:
        """One run of Spark's query, and what made it fail.

        A failed epoch needs a new query: within a micro-batch Spark would take the first stage's output as it is,
        failure included, for it keeps the files of an exchange.
        """
        writer = frame.writeStream.foreachBatch(self._on_batch)
        query = writer.option("checkpointLocation", self._settings.spark_checkpoint).start()
        try:
            while not self._over.wait(_WATCH_SECONDS) and not self._stopping.is_set():
                if not query.isActive:
                    break
        finally:
            failed = query.exception()
            query.stop()
        if self._error is not None:
            return self._error
        if failed is not None and not self._stopping.is_set() and not self._over.is_set():
            return JobError(f"Spark ended the job: {failed}")
        return None

    def stop(self) -> None:
        """End after the epoch that is under way."""
        self._stopping.set()

    def _on_batch(self, frame: DataFrame, batch_id: int) -> None:
        try:
            if self._error is None and not self._over.is_set():
                self._step(frame, batch_id)
        except BaseException as error:
            # Spark must not take the batch as done; what becomes of the error is run()'s business.
            self._error = error
            self._over.set()
            raise

    def _may_go_on(self, error: Exception) -> bool:
        """Wait as the restart strategy says; False if it says no."""
        if isinstance(error, CheckpointFailure) and self._patience.lasts():
            _log.warning("%s. The epoch is run again", error)
            return True
        pause = self._policy.pause(error, time.monotonic())
        if pause is None:
            return False
        _log.warning("restarting from epoch %d in %.3g s after %s: %s", self._epoch, pause, type(error).__name__, error)
        self.restarting = True
        self._stopping.wait(pause)
        if isinstance(error, RestoreError) and self._ledger.last is not None:
            self._fall_back()
        self.restarting = False
        return True

    def _fall_back(self) -> None:
        """Go on from the newest epoch that is whole: if it is still the last one, nothing changes."""
        before = self._epoch
        manifest = self._ledger.resume()
        if manifest is not None and manifest.epoch != before:
            self._coordinator.ended.clear()
            self._coordinator.restore(manifest.positions, manifest.finished, manifest.split_parallelism)
            self._planned = None
            self.start_from(Start(manifest.epoch, manifest.fingerprint == self._settings.fingerprint))

    def _step(self, frame: DataFrame, batch_id: int) -> None:
        """One epoch; or, after a sink has failed to commit one, that again."""
        if self._unsettled is not None:
            self._settle()
            return
        plan = self._next_plan(batch_id)
        if plan is not None:
            self._run_epoch(frame, plan, batch_id)
        elif self._external and self._stopping.is_set():
            # Returning would tell Spark that this batch is done, and it would not be read again.
            raise JobError("stopped before this batch was processed")

    def _next_plan(self, batch_id: int) -> EpochPlan | None:
        """Wait for something to do."""
        if self._external and self._ledger.last is not None and batch_id <= self._ledger.last.spark_batch:
            return None
        if self._coordinator.done and not self._external:
            self._over.set()
            return None
        while not self._stopping.is_set():
            drain = self._serve_request()
            if drain is not None or self._over.is_set():
                return drain
            if self._planned is not None:
                return self._planned
            if self._rested():
                plan = self._coordinator.plan(self._settings.max_records)
                if not plan.empty or self._external or self._due():
                    return plan
            self._stopping.wait(_POLL_SECONDS)
        return None

    def _serve_request(self) -> EpochPlan | None:
        """Write the savepoint that somebody waits for; if event time has to end first, the plan of that epoch."""
        if self._draining is not None:
            return drain_plan(self._coordinator)
        if self._ledger.last is None:
            return None  # there is no state before the first epoch
        request = self._desk.next()
        if request is None:
            return None
        if request.drain and not self._external:
            self._draining = request
            return drain_plan(self._coordinator)
        if self._desk.serve(request, self._ledger) and request.stop:
            self._over.set()
        return None

    def _rested(self) -> bool:
        # Only Spark knows whether a source that it reads has something new: do not ask it without a rest.
        pause = max(self._settings.min_pause_s, _SPARK_REST_SECONDS if self._external else 0.0)
        return not pause or self._last_run == 0.0 or time.monotonic() - self._last_run >= pause

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
        self._planned = plan
        epoch = self._epoch + 1
        order = self._order(plan, epoch)
        frame.sparkSession.sparkContext.setLocalProperty(EPOCH_PROPERTY, order.to_json())
        result = collect_result(self._collect(frame, epoch))
        settings = self._settings
        with tentatively(self._coordinator, plan):
            fingerprint = settings.fingerprint if self._draining is None else DRAINED
            manifest = manifest_of(epoch, self._coordinator, fingerprint, settings.name, settings.operators)
            manifest.spark_batch = batch_id if self._external else -1
            manifest.done = order.last
            try:
                self._ledger.write(manifest, result)
            except OSError as error:
                raise CheckpointFailure(f"the manifest of epoch {epoch} could not be written: {error}") from error
        self._patience.restore()
        self._planned = None
        self._epoch = epoch
        self._same_graph = True
        self._start = Start()
        self._next_timer = min((r.next_timer for r in result.reports if r.next_timer is not None), default=None)
        self._last_run = time.monotonic()
        self._unsettled = (epoch, result, order.last)
        self._settle()

    def _order(self, plan: EpochPlan, epoch: int) -> EpochOrder:
        """Log the plan, and say what the tasks have to do."""
        content = plan.to_json()
        text = json.dumps(content)
        logged = _plan_file(epoch)
        try:
            if self._draining is None:
                self._ledger.storage.write(logged, text.encode())
            else:
                # Whoever starts the job again after a crash does not want it to end.
                self._ledger.storage.delete(logged)
        except OSError as error:
            raise CheckpointFailure(f"the plan of epoch {epoch} could not be written: {error}") from error
        snapshot = self._start.snapshot
        return EpochOrder(
            self._ledger.run,
            epoch,
            self._ledger.storage.location,
            base=self._epoch,
            same_graph=self._same_graph,
            attempts=self._ledger.attempts() if self._same_graph else {},
            plan=content if len(text) <= _INLINE_PLAN or self._draining is not None else logged,
            last=plan.last and not self._external,
            streaming=True,
            full=self._ledger.wants_full(),
            snapshot=None if snapshot is None else (snapshot.storage.location, snapshot.manifest.epoch),
        )

    def _collect(self, frame: DataFrame, epoch: int) -> list[Any]:
        """Run the epoch on Spark, for as long as a checkpoint may take."""
        timeout = self._settings.timeout_s
        if timeout is None:
            return frame.collect()
        context = frame.sparkSession.sparkContext
        tag = f"millrace-{self._ledger.run}-{epoch}"
        too_late = threading.Event()

        def cancel() -> None:
            too_late.set()
            context.cancelJobsWithTag(tag)

        timer = threading.Timer(timeout, cancel)
        timer.daemon = True
        context.addJobTag(tag)
        timer.start()
        try:
            return frame.collect()
        except Exception as error:
            if too_late.is_set():
                message = f"epoch {epoch} took longer than {timeout:g} s (execution.checkpointing.timeout)"
                raise CheckpointFailure(message) from error
            raise
        finally:
            timer.cancel()
            context.removeJobTag(tag)

    def _settle(self) -> None:
        """The epoch is real: let sinks commit it, and tell whoever waits for it."""
        assert self._unsettled is not None
        epoch, result, last = self._unsettled
        self._ledger.publish()
        self._unsettled = None
        with suppress(OSError):  # an old plan does no harm
            self._ledger.storage.delete(_plan_file(epoch - 1))
        self._coordinator.observe(result.splits())
        self._progress.take(epoch, result)
        if self._draining is not None:
            self._desk.serve(self._draining, self._ledger)
        if last:
            self._over.set()


def _plan_file(epoch: int) -> str:
    return f"plans/{epoch:012d}.json"
