from __future__ import annotations

import pickle
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from millrace.common.constants import LONG_MAX
from millrace.errors import ConfigurationError, StateError
from millrace.state import (
    VOID,
    AggregatingStateDescriptor,
    KeyedState,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
    is_expired,
)

pytestmark = pytest.mark.usefixtures("each_backend")

TTL = 100


class Sum:
    def create_accumulator(self) -> int:
        return 0

    def add(self, value: int, accumulator: int) -> int:
        return accumulator + value

    def get_result(self, accumulator: int) -> int:
        return accumulator

    def merge(self, one: int, other: int) -> int:
        return one + other


KINDS: dict[str, tuple[Callable[[], Any], Callable[[Any, int], None], Callable[[Any], int | None]]] = {
    "value": (lambda: ValueStateDescriptor("s"), lambda s, v: s.update(v), lambda s: s.value()),
    "list": (
        lambda: ListStateDescriptor("s"),
        lambda s, v: s.update([v]),
        lambda s: next(iter(s.get()), None),
    ),
    "list, by add": (
        lambda: ListStateDescriptor("s"),
        lambda s, v: s.add(v),
        lambda s: next(reversed(list(s)), None),
    ),
    "map": (lambda: MapStateDescriptor("s"), lambda s, v: s.put("m", v), lambda s: s.get("m")),
    "map, by items": (
        lambda: MapStateDescriptor("s"),
        lambda s, v: s.put_all({"m": v}),
        lambda s: dict(s.items()).get("m"),
    ),
    "reducing": (
        lambda: ReducingStateDescriptor("s", lambda _, last: last),
        lambda s, v: s.add(v),
        lambda s: s.get(),
    ),
    "aggregating": (lambda: AggregatingStateDescriptor("s", Last()), lambda s, v: s.add(v), lambda s: s.get()),
}


class Last(Sum):
    def add(self, value: int, accumulator: int) -> int:
        return value


class Harness:
    """One state of one key at a settable time, restored from its own snapshots before each step."""

    def __init__(self, kind: str, config: StateTtlConfig, by_delta: bool) -> None:
        make, self._write, self._read = KINDS[kind]
        self._descriptor = make()
        self._descriptor.enable_time_to_live(config)
        self._by_delta = by_delta
        self._chain: list[Any] = []
        self.now = 0
        self._open()

    def _open(self) -> None:
        self.backend = KeyedState(lambda: self.now)
        self.backend.current_key = "k"
        for delta in self._chain:
            self.backend.apply(pickle.loads(delta))
        self._state = self.backend.get_state(self._descriptor)

    def _restart(self) -> None:
        if self._by_delta:
            self._chain.append(pickle.dumps(self.backend.delta()))
        else:
            self._chain = [pickle.dumps(self.backend.full())]
        self._open()

    def write(self, now: int, value: int) -> None:
        self.now = now
        self._write(self._state, value)
        self._restart()

    def read(self, now: int) -> int | None:
        self.now = now
        value = self._read(self._state)
        self._restart()
        return value

    def is_cleared(self) -> bool:
        return self.backend.keys("s") == []


@pytest.fixture(params=[False, True], ids=["full", "delta"])
def by_delta(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


def builder() -> StateTtlConfig.Builder:
    return StateTtlConfig.new_builder(timedelta(milliseconds=TTL))


@pytest.mark.parametrize(("now", "expired"), [(149, False), (150, True), (151, True)])
def test_a_value_expires_exactly_one_ttl_after_its_last_access(now: int, expired: bool) -> None:
    assert is_expired(50, TTL, now) is expired


def test_the_end_of_a_life_saturates() -> None:
    assert not is_expired(10, LONG_MAX, LONG_MAX - 1)
    assert is_expired(10, LONG_MAX, LONG_MAX)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("now", "seen"), [(149, 7), (150, None), (151, None)])
def test_boundary_of_every_kind(kind: str, now: int, seen: int | None, by_delta: bool) -> None:
    state = Harness(kind, builder().build(), by_delta)
    state.write(50, 7)
    assert state.read(now) == seen
    assert state.is_cleared() is (seen is None)


@pytest.mark.parametrize("kind", KINDS)
def test_on_create_and_write(kind: str, by_delta: bool) -> None:
    state = Harness(kind, builder().build(), by_delta)
    state.write(0, 1)
    assert state.read(20) == 1
    state.write(50, 2)
    assert state.read(120) == 2
    state.write(170, 3)
    assert state.read(220) == 3
    assert state.read(300) is None
    assert state.is_cleared()


@pytest.mark.parametrize("kind", KINDS)
def test_return_expired_if_not_cleaned_up_returns_it_once(kind: str, by_delta: bool) -> None:
    state = Harness(kind, builder().return_expired_if_not_cleaned_up().build(), by_delta)
    state.write(0, 1)
    assert state.read(120) == 1
    assert state.read(120) is None
    assert state.is_cleared()


