"""`millrace savepoint ...` and `millrace run --from-savepoint`, as people call them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from millrace.cli import main
from millrace.testing import LocalRun

from .programs import Committed, environment, everything

ROOT = Path(__file__).resolve().parents[2]


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "millrace", *map(str, arguments)]


def surroundings() -> dict[str, str]:
    ours = ("MILLRACE_CONFIG", "MILLRACE_LOG")
    return {**{k: v for k, v in os.environ.items() if k not in ours}, "PYTHONPATH": str(ROOT)}


def millrace(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*arguments), capture_output=True, text=True, check=False, env=surroundings(), timeout=120
    )


@pytest.fixture
def savepoint(tmp_path: Path) -> str:
    env = environment(2)
    everything(env, 100, [Committed() for _ in range(3)])
    run = LocalRun(env)
    for _ in range(3):
        run.run_epoch(7)
    return run.savepoint(str(tmp_path / "savepoints"))


def test_inspect_shows_everything(savepoint: str) -> None:
    answer = CliRunner().invoke(main, ["savepoint", "inspect", savepoint])
    assert answer.exit_code == 0
    assert "savepoint of 'Millrace Streaming Job', epoch 3, written" in answer.output
    for shown in ("numbers", "Sequence Source", "51..100: 72", "recent", "map", "broadcast", "event-time timers"):
        assert shown in answer.output
    assert "2 of 128" in answer.output


def test_inspect_as_json(savepoint: str) -> None:
    answer = CliRunner().invoke(main, ["savepoint", "inspect", "--json", savepoint])
    content = json.loads(answer.output)
    (count,) = [operator for operator in content["operators"] if operator["uid"] == "count"]
    assert (count["parallelism"], count["max_parallelism"]) == (2, 128)
    assert {state["name"]: state["entries"] for state in count["states"]}["seen"] == 5
    (source,) = [operator for operator in content["operators"] if operator["uid"] == "numbers"]
    assert source["positions"] == {"1..50": 22, "51..100": 72}


def test_inspect_of_something_else(tmp_path: Path) -> None:
    answer = CliRunner().invoke(main, ["savepoint", "inspect", str(tmp_path)])
    assert answer.exit_code == 1
    assert answer.output.startswith(f"Error: {tmp_path} is neither a savepoint")


APP = """
import sys
sys.path.insert(0, {root!r})
from millrace.datastream import StreamExecutionEnvironment
from tests.recovery.programs import Committed, CountPerKey, everything

env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(3)
print("building", sys.argv[1:])
if sys.argv[1:] == ["other"]:
    env.from_sequence(1, 100).uid("numbers").key_by(lambda n: n % 5).process(CountPerKey()).uid("tally").print()
else:
    everything(env, 100, [Committed(), Committed(), Committed()])
env.execute()
print("not reached")
"""


@pytest.fixture
def app(tmp_path: Path) -> Path:
    path = tmp_path / "app.py"
    path.write_text(APP.format(root=str(ROOT)))
    return path


def test_diff_of_a_program_that_fits(savepoint: str, app: Path) -> None:
    answer = millrace("savepoint", "diff", savepoint, app, "same")
    assert (answer.returncode, answer.stderr) == (0, "")
    assert answer.stdout.startswith("building ['same']\n")
    assert "not reached" not in answer.stdout
    assert "dropped" not in answer.stdout
    assert "2 -> 3" in answer.stdout


def test_diff_of_a_program_that_would_drop_state(savepoint: str, app: Path) -> None:
    answer = millrace("savepoint", "diff", "--json", savepoint, app, "other")
    assert (answer.returncode, answer.stderr) == (1, "")
    content = json.loads(answer.stdout.partition("\n")[2])
    outcomes = {operator["uid"]: operator["outcome"] for operator in content["operators"]}
    assert outcomes["numbers"] == "maps"
    assert outcomes["tally"] == "new"
    assert outcomes["count"] == outcomes["windows"] == outcomes["limit"] == outcomes["rules"] == "dropped"
    assert outcomes["times"] == outcomes["counts"] == "gone, without state"


def test_drain_needs_stop(tmp_path: Path) -> None:
    answer = CliRunner().invoke(main, ["savepoint", "trigger", "--drain", str(tmp_path), str(tmp_path)])
    assert answer.exit_code == 2
    assert "add --stop" in answer.output


ENDLESS = """
import json, sys, uuid
from pathlib import Path
from millrace.common import Duration, WatermarkStrategy
from millrace.datastream import StreamExecutionEnvironment
from millrace.runtime.sink import Sink, SinkWriter

