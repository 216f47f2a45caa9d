"""The state of savepoints and checkpoints as DataFrames, and savepoints made of DataFrames.

The work is done by Spark's workers, one task of the job after the other: what goes through the driver are schemas, file
names and counts.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Self, TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame

from millrace.errors import StateError
from millrace.runtime.windows.windows import TimeWindow
from millrace.spark.session import get_session
from millrace.spark.state_columns import Column, batches_of, columns_of, kinds_of, merge_kinds, schema_of
from millrace.spark.state_jobs import ANSWER, Program, answering, answers, for_each, indexes
from millrace.spark.state_records import BATCH_SCHEMA, FAILED, TICK, Columns, Recipe, encode, encode_safely
from millrace.state.codec import load
from millrace.state.descriptors import ListStateDescriptor, MapStateDescriptor, StateDescriptor
from millrace.state.manifest import OperatorEntry
from millrace.state.reader import (
    BroadcastItem,
    KeyedItem,
    ListItem,
    SnapshotReader,
    TimerItem,
    broadcast_items,
    keyed_items,
    list_items,
    tasks_of,
    timer_items,
)
from millrace.state.rewrite import Change
from millrace.state.savepoint import Snapshot, read_snapshot
from millrace.state.writer import Rewriting, SnapshotWriter, Written, form_in_task, timers_of

__all__ = ["SavepointReader", "SavepointWriter"]

T = TypeVar("T")
_POSITIONS: Final = "uid string, split string, position string, finished boolean"


@dataclass(frozen=True)
class _View:
    """Which items of an operator's state a DataFrame shows."""

    place: str
    name: str = ""

    @property
    def names(self) -> Sequence[str]:
        """The parts of an item."""
        item: Any = {"keyed": KeyedItem, "timers": TimerItem, "broadcast": BroadcastItem}.get(self.place, ListItem)
        return tuple(item._fields)

    def items(self, reader: SnapshotReader, uid: str, subtask: int) -> Iterable[Any] | None:
        """The items of one task; None if the task knows no such state."""
        entry = reader.operator(uid)
        if self.place == "broadcast" and subtask:
            return None
        full = reader.full(uid, tasks_of(entry)[subtask])
        if self.place == "keyed":
            return keyed_items(full, self.name, entry.max_parallelism)
        if self.place == "timers":
            return timer_items(full, entry.max_parallelism)
        if self.place == "broadcast":
            return broadcast_items(full, self.name)
        return list_items(full, self.place, self.name, subtask)


class SavepointReader(SnapshotReader):
    """Reads a savepoint, or a checkpoint folder, as DataFrames: one Spark partition for each task of the job.

    The columns are found by looking at all values first. Records (dataclasses, rows, tuples, dicts) become a column for
    each field; what has no Spark type becomes text, with the pickled value in a column beside it.

    >>> import tempfile
    >>> path = SavepointWriter.empty(parallelism=1).with_position("orders", "0", 5).write(tempfile.mkdtemp() + "/new")
    >>> SavepointReader.open(path).positions()
    [PositionItem(uid='orders', split='0', position=5, finished=False)]
    """

    def keyed_state(self, uid: str, name: str) -> DataFrame:
        """Keyed state: key, window_start and window_end, position (lists), map_key (maps), the value, last_access
        (with a time to live) and key_group. One row for a value, an element of a list, an entry of a map."""
        return self._frame(uid, _View("keyed", name))

    def timers(self, uid: str) -> DataFrame:
        """The timers: domain (event or processing), time, key, window_start and window_end, key_group."""
        return self._frame(uid, _View("timers"))

    def list_state(self, uid: str, name: str) -> DataFrame:
        """The elements of a list state: subtask, position and the value."""
        return self._frame(uid, _View("list", name))

    def union_state(self, uid: str, name: str) -> DataFrame:
        """The elements of a union list state: subtask, position and the value."""
        return self._frame(uid, _View("union list", name))

    def broadcast_state(self, uid: str, name: str) -> DataFrame:
        """The entries of a broadcast state: map_key and the value."""
        return self._frame(uid, _View("broadcast", name))

    def positions_frame(self) -> DataFrame:
        """``positions()`` as a DataFrame; the position itself as JSON."""
        rows = [(*item[:2], json.dumps(item.position), item.finished) for item in self.positions()]
        return get_session().createDataFrame(rows, _POSITIONS)

    def _frame(self, uid: str, view: _View) -> DataFrame:
        entry = self.operator(uid)
        scans = self._on_tasks(uid, entry, partial(_scan, view))
        found = [kinds for kinds in scans if kinds is not None]
        if not found and view.place != "timers":
            raise self.no_such_state(uid, view.name)
        kinds = [_merged(column) for column in zip(*found, strict=True)]
        columns = columns_of(view.names, kinds)
        frame = get_session().range(0, entry.parallelism, 1, entry.parallelism)
        return frame.mapInArrow(_showing(self._place, Program.here(), uid, view, columns), schema_of(columns))

    @property
    def _place(self) -> tuple[str, int]:
        return self.snapshot.storage.location, self.manifest.epoch

    def _on_tasks(self, uid: str, entry: OperatorEntry, function: Callable[[SnapshotReader, str, str], T]) -> list[T]:
        place, tasks = self._place, tasks_of(entry)

        def ask(index: int) -> T:
            return function(SnapshotReader(read_snapshot(*place)), uid, tasks[index])

        return for_each(len(tasks), ask)


