"""The end of an epoch on the driver: the manifest makes it real, then the sinks commit."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from millrace.errors import RestoreError
from millrace.runtime.chunk import ChunkRow
from millrace.runtime.coordinator import EpochPlan, SourceCoordinator
from millrace.runtime.failure import Failure
from millrace.runtime.sink import Sink
from millrace.runtime.spec import StageSpec
from millrace.runtime.task import TaskReport
from millrace.state.codec import dump, load
from millrace.state.fence import Fence, FencedError
from millrace.state.manifest import (
    Manifest,
    OperatorEntry,
    StatePart,
    checksum_of,
    epochs_in,
    manifest_name,
    read_manifest,
)
from millrace.state.parts import newest_whole
from millrace.state.storage import Storage

__all__ = ["EpochResult", "Ledger", "collect_result", "manifest_of", "operator_entries", "tentatively"]

_log = logging.getLogger("millrace")

_MAX_DELTAS: Final = 50
_MIN_DELTA_BYTES: Final = 1 << 20


@dataclass
class EpochResult:
    """What came back from the tasks of an epoch."""

    reports: list[TaskReport] = field(default_factory=list)
    shown: list[tuple[str, list[Any]]] = field(default_factory=list)

    def splits(self) -> dict[str, int]:
        """The watermark of every split that counts."""
        return {split: watermark for report in self.reports for split, watermark in report.splits.items()}

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
    """Keeps the manifests of a run: one after the other, never two for an epoch.

    ``fence`` says whether the run may still commit. ``origin`` is the savepoint that this line of epochs began with.
    """

    def __init__(
        self,
        storage: Storage,
        sinks: Mapping[str, Sink[Any]],
        retained: int = 1,
        *,
        run: str = "",
        fence: Fence | None = None,
    ) -> None:
        self.storage = storage
        self.sinks = dict(sinks)
        self.retained = max(1, retained)
        self.run = run or uuid.uuid4().hex
        self.fence = fence
        self.origin = ""
        self.last: Manifest | None = None
        self._pending: list[tuple[str, list[Any]]] = []
        self._kept: list[_Kept] = []
        self._epochs: list[int] = []

    def resume(self) -> Manifest | None:
        """Go on after the last epoch of an earlier run, or after the newest older one that is whole.

        What the sinks may not have committed is committed again. None if there is nothing to go on from.
        """
        manifest, damaged = newest_whole(self.storage)
        if manifest is not None and damaged:
            self._set_aside(manifest, damaged)
        self.know_earlier()
        self.last = manifest
        if manifest is not None:
            self.origin = manifest.origin
            self.recommit(manifest)
        return manifest

    def know_earlier(self) -> None:
        """Find what earlier runs left in the folder, so that it goes when it is no longer among the retained."""
        self._epochs = epochs_in(self.storage)
        self._kept = []
        for epoch in self._epochs[-self.retained :]:
            try:
                self._kept.append(_Kept.of(read_manifest(self.storage, epoch)))
            except RestoreError:
                continue  # nobody can restore from it

    def recommit(self, manifest: Manifest) -> None:
        """Let the sinks commit what an earlier run has promised, whether it came to that or not."""
        self._pending = [(uid, load(data)) for uid, data in manifest.committables.items() if uid in self.sinks]
        self.publish()

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
        self.write(manifest, result)
        self.publish()

    def write(self, manifest: Manifest, result: EpochResult) -> None:
        """Make the epoch real. After an error it is not, and may be run again; FencedError: by somebody else."""
        manifest.run, manifest.origin = self.run, self.origin
        if self.last is not None and self.last.fingerprint == manifest.fingerprint:
            # A task without anything to do in this epoch says nothing, and keeps what it has.
            manifest.parts.update({task: list(parts) for task, parts in self.last.parts.items()})
        for report in result.reports:
            self._add_part(manifest, report)
        committables = result.committables()
        manifest.committables = {
            uid: dump(items) for uid, items in committables.items() if not self.sinks[uid].volatile
        }
        self._create(manifest_name(manifest.epoch), manifest.to_json())
        self.last = manifest
        self._kept.append(_Kept.of(manifest))
        self._epochs.append(manifest.epoch)
        self._pending = [*committables.items(), *result.shown]

    def publish(self) -> None:
        """Let the sinks commit what the last manifest promised. After an error, call it again: it goes on there."""
        while self._pending:
            uid, items = self._pending[0]
            self.sinks[uid].commit(items)
            self._pending.pop(0)
        self._collect_garbage()

    def _create(self, name: str, data: bytes) -> None:
        if self.fence is not None:
            self.fence.check()
        try:
            self.storage.create(name, data)
        except FileExistsError as error:
            message = (
                f"{self.storage.location}/{name} was written by another run: this run ({self.run}) ends without "
                "another commit. Let only one job use a checkpoint folder"
            )
            raise FencedError(message) from error
        except OSError:
            if not self._is_there(name, data):
                raise

    def _is_there(self, name: str, data: bytes) -> bool:
        """Whether a write that was reported as failed took place all the same."""
        try:
            return self.storage.read(name) == data
        except OSError:
            return False

    def _set_aside(self, manifest: Manifest, damaged: list[tuple[int, RestoreError]]) -> None:
        """Take damaged manifests out of the line of epochs, and say what that means."""
        if manifest.spark_batch >= 0:
            message = (
                f"{damaged[0][1]}. Older epochs are kept, but a source that Spark reads (from_spark) cannot be set "
                "back: start from a fresh checkpoint folder"
            )
            raise RestoreError(message) from damaged[0][1]
        for epoch, _ in damaged:
            self.storage.move(manifest_name(epoch), f"damaged/{epoch:012d}-{self.run}.json")
        _log.warning(
            "%s. Going on from epoch %d; what sinks have committed since then is made, and committed, again",
            damaged[0][1],
            manifest.epoch,
        )

    def _add_part(self, manifest: Manifest, report: TaskReport) -> None:
        task = f"{report.stage}/{report.task}"
        checksum = report.checksum if report.state is None else checksum_of(report.state)
        part = StatePart(manifest.epoch, report.attempt, report.full, report.state_size, report.state_file, checksum)
        earlier = [] if report.full or self.last is None else self.last.parts.get(task, [])
        manifest.parts[task] = [*earlier, part]
        if report.state is not None:
            manifest.inline[task] = report.state

    def _collect_garbage(self) -> None:
        """Delete what no retained manifest needs any more. What cannot be deleted now is left: it does no harm."""
        gone, self._kept = self._kept[: -self.retained], self._kept[-self.retained :]
        if not self._kept:
            return
        needed = set().union(*(kept.files for kept in self._kept))
        oldest = min(kept.oldest for kept in self._kept)
        names = sorted(set().union(*(kept.files for kept in gone)) - needed)
        names += [manifest_name(epoch) for epoch in self._epochs if epoch < oldest]
        self._epochs = [epoch for epoch in self._epochs if epoch >= oldest]
        try:
            for name in names:
                self.storage.delete(name)
        except OSError as error:
            _log.warning("old checkpoints in %s are not deleted: %s", self.storage.location, error)


@dataclass(frozen=True)
class _Kept:
    """What a retained manifest needs: files, and manifests from the oldest on that has a part inside."""

    files: frozenset[str]
    oldest: int

    @classmethod
    def of(cls, manifest: Manifest) -> _Kept:
        parts = [part for parts in manifest.parts.values() for part in parts]
        files = frozenset(part.file for part in parts if part.file is not None)
        return cls(files, min((part.epoch for part in parts if part.file is None), default=manifest.epoch))


@contextmanager
def tentatively(coordinator: SourceCoordinator, plan: EpochPlan) -> Iterator[None]:
    """Sources stand where the plan leads to; if the epoch does not become real, they stand where they stood."""
    positions = {uid: dict(splits) for uid, splits in coordinator.positions.items()}
    finished, ended = set(coordinator.finished), set(coordinator.ended)
    coordinator.confirm(plan)
    try:
        yield
    except BaseException:
        coordinator.positions, coordinator.finished, coordinator.ended = positions, finished, ended
        raise


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