class Files(Sink):
    def __init__(self, folder):
        self.folder = folder
    def create_writer(self, context):
        return Writer()
    def commit(self, committables):
        for name, rows in committables:
            beside = Path(self.folder, name + ".tmp")
            beside.write_text(json.dumps(rows))
            beside.rename(Path(self.folder, name + ".json"))

class Writer(SinkWriter):
    def __init__(self):
        self.rows = []
    def write(self, value, timestamp):
        self.rows.append(value)
    def prepare_commit(self):
        rows, self.rows = self.rows, []
        return [(uuid.uuid4().hex, rows)] if rows else []

env = StreamExecutionEnvironment.get_execution_environment()
numbers = env.from_generator(lambda n: (n % 7, 1, n), records_per_second=2000, parallelism=1).uid("numbers")
counts = numbers.key_by(lambda e: e[0]).reduce(lambda a, b: (a[0], a[1] + b[1], b[2])).uid("count")
counts.sink_to(Files(sys.argv[1])).uid("files")
env.execute()
"""


def rows_in(folder: Path) -> list[list[int]]:
    return [row for path in folder.glob("*.json") for row in json.loads(path.read_text())]


def wait_for(process: subprocess.Popen[str], folder: Path, files: int) -> None:
    while len(list(folder.glob("*.json"))) < files:
        assert process.poll() is None, process.stderr and process.stderr.read()
        threading.Event().wait(0.05)


@pytest.mark.slow
def test_a_killed_driver_is_started_again_stopped_and_moved(tmp_path: Path) -> None:
    program = tmp_path / "endless.py"
    program.write_text(textwrap.dedent(ENDLESS))
    results = tmp_path / "results"
    results.mkdir()
    checkpoint, savepoints = tmp_path / "checkpoint", tmp_path / "savepoints"

    def start(parallelism: int, folder: Path, *options: object) -> subprocess.Popen[Any]:
        options = ("-p", parallelism, "-D", f"execution.checkpointing.dir={folder}", *options)
        return subprocess.Popen(
            command("run", *options, program, results), env=surroundings(), text=True, stderr=subprocess.PIPE
        )

    first = start(2, checkpoint)
    wait_for(first, results, 5)
    first.send_signal(signal.SIGKILL)
    first.wait()
    before = len(list(results.glob("*.json")))

    second = start(2, checkpoint)
    wait_for(second, results, before + 5)
    answer = millrace("savepoint", "trigger", "--stop", checkpoint, savepoints)
    assert (answer.returncode, answer.stderr) == (0, "")
    assert second.wait(60) == 0
    path = (tmp_path / "moved").absolute()
    Path(answer.stdout.strip()).rename(path)
    before = len(list(results.glob("*.json")))

    third = start(3, tmp_path / "another", "-s", path)
    wait_for(third, results, before + 5)
    answer = millrace("savepoint", "trigger", "--stop", "--drain", tmp_path / "another", savepoints)
    assert (answer.returncode, answer.stderr) == (0, "")
    assert third.wait(60) == 0

    rows = rows_in(results)
    assert sorted(row[2] for row in rows) == list(range(len(rows)))
    assert sorted(row[:2] for row in rows) == sorted([n % 7, n // 7 + 1] for n in range(len(rows)))