@pytest.mark.parametrize("kind", KINDS)
def test_on_read_and_write(kind: str, by_delta: bool) -> None:
    state = Harness(kind, builder().update_ttl_on_read_and_write().build(), by_delta)
    state.write(0, 1)
    assert state.read(50) == 1
    assert state.read(120) == 1
    assert state.read(219) == 1
    assert state.read(319) is None
    assert state.is_cleared()


@pytest.mark.parametrize("kind", KINDS)
def test_the_longest_ttl_never_ends(kind: str, by_delta: bool) -> None:
    state = Harness(kind, StateTtlConfig.new_builder(LONG_MAX).build(), by_delta)
    state.write(10, 1)
    assert state.read(50) == 1
    assert state.read(LONG_MAX - 1) == 1


def open_state(descriptor: Any, config: StateTtlConfig, clock: list[int]) -> tuple[KeyedState, Any]:
    descriptor.enable_time_to_live(config)
    backend = KeyedState(lambda: clock[0])
    backend.current_key = "k"
    return backend, backend.get_state(descriptor)


def test_list_elements_expire_one_by_one() -> None:
    clock = [0]
    _, state = open_state(ListStateDescriptor("s"), builder().build(), clock)
    state.add(1)
    clock[0] = 60
    state.add_all([2, 3])
    clock[0] = 100
    assert state.get() == [2, 3]
    clock[0] = 160
    assert state.get() == []


def test_map_entries_expire_one_by_one() -> None:
    clock = [0]
    _, state = open_state(MapStateDescriptor("s"), builder().build(), clock)
    state["a"] = 1
    clock[0] = 60
    state["b"] = 2
    clock[0] = 100
    assert ("a" in state, "b" in state, list(state), state.values()) == (False, True, ["b"], [2])
    assert not state.is_empty()
    clock[0] = 160
    assert state.is_empty()
    assert state.items() == []


def test_reading_one_map_entry_prolongs_only_its_life() -> None:
    clock = [0]
    _, state = open_state(MapStateDescriptor("s"), builder().update_ttl_on_read_and_write().build(), clock)
    state.put_all({"a": 1, "b": 2})
    clock[0] = 90
    assert state["a"] == 1
    clock[0] = 120
    assert state.items() == [("a", 1)]


def test_adding_to_an_expired_value_starts_anew() -> None:
    for descriptor in (
        ReducingStateDescriptor("s", lambda a, b: a + b),
        AggregatingStateDescriptor("s", Sum()),
    ):
        clock = [0]
        _, state = open_state(descriptor, builder().build(), clock)
        state.add(1)
        clock[0] = 99
        state.add(2)
        assert state.get() == 3
        clock[0] = 199
        state.add(4)
        assert state.get() == 4


def test_merging_leaves_out_what_is_expired() -> None:
    for descriptor in (
        ReducingStateDescriptor("s", lambda a, b: a + b),
        AggregatingStateDescriptor("s", Sum()),
    ):
        clock = [0]
        backend, _ = open_state(descriptor, builder().build(), clock)
        backend.get_state(descriptor, "w1").add(1)
        clock[0] = 50
        backend.get_state(descriptor, "w2").add(2)
        backend.get_state(descriptor, "w3").add(4)
        clock[0] = 120
        backend.merge_namespaces(descriptor, "w1", ["w2", "w3"])
        assert backend.get_state(descriptor, "w1").get() == 6
        assert backend.keys("s", "w2") == []


def test_background_cleanup_removes_what_nobody_reads() -> None:
    clock = [0]
    backend, state = open_state(ValueStateDescriptor("s"), builder().build(), clock)
    for key in range(3000):
        backend.current_key = key
        state.update(key)
    backend.current_key = "young"
    clock[0] = 50
    state.update(1)
    backend.delta()
    clock[0] = 149
    deltas = [backend.delta() for _ in range(4)]
    assert backend.keys("s") == ["young"]
    changes = [delta["s"][1][1][VOID] for delta in deltas if delta]
    assert [values for values, _ in changes if values] == []
    assert sorted(key for _, removed in changes for key in removed) == list(range(3000))


def test_background_cleanup_takes_single_elements_and_entries() -> None:
    for descriptor, write in (
        (ListStateDescriptor("s"), lambda state, value: state.add(value)),
        (MapStateDescriptor("s"), lambda state, value: state.put(value, value)),
    ):
        clock = [0]
        backend, state = open_state(descriptor, builder().build(), clock)
        write(state, 1)
        clock[0] = 50
        write(state, 2)
        clock[0] = 100
        backend.delta()
        assert len(backend.table("s").pane(VOID)["k"]) == 1
        clock[0] = 150
        backend.delta()
        assert backend.keys("s") == []


def test_without_background_cleanup_the_dead_stay_until_they_are_read() -> None:
    clock = [0]
    backend, state = open_state(ValueStateDescriptor("s"), builder().disable_cleanup_in_background().build(), clock)
    state.update(1)
    clock[0] = 1000
    backend.delta()
    assert backend.keys("s") == ["k"]


