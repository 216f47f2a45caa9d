"""Looking into a savepoint or a checkpoint without the program that wrote it."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any, Final, NamedTuple, Self, TypeVar

from millrace.errors import RestoreError, StateError
from millrace.state.codec import dump, load
from millrace.state.evolution import Form
from millrace.state.key_groups import key_group
from millrace.state.manifest import OperatorEntry, StateEntry, StatePart, epochs_in, read_manifest
from millrace.state.parts import PartReader
from millrace.state.savepoint import SAVEPOINT_FILE, Snapshot, open_snapshot, read_snapshot
from millrace.state.storage import Storage
from millrace.state.store import OperatorStore
from millrace.state.table import VOID

__all__ = [
    "BroadcastItem",
    "KeyedItem",
    "ListItem",
    "PositionItem",
    "SnapshotReader",
    "TimerItem",
    "describe",
    "merge_descriptions",
]

T = TypeVar("T")

TIMERS: Final = {"event": "event_timers", "processing": "processing_timers"}
_TITLES: Final = {"event_timers": "event-time timers", "processing_timers": "processing-time timers"}
_FORM: Final = "form"
TASK_CELLS: Final = "per task"


class KeyedItem(NamedTuple):
    """One value of keyed state: for lists one element with its position, for maps one entry with its map key.

    ``namespace`` is the window, or None; ``last_access`` is there only for state with a time to live.
    """

    key: Any
    namespace: Hashable
    position: int | None
    map_key: Any
    value: Any
    last_access: int | None
    key_group: int


class TimerItem(NamedTuple):
    """One timer; ``domain`` is event or processing."""

    domain: str
    time: int
    key: Any
    namespace: Hashable
    key_group: int


class ListItem(NamedTuple):
    """One element of a list or union list, and the task that had it."""

    subtask: int
    position: int
    value: Any


class BroadcastItem(NamedTuple):
    """One entry of a broadcast map."""

    map_key: Any
    value: Any


class PositionItem(NamedTuple):
    """How far a split of a source was read."""

    uid: str
    split: str
    position: Any
    finished: bool


class SnapshotReader:
    """Reads the state of a savepoint, or of the newest epoch of a checkpoint folder, in this process.

    >>> import tempfile
    >>> from millrace.datastream import StreamExecutionEnvironment
    >>> from millrace.testing import LocalRun
    >>> env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    >>> _ = env.from_sequence(1, 6).key_by(lambda n: n % 2).reduce(lambda a, b: a + b).uid("sum").print()
    >>> folder = tempfile.mkdtemp()
    >>> LocalRun(env, storage=folder).run()
    1
    2
    4
    6
    9
    12
    >>> reader = SnapshotReader.open(folder)
    >>> [state.name for state in reader.states("sum")]
    ['reduce']
    >>> [(item.key, item.value) for item in reader.keyed_state_local("sum", "reduce")]
    [(1, 9), (0, 12)]
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.manifest = snapshot.manifest
        self._parts = PartReader(snapshot.storage, snapshot.manifest)

    @classmethod
    def open(cls, path: str | os.PathLike[str], epoch: int | None = None) -> Self:
        """Look into a folder. Of a checkpoint folder, ``epoch`` chooses an older one of the retained epochs."""
        location = str(path)
        location = location if "://" in location or location.startswith("file:") else os.path.abspath(location)
        storage = Storage(location)
        if storage.exists(SAVEPOINT_FILE):
            return cls(read_snapshot(location, 0))
        epochs = epochs_in(storage)
        if epoch is None:
            for newest in reversed(epochs):
                try:
                    return cls(Snapshot(storage, read_manifest(storage, newest)))
                except RestoreError:
                    continue
            # Nothing to read: this says why.
            return cls(open_snapshot(location))
        if epoch not in epochs:
            message = (
                f"{location} has no epoch {epoch}: it has {', '.join(map(str, epochs)) or 'none'}. "
                "execution.checkpointing.num-retained keeps more of them"
            )
            raise RestoreError(message)
        return cls(Snapshot(storage, read_manifest(storage, epoch)))

    def operators(self) -> dict[str, OperatorEntry]:
        """The operators by uid: name, parallelism, max parallelism."""
        return dict(self.manifest.operators)

    def states(self, uid: str) -> list[StateEntry]:
        """The states of an operator that hold something: name, kind, type, number of entries, bytes."""
        entry = self.operator(uid)
        if self.snapshot.is_savepoint and uid in self.manifest.states:
            return list(self.manifest.states[uid])
        described = self._on_tasks(uid, entry, _describe_task)
        return merge_descriptions(described)

    def positions(self) -> list[PositionItem]:
        """How far the sources were read."""
        finished = set(self.manifest.finished)
        return [
            PositionItem(uid, split, position, f"{uid}/{split}" in finished)
            for uid, splits in self.manifest.positions.items()
            for split, position in splits.items()
        ]

    def keyed_state_local(self, uid: str, name: str) -> Iterator[KeyedItem]:
        """The values of a keyed state, task by task."""
        return self._items(uid, lambda full, _: keyed_items(full, name, self.operator(uid).max_parallelism), name)

    def timers_local(self, uid: str) -> Iterator[TimerItem]:
        """The timers of an operator, those of event time first."""
        return self._items(uid, lambda full, _: timer_items(full, self.operator(uid).max_parallelism))

    def list_state_local(self, uid: str, name: str) -> Iterator[ListItem]:
        """The elements of a list state, task by task."""
        return self._items(uid, lambda full, subtask: list_items(full, "list", name, subtask), name)

    def union_state_local(self, uid: str, name: str) -> Iterator[ListItem]:
        """The elements of a union list state, task by task."""
        return self._items(uid, lambda full, subtask: list_items(full, "union list", name, subtask), name)

    def broadcast_state_local(self, uid: str, name: str) -> Iterator[BroadcastItem]:
        """The entries of a broadcast state, as the first task has them: all have the same."""
        return self._items(uid, lambda full, subtask: broadcast_items(full, name) if subtask == 0 else None, name)

    def operator(self, uid: str) -> OperatorEntry:
        """One operator; StateError if there is none."""
        entry = self.manifest.operators.get(uid)
        if entry is None:
            known = ", ".join(self.manifest.operators) or "none"
            message = f"{self.snapshot.storage.location} has no operator with uid {uid!r}; it has: {known}"
            raise StateError(message)
        return entry

    def full(self, uid: str, task: str) -> dict[str, Any]:
        """All state of an operator in one task, as OperatorStore.full() gives it."""
        store = OperatorStore()
        for part in self.manifest.parts.get(task, ()):
            store.apply(self._content(task, part).get(uid))
        return store.full()

    def fulls(self, task: str) -> dict[str, dict[str, Any]]:
        """All state of all operators of one task, by uid."""
        stores: dict[str, OperatorStore] = {}
        for part in self.manifest.parts.get(task, ()):
            for uid, content in self._content(task, part).items():
                if uid in self.manifest.operators:
                    stores.setdefault(uid, OperatorStore()).apply(content)
        return {uid: store.full() for uid, store in stores.items()}

    def no_such_state(self, uid: str, name: str) -> StateError:
        """The error for a state that no task has."""
        known = ", ".join(f"{entry.name!r} ({entry.kind})" for entry in self.states(uid)) or "none"
        return StateError(
            f"operator {uid!r} in {self.snapshot.storage.location} has no such state {name!r}; it has: {known}"
        )

    def _items(
        self, uid: str, items: Callable[[dict[str, Any], int], Iterable[T] | None], name: str | None = None
    ) -> Iterator[T]:
        found = name is None
        for subtask, task in enumerate(tasks_of(self.operator(uid))):
            made = items(self.full(uid, task), subtask)
            if made is not None:
                found = True
                yield from made
        if not found:
            raise self.no_such_state(uid, name or "")

    def _on_tasks(self, uid: str, entry: OperatorEntry, function: Callable[[SnapshotReader, str, str], T]) -> list[T]:
        """What a function says about each task of an operator."""
        return [function(self, uid, task) for task in tasks_of(entry)]

    def _content(self, task: str, part: StatePart) -> dict[str, Any]:
        data = self._parts.read(task, part)
        try:
            content: dict[str, Any] = load(data)
        except RestoreError:
            raise
        except Exception as error:
            message = (
                f"state of task {task} in {self.snapshot.storage.location} cannot be unpickled: "
                f"{type(error).__name__}: {error}. Import the program's classes first"
            )
            raise RestoreError(message) from error
        return content


