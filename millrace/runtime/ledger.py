"""The end of an epoch on the driver: the manifest makes it real, then the sinks commit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from millrace.runtime.chunk import ChunkRow
from millrace.runtime.codec import dump, load
from millrace.runtime.coordinator import SourceCoordinator
from millrace.runtime.failure import Failure
from millrace.runtime.sink import Sink
from millrace.runtime.spec import StageSpec
from millrace.runtime.task import TaskReport
from millrace.state.manifest import Manifest, OperatorEntry, StatePart, manifest_name, read_manifest
from millrace.state.storage import Storage

__all__ = ["EpochResult", "Ledger", "collect_result", "manifest_of", "operator_entries"]

_MAX_DELTAS: Final = 50
_MIN_DELTA_BYTES: Final = 1 << 20


@dataclass
class EpochResult:
    """What came back from the tasks of an epoch."""

    reports: list[TaskReport] = field(default_factory=list)
    shown: list[tuple[str, list[Any]]] = field(default_factory=list)

    def committables(self) -> dict[str, list[Any]]:
        """What the sinks have to commit, by uid, in the order of the tasks."""
        gathered: dict[str, list[Any]] = {}
        for report in self.reports:
            for uid, items in report.committables.items():
                gathered.setdefault(uid, []).extend(items)
        return gathered


def collect_result(rows: Iterable[Any]) -> EpochResult:
    """Read the rows that reached the driver; raises the user's exception if a task failed on one."""
    result = EpochResult()
    failures: list[Failure] = []
    for row in sorted((ChunkRow._make(row) for row in rows), key=lambda row: (row.channel, row.sequence)):
        kind, *content = load(bytes(row.blob))
        if kind == "report":
            result.reports.append(content[0])
        elif kind == "commit":
            result.shown.append((content[0], content[1]))
        else:
            failures.append(content[0])
    if failures:
        raise failures[0].rebuild()
    return result


class Ledger:
    """Keeps the manifests of a run: one after the other, never two for an epoch."""

    def __init__(self, storage: Storage, sinks: Mapping[str, Sink[Any]], retained: int = 1) -> None:
        self.storage = storage
        self.sinks = dict(sinks)
        self.retained = max(1, retained)
        self.last: Manifest | None = None

    def resume(self, epoch: int) -> Manifest:
        """Go on after an epoch of an earlier run; what its sinks may not have committed is committed again."""
        self.last = read_manifest(self.storage, epoch)
        for uid, data in self.last.committables.items():
            if uid in self.sinks:
                self.sinks[uid].commit(load(data))
        return self.last

    def attempts(self) -> dict[str, int]:
        """Which attempt made each task's newest part."""
        return {} if self.last is None else {task: parts[-1].attempt for task, parts in self.last.parts.items()}

    def wants_full(self) -> list[str]:
        """Tasks whose deltas have outgrown their last full snapshot: writing a full one again keeps recovery short."""
        if self.last is None:
            return []
        return [task for task, parts in self.last.parts.items() if _outgrown(parts)]

    def commit(self, manifest: Manifest, result: EpochResult) -> None:
        """Write the manifest, then let the sinks commit."""
        for report in result.reports:
            self._add_part(manifest, report)
        committables = result.committables()
        manifest.committables = {
            uid: dump(items) for uid, items in committables.items() if not self.sinks[uid].volatile
        }
        manifest.write(self.storage)
        before, self.last = self.last, manifest
        for uid, items in committables.items():
            self.sinks[uid].commit(items)
        for uid, items in result.shown:
            self.sinks[uid].commit(items)
        if before is not None:
            self._collect_garbage()

    def _add_part(self, manifest: Manifest, report: TaskReport) -> None:
        task = f"{report.stage}/{report.task}"
        part = StatePart(manifest.epoch, report.attempt, report.full, report.state_size, report.state_file)
        earlier = [] if report.full or self.last is None else self.last.parts.get(task, [])
        manifest.parts[task] = [*earlier, part]
        if report.state is not None:
            manifest.inline[task] = report.state

    def _collect_garbage(self) -> None:
        """Delete what no retained manifest needs any more."""
        assert self.last is not None
        oldest = self.last.epoch - self.retained + 1
        needed = min((parts[0].epoch for parts in self.last.parts.values()), default=self.last.epoch)
        keep_from = min(oldest, needed)
        for name in self.storage.names("manifests"):
            epoch = int(name.removesuffix(".json"))
            if epoch >= keep_from:
                break
            for parts in read_manifest(self.storage, epoch).parts.values():
                for part in parts:
                    if part.file is not None and part.epoch < keep_from:
                        self.storage.delete(part.file)
            self.storage.delete(manifest_name(epoch))


def _outgrown(parts: list[StatePart]) -> bool:
    deltas = sum(part.size for part in parts[1:])
    return len(parts) > _MAX_DELTAS or deltas > max(parts[0].size, _MIN_DELTA_BYTES)


def manifest_of(
    epoch: int, coordinator: SourceCoordinator, fingerprint: str, job_name: str, operators: dict[str, OperatorEntry]
) -> Manifest:
    """A manifest with everything but the tasks' parts."""
    return Manifest(
        epoch,
        fingerprint,
        job_name,
        {uid: dict(splits) for uid, splits in coordinator.positions.items()},
        sorted(coordinator.finished),
        dict(coordinator.split_parallelism),
        dict(operators),
    )


def operator_entries(specs: Iterable[StageSpec]) -> dict[str, OperatorEntry]:
    """Where a manifest says each operator's state is."""
    return {
        entry.uid: OperatorEntry(entry.name, spec.stage, entry.parallelism, entry.max_parallelism)
        for spec in specs
        for entry in spec.operators
    }
