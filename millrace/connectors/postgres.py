"""Streams into PostgreSQL: exactly once, or as rows that later ones with the same key replace."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from millrace.common.row import RowKind
from millrace.connectors.postgres_connection import PostgresConnection, PostgresSession, driver
from millrace.connectors.postgres_prepared import BUSY, commit_prepared, end_prepared, explained, no_prepared
from millrace.connectors.postgres_table import (
    ID_COLUMN,
    ORDER_COLUMN,
    PostgresStatement,
    PostgresTable,
    RowMaker,
    kind_of,
)
from millrace.connectors.transactional import TransactionId, TwoPhaseCommitSink
from millrace.errors import ConfigurationError, JobError

if TYPE_CHECKING:
    from typing import Literal

    import psycopg

    Mode = Literal["prepared", "staged", "upsert", "at-least-once"]

__all__ = ["PostgresConnection", "PostgresSink"]

_MODES: Final = ("prepared", "staged", "upsert", "at-least-once")
_EXACTLY_ONCE: Final = ("prepared", "staged")


@dataclass
class _Rows:
    """What a task has for the database."""

    id: TransactionId
    rows: list[Sequence[Any]] = field(default_factory=list)
    newest: dict[tuple[Any, ...], Sequence[Any] | None] = field(default_factory=dict)
    """By key: the row to write, or None for one to remove."""


class PostgresSink(TwoPhaseCommitSink[Any, _Rows]):
    """Writes records as rows of a table.

    ========================  ==========================================================================================
    mode                      what a reader of the table sees
    ========================  ==========================================================================================
    ``"prepared"``            each record once, with its epoch. Tasks write and ``PREPARE TRANSACTION``, the driver
                              does ``COMMIT PREPARED``. The server needs ``max_prepared_transactions`` above 0.
    ``"staged"``              each record once, all of an epoch together. Tasks fill a staging table beside the table,
                              the driver moves the rows in one transaction. Needs nothing of the server; rows are
                              written twice.
    ``"upsert"``              for each ``key`` its newest row. Tasks write at once; what is written again after a
                              failure replaces itself. Rows of kind DELETE remove theirs.
    ``"at-least-once"``       each record, those of an epoch that failed more than once.
    ========================  ==========================================================================================

    ``name`` identifies the sink across restarts, and is needed for the first two modes: two sinks that write to one
    database must not share it. ``columns`` are the columns to write, from fields of the same name, or by position for
    records without names; left out, they are the fields of the first record. As a dict, they have types, and
    ``create_table=True`` creates what is missing. With a ``key``, a row replaces the one with the same key in all modes
    but the last.

    >>> address = "postgresql://millrace:hush@db/shop"
    >>> sink = PostgresSink(address, "counts", mode="upsert", columns={"word": "text", "n": "bigint"}, key=["word"])
    >>> sink
    PostgresSink('host=db dbname=shop user=millrace', table='counts', mode='upsert')
    """

    def __init__(
        self,
        connection: PostgresConnection | str,
        table: str | None = None,
        *,
        mode: Mode,
        name: str | None = None,
        schema: str | None = None,
        columns: Sequence[str] | Mapping[str, str] | None = None,
        key: Sequence[str] = (),
        create_table: bool = False,
        statement: str | None = None,
        batch_size: int = 5_000,
        lock_timeout: float = 60.0,
    ) -> None:
        super().__init__(_checked_name(name, mode, table))
        if (table is None) == (statement is None):
            raise ConfigurationError("a PostgreSQL sink takes either a table or a statement of your own")
        if isinstance(columns, str) or isinstance(key, str):
            raise ConfigurationError(f"columns={columns!r}, key={key!r}: use lists of names")
        if mode == "upsert" and not key:
            message = "mode='upsert' needs key=[...], the columns of the table's primary key or of a unique index"
            raise ConfigurationError(message)
        if statement is not None and (mode not in ("prepared", "at-least-once") or columns or key or create_table):
            message = (
                "a statement of your own goes with mode='prepared' or mode='at-least-once', and without columns, key "
                "and create_table: it says all of that itself"
            )
            raise ConfigurationError(message)
        if create_table and not isinstance(columns, Mapping):
            message = "create_table=True needs types: use columns={'word': 'text', 'n': 'bigint'}"
            raise ConfigurationError(message)
        if columns is not None and not set(key) <= set(columns):
            raise ConfigurationError(f"the key {list(key)} is not among the columns {list(columns)}")
        if batch_size < 1 or lock_timeout <= 0:
            message = f"batch_size={batch_size}, lock_timeout={lock_timeout}: use numbers above 0"
            raise ConfigurationError(message)
        self.mode = mode
        self.holds_locks = mode == "prepared"
        self._connection = PostgresConnection(connection) if isinstance(connection, str) else connection
        self._table = None
        if table is not None:
            types = dict(columns) if create_table and isinstance(columns, Mapping) else {}
            self._table = PostgresTable(table, schema, () if mode == "at-least-once" else tuple(key), types)
        self._statement = None if statement is None else PostgresStatement(statement)
        self._maker = RowMaker(None if columns is None else tuple(columns))
        self._batch_size = batch_size
        self._lock_timeout_ms = max(1, round(1000 * lock_timeout))
        self._session: PostgresSession | None = None
        self._created = False

    # In tasks.

    def begin(self, transaction_id: TransactionId) -> _Rows:
        return _Rows(transaction_id)

    def write(self, transaction: _Rows, value: Any) -> None:
        self.write_all(transaction, [value])

    def write_all(self, transaction: _Rows, values: Sequence[Any]) -> None:
        """Rows are kept until the epoch ends, so that a lost connection does not lose them; where nothing is promised
        but the newest row, or at least one, they go in batches."""
        for value in values:
            kind = kind_of(value)
            row = self._maker(value) if self._statement is None else self._statement.row(value)
            if self.mode == "upsert":
                if kind is not RowKind.UPDATE_BEFORE:
                    transaction.newest[self._key_of(row)] = None if kind is RowKind.DELETE else row
            elif kind in (RowKind.INSERT, RowKind.UPDATE_AFTER):
                transaction.rows.append(row)
            else:
                message = f"{value!r} takes a row back ({kind.name}): use mode='upsert' for a stream of changes"
                raise ValueError(message)
        if self.mode not in _EXACTLY_ONCE and len(transaction.rows) + len(transaction.newest) >= self._batch_size:
            self._flush(transaction)

    def prepare(self, transaction: _Rows) -> dict[str, Any] | None:
        if self.mode not in _EXACTLY_ONCE:
            self._flush(transaction)
            return None
        try:
            return self._prepare(transaction) if self.mode == "prepared" else self._stage(transaction)
        except driver().OperationalError as error:
            better = explained(error, repr(self))
            if better is None:
                raise
            raise better from error

    def pending(self, prefix: str) -> Iterable[str]:
        if self.mode == "prepared":
            return self._names_by(
                "SELECT gid FROM pg_prepared_xacts WHERE starts_with(gid, %s) "
                "AND database = current_database() AND owner = current_user",
                prefix,
            )
        if self.mode == "staged":
            from psycopg import sql

            assert self._table is not None
            named = sql.SQL("SELECT DISTINCT {0} FROM {1} WHERE starts_with({0}, %s)").format(
                sql.Identifier(ID_COLUMN), self._table.staging.identifier
            )
            return self._names_by(named, prefix)
        return ()

    def abort_transaction(self, transaction_id: str) -> None:
        if self.mode == "prepared":
            self._do(lambda connection: end_prepared(connection, "ROLLBACK", transaction_id), passing=(BUSY,))
        elif self.mode == "staged":
            from psycopg import sql

            assert self._table is not None
            statement = sql.SQL("DELETE FROM {} WHERE {} = %s").format(
                self._table.staging.identifier, sql.Identifier(ID_COLUMN)
            )
            self._do(lambda connection: connection.execute(statement, [transaction_id]))

    # On the driver.

    def open(self) -> None:
        """Find out before the first record whether the server can do what is asked for."""
        if self.mode in _EXACTLY_ONCE:
            super().open()
        try:
            self._do(self._check)
        except BaseException:
            self.close()
            raise

    def commit_transaction(self, committable: Any) -> None:
        self.commit([committable])

    def commit(self, committables: Sequence[Any]) -> None:
        """Commit what tasks have prepared, in whichever way that was done."""
        for committable in committables:
            if committable["mode"] == "prepared":
                self._do(
                    lambda connection, it=committable: commit_prepared(connection, it, repr(self)), passing=(BUSY,)
                )
        staged = [committable for committable in committables if committable["mode"] == "staged"]
        if staged:
            self._do(lambda connection: self._move(connection, staged))

    def rollback_leftovers(self) -> int:
        """Throw away all that any run of this sink has prepared and not committed; says how much that was.

        Only for a sink whose jobs have ended and are not to be started again from their checkpoints: the last epoch of
        such a job may still have to be committed.
        """
        names = list(self.pending(TransactionId.prefix(self.name)))
        for name in names:
            self.abort_transaction(name)
        return len(names)

    def disconnect(self) -> None:
        if self._session is not None:
            self._session.close()

    # In both.

    def _do(self, action: Any, passing: Iterable[str] = ()) -> Any:
        if self._session is None:
            self._session = PostgresSession(self._connection)
        if not self._created and self._table is not None:
            table, staging = self._table, self.mode == "staged"
            self._session.run(lambda connection: table.create(connection, staging=staging))
            self._created = True
        return self._session.run(action, passing)

    def _names_by(self, statement: Any, *values: Any) -> list[str]:
        return [str(row[0]) for row in self._do(lambda connection: connection.execute(statement, values).fetchall())]

    def _check(self, connection: psycopg.Connection[Any]) -> None:
        if self.mode == "prepared":
            row = connection.execute("SELECT current_setting('max_prepared_transactions')::int").fetchone()
            if row is None or row[0] == 0:
                raise ConfigurationError(no_prepared(self._connection.shown))

    def _flush(self, transaction: _Rows) -> None:
        """Write and commit at once: repeated, it does no harm in these modes."""
        table = self._table or self._statement
        assert table is not None
        columns = self._maker.columns or ()
        rows = [*transaction.rows, *(row for row in transaction.newest.values() if row is not None)]
        removed = [key for key, row in transaction.newest.items() if row is None]

        def write(connection: psycopg.Connection[Any]) -> None:
            with connection.transaction():
                if removed and isinstance(table, PostgresTable):
                    table.delete(connection, removed)
                if rows:
                    table.replace(connection, columns, rows)

        self._do(write)
        transaction.rows.clear()
        transaction.newest.clear()

    def _prepare(self, transaction: _Rows) -> dict[str, Any]:
        table = self._table or self._statement
        assert table is not None
        tries = 0

        def write(connection: psycopg.Connection[Any]) -> dict[str, Any]:
            from psycopg import sql

            nonlocal tries
            tries += 1
            if tries > 1:
                # The connection that was lost may have come to its end.
                end_prepared(connection, "ROLLBACK", transaction.id)
            connection.execute("BEGIN")
            connection.execute(sql.SQL("SET LOCAL lock_timeout = {}").format(self._lock_timeout_ms))
            table.insert(connection, self._maker.columns or (), transaction.rows)
            row = connection.execute("SELECT pg_current_xact_id()::text").fetchone()
            assert row is not None
            connection.execute(sql.SQL("PREPARE TRANSACTION {}").format(str(transaction.id)))
            return {"mode": "prepared", "id": str(transaction.id), "xid": str(row[0])}

        prepared: dict[str, Any] = self._do(write)
        return prepared

    def _stage(self, transaction: _Rows) -> dict[str, Any]:
        assert self._table is not None and self._maker.columns is not None
        table, columns = self._table, self._maker.columns
        names: list[TransactionId] = []

        def write(connection: psycopg.Connection[Any]) -> None:
            # The rows of a lost connection may be there or may still come: another name keeps them apart for good.
            names.append(transaction.id.renewed() if names else transaction.id)
            rows = ([names[-1], number, *row] for number, row in enumerate(transaction.rows))
            with connection.transaction():
                table.staging.copy(connection, [ID_COLUMN, ORDER_COLUMN, *columns], rows)

        self._do(write)
        return {
            "mode": "staged",
            "id": str(names[-1]),
            "rows": len(transaction.rows),
            "columns": list(columns),
            "table": [table.name, table.schema],
        }

    def _move(self, connection: psycopg.Connection[Any], staged: list[dict[str, Any]]) -> None:
        with connection.transaction():
            for part in staged:
                name, schema = part["table"]
                table = PostgresTable(name, schema, () if self._table is None else self._table.key)
                moved = table.take_staged(connection, part["id"], part["columns"])
                if moved not in (0, part["rows"]):
                    message = (
                        f"{table.staging} holds {moved} rows of {part['id']} instead of {part['rows']}: somebody has "
                        "changed it. Nothing was moved; start from an earlier checkpoint"
                    )
                    raise JobError(message)

    def _key_of(self, row: Sequence[Any]) -> tuple[Any, ...]:
        assert self._table is not None and self._maker.columns is not None
        columns = self._maker.columns
        return tuple(row[columns.index(name)] for name in self._table.key)

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_session": None}

    def __repr__(self) -> str:
        what = f"table={str(self._table)!r}" if self._statement is None else f"statement={str(self._statement)!r}"
        return f"PostgresSink({self._connection.shown!r}, {what}, mode={self.mode!r})"


def _checked_name(name: str | None, mode: str, table: str | None) -> str:
    if mode not in _MODES:
        raise ConfigurationError(f"mode={mode!r}: use one of {', '.join(map(repr, _MODES))}")
    if name is None and mode in _EXACTLY_ONCE:
        message = (
            f"mode={mode!r} needs name='...': by it a restarted job finds what its failed run has left in the "
            "database. Sinks that write to the same database must have different names"
        )
        raise ConfigurationError(message)
    return "postgres" if name is None else name
