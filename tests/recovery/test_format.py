"""Formats that were ever written stay readable for ever: never change what is in the fixtures folder."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from millrace.testing import LocalRun

from .programs import Committed, environment, everything

FIXTURES = Path(__file__).parent / "fixtures"


def expected() -> list[object]:
    sinks = [Committed() for _ in range(3)]
    env = environment(2)
    everything(env, 100, sinks)
    LocalRun(env).run()
    return sorted((row for sink in sinks for row in sink.rows), key=str)


def rows_before(folder: Path) -> list[object]:
    def as_written(row: list[object]) -> tuple[object, ...]:
        return tuple(tuple(part) if isinstance(part, list) else part for part in row)

    return [as_written(row) for row in json.loads((folder / "rows.json").read_text())["rows"]]


@pytest.mark.parametrize("parallelism", [1, 2, 3])
def test_a_checkpoint_of_format_1(parallelism: int, tmp_path: Path) -> None:
    shutil.copytree(FIXTURES / "format-1", tmp_path / "checkpoint")
    sinks = [Committed() for _ in range(3)]
    env = environment(parallelism)
    everything(env, 100, sinks)
    LocalRun(env, storage=str(tmp_path / "checkpoint")).run(7)
    # The last epoch is committed again on restore: once more the same.
    rows = {*rows_before(FIXTURES / "format-1"), *(row for sink in sinks for row in sink.rows)}
    assert sorted(rows, key=str) == expected()


@pytest.mark.parametrize("parallelism", [1, 2, 5])
def test_a_savepoint_of_format_2(parallelism: int, tmp_path: Path) -> None:
    sinks = [Committed() for _ in range(3)]
    env = environment(parallelism, execution_savepoint_path=FIXTURES / "savepoint-2")
    everything(env, 100, sinks)
    LocalRun(env).run(7)
    rows = [*rows_before(FIXTURES / "savepoint-2"), *(row for sink in sinks for row in sink.rows)]
    assert sorted(rows, key=str) == expected()
