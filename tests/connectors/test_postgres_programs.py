"""Whole programs into PostgreSQL: with crashes at every step of the commit, on Spark, and through the JDBC names."""

from __future__ import annotations

import itertools
import os
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from millrace.common import Configuration, Row, Types
from millrace.connectors.postgres import PostgresConnection, PostgresSink
from millrace.connectors.postgres_table import PostgresTable
from millrace.datastream import StreamExecutionEnvironment
from millrace.datastream.connectors.jdbc import JdbcConnectionOptions, JdbcExecutionOptions, JdbcSink
from millrace.errors import ConfigurationError, GraphError
from millrace.testing import LocalRun
from tests.servers.postgres import PASSWORD, PostgresServer, postgres

__all__ = ["postgres"]

POINTS = ["before prepare", "after prepare", "before commit", "half a commit", "after commit"]
_numbers = itertools.count()


@pytest.fixture
def table(postgres: PostgresServer) -> Iterator[str]:
    name = f"program_{next(_numbers)}"
    yield name
    postgres.run(f"DROP TABLE IF EXISTS {name}, {PostgresTable(name).staging.name}")
    assert postgres.prepared() == []


class PowerCut(Exception):
    """The driver is gone."""


class DyingSink(PostgresSink):
    """Dies at the points that the file ``fate`` names, one after the other: in a worker of Spark with its process."""

    def __init__(self, address: str, table: str, mode: Any, folder: Path) -> None:
        connection = PostgresConnection(address)
        columns = {"n": "bigint"}
        super().__init__(
            connection, table, mode=mode, name=table, columns=columns, create_table=True, key=["n"], lock_timeout=5
        )
        # A key without "ON CONFLICT": a row that is written twice is an error.
        self._table = PostgresTable(table, types={"n": "bigint PRIMARY KEY"})
        self.folder = folder
        self.driver = os.getpid()

    def die(self, point: str) -> None:
        fate = self.folder / "fate"
        points = fate.read_text().splitlines() if fate.exists() else []
        if points[:1] == [point]:
            fate.write_text("\n".join(points[1:]))
            if os.getpid() != self.driver:
                os.kill(os.getpid(), signal.SIGKILL)
            raise PowerCut(point)

    def prepare(self, transaction: Any) -> Any:
        self.die("before prepare")
        committable = super().prepare(transaction)
        self.die("after prepare")
        return committable

    def commit(self, committables: Sequence[Any]) -> None:
        self.die("before commit")
        super().commit(committables[:1])
        self.die("half a commit")
        super().commit(committables)
        self.die("after commit")


def start(server: PostgresServer, table: str, mode: str, folder: Path, epochs: int, dies: str | None) -> bool:
    """Start the program, and go on where it was; True if it came to its end."""
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
    sink = DyingSink(server.address, table, mode, folder)
    env.from_collection(list(range(30))).rebalance().sink_to(sink)
    try:
        run = LocalRun(env, storage=str(folder / "checkpoints"))
        for epoch in range(epochs):
            if dies is not None and epoch == epochs - 1:
                (folder / "fate").write_text(dies)
            if not run.done:
                run.run_epoch(5)
    except PowerCut:
        return False
    finally:
        (folder / "fate").unlink(missing_ok=True)
        sink.disconnect()
    run.crash()
    return run.done


@pytest.mark.parametrize("mode", ["prepared", "staged"])
def test_every_number_once_wherever_the_job_dies(postgres: PostgresServer, mode: str) -> None:
    @settings(max_examples=6, deadline=None)
    @given(st.lists(st.tuples(st.integers(1, 2), st.sampled_from(POINTS)), min_size=2, max_size=4))
    def runs(cuts: list[tuple[int, str]]) -> None:
        table = f"cuts_{mode}"
        postgres.run(f"DROP TABLE IF EXISTS {table}, {PostgresTable(table).staging.name}")
        with TemporaryDirectory() as name:
            for epochs, point in cuts:
                start(postgres, table, mode, Path(name), epochs, point)
            assert start(postgres, table, mode, Path(name), 100, None)
        assert postgres.run(f"SELECT n FROM {table}") == list(range(30))
        assert postgres.prepared() == []

    runs()


