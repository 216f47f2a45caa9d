"""Random programs over all kinds of state, written down and restored at random, against plain dicts."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millrace.state import (
    VOID,
    AggregatingStateDescriptor,
    KeyedState,
    KeyRouter,
    ListStateDescriptor,
    MapStateDescriptor,
    OperatorStore,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)

pytestmark = pytest.mark.usefixtures("each_backend")

GROUPS = 16


class Total:
    def create_accumulator(self) -> list[int]:
        return [0]

    def add(self, value: int, accumulator: list[int]) -> list[int]:
        accumulator[0] += value
        return accumulator

    def get_result(self, accumulator: list[int]) -> int:
        return accumulator[0]

    def merge(self, one: list[int], other: list[int]) -> list[int]:
        return [one[0] + other[0]]


VALUE = ValueStateDescriptor("value")
LIST = ListStateDescriptor("list")
MAP = MapStateDescriptor("map")
REDUCING = ReducingStateDescriptor("reducing", lambda a, b: a + b)
AGGREGATING = AggregatingStateDescriptor("aggregating", Total())
DESCRIPTORS = (VALUE, LIST, MAP, REDUCING, AGGREGATING)


class Job:
    """Some tasks with a store each, and the chain of snapshots from which each could be restored."""

    def __init__(self) -> None:
        self.stores = [OperatorStore()]
        self.chains: list[list[bytes]] = [[]]

    def store(self, key: object) -> OperatorStore:
        return self.stores[KeyRouter(len(self.stores), GROUPS).route([key])[0]]

    def state(self, descriptor: Any, key: object, namespace: object) -> Any:
        keyed = self.store(key).keyed
        keyed.current_key = key
        return keyed.get_state(descriptor, namespace)

    def delta(self) -> None:
        for store, chain in zip(self.stores, self.chains, strict=True):
            delta = store.delta()
            if delta is not None:
                chain.append(pickle.dumps(delta))

    def full(self) -> None:
        self.chains = [[pickle.dumps(store.full())] for store in self.stores]

    def restart(self) -> None:
        self.delta()
        self.stores = [OperatorStore() for _ in self.stores]
        for store, chain in zip(self.stores, self.chains, strict=True):
            for parts in chain:
                store.apply(pickle.loads(parts))

    def replace(self) -> None:
        """Load the last full and what follows over a store that went astray, as a task does after a failed attempt."""
        self.delta()
        self.full()
        for store, chain in zip(self.stores, self.chains, strict=True):
            for key in "abcd":
                store.keyed.current_key = key
                store.keyed.get_state(LIST).add("astray")
                store.keyed.get_state(VALUE, "w3").update("astray")
                store.event_timers.register(1, key, "astray")
            for parts in chain:
                store.apply(pickle.loads(parts))

    def rescale(self, parallelism: int) -> None:
        fulls = [pickle.dumps(store.full()) for store in self.stores]
        parts = [
            OperatorStore.rescale([pickle.loads(full) for full in fulls], task, parallelism, GROUPS)
            for task in range(parallelism)
        ]
        self.stores = [OperatorStore() for _ in range(parallelism)]
        self.chains = [[pickle.dumps(part)] for part in parts]
        for store, part in zip(self.stores, parts, strict=True):
            store.apply(pickle.loads(pickle.dumps(part)))


class Model:
    """What the job should hold: {(state, namespace, key): value} and a set of timers."""

    def __init__(self) -> None:
        self.values: dict[tuple[str, Any, Any], Any] = {}
        self.timers: set[tuple[int, Any, Any]] = set()

    def content(self, descriptor: Any, key: object, namespace: object) -> Any:
        return self.values.get((descriptor.name, namespace, key))

    def set(self, descriptor: Any, key: object, namespace: object, value: Any) -> None:
        if value is None or value in ([], {}):
            self.values.pop((descriptor.name, namespace, key), None)
        else:
            self.values[descriptor.name, namespace, key] = value


Operation = Callable[[Job, Model, Any, Any, int], None]


def update_value(job: Job, model: Model, key: Any, namespace: Any, number: int) -> None:
    job.state(VALUE, key, namespace).update(number)
    model.set(VALUE, key, namespace, number)


def add_to_list(job: Job, model: Model, key: Any, namespace: Any, number: int) -> None:
    job.state(LIST, key, namespace).add(number)
    model.set(LIST, key, namespace, [*(model.content(LIST, key, namespace) or []), number])


def add_all_to_list(job: Job, model: Model, key: Any, namespace: Any, number: int) -> None:
    elements = list(range(number % 3))
    job.state(LIST, key, namespace).add_all(elements)
    model.set(LIST, key, namespace, (model.content(LIST, key, namespace) or []) + elements)


def update_list(job: Job, model: Model, key: Any, namespace: Any, number: int) -> None:
    job.state(LIST, key, namespace).update(range(number % 3))
    model.set(LIST, key, namespace, list(range(number % 3)))


def put_in_map(job: Job, model: Model, key: Any, namespace: Any, number: int) -> None:
    job.state(MAP, key, namespace)[number % 3] = number
    model.set(MAP, key, namespace, {**(model.content(MAP, key, namespace) or {}), number % 3: number})


def remove_from_map(job: Job, model: Model, key: Any, namespace: Any, number: int) -> None:
    del job.state(MAP, key, namespace)[number % 3]
    entries = model.content(MAP, key, namespace) or {}
    model.set(MAP, key, namespace, {k: v for k, v in entries.items() if k != number % 3})


def add_to_reducing(job: Job, model: Model, key: Any, namespace: Any, number: int) -> None:
    job.state(REDUCING, key, namespace).add(number)
    model.set(REDUCING, key, namespace, (model.content(REDUCING, key, namespace) or 0) + number)


def add_to_aggregating(job: Job, model: Model, key: Any, namespace: Any, number: int) -> None:
    job.state(AGGREGATING, key, namespace).add(number)
    model.set(AGGREGATING, key, namespace, (model.content(AGGREGATING, key, namespace) or 0) + number)


def clear(job: Job, model: Model, key: Any, namespace: Any, number: int) -> None:
    descriptor = DESCRIPTORS[number % len(DESCRIPTORS)]
    job.state(descriptor, key, namespace).clear()
    model.set(descriptor, key, namespace, None)


def drop(job: Job, model: Model, key: Any, namespace: Any, number: int) -> None:
    descriptor = DESCRIPTORS[number % len(DESCRIPTORS)]
    for store in job.stores:
        store.keyed.table(descriptor.name).drop(namespace)
    for name, ns, other in list(model.values):
        if (name, ns) == (descriptor.name, namespace):
            del model.values[name, ns, other]


def merge(job: Job, model: Model, key: Any, namespace: Any, number: int) -> None:
    descriptor = (LIST, REDUCING, AGGREGATING)[number % 3]
    sources = [other for other in (VOID, "w1", "w2") if other != namespace]
    job.state(descriptor, key, namespace)
    job.store(key).keyed.merge_namespaces(descriptor, namespace, sources)
    found = [model.content(descriptor, key, ns) for ns in (namespace, *sources)]
    found = [content for content in found if content is not None]
    for source in sources:
        model.set(descriptor, key, source, None)
    if found:
        model.set(descriptor, key, namespace, sum(found[1:], start=found[0]))


def register_timer(job: Job, model: Model, key: Any, namespace: Any, number: int) -> None:
    job.store(key).event_timers.register(number, key, namespace)
    model.timers.add((number, key, namespace))


def delete_timer(job: Job, model: Model, key: Any, namespace: Any, number: int) -> None:
    job.store(key).event_timers.delete(number, key, namespace)
    model.timers.discard((number, key, namespace))


def fire_timers(job: Job, model: Model, key: Any, namespace: Any, number: int) -> None:
    for store in job.stores:
        last = -1
        while (timer := store.event_timers.pop_due(number)) is not None:
            assert last <= timer[0] <= number
            last = timer[0]
            model.timers.remove(timer)
    assert all(time > number for time, _, _ in model.timers)


STATE_OPERATIONS: list[Operation] = [
    update_value,
    add_to_list,
    add_all_to_list,
    update_list,
    put_in_map,
    remove_from_map,
    add_to_reducing,
    add_to_aggregating,
    clear,
    drop,
    merge,
    register_timer,
    delete_timer,
    fire_timers,
]

JOB_OPERATIONS: list[Operation] = [
    lambda job, *_: job.delta(),
    lambda job, *_: job.full(),
    lambda job, *_: job.restart(),
    lambda job, *_: job.replace(),
    lambda job, model, key, namespace, number: job.rescale(1 + number % 4),
]


def check(job: Job, model: Model) -> None:
    held: dict[tuple[str, Any, Any], Any] = {}
    for store in job.stores:
        for name, table in store.keyed.tables().items():
            for namespace, pane in table.panes.items():
                for key, stored in pane.items():
                    assert job.store(key) is store
                    held[name, namespace, key] = stored[0] if name == "aggregating" else stored
    assert held == model.values
    timers = [timer for store in job.stores for timer in store.event_timers]
    assert sorted(timers) == sorted(model.timers)


_STEPS = st.tuples(
    st.sampled_from(STATE_OPERATIONS * 2 + JOB_OPERATIONS),
    st.sampled_from("abcd"),
    st.sampled_from([VOID, "w1", "w2"]),
    st.integers(0, 9),
)


@settings(deadline=None, max_examples=200)
@given(st.lists(_STEPS, max_size=50))
def test_random_programs(steps: list[tuple[Operation, str, str, int]]) -> None:
    job, model = Job(), Model()
    for operation, key, namespace, number in steps:
        operation(job, model, key, namespace, number)
        check(job, model)
    job.restart()
    check(job, model)


def _firing_order(store: OperatorStore) -> list[Any]:
    fired = []
    while (timer := store.event_timers.pop_due(100)) is not None:
        fired.append(timer)
    return fired


@settings(deadline=None, max_examples=100)
@given(st.lists(_STEPS, max_size=40))
def test_a_restored_task_fires_in_the_order_of_the_original(steps: list[tuple[Operation, str, str, int]]) -> None:
    job, model = Job(), Model()
    for operation, key, namespace, number in steps:
        operation(job, model, key, namespace, number)
    originals = job.stores
    job.restart()
    assert [_firing_order(store) for store in job.stores] == [_firing_order(store) for store in originals]


_TIMED_STEPS = st.tuples(
    st.sampled_from(["update", "add", "put", "value", "get", "items", "one", "delta", "restart"]),
    st.sampled_from("ab"),
    st.integers(0, 4),
)


@settings(deadline=None, max_examples=200)
@given(st.lists(_TIMED_STEPS, max_size=40), st.booleans())
def test_time_to_live_against_plain_dicts(steps: list[tuple[str, str, int]], refresh: bool) -> None:
    ttl = 6
    now = 0

    def clock() -> int:
        return now

    builder = StateTtlConfig.new_builder(ttl)
    if refresh:
        builder.update_ttl_on_read_and_write()
    descriptors = (ValueStateDescriptor("v"), ListStateDescriptor("l"), MapStateDescriptor("m"))
    for descriptor in descriptors:
        descriptor.enable_time_to_live(builder.build())
    backend = KeyedState(clock)
    chain: list[bytes] = []
    values: dict[str, tuple[int, int]] = {}
    lists: dict[str, list[tuple[int, int]]] = {"a": [], "b": []}
    maps: dict[str, dict[int, tuple[int, int]]] = {"a": {}, "b": {}}

    def live(last_access: int) -> bool:
        return last_access + ttl > now

    for number, (step, key, gap) in enumerate(steps):
        now += gap
        backend.current_key = key
        value, elements, entries = map(backend.get_state, descriptors)
        if step == "update":
            value.update(number)
            values[key] = (number, now)
        elif step == "add":
            elements.add(number)
            lists[key].append((number, now))
        elif step == "put":
            entries.put(gap, number)
            maps[key][gap] = (number, now)
        elif step == "value":
            expected = values[key][0] if key in values and live(values[key][1]) else None
            assert value.value() == expected
            if refresh and expected is not None:
                values[key] = (expected, now)
        elif step == "get":
            lists[key] = [(element, now if refresh else last) for element, last in lists[key] if live(last)]
            assert elements.get() == [element for element, _ in lists[key]]
        elif step == "items":
            maps[key] = {k: (v, now if refresh else last) for k, (v, last) in maps[key].items() if live(last)}
            assert dict(entries.items()) == {k: v for k, (v, _) in maps[key].items()}
        elif step == "one":
            found = maps[key].get(gap)
            expected = found[0] if found is not None and live(found[1]) else None
            assert entries.get(gap) == expected
            if refresh and expected is not None:
                maps[key][gap] = (expected, now)
        elif step == "delta":
            chain.append(pickle.dumps(backend.delta()))
        else:
            chain.append(pickle.dumps(backend.delta()))
            backend = KeyedState(clock)
            for delta in chain:
                backend.apply(pickle.loads(delta))
