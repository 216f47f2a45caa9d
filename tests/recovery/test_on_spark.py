"""Recovery, fencing and savepoints of jobs on Spark."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from millrace.common import JobStatus
from millrace.connectors.callback import CallbackSink
from millrace.datastream import StreamExecutionEnvironment as Environment
from millrace.errors import JobError, RestoreError
from millrace.runtime.control import ask_through_files
from millrace.runtime.sink import Sink
from millrace.state.manifest import epochs_in, manifest_name
from millrace.state.savepoint import open_snapshot
from millrace.state.storage import Storage

from .programs import Committed, CountPerKey, counting, environment, timed

pytestmark = pytest.mark.usefixtures("spark")

FIXED_DELAY = {"restart__strategy_type": "fixed-delay", "restart__strategy_fixed__delay_delay": "10 ms"}


def totals(rows: list[Any]) -> list[int]:
    return sorted(row[2] for row in rows if row[0] == "total")


def numbers(rows: list[Any]) -> list[Any]:
    return sorted(row[1:] for row in rows if row[0] == "number")


def each_once(keys: int, times: int) -> list[Any]:
    return sorted((key, n) for key in range(keys) for n in range(1, times + 1))


def failing(env: Environment, sink: Sink[Any], folder: Path, failures: int) -> None:
    """Numbers 1 to 200; the worker fails so many times at number 150."""

    def check(n: int) -> int:
        if n == 150:
            for attempt in range(failures):
                marker = folder / f"failed-{attempt}"
                if not marker.exists():
                    marker.touch()
                    raise ValueError(f"failure {attempt + 1}")
        return n

    stream = env.from_sequence(1, 200).map(check).assign_timestamps_and_watermarks(timed())
    stream.key_by(lambda n: n % 5).process(CountPerKey()).uid("count").sink_to(sink)


@pytest.mark.parametrize("epochs", [{}, {"pipeline_epoch_max__records": 20}], ids=["once", "in epochs"])
def test_a_failed_epoch_is_run_again_from_the_last_manifest(epochs: dict[str, Any], tmp_path: Path) -> None:
    sink = Committed()
    env = environment(**FIXED_DELAY, **epochs, restart__strategy_fixed__delay_attempts=2)
    failing(env, sink, tmp_path, 2)
    env.execute()
    assert numbers(sink.rows) == each_once(5, 40)
    assert totals(sink.rows) == [40, 40, 40, 40, 40]


def test_the_last_failure_is_the_users_own_exception(tmp_path: Path) -> None:
    env = environment(**FIXED_DELAY, pipeline_epoch_max__records=20, restart__strategy_fixed__delay_attempts=2)
    failing(env, Committed(), tmp_path, 3)
    with pytest.raises(ValueError, match="failure 3") as caught:
        env.execute()
    assert "restarted 2 times before (up to 2 restarts, 10 ms apart)" in caught.value.__notes__


def test_a_job_that_waits_to_run_again_is_restarting(tmp_path: Path) -> None:
    config = {**FIXED_DELAY, "restart__strategy_fixed__delay_delay": "1 h"}
    env = environment(**config, pipeline_epoch_max__records=20, restart__strategy_fixed__delay_attempts=2)
    failing(env, Committed(), tmp_path, 1)
    client = env.execute_async()
    while client.get_job_status().result() is JobStatus.RUNNING:
        threading.Event().wait(0.01)
    assert client.get_job_status().result() is JobStatus.RESTARTING
    client.cancel().result()
    assert client.get_job_status().result() is JobStatus.CANCELED


class FullDisk:
    """Fails to create so many manifests."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, failures: int) -> None:
        self.failures = failures
        usual = Storage.create

        def create(storage: Storage, name: str, data: bytes) -> None:
            if name == manifest_name(2) and self.failures:
                self.failures -= 1
                raise OSError(28, "No space left on device")
            usual(storage, name, data)

        monkeypatch.setattr(Storage, "create", create)