def test_exactly_once_on_spark(spark: SparkSession, postgres: PostgresServer, table: str, tmp_path: Path) -> None:
    config = {"pipeline.epoch.max-records": "40", "execution.checkpointing.dir": str(tmp_path / "checkpoints")}

    def program() -> StreamExecutionEnvironment:
        env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(config)).set_parallelism(2)
        sink = DyingSink(postgres.address, table, "prepared", tmp_path)
        env.from_collection(list(range(100))).rebalance().map(lambda n: (n,)).sink_to(sink).uid("numbers")
        return env

    (tmp_path / "fate").write_text("after prepare\nhalf a commit")
    with pytest.raises(PowerCut):
        program().execute()
    assert (tmp_path / "fate").read_text() == ""
    assert 0 < len(postgres.run(f"SELECT n FROM {table}")) < 100
    program().execute()
    assert postgres.run(f"SELECT n FROM {table}") == list(range(100))


def jdbc_options(server: PostgresServer, query: str = "") -> JdbcConnectionOptions:
    return (
        JdbcConnectionOptions.JdbcConnectionOptionsBuilder()
        .with_url(f"jdbc:postgresql://127.0.0.1:{server.port}/postgres{query}")
        .with_driver_name("org.postgresql.Driver")
        .with_user_name("millrace")
        .with_password(PASSWORD)
        .build()
    )


def test_a_pyflink_program_with_jdbc(postgres: PostgresServer, table: str) -> None:
    postgres.run(f"CREATE TABLE {table} (word varchar PRIMARY KEY, n int, note text)")
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
    type_info = Types.ROW([Types.STRING(), Types.INT()])
    rows = env.from_collection([Row("a", 1), Row("b", 2), Row("a", 3)], type_info).key_by(lambda row: row[0])
    options = JdbcExecutionOptions.builder().with_batch_interval_ms(1000).with_batch_size(2).with_max_retries(5).build()
    rows.add_sink(
        JdbcSink.sink(
            f"INSERT INTO {table} VALUES (?, ?, '100%?') ON CONFLICT (word) DO UPDATE SET n = excluded.n",
            type_info,
            jdbc_options(postgres, "?currentSchema=public&reWriteBatchedInserts=true&ssl=false"),
            options,
        )
    )
    LocalRun(env).run()
    assert postgres.run(f"SELECT * FROM {table}") == [("a", 3, "100%?"), ("b", 2, "100%?")]


def test_jdbc_options_say_what_is_wrong_and_keep_the_password(postgres: PostgresServer) -> None:
    options = jdbc_options(postgres)
    assert options.get_user_name() == "millrace"
    assert options.get_driver_name() == "org.postgresql.Driver"
    assert PASSWORD not in repr(options) + repr(JdbcSink.sink("DELETE FROM t WHERE a = ?", None, options))
    with pytest.raises(ConfigurationError, match="a JDBC sink for 'jdbc:mysql' is not there"):
        JdbcConnectionOptions("jdbc:mysql://db/shop")
    with pytest.raises(ConfigurationError, match="unknown option 'loginTimeOut'"):
        JdbcConnectionOptions("jdbc:postgresql://db/shop?loginTimeOut=3")
    with pytest.raises(ConfigurationError, match="without an address"):
        JdbcConnectionOptions.JdbcConnectionOptionsBuilder().build()
    with pytest.raises(ConfigurationError, match="batch_size=0; use 1 or more"):
        JdbcExecutionOptions.builder().with_batch_size(0).build()
    with pytest.raises(GraphError, match="takes 1 values, but records"):
        JdbcSink.sink("DELETE FROM t WHERE a = ?", Types.ROW([Types.INT(), Types.INT()]), options)
    several = JdbcConnectionOptions("jdbc:postgresql://one:5433,two/shop?sslmode=require")
    assert repr(several) == "JdbcConnectionOptions('host=one,two port=5433, dbname=shop')"
