"""The base class of transactional sinks, on a store that is a folder."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millrace.common.cloudpickles import by_value
from millrace.connectors.transactional import TransactionId, TwoPhaseCommitSink
from millrace.datastream import StreamExecutionEnvironment
from millrace.errors import ConfigurationError, GraphError
from millrace.runtime.context import RuntimeContext
from millrace.runtime.operator import OperatorContext
from millrace.runtime.sink import SinkWriter
from millrace.state.codec import dump, load
from millrace.state.store import OperatorStore
from millrace.testing import LocalRun


class PowerCut(Exception):
    """This process is gone."""


class FolderSink(TwoPhaseCommitSink[int, dict[str, Any]]):
    """A transaction is a file: ``open/``, then ``prepared/``, then ``committed/``. ``fate`` names where it dies."""

    def __init__(self, folder: Path, name: str = "numbers", *, lists: bool = True) -> None:
        super().__init__(name)
        self.folder = folder
        self.lists = lists
        for state in ("open", "prepared", "committed"):
            (folder / state).mkdir(exist_ok=True, parents=True)

    def path(self, state: str, transaction_id: str) -> Path:
        return self.folder / state / transaction_id.replace("/", "@")

    def die(self, point: str) -> None:
        fate = self.folder / "fate"
        if fate.exists() and fate.read_text() == point:
            fate.unlink()
            raise PowerCut(point)

    def begin(self, transaction_id: TransactionId) -> dict[str, Any]:
        self.path("open", transaction_id).touch()
        return {"id": str(transaction_id), "values": []}

    def write(self, transaction: dict[str, Any], value: int) -> None:
        if value < 0:
            raise ValueError(f"{value} is below zero")
        self.die("write")
        transaction["values"].append(value)

    def prepare(self, transaction: dict[str, Any]) -> Any:
        self.die("before prepare")
        self.path("prepared", transaction["id"]).write_text(json.dumps(transaction["values"]))
        self.path("open", transaction["id"]).unlink()
        self.die("after prepare")
        return {"id": transaction["id"]}

    def commit_transaction(self, committable: Any) -> None:
        self.die("before commit")
        if not self.path("committed", committable["id"]).exists():
            self.path("prepared", committable["id"]).rename(self.path("committed", committable["id"]))
        self.die("after commit")

    def rollback(self, transaction: dict[str, Any]) -> None:
        self.path("open", transaction["id"]).unlink()

    def pending(self, prefix: str) -> Iterable[str]:
        names = [path.name.replace("@", "/") for path in (self.folder / "prepared").iterdir()]
        return [name for name in names if name.startswith(prefix)] if self.lists else []

    def abort_transaction(self, transaction_id: str) -> None:
        self.path("prepared", transaction_id).unlink(missing_ok=True)

    def numbers(self, state: str = "committed") -> list[int]:
        return sorted(n for path in (self.folder / state).iterdir() for n in json.loads(path.read_text()))


class LockingSink(FolderSink):
    holds_locks = True


def writer_of(sink: FolderSink, subtask: int = 0, uid: str = "sink-1") -> SinkWriter[int]:
    """A writer as a worker makes it: from the sink's pickle."""
    context = OperatorContext("sink", uid, OperatorStore(lambda: 0), lambda: 0, subtask=subtask, parallelism=4)
    there: FolderSink = pickle.loads(by_value(sink))
    return there.create_writer(RuntimeContext(context))


def prepared_by(writer: SinkWriter[int], *values: int) -> Any:
    writer.write_batch(list(values), None)
    return load(dump(list(writer.prepare_commit())))


def test_what_is_prepared_shows_when_it_is_committed_and_then_once(tmp_path: Path) -> None:
    sink = FolderSink(tmp_path)
    promised = prepared_by(writer_of(sink), 1, 2) + prepared_by(writer_of(sink, 1), 3)
    assert sink.numbers() == []
    sink.commit(promised)
    sink.commit(promised)
    assert sink.numbers() == [1, 2, 3]


def test_an_epoch_without_records_has_no_transaction(tmp_path: Path) -> None:
    writer = writer_of(FolderSink(tmp_path))
    assert writer.prepare_commit() == ()
    assert len(prepared_by(writer, 1)) == 1
    assert writer.prepare_commit() == ()


