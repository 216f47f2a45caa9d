"""Servers that go away, connections that break and attempts that die: each row is there once all the same."""

from __future__ import annotations

import itertools
import pickle
import signal
import threading
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from millrace.common.cloudpickles import by_value
from millrace.connectors.postgres import PostgresConnection, PostgresSink
from millrace.connectors.postgres_table import PostgresTable
from millrace.errors import JobError
from millrace.runtime.context import RuntimeContext
from millrace.runtime.operator import OperatorContext
from millrace.runtime.sink import SinkWriter
from millrace.state.codec import dump, load
from millrace.state.store import OperatorStore
from tests.servers.postgres import PostgresServer, postgres

__all__ = ["postgres"]

EXACTLY_ONCE = pytest.mark.parametrize("mode", ["prepared", "staged"])
_numbers = itertools.count()


@pytest.fixture
def table(postgres: PostgresServer) -> Iterator[str]:
    name = f"faults_{next(_numbers)}"
    postgres.run(f"CREATE TABLE {name} (n bigint PRIMARY KEY)")
    yield name
    postgres.run(f"DROP TABLE IF EXISTS {name}, {PostgresTable(name).staging.name}")
    assert postgres.prepared() == []


def sink_to(server: PostgresServer, table: str, mode: Any, *, retry_seconds: float = 30.0, **options: Any) -> Any:
    connection = PostgresConnection(server.address, retry_seconds=retry_seconds)
    return PostgresSink(connection, table, mode=mode, name=f"sink-{table}", columns=["n"], **options)


def writer_of(sink: PostgresSink, subtask: int = 0) -> SinkWriter[Any]:
    context = OperatorContext("sink", "sink-1", OperatorStore(lambda: 0), lambda: 0, subtask=subtask, parallelism=4)
    there: PostgresSink = pickle.loads(by_value(sink))
    return there.create_writer(RuntimeContext(context))


def prepared_by(writer: SinkWriter[Any], *values: Any) -> Any:
    writer.write_batch(list(values), None)
    return load(dump(list(writer.prepare_commit())))


def rows(server: PostgresServer, table: str) -> list[Any]:
    return server.run(f"SELECT n FROM {table}")


@EXACTLY_ONCE
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGQUIT], ids=["shut down", "crashed"])
def test_the_server_restarts_between_prepare_and_commit(
    postgres: PostgresServer, table: str, mode: str, how: signal.Signals
) -> None:
    sink = sink_to(postgres, table, mode)
    sink.open()
    writers = [writer_of(sink, index) for index in range(2)]
    promised = prepared_by(writers[0], 1, 2) + prepared_by(writers[1], 3)
    postgres.restart(how)
    sink.commit(promised)
    assert rows(postgres, table) == [1, 2, 3]
    postgres.restart(how)
    sink.commit(promised)
    sink.commit(prepared_by(writers[0], 4))
    sink.close()
    assert rows(postgres, table) == [1, 2, 3, 4]


@EXACTLY_ONCE
def test_a_commit_waits_for_a_server_that_is_away(postgres: PostgresServer, table: str, mode: str) -> None:
    sink = sink_to(postgres, table, mode)
    promised = prepared_by(writer_of(sink), 1)
    postgres.stop()
    back = threading.Timer(0.3, postgres.start)
    back.start()
    sink.commit(promised)
    back.join()
    assert rows(postgres, table) == [1]


@EXACTLY_ONCE
def test_a_server_that_stays_away_fails_the_commit_which_can_be_made_up_for(
    postgres: PostgresServer, table: str, mode: str
) -> None:
    sink = sink_to(postgres, table, mode, retry_seconds=0.2)
    promised = prepared_by(writer_of(sink), 1)
    postgres.stop()
    try:
        with pytest.raises(JobError, match=r"cannot be reached after \d+ tries"):
            sink.commit(promised)
    finally:
        postgres.start()
    sink.commit(promised)
    assert rows(postgres, table) == [1]


@pytest.mark.parametrize("mode", ["prepared", "staged", "upsert"])
def test_a_connection_that_is_cut_in_the_middle_of_an_epoch(postgres: PostgresServer, table: str, mode: str) -> None:
    sink = sink_to(postgres, table, mode, key=["n"], batch_size=2)
    writer = writer_of(sink)
    sink.commit(prepared_by(writer, 1, 2))
    writer.write_batch([3, 4], None)
    assert postgres.cut_connections() > 0
    writer.write_batch([5], None)
    promised = list(writer.prepare_commit())
    postgres.cut_connections()
    sink.commit(promised)
    assert rows(postgres, table) == [1, 2, 3, 4, 5]


class CutInWrite(PostgresTable):
    """Loses the connection the first time, before or after the server has done what it was asked for."""

    lost = 0

    def lose(self, connection: psycopg.Connection[Any]) -> None:
        if CutInWrite.lost == 0:
            CutInWrite.lost += 1
            connection.execute("SELECT pg_terminate_backend(pg_backend_pid())")

    def insert(self, connection: Any, columns: Any, rows: Any) -> None:
        super().insert(connection, columns, rows)
        self.lose(connection)

    def take_staged(self, connection: Any, transaction_id: str, columns: Any) -> int:
        moved = super().take_staged(connection, transaction_id, columns)
        self.lose(connection)
        return moved


@EXACTLY_ONCE
def test_a_connection_that_is_lost_inside_of_a_transaction(
    postgres: PostgresServer, table: str, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CutInWrite, "lost", 0)
    monkeypatch.setattr("millrace.connectors.postgres.PostgresTable", CutInWrite)
    sink = sink_to(postgres, table, mode)
    writer = sink.create_writer(None)
    sink.commit(prepared_by(writer, 1, 2))
    writer.close()
    assert CutInWrite.lost == 1
    assert rows(postgres, table) == [1, 2]


