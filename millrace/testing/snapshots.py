"""What a harness writes down, and how it is read again by one task or by another number of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from millrace.errors import RestoreError
from millrace.runtime.operator import OperatorContext
from millrace.runtime.valve import Valve
from millrace.state.codec import dump, load
from millrace.state.operator_state import OperatorState
from millrace.state.store import OperatorStore

__all__ = ["HarnessSnapshot", "read_snapshots", "write_snapshot"]


class HarnessSnapshot(NamedTuple):
    """The content of a snapshot; ``valve`` is None when the parallelism has changed, and with it the channels."""

    subtask: int
    parallelism: int
    max_parallelism: int
    processing_time: int
    store: dict[str, Any]
    valve: Any


def write_snapshot(context: OperatorContext, processing_time: int, valve: Valve) -> bytes:
    """All that one task has to remember, as bytes."""
    content = HarnessSnapshot(
        context.subtask,
        context.parallelism,
        context.max_parallelism,
        processing_time,
        context.store.full(),
        valve.snapshot(),
    )
    return dump(tuple(content))


def read_snapshots(
    snapshots: bytes | Sequence[bytes], subtask: int, parallelism: int, max_parallelism: int
) -> HarnessSnapshot:
    """What one task takes over from the snapshots of all tasks."""
    parts = [HarnessSnapshot(*load(data)) for data in ([snapshots] if isinstance(snapshots, bytes) else snapshots)]
    if not parts:
        raise RestoreError("nothing to restore: give the snapshots of all subtasks")
    before = parts[0].parallelism
    if any(part.max_parallelism != max_parallelism for part in parts):
        message = (
            f"Max parallelism mismatch: the snapshot has {parts[0].max_parallelism} key groups and the harness "
            f"{max_parallelism}: use max_parallelism={parts[0].max_parallelism}"
        )
        raise RestoreError(message)
    complete = [part.subtask for part in parts] == list(range(before))
    if before == parallelism:
        for part in parts:
            if part.subtask == subtask:
                if complete and before > 1:
                    fulls = [other.store["operator"] for other in parts]
                    # Lists of which every task gets the elements of all tasks.
                    part.store["operator"] = load(dump(OperatorState.redistribute(fulls, parallelism)[subtask]))
                return part
    if not complete:
        message = (
            f"subtask {subtask} of {parallelism} needs the snapshots of all {before} subtasks, in order, "
            f"and got those of {[part.subtask for part in parts]}"
        )
        raise RestoreError(message)
    store = OperatorStore.rescale([part.store for part in parts], subtask, parallelism, max_parallelism)
    # Broadcast and list elements may be shared between the tasks' parts: a task must have its own.
    return HarnessSnapshot(
        subtask,
        parallelism,
        max_parallelism,
        max(part.processing_time for part in parts),
        load(dump(store)),
        None,
    )