def test_leftovers_of_other_runs_go_when_a_task_starts(tmp_path: Path) -> None:
    first, other = FolderSink(tmp_path), FolderSink(tmp_path, "other")
    prepared_by(writer_of(first), 1)
    prepared_by(writer_of(other), 2)
    (tmp_path / "prepared" / "millrace@numbers@by-hand").write_text("[3]")
    second = FolderSink(tmp_path)
    promised = prepared_by(writer_of(second, 0), 4)
    writer_of(second, 1)
    assert second.numbers("prepared") == [2, 3, 4]
    second.commit(promised)
    assert second.numbers() == [4]


def test_a_task_without_locks_leaves_its_own_run_alone(tmp_path: Path) -> None:
    sink = FolderSink(tmp_path)
    promised = prepared_by(writer_of(sink), 1)
    assert prepared_by(writer_of(sink), 1) != promised
    assert sink.numbers("prepared") == [1, 1]


def test_where_locks_are_held_an_attempt_ends_those_before_it_but_no_others(tmp_path: Path) -> None:
    sink = LockingSink(tmp_path)
    elsewhere = writer_of(sink)
    prepared_by(writer_of(sink, 1), 2)
    prepared_by(writer_of(sink, uid="sink-2"), 3)
    prepared_by(writer_of(sink), 1)
    prepared_by(writer_of(sink), 10)
    assert sink.numbers("prepared") == [2, 3, 10]
    # A writer that lived on while another worker ran its task.
    sink.commit(prepared_by(elsewhere, 100))
    sink.commit(prepared_by(elsewhere, 101))
    assert sink.numbers("prepared") == [2, 3]
    assert sink.numbers() == [100, 101]


def test_an_aborted_epoch_is_aborted_in_the_store(tmp_path: Path) -> None:
    sink = FolderSink(tmp_path)
    writer = writer_of(sink)
    sink.commit(prepared_by(writer, 1))
    prepared_by(writer, 2)
    writer.checkpoint_aborted(2)
    assert sink.numbers("prepared") == []
    writer.prepare_commit()
    writer.checkpoint_aborted(3)
    assert sink.numbers() == [1]


def test_a_failed_write_and_a_closed_writer_roll_back(tmp_path: Path) -> None:
    sink = FolderSink(tmp_path)
    failing, closed = writer_of(sink), writer_of(sink)
    with pytest.raises(ValueError, match="-1 is below zero"):
        failing.write_batch([1, -1], None)
    closed.write(2, None)
    closed.close()
    assert list((tmp_path / "open").iterdir()) == []
    assert failing.prepare_commit() == ()


@pytest.mark.parametrize("name", ["", "a/b", "x" * 61, "two words", None])
def test_names_that_no_store_could_keep_are_refused(tmp_path: Path, name: Any) -> None:
    with pytest.raises(ConfigurationError, match="a sink cannot be called"):
        FolderSink(tmp_path, name)


def test_two_sinks_of_one_name_do_not_run_side_by_side(tmp_path: Path) -> None:
    first, second = FolderSink(tmp_path), FolderSink(tmp_path)
    first.open()
    first.open()
    first.close()
    with pytest.raises(GraphError, match="two sinks are called 'numbers'"):
        second.open()
    first.close()
    second.open()
    second.close()


POINTS = ["write", "before prepare", "after prepare", "before commit", "after commit"]


def start(folder: Path, epochs: int, dies: str | None, *, lists: bool) -> bool:
    """Start the program, and go on where it was; True if it came to its end."""
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
    sink = FolderSink(folder, lists=lists)
    env.from_collection(list(range(40))).rebalance().sink_to(sink)
    try:
        run = LocalRun(env, storage=str(folder / "checkpoints"))
        for epoch in range(epochs):
            if dies is not None and epoch == epochs - 1:
                (folder / "fate").write_text(dies)
            if not run.done:
                run.run_epoch(4)
    except PowerCut:
        return False
    (folder / "fate").unlink(missing_ok=True)
    return run.done


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 3), st.sampled_from(POINTS)), max_size=6), st.booleans())
def test_every_number_once_wherever_it_dies(cuts: Sequence[tuple[int, str]], lists: bool) -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        for epochs, point in cuts:
            start(folder, epochs, point, lists=lists)
            found = FolderSink(folder).numbers()
            assert len(found) == len(set(found))
        while not start(folder, 100, None, lists=lists):
            pass
        assert FolderSink(folder).numbers() == list(range(40))
