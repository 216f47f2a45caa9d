"""Making savepoints: from an existing one with changes, or from nothing, for a program to start from."""

from __future__ import annotations

import os
import platform
import time
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple, Self

from millrace import __version__
from millrace.errors import StateError
from millrace.state.codec import dump
from millrace.state.descriptors import ListStateDescriptor, MapStateDescriptor, StateDescriptor
from millrace.state.key_groups import key_group, subtask_of_group
from millrace.state.manifest import Manifest, OperatorEntry, StateEntry, StatePart, checksum_of
from millrace.state.reader import TASK_CELLS, TIMERS, SnapshotReader, describe, merge_descriptions, tasks_of
from millrace.state.rewrite import Change, rewritten
from millrace.state.savepoint import SAVEPOINT_FILE, Snapshot, read_snapshot
from millrace.state.storage import Storage

__all__ = ["Rewriting", "SnapshotWriter", "Written"]

FINGERPRINT: Final = "state processor"
"""No program has it: operators find their state by uid."""


class Written(NamedTuple):
    """A part that was written, and what is in it by uid."""

    task: str
    part: StatePart
    states: dict[str, list[StateEntry]]


@dataclass(frozen=True)
class Rewriting:
    """What the workers need to know to write the parts of a savepoint. ``base`` is (path, epoch) of the old one."""

    target: str
    epoch: int
    now: int
    base: tuple[str, int] | None = None
    copied: Mapping[str, str] = field(default_factory=dict)
    """Operators that stay as they are: uid in the old savepoint -> uid in the new one."""
    origins: Mapping[str, str] = field(default_factory=dict)
    """Operators with changes: uid in the new savepoint -> uid in the old one."""
    entries: Mapping[str, OperatorEntry] = field(default_factory=dict)
    """Where the state of operators with changes goes, by new uid."""
    changes: Mapping[str, list[Change]] = field(default_factory=dict)
    keep_time: bool = True

    def targets(self, uid: str, change: Change, item: Any, number: int) -> Iterable[int]:
        """The tasks that get an item of a change; ``number`` counts the items of lists."""
        entry = self.entries[uid]
        if change.place == "broadcast":
            return range(entry.parallelism)
        if change.key_index is None:
            return (number % entry.parallelism,)
        group = key_group(item[change.key_index], entry.max_parallelism)
        return (subtask_of_group(group, entry.parallelism, entry.max_parallelism),)

    def copy(self, task: str) -> Written | None:
        """Write a part with those operators of a task that do not change; None if there are none."""
        content = {
            self.copied[uid]: self._kept(full) for uid, full in self._reader().fulls(task).items() if uid in self.copied
        }
        return self._write(task, content) if content else None

    def write(self, uid: str, index: int, items: Mapping[int, list[Any]]) -> Written:
        """Write the part of one task of an operator with changes; ``items`` are its shares, by number of the change."""
        full = None
        if uid in self.origins:
            reader = self._reader()
            full = self._kept(reader.full(self.origins[uid], tasks_of(reader.operator(self.origins[uid]))[index]))
        shares = [(change, items.get(number, [])) for number, change in enumerate(self.changes[uid])]
        return self._write(tasks_of(self.entries[uid])[index], {uid: rewritten(full, shares, self.now)})

    def _reader(self) -> SnapshotReader:
        assert self.base is not None
        return SnapshotReader(read_snapshot(*self.base))

    def _kept(self, full: dict[str, Any]) -> dict[str, Any]:
        if not self.keep_time:
            full["operator"] = {key: held for key, held in full["operator"].items() if key[0] != TASK_CELLS}
        return full

    def _write(self, task: str, content: dict[str, dict[str, Any]]) -> Written:
        data = dump(content)
        # Named anew by each attempt: should a task be run twice, the manifest names the file of the one that counts.
        file = f"state/{task.replace('/', '-')}-{uuid.uuid4().hex[:12]}.full"
        Storage(self.target).write(file, data)
        part = StatePart(self.epoch, 0, True, len(data), file, checksum_of(data))
        return Written(task, part, {uid: describe(full) for uid, full in content.items()})