def tasks_of(entry: OperatorEntry) -> list[str]:
    """The tasks of an operator, in their order."""
    return [f"{entry.stage}/{index}" for index in range(entry.parallelism)]


def keyed_items(full: dict[str, Any], name: str, max_parallelism: int) -> Iterator[KeyedItem] | None:
    """The values of a keyed state in one task; None if the task knows no such state."""
    if name not in full["keyed"]:
        return None
    form, (_, panes) = full["keyed"][name]
    return (
        KeyedItem(key, window, position, map_key, value, last_access, group)
        for namespace, (values, _) in panes.items()
        for window in (None if namespace == VOID else namespace,)
        for key, stored in values.items()
        for group in (key_group(key, max_parallelism),)
        for position, map_key, value, last_access in _unfolded(form, stored)
    )


def _unfolded(form: Form | None, stored: Any) -> Iterator[tuple[int | None, Any, Any, int | None]]:
    """What is stored for one key as (position, map key, value, last access)."""
    kind, timed = ("table", False) if form is None else (form[0], form[2])
    if kind == "list":
        for position, element in enumerate(stored):
            yield position, None, *(element if timed else (element, None))
    elif kind == "map":
        for map_key, value in stored.items():
            yield None, map_key, *(value if timed else (value, None))
    else:
        yield None, None, *(stored if timed else (stored, None))


