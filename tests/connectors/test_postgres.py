"""The PostgreSQL sink against a real server: modes, records as rows, settings and what they must not show."""

from __future__ import annotations

import itertools
import pickle
import sys
from collections import namedtuple
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import psycopg
import pytest

from millrace.common import Instant, Row, RowKind
from millrace.common.cloudpickles import by_value
from millrace.connectors.postgres import PostgresConnection, PostgresSink
from millrace.connectors.postgres_table import PostgresTable
from millrace.errors import ConfigurationError, GraphError, JobError, MissingDependencyError
from millrace.runtime.context import RuntimeContext
from millrace.runtime.operator import OperatorContext
from millrace.runtime.sink import SinkWriter
from millrace.state.codec import dump, load
from millrace.state.store import OperatorStore
from tests.servers.postgres import PASSWORD, PostgresServer, postgres, running

__all__ = ["postgres"]

_numbers = itertools.count()
COLUMNS = {"word": "text", "n": "bigint"}


@pytest.fixture
def table(postgres: PostgresServer) -> Iterator[str]:
    name = f"counts_{next(_numbers)}"
    yield name
    postgres.run(f"DROP TABLE IF EXISTS {name}, {PostgresTable(name).staging.name}")
    assert postgres.prepared() == []


def writer_of(sink: PostgresSink, subtask: int = 0) -> SinkWriter[Any]:
    """A writer as a worker makes it: from the sink's pickle."""
    context = OperatorContext("sink", "sink-1", OperatorStore(lambda: 0), lambda: 0, subtask=subtask, parallelism=4)
    there: PostgresSink = pickle.loads(by_value(sink))
    return there.create_writer(RuntimeContext(context))


def prepared_by(writer: SinkWriter[Any], *values: Any) -> Any:
    writer.write_batch(list(values), None)
    return load(dump(list(writer.prepare_commit())))


def sink_to(server: PostgresServer, table: str, mode: Any, **options: Any) -> PostgresSink:
    options = {"columns": COLUMNS, "create_table": True, "name": f"sink-{table}", **options}
    return PostgresSink(server.address, table, mode=mode, **options)


@pytest.mark.parametrize("mode", ["prepared", "staged"])
def test_rows_show_when_they_are_committed_and_then_once(postgres: PostgresServer, table: str, mode: str) -> None:
    sink = sink_to(postgres, table, mode)
    sink.open()
    promised = prepared_by(writer_of(sink), ("a", 1), {"n": 2, "word": "b"}) + prepared_by(writer_of(sink, 1), ("c", 3))
    assert len(promised) == 2
    assert postgres.run(f"SELECT * FROM {table}") == []
    sink.commit(promised)
    sink.commit(promised)
    sink.close()
    sink_to(postgres, table, mode).commit(promised)
    assert postgres.run(f"SELECT * FROM {table}") == [("a", 1), ("b", 2), ("c", 3)]


@pytest.mark.parametrize("mode", ["prepared", "staged"])
def test_with_a_key_the_newest_row_stays_exactly_once(postgres: PostgresServer, table: str, mode: str) -> None:
    sink = sink_to(postgres, table, mode, key=["word"])
    writer = writer_of(sink)
    for values in [[("a", 1), ("b", 1), ("a", 2)], [("b", 5), ("c", 9), ("b", 6)]]:
        sink.commit(prepared_by(writer, *values))
    assert postgres.run(f"SELECT * FROM {table}") == [("a", 2), ("b", 6), ("c", 9)]
    writer.close()


def test_a_changed_mode_still_commits_what_the_old_one_has_promised(postgres: PostgresServer, table: str) -> None:
    before = sink_to(postgres, table, "prepared")
    promised = prepared_by(writer_of(before), ("a", 1))
    after = sink_to(postgres, table, "staged")
    after.commit(promised)
    after.commit(prepared_by(writer_of(after), ("b", 2)))
    assert postgres.run(f"SELECT * FROM {table}") == [("a", 1), ("b", 2)]


def test_upsert_replaces_removes_and_may_be_repeated(postgres: PostgresServer, table: str) -> None:
    sink = sink_to(postgres, table, "upsert", key=["word"], batch_size=3)
    kinds = [
        ("a", 1, RowKind.INSERT),
        ("b", 1, RowKind.INSERT),
        ("a", 1, RowKind.UPDATE_BEFORE),
        ("a", 2, RowKind.UPDATE_AFTER),
        ("c", 1, RowKind.INSERT),
        ("b", 1, RowKind.DELETE),
        ("d", 1, RowKind.INSERT),
        ("d", 1, RowKind.DELETE),
    ]
    for _ in range(2):
        writer = writer_of(sink)
        for word, n, kind in kinds:
            writer.write(Row.of_kind(kind, word, n), None)
        assert writer.prepare_commit() == ()
        assert postgres.run(f"SELECT * FROM {table}") == [("a", 2), ("c", 1)]


