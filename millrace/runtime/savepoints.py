"""Writing savepoints, and saying what is in a snapshot."""

from __future__ import annotations

import platform
import uuid
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

from millrace import __version__
from millrace.errors import JobError
from millrace.runtime.restore import collapsed
from millrace.runtime.task import STAGE_STATE
from millrace.state.backend import KeyedState
from millrace.state.codec import dump
from millrace.state.manifest import FORMAT_VERSION, Manifest, StateEntry, StatePart, checksum_of
from millrace.state.parts import PartReader
from millrace.state.savepoint import SAVEPOINT_FILE, Snapshot
from millrace.state.storage import Storage

__all__ = ["describe_states", "write_savepoint"]

_TIMERS = {"event_timers": "event-time timers", "processing_timers": "processing-time timers"}
_FORM = "form"
_NOT_STATE = ("per task", _FORM)
"""Kinds of operator state that are no user's business: cells of the engine, and the types of the others."""


def write_savepoint(storage: Storage, manifest: Manifest, directory: str) -> str:
    """Write an epoch as a savepoint into a new folder of ``directory``; gives the folder's path.

    The sinks must have committed the epoch: a savepoint leaves them nothing to do. The folder holds everything it
    names, under names relative to it: it may be copied to any other place. The tasks' parts are put together one task
    at a time, so that no more than one is in memory.
    """
    if manifest.spark_batch >= 0:
        message = (
            "a savepoint cannot be written for a job with a source that Spark reads (from_spark over a streaming "
            "DataFrame): its position is in Spark's own checkpoint. Such a job continues from its "
            "execution.checkpointing.dir"
        )
        raise JobError(message)
    path = f"{directory.rstrip('/')}/savepoint-{uuid.uuid4().hex[:12]}"
    target = Storage(path)
    reader = PartReader(storage, manifest)
    parts: dict[str, list[StatePart]] = {}
    states: dict[str, dict[tuple[str, str], StateEntry]] = {uid: {} for uid in manifest.operators}
    for task in manifest.parts:
        content = collapsed(reader, task)
        _add_states(states, content)
        data = dump(content)
        file = f"state/{task.replace('/', '-')}.full"
        target.write(file, data)
        parts[task] = [StatePart(manifest.epoch, 0, True, len(data), file, checksum_of(data))]
    savepoint = Manifest(
        epoch=manifest.epoch,
        fingerprint=manifest.fingerprint,
        job_name=manifest.job_name,
        positions=manifest.positions,
        finished=manifest.finished,
        split_parallelism=manifest.split_parallelism,
        operators=manifest.operators,
        parts=parts,
        done=manifest.done,
        version=FORMAT_VERSION,
        run=uuid.uuid4().hex,
        states=_listed(states),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        versions={"millrace": __version__, "python": platform.python_version()},
    )
    target.create(SAVEPOINT_FILE, savepoint.to_json())
    return path


def describe_states(snapshot: Snapshot) -> dict[str, list[StateEntry]]:
    """The states of every operator: as the savepoint says, or, for a checkpoint, as its parts show."""
    if snapshot.is_savepoint:
        return snapshot.manifest.states
    reader = PartReader(snapshot.storage, snapshot.manifest)
    states: dict[str, dict[tuple[str, str], StateEntry]] = {uid: {} for uid in snapshot.manifest.operators}
    for task in snapshot.manifest.parts:
        _add_states(states, collapsed(reader, task))
    return _listed(states)


def _add_states(states: dict[str, dict[tuple[str, str], StateEntry]], content: dict[str, Any]) -> None:
    for uid, full in content.items():
        if uid == STAGE_STATE:
            continue
        known = states.setdefault(uid, {})
        for entry in _entries(full):
            before = known.get((entry.kind, entry.name))
            known[entry.kind, entry.name] = (
                entry
                if before is None
                else StateEntry(
                    entry.name, entry.kind, entry.type, before.entries + entry.entries, before.bytes + entry.bytes
                )
            )


def _entries(full: dict[str, Any]) -> Iterator[StateEntry]:
    """The states of one operator in one task."""
    for name, (form, table) in full["keyed"].items():
        backend = KeyedState(lambda: 0)
        backend.apply({name: (form, table)})
        for _, kind, type_text, entries in backend.state_info():
            if entries:
                yield StateEntry(name, kind, type_text, entries, len(dump(table)))
    operator = full["operator"]
    for (kind, name), content in operator.items():
        if kind not in _NOT_STATE and content:
            form = operator.get((_FORM, name))
            yield StateEntry(name, kind, "any" if form is None else form[1], len(content), len(dump(content)))
    for timers, title in _TIMERS.items():
        _, added = full[timers]
        if added:
            yield StateEntry(title, "timers", "time, key, window", len(added), len(dump(added)))


def _listed(states: dict[str, dict[tuple[str, str], StateEntry]]) -> dict[str, list[StateEntry]]:
    return {uid: _sorted(entries.values()) for uid, entries in states.items()}


def _sorted(entries: Iterable[StateEntry]) -> list[StateEntry]:
    return sorted(entries, key=lambda entry: (entry.kind == "timers", entry.kind, entry.name))