def timer_items(full: dict[str, Any], max_parallelism: int) -> Iterator[TimerItem]:
    """The timers of one task."""
    for domain, queue in TIMERS.items():
        for time, key, namespace in full[queue][1]:
            window = None if namespace == VOID else namespace
            yield TimerItem(domain, time, key, window, key_group(key, max_parallelism))


def list_items(full: dict[str, Any], kind: str, name: str, subtask: int) -> list[ListItem] | None:
    """The elements of a list or union list in one task; None if the task has none."""
    content = full["operator"].get((kind, name))
    return None if content is None else [ListItem(subtask, index, value) for index, value in enumerate(content)]


def broadcast_items(full: dict[str, Any], name: str) -> list[BroadcastItem] | None:
    """The entries of a broadcast map in one task; None if the task has none."""
    content = full["operator"].get(("broadcast", name))
    return None if content is None else [BroadcastItem(key, value) for key, value in content.items()]


def describe(full: dict[str, Any]) -> list[StateEntry]:
    """The states of one operator in one task that hold something."""
    found = []
    for name, (form, (dropped, panes)) in full["keyed"].items():
        entries = sum(len(values) for values, _ in panes.values())
        if entries:
            kind, text = ("table", "any") if form is None else form[:2]
            found.append(StateEntry(name, kind, text, entries, len(dump((dropped, panes)))))
    for (kind, name), content in full["operator"].items():
        if kind not in (TASK_CELLS, _FORM) and content:
            form = full["operator"].get((_FORM, name))
            text = "any" if form is None else form[1]
            found.append(StateEntry(name, kind, text, len(content), len(dump(content))))
    for queue, title in _TITLES.items():
        timers = full[queue][1]
        if timers:
            found.append(StateEntry(title, "timers", "time, key, window", len(timers), len(dump(timers))))
    return found


def merge_descriptions(described: Iterable[list[StateEntry]]) -> list[StateEntry]:
    """The states of one operator over all its tasks."""
    known: dict[tuple[str, str], StateEntry] = {}
    for entry in (entry for entries in described for entry in entries):
        before = known.get((entry.kind, entry.name))
        if before is not None:
            entries, size = before.entries + entry.entries, before.bytes + entry.bytes
            entry = StateEntry(entry.name, entry.kind, entry.type, entries, size)
        known[entry.kind, entry.name] = entry
    return sorted(known.values(), key=lambda entry: (entry.kind == "timers", entry.kind, entry.name))


def _describe_task(reader: SnapshotReader, uid: str, task: str) -> list[StateEntry]:
    return describe(reader.full(uid, task))