def test_large_batches_replace_as_small_ones_do(postgres: PostgresServer, table: str) -> None:
    sink = sink_to(postgres, table, "upsert", key=["word"], batch_size=300)
    writer = writer_of(sink)
    writer.write_batch([(f"word {n % 250}", n) for n in range(1_000)], None)
    writer.write_batch([("word 0", -1), *[(f"word {n}", n) for n in range(1, 200)]], None)
    writer.prepare_commit()
    expected = [("word 0", -1), *[(f"word {n}", n if n < 200 else n + 750) for n in range(1, 250)]]
    assert postgres.run(f"SELECT * FROM {table}") == sorted(expected)


def test_a_table_of_keys_alone(postgres: PostgresServer, table: str) -> None:
    sink = sink_to(postgres, table, "upsert", columns={"word": "text"}, key=["word"])
    prepared_by(writer_of(sink), ("a",), ("a",), "b")
    prepared_by(writer_of(sink), "b")
    assert postgres.run(f"SELECT * FROM {table}") == ["a", "b"]


def test_at_least_once_writes_in_batches(postgres: PostgresServer, table: str) -> None:
    writer = writer_of(sink_to(postgres, table, "at-least-once", batch_size=2))
    writer.write_batch([("a", 1), ("b", 2)], None)
    assert postgres.run(f"SELECT * FROM {table}") == [("a", 1), ("b", 2)]
    writer.write(("c", 3), None)
    assert len(postgres.run(f"SELECT * FROM {table}")) == 2
    writer.prepare_commit()
    assert len(postgres.run(f"SELECT * FROM {table}")) == 3


@dataclass(frozen=True)
class Reading:
    word: str
    n: int


Pair = namedtuple("Pair", "n word")


@pytest.mark.parametrize("record", [Reading("a", 1), Pair(1, "a"), Row(n=1, word="a"), {"word": "a", "n": 1}])
def test_fields_find_their_columns_by_name(postgres: PostgresServer, table: str, record: Any) -> None:
    postgres.run(f"CREATE TABLE {table} (id serial, word text, n bigint, note text DEFAULT 'none')")
    for mode in ("prepared", "staged", "at-least-once"):
        sink = sink_to(postgres, table, mode, columns=None, create_table=False)
        sink.commit(prepared_by(writer_of(sink), record))
    assert postgres.run(f"SELECT word, n FROM {table}") == [("a", 1)] * 3


@pytest.mark.parametrize("mode", ["prepared", "staged", "upsert"])
def test_values_of_many_types(postgres: PostgresServer, table: str, mode: str) -> None:
    columns = {
        "id": "int",
        "price": "numeric(10, 2)",
        "at": "timestamptz",
        "tags": "text[]",
        "more": "jsonb",
        "raw": "bytea",
        "flag": "boolean",
        "nothing": "text",
    }
    sink = sink_to(postgres, table, mode, columns=columns, key=["id"])
    record = (1, Decimal("9.50"), Instant(60, 5_000), ["x", "y,\t'"], {"a": Row(b=[1])}, b"\0\1", True, None)
    sink.commit(prepared_by(writer_of(sink), record))
    moment = datetime(1970, 1, 1, 0, 1, 0, 5, UTC)
    expected = (1, Decimal("9.50"), moment, ["x", "y,\t'"], {"a": {"b": [1]}}, b"\0\1", True, None)
    assert postgres.run(f"SELECT * FROM {table}") == [expected]


@pytest.mark.parametrize(
    ("columns", "record", "message"),
    [
        (["word", "n"], ("a",), "has 1 fields for the columns word, n"),
        (["word", "n"], {"word": "a"}, "has no field 'n'"),
        (["word", "n"], {"word": "a", "n": 1, "x": 2}, "has the field 'x', which has no column"),
        (None, ("a", 1), "has no field names: give the sink columns="),
        (["word", "n"], Row.of_kind(RowKind.DELETE, "a", 1), "takes a row back"),
    ],
)
def test_records_that_do_not_fit_are_named(
    postgres: PostgresServer, table: str, columns: Any, record: Any, message: str
) -> None:
    writer = writer_of(sink_to(postgres, table, "at-least-once", columns=columns, create_table=False))
    with pytest.raises(ValueError, match=message):
        writer.write(record, None)


def test_a_row_that_the_server_refuses_fails_the_epoch_and_leaves_nothing(postgres: PostgresServer, table: str) -> None:
    sink = sink_to(postgres, table, "prepared", key=["word"])
    writer = writer_of(sink)
    writer.write_batch([("a", 1), (None, 2)], None)
    with pytest.raises(psycopg.errors.NotNullViolation):
        writer.prepare_commit()
    assert postgres.prepared() == []
    sink.commit(prepared_by(writer, ("a", 3)))
    assert postgres.run(f"SELECT * FROM {table}") == [("a", 3)]