@pytest.mark.parametrize("failures", [1, 2, 3])
def test_so_many_failed_checkpoints_are_tolerated(
    failures: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    FullDisk(monkeypatch, failures)
    sink = Committed()
    env = environment(
        pipeline_epoch_max__records=40,
        execution_checkpointing_dir=tmp_path,
        execution_checkpointing_tolerable__failed__checkpoints=2,
    )
    counting(env, 200, sink)
    if failures == 3:
        with pytest.raises(JobError, match="the manifest of epoch 2 could not be written: .*No space left"):
            env.execute()
        assert epochs_in(Storage(str(tmp_path))) == [1]
    else:
        env.execute()
        assert numbers(sink.rows) == each_once(5, 40)


def test_an_epoch_that_takes_too_long_is_run_again(tmp_path: Path) -> None:
    def hang_once(n: int) -> int:
        marker = tmp_path / "hung"
        if n == 150 and not marker.exists():
            marker.touch()
            threading.Event().wait(600)
        return n

    sink = Committed()
    env = environment(
        pipeline_epoch_max__records=50,
        execution_checkpointing_timeout="4 s",
        execution_checkpointing_tolerable__failed__checkpoints=3,
    )
    stream = env.from_sequence(1, 200).map(hang_once).assign_timestamps_and_watermarks(timed())
    stream.key_by(lambda n: n % 5).process(CountPerKey()).sink_to(sink)
    env.execute()
    assert (tmp_path / "hung").exists()
    assert numbers(sink.rows) == each_once(5, 40)


def test_a_sink_that_fails_to_commit_is_asked_again(tmp_path: Path) -> None:
    refusals = iter([True, False, True])

    class Reluctant(Committed):
        def commit(self, committables: Any) -> None:
            if next(refusals, False):
                raise ConnectionError("come back later")
            super().commit(committables)

    sink = Reluctant()
    env = environment(**FIXED_DELAY, pipeline_epoch_max__records=20, restart__strategy_fixed__delay_attempts=2)
    counting(env, 200, sink)
    env.execute()
    assert numbers(sink.rows) == each_once(5, 40)


def endless(env: Environment, sink: Sink[Any]) -> None:
    """Numbers without end, with event time."""
    stream = env.from_generator(lambda n: n, records_per_second=500, parallelism=1).uid("numbers")
    timed_numbers = stream.assign_timestamps_and_watermarks(timed()).uid("times")
    timed_numbers.key_by(lambda n: n % 5).process(CountPerKey()).uid("count").sink_to(sink).uid("sink")


def after_some_epochs(client: Any) -> None:
    """Wait until the job has done something."""
    enough = threading.Event()
    client.on_progress(lambda progress: enough.set() if progress.records_out.get("count", 0) > 20 else None)
    assert enough.wait(60)


def test_two_jobs_on_one_checkpoint_folder(tmp_path: Path) -> None:
    env = environment(execution_checkpointing_dir=tmp_path)
    endless(env, Committed())
    first = env.execute_async("first")
    try:
        after_some_epochs(first)
        second = environment(execution_checkpointing_dir=tmp_path)
        endless(second, Committed())
        with pytest.raises(JobError, match="is in use by job 'first'"):
            second.execute("second")
        assert first.get_job_status().result() is JobStatus.RUNNING
        (tmp_path / "owner" / "owner.json").unlink()
        with pytest.raises(JobError, match="has no owner any more"):
            first.get_job_execution_result().result(60)
    finally:
        first.cancel()


def test_stop_with_a_savepoint_and_go_on_with_another_parallelism(tmp_path: Path) -> None:
    sink = Committed()
    env = environment(2, execution_checkpointing_dir=tmp_path / "one")
    endless(env, sink)
    client = env.execute_async()
    after_some_epochs(client)
    kept = client.trigger_savepoint(str(tmp_path / "savepoints")).result(60)
    assert client.get_job_status().result() is JobStatus.RUNNING
    path = client.stop_with_savepoint(False, str(tmp_path / "savepoints")).result(60)
    client.get_job_execution_result().result(60)
    assert client.get_job_status().result() is JobStatus.FINISHED
    assert open_snapshot(kept).manifest.epoch < open_snapshot(path).manifest.epoch
    position = open_snapshot(path).manifest.positions["numbers"]
    assert totals(sink.rows) == []

    env = environment(3, execution_checkpointing_dir=tmp_path / "two", execution_savepoint_path=path)
    endless(env, sink)
    client = env.execute_async()
    after_some_epochs(client)
    drained = client.stop_with_savepoint(True, str(tmp_path / "savepoints")).result(60)
    client.get_job_execution_result().result(60)
    (before,), (after,) = position.values(), open_snapshot(drained).manifest.positions["numbers"].values()
    assert after > before
    assert sorted(row[2] for row in sink.rows if row[0] == "value") == list(range(after))
    assert sum(totals(sink.rows)) == after


def test_a_savepoint_needs_a_directory_and_epochs() -> None:
    env = environment()
    env.from_sequence(1, 10).sink_to(Committed())
    client = env.execute_async()
    with pytest.raises(JobError, match=r"needs a directory: .*set_default_savepoint_directory"):
        client.trigger_savepoint().result()
    with pytest.raises(JobError, match="runs as one batch"):
        client.trigger_savepoint("somewhere").result()
    client.get_job_execution_result().result(60)


def test_a_running_job_is_reached_through_its_checkpoint_folder(tmp_path: Path) -> None:
    seen: list[Any] = []
    env = environment(execution_checkpointing_dir=tmp_path / "checkpoint")
    endless(env, CallbackSink(seen.extend))
    client = env.execute_async()
    after_some_epochs(client)
    storage = Storage(str(tmp_path / "checkpoint"))
    path = ask_through_files(storage, str(tmp_path / "savepoints"), stop=True, drain=True, timeout_s=60)
    client.get_job_execution_result().result(60)
    assert sum(totals(seen)) == len([row for row in seen if row[0] == "value"])
    assert open_snapshot(path).manifest.operators["count"].parallelism == 2
    with pytest.raises(JobError, match="no answer within 0.1 s: is a job running"):
        ask_through_files(storage, str(tmp_path), stop=False, drain=False, timeout_s=0.1)


def test_a_savepoint_that_does_not_fit_is_refused_before_anything_runs(tmp_path: Path) -> None:
    env = environment(execution_checkpointing_dir=tmp_path / "checkpoint", pipeline_epoch_max__records=20)
    counting(env, 100, Committed())
    env.execute()
    env = environment(execution_savepoint_path=tmp_path / "checkpoint").set_max_parallelism(256)
    counting(env, 100, Committed())
    with pytest.raises(RestoreError, match="Max parallelism mismatch"):
        env.execute()
