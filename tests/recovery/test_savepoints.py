"""Savepoints: complete in themselves, found by uid, started with another parallelism."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from millrace.errors import JobError, RestoreError
from millrace.state.manifest import epochs_in
from millrace.state.savepoint import open_snapshot
from millrace.state.storage import Storage
from millrace.testing import LocalRun

from .programs import Committed, CountPerKey, counting, environment, everything, timed

NUMBERS = 100


def all_rows(sinks: list[Committed]) -> list[Any]:
    return [sink.rows for sink in sinks]


def half_way(tmp_path: Path, sinks: list[Committed], parallelism: int = 2) -> str:
    env = environment(parallelism)
    everything(env, NUMBERS, sinks)
    run = LocalRun(env, storage=str(tmp_path / "checkpoint"))
    for _ in range(3):
        run.run_epoch(7)
    return run.savepoint(str(tmp_path / "savepoints"))


def undisturbed() -> list[Any]:
    sinks = [Committed() for _ in range(3)]
    env = environment(2)
    everything(env, NUMBERS, sinks)
    LocalRun(env).run()
    return all_rows(sinks)


@pytest.mark.parametrize("parallelism", [1, 2, 3, 8])
def test_a_savepoint_is_relocatable_and_can_be_rescaled(parallelism: int, tmp_path: Path) -> None:
    sinks = [Committed() for _ in range(3)]
    path = half_way(tmp_path, sinks)
    moved = shutil.move(path, tmp_path / "elsewhere")
    shutil.rmtree(tmp_path / "checkpoint")
    env = environment(parallelism, execution_savepoint_path=moved)
    everything(env, NUMBERS, sinks)
    LocalRun(env, storage=str(tmp_path / "other")).run(9)
    assert all_rows(sinks) == undisturbed()


@pytest.mark.parametrize("key", ["execution_savepoint_path", "execution_state__recovery_path"])
def test_a_retained_checkpoint_can_be_started_from(key: str, tmp_path: Path) -> None:
    sinks = [Committed() for _ in range(3)]
    half_way(tmp_path, sinks)
    env = environment(3, **{key: tmp_path / "checkpoint"})
    everything(env, NUMBERS, sinks)
    LocalRun(env, storage=str(tmp_path / "other")).run(9)
    assert all_rows(sinks) == undisturbed()


def test_it_can_be_read_by_people(tmp_path: Path) -> None:
    path = half_way(tmp_path, [Committed() for _ in range(3)])
    content = json.loads((Path(path) / "savepoint.json").read_text())
    assert content["operators"]["count"]["parallelism"] == 2
    assert content["positions"] == {"numbers": {"1..50": 22, "51..100": 72}, "rules": {"0": 1}}
    count = {state["name"]: (state["kind"], state["entries"]) for state in content["states"]["count"]}
    assert count == {
        "count": ("value", 5),
        "recent": ("list", 5),
        "seen": ("map", 5),
        "event-time timers": ("timers", 5),
    }
    assert [state["kind"] for state in content["states"]["limit"]] == ["broadcast"]
    assert set(content["versions"]) == {"millrace", "python"}
    assert content["inline"] == content["committables"] == {}
    assert {len(parts) for parts in content["parts"].values()} == {1}


@pytest.mark.parametrize("name", ["savepoint.json", "state/1-0.full"])
def test_a_damaged_savepoint_is_refused_with_the_files_name(name: str, tmp_path: Path) -> None:
    path = Path(half_way(tmp_path, [Committed() for _ in range(3)]))
    data = bytearray((path / name).read_bytes())
    data[len(data) // 2] ^= 4
    (path / name).write_bytes(bytes(data))
    with pytest.raises(RestoreError, match=name):
        open_snapshot(str(path))


def test_a_folder_that_is_no_savepoint(tmp_path: Path) -> None:
    with pytest.raises(RestoreError, match="neither a savepoint .* nor a checkpoint folder"):
        open_snapshot(str(tmp_path))


def test_no_savepoint_before_the_first_epoch() -> None:
    env = environment()
    counting(env, 10, Committed())
    with pytest.raises(JobError, match="no state before the first epoch"):
        LocalRun(env).savepoint("nowhere")


def test_the_same_command_again_goes_on_and_does_not_start_over(tmp_path: Path) -> None:
    sinks = [Committed() for _ in range(3)]
    path = half_way(tmp_path, sinks)
    for epochs in (1, 2, 50):
        env = environment(2, execution_savepoint_path=path)
        everything(env, NUMBERS, sinks)
        run = LocalRun(env, storage=str(tmp_path / "other"))
        for _ in range(epochs):
            if not run.done:
                run.run_epoch(5)
    assert all_rows(sinks) == undisturbed()


def test_a_savepoint_takes_the_place_of_older_epochs_in_the_folder(tmp_path: Path) -> None:
    sinks = [Committed() for _ in range(3)]
    path = half_way(tmp_path, sinks)
    env = environment(2, execution_savepoint_path=path)
    everything(env, NUMBERS, sinks)
    run = LocalRun(env, storage=str(tmp_path / "checkpoint"))
    run.run_epoch(9)
    assert epochs_in(Storage(str(tmp_path / "checkpoint"))) == [4]
    run.run(9)
    assert all_rows(sinks) == undisturbed()


def renamed(tmp_path: Path, sink: Committed, **config: Any) -> LocalRun:
    env = environment(2, **config)
    stream = env.from_sequence(1, 40).uid("numbers").assign_timestamps_and_watermarks(timed()).uid("times")
    stream.key_by(lambda n: n % 5).process(CountPerKey()).uid("renamed").sink_to(sink).uid("sink")
    return LocalRun(env, storage=str(tmp_path / "checkpoint"))


def test_state_of_an_unknown_uid_is_refused_unless_allowed(tmp_path: Path) -> None:
    env = environment(2)
    counting(env, 40, Committed())
    run = LocalRun(env, storage=str(tmp_path / "checkpoint"))
    run.run_epoch(10)
    path = run.savepoint(str(tmp_path))
    for config in ({}, {"execution_savepoint_path": path}):
        with pytest.raises(RestoreError, match=r"'KEYED PROCESS' \(uid count\).*--allow-non-restored-state"):
            renamed(tmp_path, Committed(), **config)
    sink = Committed()
    allowed = {"execution_savepoint_ignore__unclaimed__state": "true", "execution_savepoint_path": path}
    renamed(tmp_path, sink, **allowed).run()
    assert sorted(row[2] for row in sink.rows if row[0] == "total") == [4, 4, 4, 4, 4]


def test_an_operator_without_state_may_go_and_new_ones_may_come(tmp_path: Path) -> None:
    sink = Committed()
    for extra in ("before", "after"):
        env = environment(2)
        stream = env.from_sequence(1, 40).uid("numbers").assign_timestamps_and_watermarks(timed()).uid("times")
        mapped = stream.map(lambda n: n).uid(extra)
        mapped.key_by(lambda n: n % 5).process(CountPerKey()).uid("count").sink_to(sink).uid("sink")
        run = LocalRun(env, storage=str(tmp_path))
        run.run_epoch(10)
    run.run()
    assert sorted(row[2] for row in sink.rows if row[0] == "total") == [8, 8, 8, 8, 8]


def test_a_replaced_source_starts_anew_only_if_allowed(tmp_path: Path) -> None:
    def start(uid: str, **config: Any) -> LocalRun:
        env = environment(2, **config)
        env.from_sequence(1, 20).uid(uid).sink_to(Committed()).uid("sink")
        return LocalRun(env, storage=str(tmp_path))

    start("one").run_epoch(5)
    with pytest.raises(RestoreError, match=r"'Sequence Source' \(uid one\)"):
        start("two")
    start("two", execution_state__recovery_ignore__unclaimed__state="true").run()


def test_max_parallelism_is_taken_over_or_must_match(tmp_path: Path) -> None:
    env = environment(2).set_max_parallelism(64)
    counting(env, 40, Committed())
    run = LocalRun(env)
    run.run_epoch(10)
    path = run.savepoint(str(tmp_path))

    def start(parallelism: int, width: int | None) -> LocalRun:
        env = environment(parallelism, execution_savepoint_path=path)
        if width is not None:
            env.set_max_parallelism(width)
        counting(env, 40, Committed())
        return LocalRun(env)

    assert {node.max_parallelism for node in start(8, None).job.nodes if node.uid == "count"} == {64}
    assert {node.max_parallelism for node in start(8, 64).job.nodes if node.uid == "count"} == {64}
    with pytest.raises(RestoreError, match=r"Max parallelism mismatch: .*\(uid count\) has 64 .* sets 128"):
        start(2, 128)
    with pytest.raises(RestoreError, match=r"parallelism 65.*64 tasks at most: lower set_parallelism"):
        start(65, None)


def test_draining_fires_the_timers_before_the_savepoint(tmp_path: Path) -> None:
    sink = Committed()
    env = environment(2)
    counting(env, 40, sink)
    run = LocalRun(env, storage=str(tmp_path / "checkpoint"))
    run.run_epoch(10)
    assert not [row for row in sink.rows if row[0] == "total"]
    run.drain()
    assert sorted(row[2] for row in sink.rows if row[0] == "total") == [4, 4, 4, 4, 4]
    path = run.savepoint(str(tmp_path))
    states = {state.name for state in open_snapshot(path).manifest.states["count"]}
    assert states == {"count", "recent", "seen"}
    again = Committed()
    env = environment(2, execution_savepoint_path=path)
    counting(env, 40, again)
    LocalRun(env).run()
    assert sorted(row[2] for row in again.rows if row[0] == "total") == [8, 8, 8, 8, 8]