def test_tables_in_a_schema_with_names_that_need_quotes(postgres: PostgresServer, table: str) -> None:
    options = {"schema": 'my "shop"', "columns": {'the "word"': "text"}, "name": "shop"}
    for mode in ("prepared", "staged"):
        sink = sink_to(postgres, f"Big {table}'s", mode, **options)
        sink.open()
        sink.commit(prepared_by(writer_of(sink), mode))
        sink.close()
    assert postgres.run(f'SELECT * FROM "my ""shop"""."Big {table}\'s"') == ["prepared", "staged"]


@pytest.mark.parametrize("mode", ["prepared", "staged", "upsert"])
def test_a_missing_table_is_found_before_the_first_record(postgres: PostgresServer, mode: Any) -> None:
    sink = PostgresSink(postgres.address, "nowhere", mode=mode, name="lost", columns=["a"], key=["a"])
    for _ in range(2):
        with pytest.raises(ConfigurationError, match="there is no table nowhere in the database 'postgres'"):
            sink.open()


def test_secrets_are_shown_nowhere(postgres: PostgresServer, table: str) -> None:
    sink = sink_to(postgres, table, "prepared")
    promised = prepared_by(writer_of(sink), ("a", 1))
    connection = PostgresConnection(postgres.address)
    assert PASSWORD not in f"{sink!r} {connection!r} {connection.shown} {promised!r}"
    sink.commit(promised)
    wrong = PostgresConnection(postgres.address, password="not-" + PASSWORD)
    with pytest.raises(JobError, match="authentication failed") as refused:
        PostgresSink(wrong, table, mode="at-least-once").open()
    assert PASSWORD not in str(refused.value)
    with pytest.raises(ConfigurationError) as misspelt:
        PostgresConnection(f"postgresql://u:{PASSWORD}@h/d?pasword={PASSWORD}")
    assert PASSWORD not in str(misspelt.value)
    assert misspelt.value.__suppress_context__


def test_a_password_function_is_called_where_the_connection_is_made(postgres: PostgresServer, table: str) -> None:
    letters = list(PASSWORD)
    address = postgres.address.replace(f":{PASSWORD}", "")
    connection = PostgresConnection(address, password=lambda: "".join(letters))
    sink = PostgresSink(connection, table, mode="prepared", name=table, columns=COLUMNS, create_table=True)
    assert PASSWORD.encode() not in by_value(sink)
    sink.commit(prepared_by(writer_of(sink), ("a", 1)))
    assert postgres.run(f"SELECT n FROM {table}") == [1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": "prepared"}, "mode='prepared' needs name='...'"),
        ({"mode": "staged"}, "mode='staged' needs name='...'"),
        ({"mode": "once"}, "mode='once': use one of 'prepared'"),
        ({"mode": "upsert"}, "needs key="),
        ({"mode": "upsert", "key": "word"}, "use lists of names"),
        ({"mode": "upsert", "key": ["a"], "columns": ["b"]}, r"the key \['a'\] is not among"),
        ({"mode": "at-least-once", "create_table": True}, "create_table=True needs types"),
        ({"mode": "at-least-once", "batch_size": 0}, "use numbers above 0"),
        ({"mode": "at-least-once", "statement": "SELECT ?"}, "either a table or a statement"),
        ({"mode": "staged", "name": "s", "table": None, "statement": "SELECT ?"}, "a statement of your own goes with"),
        ({"mode": "at-least-once", "table": None, "statement": "SELECT 1"}, "takes no values"),
    ],
)
def test_mistakes_are_found_when_the_sink_is_made(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        PostgresSink("host=db", **{"table": "t", **options})


def test_without_psycopg_the_command_that_installs_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'millrace\[postgres\]'"):
        PostgresSink("host=db", "t", mode="at-least-once")


def test_one_name_for_two_sinks_is_refused(postgres: PostgresServer, table: str) -> None:
    first, second = sink_to(postgres, table, "staged"), sink_to(postgres, table, "staged")
    first.open()
    with pytest.raises(GraphError, match="two sinks are called"):
        second.open()
    first.close()


def test_leftovers_can_be_rolled_back_by_hand(postgres: PostgresServer, table: str) -> None:
    for mode in ("prepared", "staged"):
        sink = sink_to(postgres, table, mode)
        prepared_by(writer_of(sink), ("a", 1))
        prepared_by(writer_of(sink, 1), ("b", 1))
        assert sink.rollback_leftovers() == 2
        assert sink.rollback_leftovers() == 0
    assert postgres.run(f"SELECT * FROM {table}") == []


def test_a_server_without_prepared_transactions() -> None:
    with running(max_prepared_transactions="0") as server:
        sink = sink_to(server, "t", "prepared")
        with pytest.raises(ConfigurationError, match="set max_prepared_transactions in postgresql.conf"):
            sink.open()
        writer = writer_of(sink)
        writer.write(("a", 1), None)
        with pytest.raises(ConfigurationError, match="set max_prepared_transactions in postgresql.conf"):
            writer.prepare_commit()
        staged = sink_to(server, "t", "staged")
        staged.open()
        staged.commit(prepared_by(writer_of(staged), ("a", 1)))
        staged.close()
        assert server.run("SELECT * FROM t") == [("a", 1)]