class SavepointWriter(SnapshotWriter):
    """Writes a savepoint that a program starts from: an existing one with changes, or a new one, from DataFrames.

    Several key columns make a tuple. For several value columns say with ``value_type`` what to make of them: tuple,
    dict, Row, a dataclass or any other class; a descriptor with a row or tuple type says it, too. Columns whose names
    end in _pickled are unpickled.

    >>> import tempfile
    >>> writer = SavepointWriter.empty(parallelism=1).with_position("orders", "0", 5).change_uid("orders", "sales")
    >>> list(SavepointReader.open(writer.write(tempfile.mkdtemp() + "/new")).operators())
    ['sales']
    """

    def with_keyed_state(
        self,
        uid: str,
        state: StateDescriptor | str,
        data_frame: DataFrame,
        key_columns: str | Sequence[str] = "key",
        value_columns: str | Sequence[str] = "value",
        *,
        key_type: Any = None,
        value_type: Any = None,
        position_column: str | None = None,
        map_key_column: str | None = None,
        window_columns: str | Sequence[str] | None = None,
        last_access_column: str | None = None,
        replace: bool = True,
    ) -> Self:
        """Put the values of a DataFrame into a keyed state, given by descriptor or, if it is there already, by name.

        Lists have a row for each element, in the order of ``position_column``; maps one for each entry, with a
        ``map_key_column``. Without ``replace``, the values of other keys stay, and a null removes a value.
        """
        change = self._keyed_change(uid, state, replace)
        if change.kind == "map" and map_key_column is None:
            raise StateError(f"map state {change.name!r} needs a map_key_column: one row is one entry of a map")
        recipe = Recipe(
            "keyed",
            key=Columns.of(data_frame, key_columns, key_type or tuple),
            value=Columns.of(data_frame, value_columns, value_type or _declared(state), optional=True),
            window=_window(data_frame, window_columns),
            position=position_column,
            map_key=None if map_key_column is None else Columns.of(data_frame, map_key_column, tuple),
            time=last_access_column,
        )
        return self._change(uid, change, (data_frame, recipe))

    def with_timers(
        self,
        uid: str,
        data_frame: DataFrame,
        time_column: str = "time",
        key_columns: str | Sequence[str] = "key",
        *,
        domain: str = "event",
        key_type: Any = None,
        window_columns: str | Sequence[str] | None = None,
        replace: bool = True,
    ) -> Self:
        """Put timers; ``domain`` is event or processing."""
        recipe = Recipe(
            "timers",
            key=Columns.of(data_frame, key_columns, key_type or tuple),
            window=_window(data_frame, window_columns),
            time=time_column,
        )
        return self._change(uid, Change(timers_of(domain), replace=replace), (data_frame, recipe))

    def with_list_state(
        self,
        uid: str,
        state: ListStateDescriptor | str,
        data_frame: DataFrame,
        value_columns: str | Sequence[str] = "value",
        *,
        value_type: Any = None,
        union: bool = False,
        replace: bool = True,
    ) -> Self:
        """Put elements into a list state, or into a union list state."""
        change = Change.of("union list" if union else "list", state, replace)
        recipe = Recipe(
            "list", value=Columns.of(data_frame, value_columns, value_type or _declared(state), optional=True)
        )
        return self._change(uid, change, (data_frame, recipe))

    def with_broadcast_state(
        self,
        uid: str,
        state: MapStateDescriptor | str,
        data_frame: DataFrame,
        key_columns: str | Sequence[str] = "map_key",
        value_columns: str | Sequence[str] = "value",
        *,
        key_type: Any = None,
        value_type: Any = None,
        replace: bool = True,
    ) -> Self:
        """Put entries into a broadcast state, which every task holds as a whole."""
        recipe = Recipe(
            "broadcast",
            map_key=Columns.of(data_frame, key_columns, key_type or tuple),
            value=Columns.of(data_frame, value_columns, value_type or _declared(state), optional=True),
        )
        return self._change(uid, Change.of("broadcast", state, replace), (data_frame, recipe))

    def _run(self, plan: Rewriting, tasks: list[str]) -> list[Written]:
        copied = for_each(len(tasks), lambda index: plan.copy(tasks[index]))
        written = [part for part in copied if part is not None]
        for uid, entry in plan.entries.items():
            written += self._write_operator(plan, uid, entry)
        return written

    def _write_operator(self, plan: Rewriting, uid: str, entry: OperatorEntry) -> list[Written]:
        session = get_session()
        program = Program.here()
        # A row for each part, so that parts without items are written as well.
        rows = session.range(0, entry.parallelism, 1, 1).selectExpr(
            "cast(id as int) as target", f"{TICK} as change", "cast(null as binary) as blob"
        )
        for number, (_, data) in enumerate(self._changes[uid]):
            frame, recipe = data if isinstance(data, tuple) else (None, data)
            if frame is None:
                rows = rows.union(session.createDataFrame(_local_rows(plan, uid, number, recipe), BATCH_SCHEMA))
            else:
                rows = rows.union(
                    frame.select(*recipe.columns).mapInArrow(
                        _encoding(program, plan, uid, number, recipe), BATCH_SCHEMA
                    )
                )
        placed = rows.repartitionById(entry.parallelism, "target")
        return answers(placed.mapInArrow(answering(program, _writing(plan, uid)), ANSWER))

    def _forms(self, base: Snapshot, uid: str, name: str) -> list[tuple[Any] | None]:
        reader = SavepointReader(base)
        return reader._on_tasks(uid, reader.operator(uid), partial(_form, name))

    def _default_parallelism(self) -> int:
        return int(get_session().sparkContext.defaultParallelism)


