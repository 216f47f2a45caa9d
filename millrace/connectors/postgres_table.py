"""The table a PostgreSQL sink writes to: its columns, its statements, and records as its rows."""

from __future__ import annotations

import dataclasses
import datetime
import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from millrace.common.row import Row, RowKind
from millrace.common.time import Instant
from millrace.connectors.postgres_connection import driver
from millrace.errors import ConfigurationError

if TYPE_CHECKING:
    import psycopg
    from psycopg import sql

__all__ = [
    "ID_COLUMN",
    "ORDER_COLUMN",
    "PostgresStatement",
    "PostgresTable",
    "RowMaker",
    "cell",
    "kind_of",
    "psycopg_placeholders",
]

ID_COLUMN: Final = "millrace_transaction"
ORDER_COLUMN: Final = "millrace_row"
_STAGING: Final = "_millrace_staging"
_LONGEST_NAME: Final = 63
_WORTH_A_TABLE: Final = 100
"""From so many rows on, filling a temporary table and inserting from it beats a statement for each row."""


@dataclasses.dataclass(frozen=True)
class PostgresTable:
    """A table by its name, with the columns that are its key and, if it is to be created, the types of all.

    >>> PostgresTable("counts", schema="shop").staging.name
    'counts_millrace_staging'
    """

    name: str
    schema: str | None = None
    key: tuple[str, ...] = ()
    types: Mapping[str, str] = dataclasses.field(default_factory=dict)

    @property
    def identifier(self) -> sql.Identifier:
        """The name for statements."""
        from psycopg import sql

        return sql.Identifier(*([self.schema] if self.schema else []), self.name)

    @property
    def staging(self) -> PostgresTable:
        """The table in which rows wait for the commit."""
        return PostgresTable(self.name[: _LONGEST_NAME - len(_STAGING)] + _STAGING, self.schema)

    def copy(self, connection: psycopg.Connection[Any], columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Append rows, the quickest way there is."""
        from psycopg import sql

        statement = sql.SQL("COPY {} ({}) FROM STDIN").format(self.identifier, _names(columns))
        with connection.cursor() as cursor, cursor.copy(statement) as copy:
            for row in rows:
                copy.write_row(row)

    def insert(
        self, connection: psycopg.Connection[Any], columns: Sequence[str], rows: Sequence[Sequence[Any]]
    ) -> None:
        """Append rows; where the table has a key, the last row of a key takes the place of what is there."""
        from psycopg import sql

        if not self.key:
            self.copy(connection, columns, rows)
            return
        values = sql.SQL(", ").join([sql.Placeholder()] * len(columns))
        statement = sql.SQL("INSERT INTO {} ({}) VALUES ({}){}").format(
            self.identifier, _names(columns), values, self._on_conflict(columns)
        )
        with connection.cursor() as cursor:
            cursor.executemany(statement, rows)

    def replace(
        self, connection: psycopg.Connection[Any], columns: Sequence[str], rows: Sequence[Sequence[Any]]
    ) -> None:
        """Like ``insert``, for rows with different keys and outside of prepared transactions, where it is quicker."""
        from psycopg import sql

        if not self.key or len(rows) < _WORTH_A_TABLE:
            self.insert(connection, columns, rows)
            return
        batch = PostgresTable("millrace_batch", "pg_temp")
        connection.execute(
            sql.SQL("CREATE TEMP TABLE {} ON COMMIT DROP AS SELECT {} FROM {} WITH NO DATA").format(
                sql.Identifier(batch.name), _names(columns), self.identifier
            )
        )
        batch.copy(connection, columns, rows)
        connection.execute(
            sql.SQL("INSERT INTO {} ({}) SELECT {} FROM {}{}").format(
                self.identifier, _names(columns), _names(columns), batch.identifier, self._on_conflict(columns)
            )
        )

    def delete(self, connection: psycopg.Connection[Any], keys: Sequence[Sequence[Any]]) -> None:
        """Remove the rows with these keys."""
        from psycopg import sql

        matches = sql.SQL(" AND ").join(
            sql.SQL("{} = {}").format(sql.Identifier(name), sql.Placeholder()) for name in self.key
        )
        with connection.cursor() as cursor:
            cursor.executemany(sql.SQL("DELETE FROM {} WHERE {}").format(self.identifier, matches), keys)

    def take_staged(self, connection: psycopg.Connection[Any], transaction_id: str, columns: Sequence[str]) -> int:
        """Move the staged rows of a transaction into the table, all or none; says how many there were."""
        from psycopg import sql

        chosen = sql.SQL("SELECT {} FROM moved ORDER BY {}").format(_names(columns), sql.Identifier(ORDER_COLUMN))
        if self.key:
            # One statement cannot write a row twice: only the last row of a key is written.
            chosen = sql.SQL("SELECT DISTINCT ON ({key}) {} FROM moved ORDER BY {key}, {} DESC").format(
                _names(columns), sql.Identifier(ORDER_COLUMN), key=_names(self.key)
            )
        statement = sql.SQL(
            "WITH moved AS (DELETE FROM {} WHERE {} = %s RETURNING *), "
            "written AS (INSERT INTO {} ({}) {}{}) SELECT count(*) FROM moved"
        ).format(
            self.staging.identifier,
            sql.Identifier(ID_COLUMN),
            self.identifier,
            _names(columns),
            chosen,
            self._on_conflict(columns),
        )
        row = connection.execute(statement, [transaction_id]).fetchone()
        return int(row[0]) if row else 0

    def create(self, connection: psycopg.Connection[Any], *, staging: bool) -> None:
        """Create what is not there: the table if its types are known, and the staging table if there is to be one."""
        from psycopg import sql

        if not self.types and not self.exists(connection):
            message = (
                f"there is no table {self} in the database {connection.info.dbname!r}: create it, or use "
                "create_table=True with columns={name: type}"
            )
            raise ConfigurationError(message)
        if all(table.exists(connection) for table in ([self, self.staging] if staging else [self])):
            return
        with connection.transaction():
            # Two tasks that create a table at once disturb each other, "IF NOT EXISTS" or not.
            number = hashlib.sha256(f"millrace/{self.schema}/{self.name}".encode()).digest()[:8]
            connection.execute("SELECT pg_advisory_xact_lock(%s)", [int.from_bytes(number, "big", signed=True)])
            if self.types:
                if self.schema:
                    connection.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(self.schema)))
                parts: list[sql.Composable] = [
                    # Types are the program's own text, such as numeric(10, 2): there is no way to quote them.
                    sql.SQL("{} {}").format(sql.Identifier(name), sql.SQL(kind))
                    for name, kind in self.types.items()
                ]
                if self.key:
                    parts.append(sql.SQL("PRIMARY KEY ({})").format(_names(self.key)))
                connection.execute(
                    sql.SQL("CREATE TABLE IF NOT EXISTS {} ({})").format(self.identifier, sql.SQL(", ").join(parts))
                )
            if staging:
                connection.execute(
                    sql.SQL(
                        "CREATE TABLE IF NOT EXISTS {} AS "
                        "SELECT ''::text AS {}, 0::bigint AS {}, * FROM {} WITH NO DATA"
                    ).format(
                        self.staging.identifier,
                        sql.Identifier(ID_COLUMN),
                        sql.Identifier(ORDER_COLUMN),
                        self.identifier,
                    )
                )
                connection.execute(
                    sql.SQL("CREATE INDEX IF NOT EXISTS {} ON {} ({})").format(
                        sql.Identifier(f"{self.staging.name[: _LONGEST_NAME - 3]}_id"),
                        self.staging.identifier,
                        sql.Identifier(ID_COLUMN),
                    )
                )

    def exists(self, connection: psycopg.Connection[Any]) -> bool:
        """Whether the server has the table."""
        row = connection.execute("SELECT to_regclass(%s)", [self.identifier.as_string(connection)]).fetchone()
        return row is not None and row[0] is not None

    def _on_conflict(self, columns: Sequence[str]) -> sql.Composable:
        from psycopg import sql

        if not self.key:
            return sql.SQL("")
        others = [name for name in columns if name not in self.key]
        if not others:
            return sql.SQL(" ON CONFLICT ({}) DO NOTHING").format(_names(self.key))
        changes = sql.SQL(", ").join(sql.SQL("{0} = EXCLUDED.{0}").format(sql.Identifier(name)) for name in others)
        return sql.SQL(" ON CONFLICT ({}) DO UPDATE SET {}").format(_names(self.key), changes)

    def __str__(self) -> str:
        return f"{self.schema}.{self.name}" if self.schema else self.name


class PostgresStatement:
    """A statement of the user's own, run once for each record, with ``?`` for its fields in their order.

    >>> statement = PostgresStatement("INSERT INTO counts (word, n) VALUES (?, ?)")
    >>> statement.row(("a", 1))
    ['a', 1]
    """

    key: tuple[str, ...] = ()

    def __init__(self, text: str) -> None:
        self._text, self._fields = psycopg_placeholders(text)

    def row(self, record: Any) -> list[Any]:
        """The values of a record, in the order of its fields."""
        named = _named(record)
        if named is not None:
            values = list(named.values())
        else:
            values = list(record) if isinstance(record, tuple | list | Row) else [record]
        if len(values) != self._fields:
            message = f"{record!r} has {len(values)} fields, but {self} takes {self._fields}"
            raise ValueError(message)
        return [cell(value) for value in values]

    def insert(
        self, connection: psycopg.Connection[Any], columns: Sequence[str], rows: Sequence[Sequence[Any]]
    ) -> None:
        """Run the statement for each row."""
        from psycopg import sql

        with connection.cursor() as cursor:
            cursor.executemany(sql.SQL(self._text), rows)

    replace = insert

    def __str__(self) -> str:
        return self._text.replace("%s", "?").replace("%%", "%")


class RowMaker:
    """Turns records into rows of one list of columns: by name where a record has names, else by position.

    Without ``columns``, the fields of the first record are the columns.

    >>> maker = RowMaker(("word", "count"))
    >>> maker(("a", 1)), maker({"count": 2, "word": "b"}), maker(Row(word="c", count=3))
    (['a', 1], ['b', 2], ['c', 3])
    """

    def __init__(self, columns: Sequence[str] | None) -> None:
        self.columns = None if columns is None else tuple(columns)

    def __call__(self, record: Any) -> list[Any]:
        """The values of a record, in the order of the columns."""
        fields = _named(record)
        if self.columns is None:
            if fields is None:
                message = f"{record!r} has no field names: give the sink columns=[...], in the order of the fields"
                raise ValueError(message)
            self.columns = tuple(fields)
        columns = self.columns
        if fields is None:
            values = list(record) if isinstance(record, tuple | list | Row) else [record]
            if len(values) != len(columns):
                message = f"{record!r} has {len(values)} fields for the columns {', '.join(columns)}"
                raise ValueError(message)
            return [cell(value) for value in values]
        if len(fields) != len(columns) or not all(name in fields for name in columns):
            self._refuse(fields, record)
        return [cell(fields[name]) for name in columns]

    def _refuse(self, fields: Mapping[str, Any], record: Any) -> None:
        assert self.columns is not None
        missing = [name for name in self.columns if name not in fields]
        surplus = [name for name in fields if name not in self.columns]
        what = f"has no field {missing[0]!r}" if missing else f"has the field {surplus[0]!r}, which has no column"
        message = (
            f"{record!r} {what}: the columns are {', '.join(self.columns)}. Give the sink columns=[...], and send "
            "records with just these fields"
        )
        raise ValueError(message)


def kind_of(record: Any) -> RowKind:
    """What a record says about the row with its key."""
    return record.get_row_kind() if isinstance(record, Row) else RowKind.INSERT


def cell(value: Any) -> Any:
    """A value that psycopg can send; what has named parts becomes JSON.

    >>> cell(Instant(0, 0)), cell([1, 2])
    (datetime.datetime(1970, 1, 1, 0, 0, tzinfo=datetime.timezone.utc), [1, 2])
    >>> cell({"a": Row(b=1)})
    Jsonb({'a': Row(b=1)})
    """
    if value is None or value.__class__ in _SIMPLE:
        return value
    if isinstance(value, Instant):
        whole = datetime.datetime.fromtimestamp(value.seconds, datetime.UTC)
        return whole + datetime.timedelta(microseconds=value.nanos // 1_000)
    if isinstance(value, Mapping | Row) or (dataclasses.is_dataclass(value) and not isinstance(value, type)):
        from millrace.connectors.files.records import json_text

        driver()
        from psycopg.types.json import Jsonb

        return Jsonb(value, dumps=json_text)
    return value


_SIMPLE: Final = frozenset({str, int, float, bool, bytes})


def _named(record: Any) -> Mapping[str, Any] | None:
    """The fields by name, if the record has names."""
    if isinstance(record, Mapping):
        return record
    if isinstance(record, Row):
        return record.as_dict() if record._fields is not None else None
    if isinstance(record, tuple):
        names = getattr(record, "_fields", None)
        return None if names is None else dict(zip(names, record, strict=True))
    if dataclasses.is_dataclass(record) and not isinstance(record, type):
        return {field.name: getattr(record, field.name) for field in dataclasses.fields(record)}
    return None


def _names(columns: Iterable[str]) -> sql.Composed:
    from psycopg import sql

    return sql.SQL(", ").join(map(sql.Identifier, columns))


_TOKENS: Final = re.compile(
    r"""'(?:[^']|'')*' | "(?:[^"]|"")*" | --[^\n]* | /\*.*?\*/ | \$(\w*)\$.*?\$\1\$ | \? | %""", re.X | re.S
)


def psycopg_placeholders(statement: str) -> tuple[str, int]:
    """JDBC's ``?`` as psycopg's ``%s``, and how many there are; those in quotes and comments are none.

    >>> psycopg_placeholders("INSERT INTO t VALUES (?, '?', 5 % ?)")
    ("INSERT INTO t VALUES (%s, '?', 5 %% %s)", 2)
    """
    count = 0

    def replace(match: re.Match[str]) -> str:
        nonlocal count
        if match[0] == "?":
            count += 1
            return "%s"
        return match[0].replace("%", "%%")

    replaced = _TOKENS.sub(replace, statement)
    if count == 0:
        message = f"{statement!r} takes no values: put a ? where each field of a record goes"
        raise ConfigurationError(message)
    return replaced, count
