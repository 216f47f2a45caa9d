"""How a snapshot fits a program: operators find state by uid, and nothing is dropped unasked (rules 30 and 33)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from millrace.common.configuration import Configuration
from millrace.errors import RestoreError
from millrace.graph.compile import JobGraph
from millrace.graph.node import NodeKind
from millrace.runtime.savepoints import describe_states
from millrace.state.manifest import StateEntry
from millrace.state.savepoint import Snapshot

__all__ = [
    "ALLOW_NON_RESTORED",
    "RESTORE_PATHS",
    "Mapped",
    "adopt_max_parallelism",
    "check_fit",
    "compare",
    "restore_path",
]

RESTORE_PATHS: Final = ("execution.state-recovery.path", "execution.savepoint.path")
ALLOW_NON_RESTORED: Final = (
    "execution.state-recovery.ignore-unclaimed-state",
    "execution.savepoint.ignore-unclaimed-state",
)
MAX_PARALLELISM: Final = "pipeline.max-parallelism"


@dataclass
class Mapped:
    """A snapshot beside a program. ``dropped`` has state, or a source position, that no operator of the program takes;
    ``without_state`` operators are gone, too, and nothing is lost with them."""

    mapped: list[str] = field(default_factory=list)
    new: list[str] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)
    without_state: list[str] = field(default_factory=list)
    states: dict[str, list[StateEntry]] = field(default_factory=dict)


def compare(snapshot: Snapshot, job: JobGraph) -> Mapped:
    """What maps, what is new, what would be dropped."""
    known = snapshot.manifest.operators
    program = {node.uid for node in job.nodes}
    result = Mapped(states=describe_states(snapshot))
    sources = {node.uid for node in job.nodes if node.node.kind is NodeKind.SOURCE}
    result.mapped = [uid for uid in known if uid in program]
    result.new = [node.uid for node in job.nodes if node.uid not in known]
    for uid in known:
        lost_position = uid in snapshot.manifest.positions and uid not in sources
        if uid not in program or lost_position:
            gone = result.dropped if result.states.get(uid) or lost_position else result.without_state
            gone.append(uid)
    return result


def check_fit(snapshot: Snapshot, job: JobGraph, config: Mapping[str, str]) -> None:
    """RestoreError if starting the program from the snapshot would lose state, unless that was allowed."""
    if _flag(config):
        return
    if all(uid in {node.uid for node in job.nodes} for uid in snapshot.manifest.operators):
        return
    compared = compare(snapshot, job)
    if compared.dropped:
        names = ", ".join(f"{snapshot.manifest.operators[uid].name!r} (uid {uid})" for uid in compared.dropped)
        message = (
            f"{snapshot.storage.location} holds state or source positions that no operator of the program takes: "
            f"{names}. Give the operators their uids back, with uid(...), or drop that state with "
            f"--allow-non-restored-state ({ALLOW_NON_RESTORED[0]}: true)"
        )
        raise RestoreError(message)


def adopt_max_parallelism(snapshot: Snapshot, job: JobGraph, config: Mapping[str, str]) -> None:
    """Keyed operators keep the number of key groups they had, unless the program sets another: that is an error."""
    configured = int(config.get(MAX_PARALLELISM, 0))
    for node in job.nodes:
        entry = snapshot.manifest.operators.get(node.uid)
        if entry is None or not node.node.keyed:
            continue
        wanted = node.node.max_parallelism or max(configured, 0)
        if wanted and wanted != entry.max_parallelism:
            message = (
                f"Max parallelism mismatch: operator {node.name!r} (uid {node.uid}) has {entry.max_parallelism} in "
                f"{snapshot.storage.location}, and the program sets {wanted}. Set {entry.max_parallelism}, or nothing"
            )
            raise RestoreError(message)
        if node.parallelism > entry.max_parallelism:
            message = (
                f"operator {node.name!r} (uid {node.uid}) has parallelism {node.parallelism}, and its state in "
                f"{snapshot.storage.location} can be spread over {entry.max_parallelism} tasks at most: lower "
                "set_parallelism"
            )
            raise RestoreError(message)
        node.max_parallelism = entry.max_parallelism


def restore_path(config: Mapping[str, str]) -> str | None:
    """The savepoint or checkpoint folder that a job is told to start from."""
    return next((config[key] for key in RESTORE_PATHS if config.get(key)), None)


def _flag(config: Mapping[str, str]) -> bool:
    configuration = Configuration.from_dict(config)
    return any(configuration.get_boolean(key, False) for key in ALLOW_NON_RESTORED)
