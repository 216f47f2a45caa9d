"""Bringing a task's state up to the last committed epoch, from whatever it holds already."""

from __future__ import annotations

from typing import Any, Final

from millrace.common.constants import LONG_MIN
from millrace.errors import RestoreError
from millrace.runtime.checkpointed import restore_unions
from millrace.runtime.spec import StageSpec
from millrace.runtime.task import STAGE_STATE, Task
from millrace.state.codec import load
from millrace.state.manifest import Manifest, StatePart
from millrace.state.parts import PartReader
from millrace.state.storage import Storage
from millrace.state.store import OperatorStore

__all__ = ["catch_up", "collapsed", "fingerprint", "restore_task"]

_SPLIT_TIMES: Final = ("per task", "splits")
"""Where AssignWatermarks keeps the times of its splits: (times, the valve's snapshot, whether it is idle)."""


def restore_task(task: Task, storage: Storage, manifest: Manifest, same_graph: bool) -> None:
    """Load all state of a fresh task. With another graph or parallelism, operators find their state by uid."""
    own = f"{task.spec.stage}/{task.index}"
    reader = PartReader(storage, manifest)
    tasks: dict[str, dict[str, Any]] = {}

    def everywhere(uid: str) -> list[dict[str, Any]]:
        """The state of an operator in all its tasks, in their order."""
        entry = manifest.operators[uid]
        fulls = []
        for name in (f"{entry.stage}/{index}" for index in range(entry.parallelism)):
            if name not in tasks:
                tasks[name] = collapsed(reader, name)
            fulls.append(tasks[name].get(uid) or OperatorStore().full())
        return fulls

    if same_graph:
        for part in manifest.parts.get(own, ()):
            task.restore(_content(reader, own, part))
        restore_unions({node.spec.uid: node.context.store.operator for node in task.nodes.values()}, everywhere)
        return
    for node in task.nodes.values():
        uid = node.spec.uid
        if uid in manifest.operators:
            context = node.context
            state = OperatorStore.rescale(
                everywhere(uid), context.subtask, context.parallelism, context.max_parallelism
            )
            _say_time_again(state)
            task.restore({uid: state})


def _say_time_again(state: dict[str, Any]) -> None:
    """Whoever reads from an operator that makes watermarks starts without one: what was said before is said again."""
    splits = state["operator"].get(_SPLIT_TIMES)
    if splits is not None:
        times, (channels, idle, lagging, _, all_idle), _ = splits
        state["operator"][_SPLIT_TIMES] = (times, (channels, idle, lagging, LONG_MIN, all_idle), False)


def catch_up(task: Task, storage: Storage, manifest: Manifest, epoch: int, attempt: int) -> bool:
    """Apply the deltas that a live task has missed since ``epoch``; False if it is not on the committed line at all."""
    own = f"{task.spec.stage}/{task.index}"
    parts = manifest.parts.get(own, [])
    reader = PartReader(storage, manifest)
    for index, part in enumerate(parts):
        if part.epoch == epoch and part.attempt == attempt:
            for missed in parts[index + 1 :]:
                task.restore(_content(reader, own, missed))
            task.refresh()
            return True
    return False


def collapsed(reader: PartReader, task: str) -> dict[str, Any]:
    """A task's parts as one: for each operator a full snapshot with the deltas applied, and the task's own standing."""
    stores: dict[str, OperatorStore] = {}
    standing: dict[str, Any] = {}
    for part in reader.manifest.parts.get(task, ()):
        for uid, content in _content(reader, task, part).items():
            if uid == STAGE_STATE:
                standing[uid] = content
            else:
                stores.setdefault(uid, OperatorStore()).apply(content)
    return {uid: store.full() for uid, store in stores.items()} | standing


def _content(reader: PartReader, task: str, part: StatePart) -> dict[str, Any]:
    data = reader.read(task, part)
    try:
        content: dict[str, Any] = load(data)
    except RestoreError:
        raise
    except Exception as error:
        where = part.file or f"the manifest of epoch {part.epoch}"
        message = (
            f"state of task {task} in {where} of {reader.storage.location} cannot be unpickled: "
            f"{type(error).__name__}: {error}. If a class is missing, the program has to bring it along"
        )
        raise RestoreError(message) from error
    return content


def fingerprint(specs: list[StageSpec]) -> str:
    """Changes when operators, their order, their connections or their parallelism do: then state is found by uid, not
    by place."""
    return ";".join(
        f"{spec.stage}:{spec.tasks}:"
        + ",".join(
            f"{entry.uid}*{entry.parallelism}/{entry.max_parallelism}@{entry.node}"
            + "".join(f">{output.edge}" for output in entry.outputs if not output.local)
            for entry in spec.operators
        )
        for spec in specs
    )
