"""State of the window operators when the parallelism changes: nothing lost, nothing fired twice."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from millrace.runtime.windows.assigners import EventTimeSessionWindows, TumblingEventTimeWindows
from millrace.runtime.windows.build import WindowSpec
from millrace.state.key_groups import KeyRouter
from millrace.state.store import OperatorStore
from tests.windows.harness import PATHS, Run

pytestmark = pytest.mark.usefixtures("each_backend")

KEYS = [f"key{number}" for number in range(20)]


def add(a: Any, b: Any) -> Any:
    return (a[0], a[1] + b[1])


class Tasks:
    """Several tasks of one operator, records routed by key."""

    def __init__(self, spec: WindowSpec, path: str, parallelism: int) -> None:
        self.spec, self.path, self.parallelism = spec, path, parallelism
        self.runs = [Run(spec, path) for _ in range(parallelism)]

    def add(self, *records: tuple[str, int]) -> None:
        targets = KeyRouter(self.parallelism, 128).route([key for key, _ in records])
        for (key, time), target in zip(records, targets, strict=True):
            self.runs[target].add((key, 1), time, key)

    def watermark(self, watermark: int) -> None:
        for run in self.runs:
            run.watermark(watermark)

    def take(self) -> list[Any]:
        return sorted(result for run in self.runs for result in run.take())

    def rescale(self, parallelism: int) -> None:
        fulls = [pickle.loads(pickle.dumps(run.store.full())) for run in self.runs]
        self.parallelism = parallelism
        self.runs = [Run(self.spec, self.path) for _ in range(parallelism)]
        for subtask, run in enumerate(self.runs):
            store = OperatorStore(lambda: 0)
            store.apply(pickle.loads(pickle.dumps(OperatorStore.rescale(fulls, subtask, parallelism, 128))))
            run._start(store)

    def stored(self) -> int:
        return sum(run.stored() for run in self.runs)


both = pytest.mark.parametrize("path", PATHS)
assigners = pytest.mark.parametrize(
    "assigner", [TumblingEventTimeWindows.of(1000), EventTimeSessionWindows.with_gap(900)]
)


def results(count: int, time: int) -> list[Any]:
    return sorted(((key, count), time) for key in KEYS)


@both
@assigners
@pytest.mark.parametrize(("before", "after"), [(1, 3), (3, 2), (2, 1)])
def test_open_windows_move_with_their_keys(path: str, assigner: Any, before: int, after: int) -> None:
    tasks = Tasks(WindowSpec(assigner, reduce=add), path, before)
    tasks.add(*((key, 100) for key in KEYS))
    tasks.watermark(50)
    tasks.rescale(after)
    tasks.add(*((key, 99) for key in KEYS))
    tasks.watermark(5000)
    end = 999
    assert tasks.take() == results(2, end)
    assert tasks.stored() == 0


@both
@assigners
def test_windows_that_have_fired_do_not_fire_again(path: str, assigner: Any) -> None:
    tasks = Tasks(WindowSpec(assigner, reduce=add, allowed_lateness=5000), path, 2)
    tasks.add(*((key, 100) for key in KEYS))
    tasks.watermark(1000)
    assert tasks.take() == results(1, 999)
    tasks.rescale(3)
    tasks.watermark(1001)
    assert tasks.take() == []
    tasks.add(*((key, 99) for key in KEYS))
    assert tasks.take() == results(2, 999)
    tasks.watermark(6000)
    assert tasks.take() == []
    assert tasks.stored() == 0


@both
@assigners
def test_a_record_before_the_first_watermark_reopens_its_window(path: str, assigner: Any) -> None:
    """A task of another parallelism knows no watermark at first: nothing is late for it, and the window fires again."""
    tasks = Tasks(WindowSpec(assigner, reduce=add, allowed_lateness=5000), path, 1)
    tasks.add(*((key, 100) for key in KEYS))
    tasks.watermark(1000)
    assert tasks.take() == results(1, 999)
    tasks.rescale(2)
    tasks.add((KEYS[0], 99))
    assert tasks.take() == []
    tasks.watermark(1000)
    assert tasks.take() == [((KEYS[0], 2), 999)]
    tasks.watermark(6000)
    assert tasks.take() == []
    assert tasks.stored() == 0


def test_sessions_of_two_tasks_get_numbers_of_their_own() -> None:
    tasks = Tasks(WindowSpec(EventTimeSessionWindows.with_gap(900), reduce=add), "fast", 2)
    tasks.add(*((key, 100) for key in KEYS))
    tasks.rescale(1)
    pane = tasks.runs[0].store.keyed.table("window-reduce-sessions").pane("")
    numbers = [session[4] for sessions in pane.values() for session in sessions]
    assert len(set(numbers)) == len(KEYS)
    tasks.watermark(2000)
    assert tasks.take() == results(1, 999)
