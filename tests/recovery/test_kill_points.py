"""A job may be killed at any point of the commit protocol: afterwards every count is exact, and no row is twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from millrace.state.storage import Storage
from millrace.testing import LocalRun

from .programs import Committed, environment, everything

NUMBERS = 80


class Killed(BaseException):
    """The driver is dead."""


class Grave:
    """Kills at the n-th time that somebody passes by."""

    def __init__(self) -> None:
        self.left = -1

    def pass_by(self) -> None:
        self.left -= 1
        if self.left == 0:
            raise Killed


class DeadlyStorage(Storage):
    """Dies before a file is written, and after."""

    grave: Grave

    def write(self, name: str, data: bytes) -> None:
        self.grave.pass_by()
        super().write(name, data)
        self.grave.pass_by()

    def create(self, name: str, data: bytes) -> None:
        self.grave.pass_by()
        super().create(name, data)
        self.grave.pass_by()

    def delete(self, name: str) -> None:
        self.grave.pass_by()
        super().delete(name)


class DeadlySink(Committed):
    """Dies before a commit, and after."""

    def __init__(self, grave: Grave) -> None:
        super().__init__()
        self.grave = grave

    def __getstate__(self) -> dict[str, Any]:
        return {"commits": {}}

    def commit(self, committables: Any) -> None:
        self.grave.pass_by()
        super().commit(committables)
        self.grave.pass_by()


def start(folder: Path, sinks: list[DeadlySink], grave: Grave, parallelism: int) -> LocalRun:
    env = environment(parallelism, execution_checkpointing_num__retained=2)
    everything(env, NUMBERS, sinks)
    run = LocalRun(env, storage=str(folder))
    run._ledger.storage.__class__ = DeadlyStorage
    run._ledger.storage.grave = grave  # type: ignore[attr-defined]
    return run


def undisturbed() -> list[Any]:
    sinks = [Committed() for _ in range(3)]
    env = environment(2)
    everything(env, NUMBERS, sinks)
    LocalRun(env).run()
    return [sink.rows for sink in sinks]


EXPECTED = undisturbed()


@settings(max_examples=40, deadline=None)
@given(
    kills=st.lists(st.tuples(st.integers(1, 14), st.integers(1, 4)), max_size=8),
    epochs=st.lists(st.integers(3, 20), min_size=1, max_size=4),
)
def test_every_kill_leaves_exact_results(
    tmp_path_factory: Any, kills: list[tuple[int, int]], epochs: list[int]
) -> None:
    folder = tmp_path_factory.mktemp("kills")
    grave = Grave()
    sinks = [DeadlySink(grave) for _ in range(3)]
    plan = iter(kills)
    died = True
    turn = 0
    while died:
        died = False
        when, parallelism = next(plan, (-1, 2))
        try:
            grave.left = when
            run = start(folder, sinks, grave, parallelism)
            while not run.done:
                run.run_epoch(epochs[turn % len(epochs)])
                turn += 1
        except Killed:
            died = True
    assert [sink.rows for sink in sinks] == EXPECTED