def test_a_connection_that_is_lost_after_the_server_has_prepared(postgres: PostgresServer, table: str) -> None:
    """Whether PREPARE TRANSACTION came through is not known: the same name is rolled back and prepared again."""
    sink = sink_to(postgres, table, "prepared")
    writer = sink.create_writer(None)
    writer.write_batch([1, 2], None)
    session = sink._session
    lost: list[list[str]] = []

    def losing(action: Any, passing: Any = ()) -> Any:
        def twice(connection: psycopg.Connection[Any]) -> Any:
            result = action(connection)
            if not lost:
                lost.append(postgres.prepared())
                raise psycopg.OperationalError("the connection is lost")
            return result

        return type(session).run(session, twice, passing)

    session.run = losing
    promised = list(writer.prepare_commit())
    assert [len(names) for names in lost] == [1]
    assert postgres.prepared() == [promised[0]["id"]]
    sink.commit(promised)
    sink.disconnect()
    assert rows(postgres, table) == [1, 2]


@EXACTLY_ONCE
def test_an_attempt_that_dies_after_it_has_prepared(postgres: PostgresServer, table: str, mode: str) -> None:
    """A prepared transaction holds the keys that the next attempt writes: it must be gone before."""
    sink = sink_to(postgres, table, mode)
    lives_on = writer_of(sink)
    sink.commit(prepared_by(lives_on, 0))
    prepared_by(writer_of(sink), 1, 2)
    sink.commit(prepared_by(writer_of(sink), 1, 2))
    prepared_by(writer_of(sink), 3)
    sink.commit(prepared_by(lives_on, 3))
    assert rows(postgres, table) == [0, 1, 2, 3]
    assert sink.rollback_leftovers() == (0 if mode == "prepared" else 2)


@EXACTLY_ONCE
def test_a_run_that_dies_before_and_after_its_manifest(postgres: PostgresServer, table: str, mode: str) -> None:
    first = sink_to(postgres, table, mode)
    in_manifest = prepared_by(writer_of(first, 0), 1) + prepared_by(writer_of(first, 1), 2)
    prepared_by(writer_of(first, 2), 3)
    first.commit(in_manifest[:1])
    second = sink_to(postgres, table, mode)
    second.commit(in_manifest)
    assert rows(postgres, table) == [1, 2]
    second.commit(prepared_by(writer_of(second, 0), 3))
    assert rows(postgres, table) == [1, 2, 3]
    assert second.rollback_leftovers() == 0


def test_an_aborted_epoch_lets_go_of_its_rows(postgres: PostgresServer, table: str) -> None:
    sink = sink_to(postgres, table, "prepared")
    ran, again = writer_of(sink, 0), writer_of(sink, 1)
    prepared_by(ran, 1)
    ran.checkpoint_aborted(1)
    sink.commit(prepared_by(again, 1))
    assert rows(postgres, table) == [1]


def test_a_transaction_that_somebody_rolled_back_is_missed(postgres: PostgresServer, table: str) -> None:
    sink = sink_to(postgres, table, "prepared")
    promised = prepared_by(writer_of(sink), 1)
    postgres.run(f"ROLLBACK PREPARED '{promised[0]['id']}'")
    with pytest.raises(JobError, match="is gone, and its status is aborted"):
        sink.commit(promised)
    promised[0]["xid"] = str(2**40 + 5)
    with pytest.raises(JobError, match="its status is unknown to this server"):
        sink.commit(promised)


def test_staged_rows_that_somebody_changed_are_not_moved(postgres: PostgresServer, table: str) -> None:
    sink = sink_to(postgres, table, "staged")
    promised = prepared_by(writer_of(sink), 1, 2)
    postgres.run(f"DELETE FROM {PostgresTable(table).staging.name} WHERE n = 1")
    with pytest.raises(JobError, match="holds 1 rows of .* instead of 2"):
        sink.commit(promised)
    assert rows(postgres, table) == []


def test_tasks_that_write_the_same_key_wait_for_each_other_only_so_long(postgres: PostgresServer, table: str) -> None:
    sink = sink_to(postgres, table, "prepared", key=["n"], lock_timeout=0.1)
    promised = prepared_by(writer_of(sink, 0), 1)
    other = writer_of(sink, 1)
    other.write(1, None)
    with pytest.raises(JobError, match="key_by that key ahead of the sink, or use mode='staged'"):
        other.prepare_commit()
    sink.commit(promised)
    staged = sink_to(postgres, table, "staged", key=["n"])
    staged.commit(prepared_by(writer_of(staged, 0), 1) + prepared_by(writer_of(staged, 1), 1))
    assert rows(postgres, table) == [1]


def test_two_commits_at_once(postgres: PostgresServer, table: str) -> None:
    """An old driver and the new one that has taken over."""
    sinks = [sink_to(postgres, table, mode) for mode in ("prepared", "staged")]
    promised = [prepared_by(writer_of(sink), n) for n, sink in enumerate(sinks)]
    errors: list[BaseException] = []

    def commit() -> None:
        try:
            for mode, items in zip(("prepared", "staged"), promised, strict=True):
                sink_to(postgres, table, mode).commit(items)
        except BaseException as error:
            errors.append(error)

    drivers = [threading.Thread(target=commit) for _ in range(4)]
    for driver in drivers:
        driver.start()
    for driver in drivers:
        driver.join()
    assert errors == []
    assert rows(postgres, table) == [0, 1]
