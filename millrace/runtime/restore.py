"""Bringing a task's state up to the last committed epoch, from whatever it holds already."""

from __future__ import annotations

from typing import Any

from millrace.errors import RestoreError
from millrace.runtime.codec import load
from millrace.runtime.spec import StageSpec
from millrace.runtime.task import STAGE_STATE, Task
from millrace.state.manifest import Manifest, StatePart, read_manifest
from millrace.state.storage import Storage
from millrace.state.store import OperatorStore

__all__ = ["catch_up", "restore_task"]


def restore_task(task: Task, storage: Storage, manifest: Manifest, same_graph: bool) -> None:
    """Load all state of a fresh task. With another graph or parallelism, operators find their state by uid."""
    own = f"{task.spec.stage}/{task.index}"
    if same_graph:
        for part in manifest.parts.get(own, ()):
            task.restore(_content(storage, manifest, own, part))
        return
    cache: dict[str, dict[str, Any]] = {}
    for node in task.nodes.values():
        uid = node.spec.uid
        entry = manifest.operators.get(uid)
        if entry is None:
            continue
        fulls = []
        for index in range(entry.parallelism):
            name = f"{entry.stage}/{index}"
            if name not in cache:
                cache[name] = _collapsed(storage, manifest, name)
            fulls.append(cache[name].get(uid))
        context = node.context
        task.restore(
            {
                uid: OperatorStore.rescale(
                    [full if full is not None else OperatorStore().full() for full in fulls],
                    context.subtask,
                    context.parallelism,
                    context.max_parallelism,
                )
            }
        )


def catch_up(task: Task, storage: Storage, manifest: Manifest, epoch: int, attempt: int) -> bool:
    """Apply the deltas that a live task has missed since ``epoch``; False if it is not on the committed line at all."""
    own = f"{task.spec.stage}/{task.index}"
    parts = manifest.parts.get(own, [])
    for index, part in enumerate(parts):
        if part.epoch == epoch and part.attempt == attempt:
            for missed in parts[index + 1 :]:
                task.restore(_content(storage, manifest, own, missed))
            task.refresh()
            return True
    return False


def _content(storage: Storage, manifest: Manifest, task: str, part: StatePart) -> dict[str, Any]:
    try:
        if part.file is not None:
            data = storage.read(part.file)
        else:
            owner = manifest if part.epoch == manifest.epoch else read_manifest(storage, part.epoch)
            data = owner.inline[task]
        content: dict[str, Any] = load(data)
        return content
    except (OSError, KeyError, EOFError) as error:
        where = part.file or f"the manifest of epoch {part.epoch}"
        message = (
            f"state of task {task} cannot be read from {where} in {storage.location}: {type(error).__name__}: {error}"
        )
        raise RestoreError(message) from error


def _collapsed(storage: Storage, manifest: Manifest, task: str) -> dict[str, Any]:
    """A task's parts as one: for each operator a full snapshot with the deltas applied."""
    stores: dict[str, OperatorStore] = {}
    for part in manifest.parts.get(task, ()):
        for uid, content in _content(storage, manifest, task, part).items():
            if uid != STAGE_STATE:
                stores.setdefault(uid, OperatorStore()).apply(content)
    return {uid: store.full() for uid, store in stores.items()}


def fingerprint(specs: list[StageSpec]) -> str:
    """Changes when operators, their order or their parallelism do: then state is found by uid, not by place."""
    return ";".join(
        f"{spec.stage}:{spec.tasks}:" + ",".join(f"{entry.uid}*{entry.parallelism}" for entry in spec.operators)
        for spec in specs
    )
