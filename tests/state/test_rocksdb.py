"""RocksDB as a backend: snapshots that any backend reads, folders that go, memory that stays bounded."""

from __future__ import annotations

import gc
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millrace.datastream import EmbeddedRocksDBStateBackend, HashMapStateBackend, StreamExecutionEnvironment
from millrace.errors import ConfigurationError, MissingDependencyError
from millrace.state import (
    VOID,
    ListStateDescriptor,
    MapStateDescriptor,
    OperatorStore,
    StateTtlConfig,
    ValueStateDescriptor,
)
from millrace.state.rocksdb import RocksDBSettings, RocksTables
from millrace.state.rocksdb_choice import backend_settings, table_source
from millrace.state.rocksdb_database import RocksDatabase
from millrace.state.table import HeapTables, StateTable, TableSource

VALUE, LIST, MAP = ValueStateDescriptor("v"), ListStateDescriptor("l"), MapStateDescriptor("m")
SHARED = RocksDatabase(memory=1 << 20)


def no_memory() -> TableSource:
    return RocksTables(RocksDBSettings(memory=0), database=SHARED)


def some_memory() -> TableSource:
    return RocksTables(RocksDBSettings(memory=4000), database=SHARED)


SOURCES: list[Callable[[], TableSource]] = [HeapTables, no_memory, some_memory]


def content(store: OperatorStore) -> list[Any]:
    """All values, in the order in which they are found."""
    return [
        (name, [(namespace, list(pane.items())) for namespace, pane in table.panes.items() if pane])
        for name, table in sorted(store.keyed.tables().items())
    ]


def use(store: OperatorStore, step: str, key: Any, namespace: str, number: int) -> None:
    keyed = store.keyed
    keyed.current_key = key
    value: Any = keyed.get_state(VALUE, namespace)
    elements: Any = keyed.get_state(LIST, namespace)
    entries: Any = keyed.get_state(MAP, namespace)
    if step == "value":
        value.update((value.value() or 0) + number)
    elif step == "list":
        elements.add(number)
    elif step == "map":
        entries.put(number % 3, number)
    elif step == "unmap":
        entries.remove(number % 3)
    elif step == "clear":
        (value, elements, entries)[number % 3].clear()
    elif step == "drop":
        keyed.table("vlm"[number % 3]).drop(namespace)


_STEPS = st.lists(
    st.tuples(
        st.sampled_from(["value", "list", "map", "unmap", "clear", "drop", "settle", "delta", "full", "by delta"]),
        st.sampled_from(["a", "b", 1, ("a", 1.5), frozenset("x")]),
        st.sampled_from([VOID, "w1", "w2"]),
        st.integers(0, 8),
    ),
    max_size=60,
)


@settings(deadline=None, max_examples=200)
@given(_STEPS)
def test_random_programs_that_move_between_backends(steps: list[tuple[str, Any, str, int]]) -> None:
    model, store = OperatorStore(), OperatorStore(tables=no_memory())
    chain: list[bytes] = []
    for step, key, namespace, number in steps:
        if step == "settle":
            store.keyed.settle()
        elif step == "delta":
            chain.append(pickle.dumps(store.delta()))
            model.delta()
        elif step in ("full", "by delta"):
            if step == "full":
                chain = [pickle.dumps(store.full())]
                store.delta()
            else:
                chain.append(pickle.dumps(store.delta()))
            model.delta()
            store = OperatorStore(tables=SOURCES[number % 3]())
            for part in chain:
                store.apply(pickle.loads(part))
            assert store.delta() is None
        else:
            use(store, step, key, namespace, number)
            use(model, step, key, namespace, number)
    assert [(name, sorted(panes)) for name, panes in content(store) if panes] == [
        (name, sorted(panes)) for name, panes in content(model) if panes
    ]


@settings(deadline=None, max_examples=100)
@given(_STEPS)
def test_deltas_and_fulls_are_those_of_the_heap(steps: list[tuple[str, Any, str, int]]) -> None:
    stores = [OperatorStore(tables=source()) for source in SOURCES]
    for step, key, namespace, number in steps:
        for store in stores:
            if step == "settle":
                store.keyed.settle()
            else:
                use(store, step, key, namespace, number)
        if step in ("delta", "by delta"):
            deltas = [_as_sets(store.keyed.delta()) for store in stores]
            assert deltas[0] == deltas[1] == deltas[2]
        elif step == "full":
            fulls = [store.keyed.full() for store in stores]
            assert fulls[0] == fulls[1] == fulls[2]


def _as_sets(delta: Any) -> Any:
    """Removed keys come from sets, and so in no order."""
    return {
        name: (form, dropped, {namespace: (values, set(removed)) for namespace, (values, removed) in changes.items()})
        for name, (form, (dropped, changes)) in delta.items()
    }


def test_a_sweep_goes_on_where_it_stopped() -> None:
    clock = [0]
    tables = RocksTables(RocksDBSettings(memory=0))
    store = OperatorStore(lambda: clock[0], tables)
    descriptor = ValueStateDescriptor("s")
    descriptor.enable_time_to_live(StateTtlConfig.new_builder(100).build())
    for namespace in (VOID, "w"):
        state: Any = store.keyed.get_state(descriptor, namespace)
        for key in range(3000):
            store.keyed.current_key = key
            state.update(key)
    clock[0] = 99
    store.delta()
    store.delta()
    clock[0] = 100
    sizes = []
    while len(store.keyed.table("s")):
        store.keyed.delta()
        sizes.append(len(store.keyed.table("s")))
    assert sizes[0] >= 4000
    assert len(sizes) <= 7
    tables.close()


def test_sessions_stay_in_memory_because_the_operator_refers_to_them() -> None:
    assert type(no_memory().table("window-reduce-sessions")) is StateTable


