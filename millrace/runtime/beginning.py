"""Where a run begins: at the beginning, after its own last epoch, or from a snapshot in another place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from millrace.errors import RestoreError
from millrace.graph.compile import JobGraph
from millrace.runtime.coordinator import SourceCoordinator
from millrace.runtime.ledger import Ledger
from millrace.runtime.mapping import adopt_max_parallelism, check_fit, restore_path
from millrace.state.manifest import Manifest, epochs_in, read_manifest
from millrace.state.savepoint import Snapshot, open_snapshot
from millrace.state.storage import Storage

__all__ = ["Beginning", "Start", "begin", "prepare"]


@dataclass(frozen=True)
class Beginning:
    """What a job is told to start from, before anything of it runs. ``requested`` is checked byte by byte."""

    requested: Snapshot | None = None


@dataclass(frozen=True)
class Start:
    """The last epoch there is, and the snapshot in another place that the next one starts from, if it does."""

    epoch: int = 0
    same_graph: bool = True
    snapshot: Snapshot | None = None


def prepare(job: JobGraph, config: Mapping[str, str], storage: Storage | None) -> Beginning:
    """Look at what the job will start from, and let it decide the number of key groups where the program does not."""
    path = restore_path(config)
    requested = None
    if path is not None and not (storage is not None and storage.same_place(path)):
        requested = open_snapshot(path)
    own = None if storage is None else _newest_readable(storage)
    if own is not None and storage is not None and _goes_on(own, requested):
        adopt_max_parallelism(Snapshot(storage, own), job, config)
    elif requested is not None:
        adopt_max_parallelism(requested, job, config)
    return Beginning(requested)


def begin(
    beginning: Beginning,
    ledger: Ledger,
    coordinator: SourceCoordinator,
    job: JobGraph,
    config: Mapping[str, str],
    fingerprint: str,
) -> Start:
    """Bring ledger and sources to where the run begins.

    A checkpoint folder that already holds epochs which began with the requested snapshot is gone on with: so the same
    command can be given again after a crash. Any other epochs in the folder give way to the snapshot.
    """
    requested = beginning.requested
    own = _newest_readable(ledger.storage)
    if requested is None or (own is not None and _goes_on(own, requested)):
        manifest = ledger.resume()
        if manifest is None:
            return Start()
        snapshot = Snapshot(ledger.storage, manifest)
        same = _fits(snapshot, coordinator, job, config, fingerprint)
        return Start(manifest.epoch, same)
    same = _fits(requested, coordinator, job, config, fingerprint)
    ledger.know_earlier()
    ledger.origin = requested.manifest.identity
    ledger.recommit(requested.manifest)
    return Start(max(epochs_in(ledger.storage), default=0), same, requested)


def _fits(
    snapshot: Snapshot, coordinator: SourceCoordinator, job: JobGraph, config: Mapping[str, str], fingerprint: str
) -> bool:
    manifest = snapshot.manifest
    same = manifest.fingerprint == fingerprint
    if not same:
        check_fit(snapshot, job, config)
    coordinator.restore(manifest.positions, manifest.finished, manifest.split_parallelism)
    return same


def _goes_on(own: Manifest, requested: Snapshot | None) -> bool:
    return requested is None or own.origin == requested.manifest.identity


def _newest_readable(storage: Storage) -> Manifest | None:
    for epoch in reversed(epochs_in(storage)):
        try:
            return read_manifest(storage, epoch)
        except RestoreError:
            continue
    return None
