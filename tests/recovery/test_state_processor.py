"""The state processor: savepoints read, changed, written and started from."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from millrace.common import Row, Time, Types
from millrace.datastream import KeyedProcessFunction, MapFunction, RuntimeContext
from millrace.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from millrace.errors import RestoreError, StateError
from millrace.runtime.windows.windows import TimeWindow
from millrace.spark.state_columns import batches_of, columns_of, kinds_of
from millrace.spark.state_processor import SavepointReader, SavepointWriter
from millrace.state.key_groups import key_group
from millrace.state.reader import SnapshotReader
from millrace.state.savepoint import open_snapshot
from millrace.state.writer import SnapshotWriter
from millrace.testing import LocalRun

from .programs import Committed, counting, environment, everything

FIXTURE = str(Path(__file__).parent / "fixtures" / "savepoint-2")


def after_fifty(tmp_path: Path, parallelism: int = 2) -> str:
    """The numbers 1 to 25 and 51 to 75 of the counting program, as a savepoint."""
    env = environment(parallelism)
    counting(env, 100, Committed())
    run = LocalRun(env, storage=str(tmp_path / "checkpoint"))
    run.run_epoch(10)
    run.run_epoch(15)
    return run.savepoint(str(tmp_path / "savepoints"))


def totals(path: str, parallelism: int = 2) -> list[tuple[int, int]]:
    """What the counting program, started from a savepoint, tells at the end: key and count."""
    sink = Committed()
    env = environment(parallelism, execution_savepoint_path=path)
    counting(env, 100, sink)
    LocalRun(env).run(20)
    return [(row[1], row[2]) for row in sink.rows if row[0] == "total"]


def pairs(items: Iterable[Any]) -> list[tuple[Any, Any]]:
    return sorted((item.key, item.value) for item in items)


# --- without Spark ---


def test_what_is_in_a_savepoint(tmp_path: Path) -> None:
    reader = SnapshotReader.open(after_fifty(tmp_path))
    assert list(reader.operators()) == ["numbers", "times", "count", "sink"]
    states = [(state.name, state.kind, state.entries) for state in reader.states("count")]
    assert states == [
        ("recent", "list", 5),
        ("seen", "map", 5),
        ("count", "value", 5),
        ("event-time timers", "timers", 5),
    ]
    assert [tuple(item) for item in reader.positions()] == [
        ("numbers", "1..50", 26, False),
        ("numbers", "51..100", 76, False),
    ]
    assert pairs(reader.keyed_state_local("count", "count")) == [(key, 10) for key in range(5)]
    lists = [item for item in reader.keyed_state_local("count", "recent") if item.key == 3]
    assert [item.position for item in lists] == [0, 1, 2]
    seen = [item for item in reader.keyed_state_local("count", "seen") if item.key == 0]
    assert sorted(item.map_key for item in seen) == [5, 10, 15, 20, 25, 55, 60, 65, 70, 75]
    timers = sorted((timer.key, timer.domain, timer.time) for timer in reader.timers_local("count"))
    assert timers == [(key, "event", 1_000_000) for key in range(5)]
    assert {item.key_group for item in lists} == {key_group(3, 128)}


def test_a_checkpoint_folder_and_its_older_epochs(tmp_path: Path) -> None:
    env = environment(2, execution_checkpointing_num__retained=2)
    counting(env, 100, Committed())
    run = LocalRun(env, storage=str(tmp_path))
    run.run_epoch(5)
    run.run_epoch(5)
    newest, older = SnapshotReader.open(tmp_path), SnapshotReader.open(tmp_path, epoch=1)
    assert pairs(newest.keyed_state_local("count", "count")) == [(key, 4) for key in range(5)]
    assert pairs(older.keyed_state_local("count", "count")) == [(key, 2) for key in range(5)]
    assert [state.name for state in newest.states("count")] == ["recent", "seen", "count", "event-time timers"]
    with pytest.raises(RestoreError, match="has no epoch 7: it has 1, 2"):
        SnapshotReader.open(tmp_path, epoch=7)


def test_what_is_not_there(tmp_path: Path) -> None:
    reader = SnapshotReader.open(FIXTURE)
    with pytest.raises(StateError, match=r"no operator with uid 'counts?!'; it has: .*count"):
        reader.states("count!")
    with pytest.raises(StateError, match=r"no such state 'total'; it has: 'recent' \(list\)"):
        list(reader.keyed_state_local("count", "total"))
    with pytest.raises(RestoreError, match="neither a savepoint .* nor a checkpoint folder"):
        SnapshotReader.open(tmp_path)


def test_windows_and_broadcast_state_of_the_format_that_is_kept_for_ever() -> None:
    reader = SnapshotReader.open(FIXTURE)
    windows = [item.namespace for item in reader.keyed_state_local("windows", "window-list")]
    assert windows and all(isinstance(window, TimeWindow) for window in windows)
    assert list(reader.broadcast_state_local("limit", "rules")) == [("limit", 1_000_000)]


@pytest.mark.parametrize("parallelism", [1, 2, 3])
def test_a_savepoint_without_changes_goes_on_as_if_nothing_had_happened(parallelism: int, tmp_path: Path) -> None:
    def half_way(sinks: list[Committed]) -> str:
        env = environment(2)
        everything(env, 100, sinks)
        run = LocalRun(env, storage=str(tmp_path / "checkpoint"))
        run.run_epoch(21)
        return run.savepoint(str(tmp_path / "savepoints"))

    sinks, expected = [Committed() for _ in range(3)], [Committed() for _ in range(3)]
    path = SnapshotWriter.from_existing(half_way(sinks)).write(tmp_path / "written")
    env = environment(parallelism, execution_savepoint_path=path)
    everything(env, 100, sinks)
    LocalRun(env).run(9)
    env = environment(2)
    everything(env, 100, expected)
    LocalRun(env).run()
    assert [sink.rows for sink in sinks] == [sink.rows for sink in expected]


@pytest.mark.parametrize("parallelism", [1, 2, 5])
def test_changed_values_are_what_the_program_goes_on_with(parallelism: int, tmp_path: Path) -> None:
    writer = SnapshotWriter.from_existing(after_fifty(tmp_path))
    writer.with_keyed_items("count", "count", [(0, 1000), (1, None)], replace=False)
    path = writer.write(tmp_path / "written")
    assert totals(path, parallelism) == [(0, 1010), (1, 10), (2, 20), (3, 20), (4, 20)]


def test_replaced_state_has_no_other_keys(tmp_path: Path) -> None:
    writer = SnapshotWriter.from_existing(after_fifty(tmp_path)).with_keyed_items("count", "count", [(0, 1000)])
    assert totals(writer.write(tmp_path / "written")) == [(0, 1010), (1, 10), (2, 10), (3, 10), (4, 10)]


def test_timers_are_set_anew(tmp_path: Path) -> None:
    writer = SnapshotWriter.from_existing(after_fifty(tmp_path)).with_timer_items("count", [(80, 3, None)])
    path = writer.write(tmp_path / "written")
    assert [tuple(timer[:4]) for timer in SnapshotReader.open(path).timers_local("count")] == [("event", 80, 3, None)]
    with pytest.raises(StateError, match="domain='wall': timers are of 'event' or of 'processing' time"):
        writer.with_timer_items("count", [], domain="wall")


def test_uids_change_and_operators_go(tmp_path: Path) -> None:
    path = after_fifty(tmp_path)
    writer = SnapshotWriter.from_existing(path).change_uid("count", "renamed").change_uid("numbers", "integers")
    written = SnapshotReader.open(writer.write(tmp_path / "renamed"))
    assert list(written.operators()) == ["times", "sink", "renamed", "integers"]
    assert pairs(written.keyed_state_local("renamed", "count")) == [(key, 10) for key in range(5)]
    assert {item.uid for item in written.positions()} == {"integers"}
    back = SnapshotWriter.from_existing(tmp_path / "renamed")
    back.change_uid("renamed", "count").change_uid("integers", "numbers")
    assert totals(back.write(tmp_path / "back")) == [(key, 20) for key in range(5)]
    removed = SnapshotWriter.from_existing(path).remove_operator("count").write(tmp_path / "removed")
    assert totals(removed) == [(key, 10) for key in range(5)]
    with pytest.raises(StateError, match="no operator with uid 'cuont' to write; there are: numbers, times, count"):
        SnapshotWriter.from_existing(path).remove_operator("cuont")
    with pytest.raises(StateError, match="operator with uid 'times' already"):
        SnapshotWriter.from_existing(path).change_uid("count", "times")


def test_history_is_read_again_from_another_position(tmp_path: Path) -> None:
    writer = SnapshotWriter.from_existing(after_fifty(tmp_path)).with_position("numbers", "1..50", 1)
    assert totals(writer.write(tmp_path / "written")) == [(key, 25) for key in range(5)]


def test_a_finished_split_is_opened_again(tmp_path: Path) -> None:
    env = environment(1)
    counting(env, 100, Committed())
    run = LocalRun(env, storage=str(tmp_path / "checkpoint"))
    run.run()
    path = run.savepoint(str(tmp_path))
    assert {item.finished for item in SnapshotReader.open(path).positions()} == {True}
    writer = SnapshotWriter.from_existing(path).with_position("numbers", "1..100", 91)
    writer.with_timer_items("count", [(1_000_000, key, None) for key in range(5)])
    assert totals(writer.write(tmp_path / "written"), 1) == [(key, 22) for key in range(5)]


def test_a_new_job_starts_with_state(tmp_path: Path) -> None:
    writer = SnapshotWriter.empty(64, parallelism=3)
    writer.with_keyed_items("count", ValueStateDescriptor("count"), [(key, 100 * key) for key in range(5)])
    path = writer.write(tmp_path / "written")
    assert totals(path, 2) == [(0, 20), (1, 120), (2, 220), (3, 320), (4, 420)]
    assert open_snapshot(path).manifest.operators["count"].max_parallelism == 64
    with pytest.raises(StateError, match="holds a savepoint already: write to a new folder"):
        writer.write(tmp_path / "written")
    with pytest.raises(StateError, match="has no keyed state 'count' yet: pass a descriptor"):
        SnapshotWriter.empty().with_keyed_items("count", "count", [])


def test_the_written_savepoint_is_whole_and_damage_is_seen(tmp_path: Path) -> None:
    path = SnapshotWriter.from_existing(after_fifty(tmp_path)).write(tmp_path / "written")
    open_snapshot(path)
    file = next((Path(path) / "state").glob("*.full"))
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(RestoreError, match=file.name):
        open_snapshot(path)


def test_declared_types_and_kinds_are_kept_to(tmp_path: Path) -> None:
    writer = SnapshotWriter.from_existing(after_fifty(tmp_path))
    writer.with_keyed_items("count", ListStateDescriptor("count"), [(0, 1)])
    with pytest.raises(RestoreError, match="state 'count' is value state and cannot be list state too"):
        writer.write(tmp_path / "written")
    typed = SnapshotWriter.empty().with_keyed_items("count", ValueStateDescriptor("n", Types.BYTE()), [("a", 300)])
    path = typed.write(tmp_path / "typed")
    assert pairs(SnapshotReader.open(path).keyed_state_local("count", "n")) == [("a", 44)]


def test_a_time_to_live_goes_on_counting(tmp_path: Path) -> None:
    descriptor = ListStateDescriptor("recent")
    descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.hours(1)).build())
    items = [("a", None, 1, None, "late", 50), ("a", None, 0, None, "early", 40)]
    path = SnapshotWriter.empty().with_keyed_items("count", descriptor, items).write(tmp_path / "written")
    read = list(SnapshotReader.open(path).keyed_state_local("count", "recent"))
    assert [(item.position, item.value, item.last_access) for item in read] == [(0, "early", 40), (1, "late", 50)]


# --- columns ---


class Pair(NamedTuple):
    left: int
    right: str


@dataclass(frozen=True)
class Visit:
    page: str
    clicks: int = 0
    tags: list[str] = field(default_factory=list)


def shown(*values: Any) -> list[dict[str, Any]]:
    items = [(value,) for value in values]
    columns = columns_of(["value"], kinds_of(items, 1))
    rows: Iterator[Any] = (row for batch in batches_of(columns, items) for row in batch.to_pylist())
    return list(rows)


@pytest.mark.parametrize(
    ("values", "rows"),
    [
        ([1, None], [{"value": 1}, {"value": None}]),
        ([1, 1.5], [{"value": 1.0}, {"value": 1.5}]),
        ([("a", 1)], [{"_1": "a", "_2": 1}]),
        ([Pair(1, "b")], [{"left": 1, "right": "b"}]),
        ([Row(a=1, b=[2])], [{"a": 1, "b": [2]}]),
        ([Visit("p", 2, ["x"])], [{"page": "p", "clicks": 2, "tags": ["x"]}]),
        ([{"a": 1}, {"b": "x"}], [{"a": 1, "b": None}, {"a": None, "b": "x"}]),
        ([{1: "a"}], [{"value": [(1, "a")]}]),
        ([{"value": 1}], [{"value_value": 1}]),
        ([(Pair(1, "b"), None)], [{"_1": {"left": 1, "right": "b"}, "_2": None}]),
        ([datetime.date(2026, 1, 1)], [{"value": datetime.date(2026, 1, 1)}]),
        ([b"x", b"y"], [{"value": b"x"}, {"value": b"y"}]),
    ],
)  # fmt: skip
def test_values_as_columns(values: list[Any], rows: list[dict[str, Any]]) -> None:
    assert shown(*values) == rows


def test_what_has_no_spark_type_is_text_and_pickled() -> None:
    first, second = shown({1, 2}, 2**80)
    assert (first["value"], second["value"]) == ("{1, 2}", str(2**80))
    assert set(first) == {"value", "value_pickled"}
    (row,) = shown(Row(a=1, b=frozenset("x")))
    assert (row["a"], row["b"], type(row["b_pickled"])) == (1, "frozenset({'x'})", bytes)


def test_a_dict_of_many_keys_is_a_map() -> None:
    (row,) = shown({f"word{n}": n for n in range(200)})
    assert len(row["value"]) == 200


# --- on Spark ---


class Rich(KeyedProcessFunction):
    """Every kind of keyed state."""

    def open(self, runtime_context: RuntimeContext) -> None:
        ttl = StateTtlConfig.new_builder(Time.hours(1)).build()
        last = ValueStateDescriptor("last")
        last.enable_time_to_live(ttl)
        self.last = runtime_context.get_state(last)
        self.visits = runtime_context.get_list_state(ListStateDescriptor("visits"))
        self.total = runtime_context.get_reducing_state(ReducingStateDescriptor("total", lambda a, b: a + b))
        self.mean = runtime_context.get_aggregating_state(AggregatingStateDescriptor("mean", Mean()))
        self.odd = runtime_context.get_map_state(MapStateDescriptor("odd"))

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Any:
        self.last.update(value)
        self.visits.add(Visit(f"page{value % 2}", value))
        self.total.add(value)
        self.mean.add(value)
        self.odd.put(value, frozenset([value]))
        yield ctx.get_current_key(), self.total.get(), self.mean.get(), [visit.clicks for visit in self.visits.get()]


class Mean:
    def create_accumulator(self) -> tuple[int, int]:
        return 0, 0

    def add(self, value: int, accumulator: tuple[int, int]) -> tuple[int, int]:
        return accumulator[0] + value, accumulator[1] + 1

    def get_result(self, accumulator: tuple[int, int]) -> float:
        return accumulator[0] / accumulator[1]


class Buffer(MapFunction):
    """Keeps its records in list state and counts tasks in union state."""

    def initialize_state(self, context: Any) -> None:
        store = context.get_operator_state_store()
        self.buffer = store.get_list_state(ListStateDescriptor("buffer"))
        self.union = store.get_union_list_state(ListStateDescriptor("union"))

    def snapshot_state(self, context: Any) -> None:
        return

    def map(self, value: int) -> int:
        self.buffer.add((value, str(value)))
        self.union.add(value)
        return value


def rich(sink: Committed, numbers: int = 8, **config: Any) -> LocalRun:
    env = environment(2, **config)
    stream = env.from_sequence(1, numbers).uid("numbers").map(Buffer()).uid("buffer")
    stream.key_by(lambda n: ("k", n % 2)).process(Rich()).uid("rich").sink_to(sink).uid("sink")
    return LocalRun(env, clock=lambda: 77)


@pytest.fixture
def rich_savepoint(tmp_path: Path) -> str:
    run = rich(Committed())
    run.run_epoch(2)
    return run.savepoint(str(tmp_path / "savepoints"))


def rows_of(frame: Any) -> list[dict[str, Any]]:
    return sorted((row.asDict(recursive=True) for row in frame.collect()), key=str)


def test_every_kind_of_state_as_a_data_frame(spark: Any, rich_savepoint: str) -> None:
    reader = SavepointReader.open(rich_savepoint)
    odd, even = key_group(("k", 1), 128), key_group(("k", 0), 128)
    key = [{"_1": "k", "_2": 0}, {"_1": "k", "_2": 1}]
    last = reader.keyed_state("rich", "last")
    assert last.columns == ["key", "value", "last_access", "key_group"]
    assert rows_of(last) == [
        {"key": key[0], "value": 6, "last_access": 77, "key_group": even},
        {"key": key[1], "value": 5, "last_access": 77, "key_group": odd},
    ]
    visits = reader.keyed_state("rich", "visits")
    assert visits.columns == ["key", "position", "page", "clicks", "tags", "key_group"]
    assert sorted(row.clicks for row in visits.where("key._2 = 1").collect()) == [1, 5]
    assert rows_of(reader.keyed_state("rich", "mean").select("_1", "_2")) == [{"_1": 6, "_2": 2}, {"_1": 8, "_2": 2}]
    sets = reader.keyed_state("rich", "odd")
    assert sets.columns == ["key", "map_key", "value", "value_pickled", "key_group"]
    assert sets.where("map_key = 5").first().value == "frozenset({5})"
    buffered = reader.list_state("buffer", "buffer")
    assert buffered.columns == ["subtask", "position", "_1", "_2"]
    assert sorted(row._2 for row in buffered.collect()) == ["1", "2", "5", "6"]
    assert reader.union_state("buffer", "union").count() == 4
    assert reader.timers("rich").count() == 0
    assert {row.split: row.position for row in reader.positions_frame().collect()} == {"1..4": "3", "5..8": "7"}
    assert last.rdd.getNumPartitions() == 2
    with pytest.raises(StateError, match=r"no such state 'first'; it has: 'mean' \(aggregating\)"):
        reader.keyed_state("rich", "first")


def test_a_checkpoint_a_window_and_a_rule_on_spark(spark: Any) -> None:
    reader = SavepointReader.open(FIXTURE)
    windows = reader.keyed_state("windows", "window-list")
    assert windows.columns == ["key", "window_start", "window_end", "value", "key_group"]
    assert {row.window_end - row.window_start for row in windows.collect()} == {20}
    assert rows_of(reader.broadcast_state("limit", "rules")) == [{"map_key": "limit", "value": 1_000_000}]
    assert rows_of(reader.timers("count").select("domain", "time").distinct()) == [
        {"domain": "event", "time": 1_000_000}
    ]
    checkpoint = SavepointReader.open(Path(__file__).parent / "fixtures" / "format-1")
    assert checkpoint.states("count") == SnapshotReader.open(checkpoint.snapshot.storage.location).states("count")


def test_read_change_write_and_start(spark: Any, rich_savepoint: str, tmp_path: Path) -> None:
    reader = SavepointReader.open(rich_savepoint)
    total = reader.keyed_state("rich", "total").selectExpr("key", "value * 100 as value")
    mean = reader.keyed_state("rich", "mean").selectExpr("key", "0L as sum", "9L as count")
    visits = reader.keyed_state("rich", "visits").selectExpr("key", "-position as place", "page", "clicks", "tags")
    sets = reader.keyed_state("rich", "odd").where("map_key < 5")
    writer = SavepointWriter.from_existing(rich_savepoint).with_keyed_state("rich", "total", total)
    writer.with_keyed_state("rich", "mean", mean, value_columns=["sum", "count"], value_type=tuple)
    writer.with_keyed_state(
        "rich", "visits", visits, "key", ["page", "clicks", "tags"], value_type=Visit, position_column="place"
    )
    writer.with_keyed_state("rich", "odd", sets, "key", "value_pickled", map_key_column="map_key")
    path = writer.write(tmp_path / "written")
    changed = SnapshotReader.open(path)
    assert {item.value for item in changed.keyed_state_local("rich", "odd")} == {frozenset([1]), frozenset([2])}
    sink = Committed()
    rich(sink, execution_savepoint_path=path).run()
    assert sink.rows == [
        (("k", 0), 804, 4 / 10, [6, 2, 4]),
        (("k", 0), 812, 12 / 11, [6, 2, 4, 8]),
        (("k", 1), 603, 3 / 10, [5, 1, 3]),
        (("k", 1), 610, 10 / 11, [5, 1, 3, 7]),
    ]


def test_operator_state_is_written(spark: Any, rich_savepoint: str, tmp_path: Path) -> None:
    elements = spark.createDataFrame([(n, f"new{n}") for n in range(5)], "number long, name string")
    writer = SavepointWriter.from_existing(rich_savepoint)
    writer.with_list_state("buffer", "buffer", elements, ["number", "name"], value_type=tuple)
    writer.with_list_state("buffer", "union", elements, "number", union=True, replace=False)
    rules = spark.createDataFrame([("limit", 3), ("other", 4)], "rule string, value long")
    writer.with_broadcast_state("limit", MapStateDescriptor("rules"), rules, "rule")
    reader = SnapshotReader.open(writer.write(tmp_path / "written"))
    assert sorted(item.value for item in reader.list_state_local("buffer", "buffer")) == [
        (n, f"new{n}") for n in range(5)
    ]
    assert sorted(item.value for item in reader.union_state_local("buffer", "union")) == [0, 1, 1, 2, 2, 3, 4, 5, 6]
    assert sorted(reader.broadcast_state_local("limit", "rules")) == [("limit", 3), ("other", 4)]
    assert pairs(reader.keyed_state_local("rich", "total")) == [(("k", 0), 8), (("k", 1), 6)]


def test_a_new_job_on_spark_starts_from_a_data_frame(spark: Any, tmp_path: Path) -> None:
    history = spark.range(0, 50_000).selectExpr("id % 5 as key").groupBy("key").count()
    timers = spark.range(0, 5).selectExpr("id as key", "1000000L as time")
    writer = SavepointWriter.empty(parallelism=3)
    writer.with_keyed_state("count", ValueStateDescriptor("count"), history, "key", "count")
    path = writer.with_timers("count", timers).write(tmp_path / "written")
    sink = Committed()
    env = environment(2, execution_savepoint_path=path, execution_checkpointing_dir=tmp_path / "checkpoint",
                      pipeline_epoch_max__records=40)  # fmt: skip
    counting(env, 100, sink)
    env.execute()
    assert [(row[1], row[2]) for row in sink.rows if row[0] == "total"] == [(key, 10_020) for key in range(5)]
    state = SavepointReader.open(tmp_path / "checkpoint").keyed_state("count", "count")
    assert rows_of(state.select("key", "value")) == [{"key": key, "value": 10_020} for key in range(5)]


def test_many_keys_are_spread_by_key_group(spark: Any, tmp_path: Path) -> None:
    frame = spark.range(0, 20_000).selectExpr("concat('user', id) as key", "id as clicks", "'p' as page")
    writer = SavepointWriter.empty(32, parallelism=4)
    writer.with_keyed_state(
        "visits", ValueStateDescriptor("last"), frame, value_columns=["page", "clicks"], value_type=Visit
    )
    reader = SnapshotReader.open(writer.write(tmp_path / "written"))
    assert [state.entries for state in reader.states("visits")] == [20_000]
    for subtask in range(4):
        panes = reader.full("visits", f"changed0/{subtask}")["keyed"]["last"][1][1]
        groups = {key_group(key, 32) for key in panes[""][0]}
        assert groups == set(range(8 * subtask, 8 * subtask + 8))
        assert panes[""][0].get("user77", Visit("p", 77)) == Visit("p", 77)


def test_windows_are_written(spark: Any, tmp_path: Path) -> None:
    read = SavepointReader.open(FIXTURE).keyed_state("windows", "window-list")
    doubled = read.selectExpr("key", "window_start", "window_end", "transform(value, n -> n * 2) as value")
    writer = SavepointWriter.from_existing(FIXTURE)
    writer.with_keyed_state("windows", "window-list", doubled, window_columns=["window_start", "window_end"])
    path = writer.write(tmp_path / "written")
    before = {item[:2]: item.value for item in SnapshotReader.open(FIXTURE).keyed_state_local("windows", "window-list")}
    after = {item[:2]: item.value for item in SnapshotReader.open(path).keyed_state_local("windows", "window-list")}
    assert after == {place: [2 * n for n in value] for place, value in before.items()}


def test_mistakes_are_told_before_anything_is_written(spark: Any, rich_savepoint: str, tmp_path: Path) -> None:
    frame = spark.createDataFrame([("a", 1, "x")], "key string, clicks long, pages string")
    writer = SavepointWriter.empty(parallelism=1)
    descriptor = ValueStateDescriptor("last")
    with pytest.raises(StateError, match="no column value; it has: key, clicks, pages"):
        writer.with_keyed_state("visits", descriptor, frame)
    with pytest.raises(StateError, match="what is to be made of the columns clicks, pages"):
        writer.with_keyed_state("visits", descriptor, frame, "key", ["clicks", "pages"])
    with pytest.raises(StateError, match="Visit has no field pages; it has clicks, page, tags: rename"):
        writer.with_keyed_state("visits", descriptor, frame, "key", ["clicks", "pages"], value_type=Visit)
    with pytest.raises(StateError, match="map state 'm' needs a map_key_column"):
        writer.with_keyed_state("visits", MapStateDescriptor("m"), frame, "key", "clicks")
    with pytest.raises(StateError, match="list state 'm' is described by a ListStateDescriptor"):
        writer.with_list_state("visits", MapStateDescriptor("m"), frame, "clicks")  # type: ignore[arg-type]
    typed = writer.with_keyed_state("visits", ValueStateDescriptor("n", Types.LONG()), frame, "key", "pages")
    with pytest.raises(TypeError, match="LONG|Long") as caught:
        typed.write(tmp_path / "written")
    assert "in the DataFrame for state 'n' of operator 'visits'" in caught.value.__notes__
    assert not (tmp_path / "written" / "savepoint.json").exists()
