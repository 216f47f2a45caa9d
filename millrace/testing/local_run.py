"""A whole job in this process, without Spark: the same tasks, chunks, exchanges and manifests, in milliseconds."""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Callable, Iterable

from millrace.common.cloudpickles import by_value
from millrace.datastream import StreamExecutionEnvironment
from millrace.errors import JobError
from millrace.runtime.alignment import alignment_of
from millrace.runtime.beginning import begin, prepare
from millrace.runtime.chunk import ChunkRow
from millrace.runtime.control import DRAINED, drain_plan
from millrace.runtime.coordinator import EpochPlan, SourceCoordinator
from millrace.runtime.failure import describe_failure
from millrace.runtime.ledger import Ledger, collect_result, manifest_of, operator_entries, tentatively
from millrace.runtime.operator import RecordFailure
from millrace.runtime.restore import fingerprint, restore_task
from millrace.runtime.savepoints import write_savepoint
from millrace.runtime.sink import SinkOperator
from millrace.runtime.spec import StageSpec, stage_spec
from millrace.runtime.task import Task, TaskReport
from millrace.state.savepoint import Snapshot
from millrace.state.storage import Storage

__all__ = ["LocalRun"]


class LocalRun:
    """Runs a compiled job here and now, as many records an epoch as you like, with crashes where you like.

    For tests of whole programs: what it runs is what Spark's workers run, only the exchange is a Python list. Jobs with
    ``from_spark`` sources need Spark.

    >>> from millrace.datastream import StreamExecutionEnvironment
    >>> env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    >>> _ = env.from_sequence(1, 6).key_by(lambda n: n % 2).reduce(lambda a, b: a + b).print()
    >>> LocalRun(env).run(records_per_epoch=4)
    1
    2
    4
    6
    9
    12
    """

    def __init__(
        self,
        env: StreamExecutionEnvironment,
        *,
        storage: str | None = None,
        clock: Callable[[], int] = lambda: 0,
    ) -> None:
        self.job = job = env._compile(None)
        settings = env._job_settings(job)
        env._nodes.clear()
        place = Storage(storage or tempfile.mkdtemp(prefix="millrace-test-"))
        beginning = prepare(job, settings.config, place)
        self.specs = [
            stage_spec(job, stage, batch=settings.batch, parameters=settings.parameters, config=settings.config)
            for stage in job.stages
        ]
        self._code = {spec.stage: by_value(spec) for spec in self.specs}
        self._clock = clock
        self._fingerprint = fingerprint(self.specs)
        sinks = {n.uid: n.node.operator.sink for n in job.nodes if isinstance(n.node.operator, SinkOperator)}
        retained = int(settings.config.get("execution.checkpointing.num-retained", 1))
        self._ledger = Ledger(place, sinks, retained)
        sources = {n.uid: (n.node.source, n.parallelism) for n in job.nodes if n.node.source is not None}
        self._coordinator = SourceCoordinator(sources, alignment_of(self.specs))
        self._tasks: dict[tuple[str, int], Task] = {}
        start = begin(beginning, self._ledger, self._coordinator, job, settings.config, self._fingerprint)
        self._epoch = start.epoch
        self._same_graph = start.same_graph
        self._base = start.snapshot
        if self._base is None and self._ledger.last is not None:
            self._base = Snapshot(place, self._ledger.last)

    @property
    def done(self) -> bool:
        """Whether all sources have come to their end."""
        return self._coordinator.done

    def run(self, records_per_epoch: int | None = None) -> None:
        """Run to the end of bounded sources, in one epoch or in many."""
        while not self.done:
            self.run_epoch(records_per_epoch)

    def run_epoch(self, records_per_split: int | None) -> None:
        """One epoch: read, exchange, process, commit."""
        self._run_plan(self._coordinator.plan(records_per_split), self._fingerprint)

    def crash(self) -> None:
        """Lose everything that is only in memory; the next epoch starts from the last manifest."""
        self._tasks.clear()

    def drain(self) -> None:
        """End event time on every split, as stopping with a drained savepoint does: all event-time timers fire."""
        self._run_plan(drain_plan(self._coordinator), DRAINED)

    def savepoint(self, directory: str) -> str:
        """Write the last epoch as a savepoint into a new folder of ``directory``; gives the folder's path.

        To start from it, set ``execution.savepoint.path`` on the environment.
        """
        if self._ledger.last is None:
            raise JobError("there is no state before the first epoch: call run_epoch(...) first")
        self._ledger.publish()
        return write_savepoint(self._ledger.storage, self._ledger.last, directory)

    def _run_plan(self, plan: EpochPlan, fingerprint: str) -> None:
        epoch = self._epoch + 1
        try:
            rows = self._run_stages(plan, full=set(self._ledger.wants_full()))
        except RecordFailure as failure:
            raise describe_failure(failure).rebuild()  # noqa: B904 - its cause is the user's own traceback
        result = collect_result(rows)
        with tentatively(self._coordinator, plan):
            entries = operator_entries(self.specs)
            self._ledger.write(manifest_of(epoch, self._coordinator, fingerprint, self.job.name, entries), result)
        self._epoch = epoch
        self._same_graph = True
        assert self._ledger.last is not None
        self._base = Snapshot(self._ledger.storage, self._ledger.last)
        self._coordinator.observe(result.splits())
        self._ledger.publish()

    def _run_stages(self, plan: EpochPlan, full: set[str]) -> list[ChunkRow]:
        rows: list[ChunkRow] = []
        for spec in self.specs:
            made: list[ChunkRow] = []
            for index in range(spec.tasks):
                mine = [row for row in rows if row.target % spec.tasks == index]
                made += self._run_task(spec, index, mine, plan, full)
            rows = made
        return rows

    def _run_task(
        self, spec: StageSpec, index: int, rows: list[ChunkRow], plan: EpochPlan, full: set[str]
    ) -> Iterable[ChunkRow]:
        task = self._task(spec, index)
        task.begin_epoch(self._epoch + 1, self._epoch)
        made: list[ChunkRow] = []
        if spec.level == 0:
            parts = task.read(plan)
        else:
            mine = [row for row in rows if row.level == spec.level]
            made += [row for row in rows if row.level != spec.level]
            mine.sort(key=lambda row: (row.watermark, row.channel, row.sequence))
            parts = task.receive(mine, streaming=True)
        for part in parts:
            made += part
        name = f"{spec.stage}/{index}"
        known = self._ledger.last is not None and self._same_graph and name in self._ledger.last.parts
        for end in task.end_epoch(last=plan.last, full=name in full or not known, with_state=True):
            made += [task.to_driver(("report", end))] if isinstance(end, TaskReport) else end
        if plan.last:
            task.close()
        return made

    def _task(self, spec: StageSpec, index: int) -> Task:
        task = self._tasks.get((spec.stage, index))
        if task is None:
            task = Task(pickle.loads(self._code[spec.stage]), index, self._clock)
            if self._base is not None:
                restore_task(task, self._base.storage, self._base.manifest, self._same_graph)
            task.open()
            self._tasks[spec.stage, index] = task
        return task