# The folder


def filled(tables: RocksTables) -> Path:
    tables.table("s").pane(VOID)["a"] = 1
    tables.settle()
    folder = tables.database.folder
    assert folder is not None
    return folder


def test_a_folder_is_made_when_it_is_needed_and_goes_with_its_owner(tmp_path: Path) -> None:
    tables = RocksTables(RocksDBSettings((str(tmp_path),), memory=0))
    tables.table("s").pane(VOID)["a"] = 1
    assert list(tmp_path.iterdir()) == []
    folder = filled(tables)
    assert list(tmp_path.iterdir()) == [folder]
    tables.close()
    assert list(tmp_path.iterdir()) == []


def test_a_task_that_was_never_closed_leaves_nothing_behind(tmp_path: Path) -> None:
    filled(RocksTables(RocksDBSettings((str(tmp_path),), memory=0)))
    gc.collect()
    assert list(tmp_path.iterdir()) == []


def test_tasks_take_turns_with_the_directories(tmp_path: Path) -> None:
    settings = RocksDBSettings((str(tmp_path / "one"), str(tmp_path / "two")), memory=0)
    made = [RocksTables(settings, task) for task in range(3)]
    assert [filled(tables).parent.name for tables in made] == ["one", "two", "one"]


def test_folders_of_killed_processes_are_removed_and_those_in_use_are_not(tmp_path: Path) -> None:
    orphan, young = tmp_path / "millrace-rocksdb-dead", tmp_path / "millrace-rocksdb-young"
    for folder in (orphan, young):
        folder.mkdir()
        (folder / "in-use").touch()
    os.utime(orphan / "in-use", (0, 0))
    settings = RocksDBSettings((str(tmp_path),), memory=0)
    one = RocksTables(settings)
    used = filled(one)
    assert not orphan.exists()
    os.utime(used / "in-use", (0, 0))
    other = RocksTables(settings)
    expected = {used, filled(other), young}
    assert {*tmp_path.iterdir()} == expected


def test_a_directory_that_cannot_be_written_to_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    tables = RocksTables(RocksDBSettings((str(tmp_path / "file"),), memory=0))
    with pytest.raises(ConfigurationError, match=r"file.*Set state\.backend\.rocksdb\.localdir"):
        filled(tables)


# Settings


def test_the_backend_is_chosen_by_configuration() -> None:
    assert type(table_source({})) is HeapTables
    assert type(table_source({"state.backend.type": "hashmap"})) is HeapTables
    assert type(table_source({"state.backend.type": "rocksdb"})) is RocksTables
    with pytest.raises(ConfigurationError, match="there is no backend 'forst'; use hashmap or rocksdb"):
        backend_settings({"state.backend.type": "forst"})


def test_sizes_and_directories() -> None:
    assert RocksDBSettings.of({}) == RocksDBSettings((), 128 << 20)
    config = {
        "state.backend.rocksdb.localdir": "/a, /b",
        "state.backend.rocksdb.memory.fixed-per-slot": "2gb",
    }
    assert RocksDBSettings.of(config) == RocksDBSettings(("/a", "/b"), 2 << 30)
    with pytest.raises(ConfigurationError, match="'much' is not a size; use for example 128mb"):
        RocksDBSettings.of({"state.backend.rocksdb.memory.fixed-per-slot": "much"})


def test_the_backend_of_an_environment_becomes_its_configuration() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    backend = EmbeddedRocksDBStateBackend()
    backend.set_db_storage_paths("/a", "/b")
    config = env.set_state_backend(backend).get_configuration()
    assert config.get_string("state.backend.type", "") == "rocksdb"
    assert config.get_string("state.backend.rocksdb.localdir", "") == "/a,/b"
    config = env.set_state_backend(HashMapStateBackend()).get_configuration()
    assert config.get_string("state.backend.type", "") == "hashmap"


def test_a_missing_package_is_one_line_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rocksdict", None)
    with pytest.raises(MissingDependencyError) as caught:
        backend_settings({"state.backend.type": "rocksdb"})
    expected = "the state backend rocksdb needs the package rocksdict: pip install 'millrace[rocksdb]'"
    assert str(caught.value) == expected


# Memory

_PROGRAM = """
import resource, sys
from pathlib import Path
from millrace.state import OperatorStore, ValueStateDescriptor
from millrace.state.rocksdb_choice import table_source

def megabytes():
    # What is used now: the peak that the system keeps may be that of the process which started this one.
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() >> 20

tables = table_source({"state.backend.type": sys.argv[1], "state.backend.rocksdb.memory.fixed-per-slot": "16mb"})
store = OperatorStore(tables=tables)
state = store.keyed.get_state(ValueStateDescriptor("s"))
used = []
for start in range(0, 100_000, 2000):
    for key in range(start, start + 2000):
        store.keyed.current_key = key
        state.update(bytes([key % 256]) * 1000)
    store.keyed.settle()
    store.delta()
    used.append(megabytes())
wrong = 0
for key in range(0, 100_000, 7):
    store.keyed.current_key = key
    wrong += state.value() != bytes([key % 256]) * 1000
    if key % 1000 == 0:
        store.keyed.settle()
        used.append(megabytes())
print(max(used) - used[0], wrong)
tables.close()
"""


@pytest.mark.parametrize("backend", ["rocksdb", "hashmap"])
def test_state_of_many_times_the_memory_allowed(backend: str) -> None:
    """100 MB of values; of the heap, the test knows that the program would need all that memory."""
    answer = subprocess.run([sys.executable, "-c", _PROGRAM, backend], capture_output=True, text=True, check=True)
    grown, wrong = map(int, answer.stdout.split())
    assert wrong == 0
    assert grown < 50 if backend == "rocksdb" else grown > 80
