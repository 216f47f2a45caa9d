"""Snapshots to start from: a savepoint, or the newest whole epoch of a checkpoint folder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from millrace.errors import RestoreError
from millrace.state.manifest import Manifest, read_manifest
from millrace.state.parts import PartReader, newest_whole
from millrace.state.storage import Storage

__all__ = ["SAVEPOINT_FILE", "Snapshot", "open_snapshot", "read_snapshot"]

SAVEPOINT_FILE: Final = "savepoint.json"
"""A savepoint's manifest. It is written last, so a folder without it is no savepoint."""


@dataclass(frozen=True)
class Snapshot:
    """A manifest, and the storage that has what it names."""

    storage: Storage
    manifest: Manifest

    @property
    def is_savepoint(self) -> bool:
        """Whether it is complete in itself, and belongs to no running job."""
        return bool(self.manifest.created)


def open_snapshot(path: str) -> Snapshot:
    """The savepoint or checkpoint in a folder, checked byte by byte; a RestoreError says what is wrong with it."""
    storage = Storage(path)
    if storage.exists(SAVEPOINT_FILE):
        snapshot = Snapshot(storage, _read(storage))
        PartReader(storage, snapshot.manifest).check()
        return snapshot
    manifest, _ = newest_whole(storage)
    if manifest is None:
        message = (
            f"{path} is neither a savepoint (no {SAVEPOINT_FILE} in it) nor a checkpoint folder (no manifests): "
            "name the folder that the savepoint was written to, or the execution.checkpointing.dir of a job"
        )
        raise RestoreError(message)
    return Snapshot(storage, manifest)


def read_snapshot(path: str, epoch: int) -> Snapshot:
    """The snapshot that ``open_snapshot`` found, without looking at what it names."""
    storage = Storage(path)
    return Snapshot(storage, _read(storage) if storage.exists(SAVEPOINT_FILE) else read_manifest(storage, epoch))


def _read(storage: Storage) -> Manifest:
    return Manifest.from_json(storage.read(SAVEPOINT_FILE), f"{storage.location}/{SAVEPOINT_FILE}")