def _scan(view: _View, reader: SnapshotReader, uid: str, task: str) -> list[Any] | None:
    items = view.items(reader, uid, int(task.rsplit("/", 1)[1]))
    return None if items is None else kinds_of(items, len(view.names))


def _form(name: str, reader: SnapshotReader, uid: str, task: str) -> tuple[Any] | None:
    return form_in_task(reader, uid, task, name)


def _merged(kinds: Iterable[Any]) -> Any:
    merged = "null"
    for kind in kinds:
        merged = merge_kinds(merged, kind)
    return merged


def _showing(place: tuple[str, int], program: Program, uid: str, view: _View, columns: list[Column]) -> Any:
    def show(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        program.install()
        for index in indexes(batches):
            reader = SnapshotReader(read_snapshot(*place))
            yield from batches_of(columns, view.items(reader, uid, index) or ())

    return show


def _encoding(program: Program, plan: Rewriting, uid: str, number: int, recipe: Recipe) -> Any:
    def encode_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        program.install()
        return encode_safely(plan, uid, number, recipe, batches)

    return encode_batches


def _local_rows(plan: Rewriting, uid: str, number: int, items: list[Any]) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for batch in encode(plan, uid, number, [items]) for row in batch.to_pylist()]


def _writing(plan: Rewriting, uid: str) -> Callable[[Iterator[pa.RecordBatch]], Iterator[Written]]:
    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[Written]:
        shares: dict[int, dict[int, list[Any]]] = {}
        for batch in batches:
            for target, change, blob in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                share = shares.setdefault(target, {})
                if change == FAILED:
                    raise pickle.loads(blob).rebuild()
                if change != TICK:
                    share.setdefault(change, []).extend(load(blob))
        for target, share in shares.items():
            yield plan.write(uid, target, share)

    return write


def _window(frame: DataFrame, columns: str | Sequence[str] | None) -> Columns | None:
    if columns is None:
        return None
    pair = not isinstance(columns, str) and len(columns) == 2
    return Columns.of(frame, columns, TimeWindow if pair else None, optional=True)


def _declared(state: StateDescriptor | str) -> Any:
    return None if isinstance(state, str) else state.type_info