def test_cleanup_in_full_snapshots_leaves_the_state_itself_alone() -> None:
    clock = [0]
    config = builder().cleanup_full_snapshot().disable_cleanup_in_background().build()
    backend, state = open_state(ListStateDescriptor("s"), config, clock)
    state.add(1)
    backend.current_key = "l"
    state.add(2)
    clock[0] = 60
    state.add(3)
    clock[0] = 100
    assert backend.full()["s"][1] == (None, {VOID: ({"l": [(3, 60)]}, [])})
    assert backend.keys("s") == ["k", "l"]


@pytest.mark.parametrize("opened_first", [True, False])
def test_ttl_may_be_switched_on_and_off_between_runs(opened_first: bool) -> None:
    now = 1000

    def restart(snapshots: list[Any], descriptor: Any) -> tuple[KeyedState, Any]:
        backend = KeyedState(lambda: now)
        backend.current_key = "k"
        if opened_first:
            backend.get_state(descriptor)
        for snapshot in pickle.loads(pickle.dumps(snapshots)):
            backend.apply(snapshot)
        return backend, backend.get_state(descriptor)

    def timed(make: Callable[[str], Any]) -> Any:
        descriptor = make("s")
        descriptor.enable_time_to_live(builder().build())
        return descriptor

    for make, write, content in (
        (ValueStateDescriptor, lambda state: state.update(1), lambda state: state.value()),
        (ListStateDescriptor, lambda state: state.add(1), lambda state: state.get()),
        (MapStateDescriptor, lambda state: state.put(1, 1), lambda state: state.items()),
    ):
        backend, state = restart([], make("s"))
        write(state)
        written = content(state)
        snapshots = [backend.full()]
        backend, state = restart(snapshots, timed(make))
        snapshots.append(backend.delta())
        now += TTL - 1
        backend, state = restart(snapshots, timed(make))
        assert content(state) == written
        backend, state = restart(snapshots, make("s"))
        now += TTL
        assert content(state) == written


def test_a_disabled_config_is_none() -> None:
    descriptor = ValueStateDescriptor("s")
    descriptor.enable_time_to_live(builder().set_update_type(StateTtlConfig.UpdateType.Disabled).build())
    backend = KeyedState(lambda: 10**9)
    backend.current_key = "k"
    backend.get_state(descriptor).update(5)
    assert backend.table("s").pane(VOID) == {"k": 5}


def test_two_times_to_live_for_one_state_are_refused() -> None:
    backend, _ = open_state(ValueStateDescriptor("s"), builder().build(), [0])
    with pytest.raises(StateError, match="two times to live"):
        backend.get_state(ValueStateDescriptor("s"))


def test_defaults_and_settings() -> None:
    config = builder().build()
    strategies = config.get_cleanup_strategies()
    assert config.get_update_type() is StateTtlConfig.UpdateType.OnCreateAndWrite
    assert config.get_state_visibility() is StateTtlConfig.StateVisibility.NeverReturnExpired
    assert config.get_ttl_time_characteristic() is StateTtlConfig.TtlTimeCharacteristic.ProcessingTime
    assert config.is_enabled()
    assert config.get_ttl() == timedelta(milliseconds=TTL)
    assert config.get_ttl_millis() == TTL
    assert strategies.is_cleanup_in_background()
    assert not strategies.in_full_snapshot()
    assert strategies.get_incremental_cleanup_strategy().get_cleanup_size() == 5
    assert strategies.get_rocksdb_compact_filter_cleanup_strategy().get_query_time_after_num_entries() == 1000


def test_chosen_strategies() -> None:
    strategies = (
        builder()
        .cleanup_incrementally(7, True)
        .cleanup_in_rocksdb_compact_filter(9, timedelta(days=1))
        .cleanup_full_snapshot()
        .disable_cleanup_in_background()
        .build()
        .get_cleanup_strategies()
    )
    incremental = strategies.get_incremental_cleanup_strategy()
    rocksdb = strategies.get_rocksdb_compact_filter_cleanup_strategy()
    assert (incremental.get_cleanup_size(), incremental.run_cleanup_for_every_record()) == (7, True)
    assert rocksdb.get_query_time_after_num_entries() == 9
    assert rocksdb.get_periodic_compaction_time() == timedelta(days=1)
    assert strategies.in_full_snapshot()
    assert not strategies.is_cleanup_in_background()


@pytest.mark.parametrize("ttl", [0, -1, "1 h", None])
def test_a_ttl_that_is_no_length_of_time_is_refused(ttl: object) -> None:
    with pytest.raises(ConfigurationError):
        StateTtlConfig.new_builder(ttl).build()


def test_a_config_can_be_pickled() -> None:
    config = builder().cleanup_incrementally(7).build()
    assert repr(pickle.loads(pickle.dumps(config))) == repr(config)