class SnapshotWriter:
    """Writes a savepoint in this process: an old one with changes, or a new one.

    >>> import tempfile
    >>> from millrace.state.descriptors import ValueStateDescriptor
    >>> writer = SnapshotWriter.empty().with_keyed_items("count", ValueStateDescriptor("count"), [("a", 3), ("b", 4)])
    >>> path = writer.write(tempfile.mkdtemp() + "/new")
    >>> reader = SnapshotReader.open(path)
    >>> [(item.key, item.value) for item in reader.keyed_state_local("count", "count")]
    [('a', 3), ('b', 4)]
    """

    def __init__(self, base: Snapshot | None, max_parallelism: int, parallelism: int | None) -> None:
        if base is not None and base.manifest.spark_batch >= 0:
            message = (
                f"{base.storage.location} is of a job with a source that Spark reads (from_spark): its position is in "
                "Spark's own checkpoint, and no savepoint can be made of it. Read it, and start with empty() instead"
            )
            raise StateError(message)
        self._base = base
        self._max_parallelism = max_parallelism
        self._parallelism = parallelism
        manifest = Manifest(1, "") if base is None else base.manifest
        self._origins = {uid: uid for uid in manifest.operators}
        self._positions = {uid: dict(splits) for uid, splits in manifest.positions.items()}
        self._finished = {tuple(name.split("/", 1)) for name in manifest.finished}
        self._split_parallelism = dict(manifest.split_parallelism)
        self._committables = dict(manifest.committables)
        self._new: dict[str, OperatorEntry] = {}
        self._changes: dict[str, list[tuple[Change, Any]]] = {}
        self._keep_time = True

    @classmethod
    def from_existing(
        cls, path: str | os.PathLike[str], *, max_parallelism: int = 128, parallelism: int | None = None
    ) -> Self:
        """Start with all that is in a savepoint or checkpoint folder, which stays as it is.

        ``max_parallelism`` and ``parallelism`` (into how many parts state is written) are those of new operators.
        """
        return cls(SnapshotReader.open(path).snapshot, max_parallelism, parallelism)

    @classmethod
    def empty(cls, max_parallelism: int = 128, *, parallelism: int | None = None) -> Self:
        """Start with nothing. Programs adopt the max parallelism unless they set it: then it must be the same."""
        return cls(None, max_parallelism, parallelism)

    def with_keyed_items(
        self, uid: str, state: StateDescriptor | str, items: Iterable[tuple[Any, ...]], *, replace: bool = True
    ) -> Self:
        """Put values into a keyed state.

        Items are (key, value); for windows, lists and maps they are KeyedItems. The name of a state that is there
        keeps its type. Without ``replace``, the values of other keys stay, and None removes a value.
        """
        full = [item if len(item) > 2 else (item[0], None, None, None, item[1], None) for item in items]
        return self._change(uid, self._keyed_change(uid, state, replace), full)

    def with_timer_items(
        self, uid: str, items: Iterable[tuple[int, Any, Any]], *, domain: str = "event", replace: bool = True
    ) -> Self:
        """Put timers: (time, key, window or None). ``domain`` is event or processing."""
        return self._change(uid, Change(timers_of(domain), replace=replace), list(items))

    def with_list_items(
        self,
        uid: str,
        state: ListStateDescriptor | str,
        items: Iterable[Any],
        *,
        union: bool = False,
        replace: bool = True,
    ) -> Self:
        """Put elements into a list state, or into a union list state."""
        return self._change(uid, Change.of("union list" if union else "list", state, replace), list(items))

    def with_broadcast_items(
        self, uid: str, state: MapStateDescriptor | str, items: Iterable[tuple[Any, Any]], *, replace: bool = True
    ) -> Self:
        """Put entries into a broadcast state."""
        return self._change(uid, Change.of("broadcast", state, replace), list(items))

    def remove_operator(self, uid: str) -> Self:
        """Leave out all state of an operator, and its position if it is a source."""
        self._known(uid)
        self._keep_time = self._keep_time and uid not in self._positions
        for content in (self._origins, self._new, self._changes, self._positions, self._split_parallelism):
            content.pop(uid, None)
        self._committables.pop(uid, None)
        self._finished = {(owner, split) for owner, split in self._finished if owner != uid}
        return self

    def change_uid(self, old: str, new: str) -> Self:
        """Give the state of an operator to another uid."""
        self._known(old)
        if new in self._origins or new in self._new:
            raise StateError(f"change_uid({old!r}, {new!r}): there is an operator with uid {new!r} already; remove it")
        self._keep_time = self._keep_time and old not in self._positions
        contents: tuple[dict[str, Any], ...] = (
            self._origins,
            self._new,
            self._changes,
            self._positions,
            self._split_parallelism,
            self._committables,
        )
        for content in contents:
            if old in content:
                content[new] = content.pop(old)
        self._finished = {(new if owner == old else owner, split) for owner, split in self._finished}
        return self

    def with_position(self, uid: str, split: str, position: Any) -> Self:
        """Let a source go on from another position. Event time then starts anew: what is read again is not late."""
        if uid not in self._origins and uid not in self._new:
            self._new[uid] = self._new_entry(uid)
        self._positions.setdefault(uid, {})[split] = position
        self._finished.discard((uid, split))
        self._keep_time = False
        return self

    def write(self, path: str | os.PathLike[str]) -> str:
        """Write the savepoint into a folder of its own; gives its path, for execution.savepoint.path."""
        target = str(path)
        target = target if "://" in target or target.startswith("file:") else os.path.abspath(target)
        storage = Storage(target)
        if storage.exists(SAVEPOINT_FILE):
            raise StateError(f"{target} holds a savepoint already: write to a new folder")
        plan = self._plan(target)
        written = self._run(plan, self._tasks_to_copy(plan))
        storage.create(SAVEPOINT_FILE, self._manifest(plan, written).to_json())
        return target

    def _run(self, plan: Rewriting, tasks: list[str]) -> list[Written]:
        """Write all parts."""
        written = [part for task in tasks if (part := plan.copy(task)) is not None]
        for uid, entry in plan.entries.items():
            shares: list[dict[int, list[Any]]] = [{} for _ in range(entry.parallelism)]
            for number, (change, items) in enumerate(self._changes[uid]):
                narrow = change.narrower()
                for count, item in enumerate(items):
                    for index in plan.targets(uid, change, item, count):
                        shares[index].setdefault(number, []).append(narrow(item))
            written += [plan.write(uid, index, items) for index, items in enumerate(shares)]
        return written

    def _keyed_change(self, uid: str, state: StateDescriptor | str, replace: bool) -> Change:
        if not isinstance(state, str):
            return Change("keyed", state.name, state, replace=replace)
        origin = self._origins.get(uid)
        forms: list[Any] = []
        if origin is not None and self._base is not None:
            forms = [found for found in self._forms(self._base, origin, state) if found is not None]
        if not forms:
            message = (
                f"operator {uid!r} has no keyed state {state!r} yet: pass a descriptor, such as "
                f"ValueStateDescriptor({state!r}, ...), instead of its name"
            )
            raise StateError(message)
        return Change("keyed", state, None, next((form for (form,) in forms if form is not None), None), replace)

    def _forms(self, base: Snapshot, uid: str, name: str) -> list[tuple[Any] | None]:
        """The form of a keyed state in each task, as a tuple of one; None where there is no such state."""
        reader = SnapshotReader(base)
        return [form_in_task(reader, uid, task, name) for task in tasks_of(reader.operator(uid))]

    def _change(self, uid: str, change: Change, data: Any) -> Self:
        if uid not in self._origins and uid not in self._new:
            self._new[uid] = self._new_entry(uid)
        self._changes.setdefault(uid, []).append((change, data))
        return self

    def _new_entry(self, uid: str) -> OperatorEntry:
        parallelism = min(self._parallelism or self._default_parallelism(), self._max_parallelism)
        return OperatorEntry(uid, "new", parallelism, self._max_parallelism)

    def _default_parallelism(self) -> int:
        return 1

    def _known(self, uid: str) -> None:
        if uid not in self._origins and uid not in self._new:
            known = ", ".join([*self._origins, *self._new]) or "none"
            raise StateError(f"there is no operator with uid {uid!r} to write; there are: {known}")

    def _plan(self, target: str) -> Rewriting:
        entries = {}
        for number, uid in enumerate(self._changes):
            entry = self._entry(uid)
            entries[uid] = OperatorEntry(entry.name, f"changed{number}", entry.parallelism, entry.max_parallelism)
        base = self._base
        return Rewriting(
            target,
            1 if base is None else base.manifest.epoch,
            time.time_ns() // 1_000_000,
            None if base is None else (base.storage.location, base.manifest.epoch),
            {old: new for new, old in self._origins.items() if new not in self._changes},
            {new: old for new, old in self._origins.items() if new in self._changes},
            entries,
            {uid: [change for change, _ in changes] for uid, changes in self._changes.items()},
            self._keep_time,
        )

    def _entry(self, uid: str) -> OperatorEntry:
        if uid in self._new:
            return self._new[uid]
        assert self._base is not None
        return self._base.manifest.operators[self._origins[uid]]

    def _tasks_to_copy(self, plan: Rewriting) -> list[str]:
        if self._base is None:
            return []
        stages = {self._base.manifest.operators[uid].stage for uid in plan.copied}
        return [task for task in self._base.manifest.parts if task.rsplit("/", 1)[0] in stages]

    def _manifest(self, plan: Rewriting, written: list[Written]) -> Manifest:
        operators = {uid: plan.entries.get(uid) or self._entry(uid) for uid in (*self._origins, *self._new)}
        states = {uid: merge_descriptions(part.states.get(uid, []) for part in written) for uid in operators}
        base = self._base
        return Manifest(
            epoch=plan.epoch,
            fingerprint=FINGERPRINT,
            job_name="" if base is None else base.manifest.job_name,
            positions=self._positions,
            finished=sorted("/".join(pair) for pair in self._finished),
            split_parallelism=self._split_parallelism,
            operators=operators,
            parts={part.task: [part.part] for part in written},
            committables=self._committables,
            run=uuid.uuid4().hex,
            states=states,
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            versions={"millrace": __version__, "python": platform.python_version()},
        )


def timers_of(domain: str) -> str:
    """Where the timers of a domain are."""
    if domain not in TIMERS:
        raise StateError(f"domain={domain!r}: timers are of 'event' or of 'processing' time")
    return TIMERS[domain]


def form_in_task(reader: SnapshotReader, uid: str, task: str, name: str) -> tuple[Any] | None:
    """The form of a keyed state in a task, as a tuple of one; None if there is no such state."""
    keyed = reader.full(uid, task)["keyed"]
    return (keyed[name][0],) if name in keyed else None
