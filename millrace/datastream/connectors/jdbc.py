"""PyFlink's JDBC sink for ``jdbc:postgresql:`` addresses, without Java: a statement run for each record.

>>> options = JdbcConnectionOptions.JdbcConnectionOptionsBuilder().with_url("jdbc:postgresql://db:5432/shop")
>>> options = options.with_user_name("millrace").with_password("hush").build()
>>> JdbcSink.sink("INSERT INTO counts (word, n) VALUES (?, ?)", None, options)
PostgresSink('host=db port=5432 dbname=shop user=millrace', statement='INSERT INTO counts (word, n) VALUES (?, ?)',
mode='at-least-once')
"""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from millrace.common.typeinfo import RowTypeInfo, TypeInformation
from millrace.connectors.postgres import PostgresConnection, PostgresSink
from millrace.connectors.postgres_table import psycopg_placeholders
from millrace.errors import ConfigurationError, GraphError

__all__ = ["JdbcConnectionOptions", "JdbcExecutionOptions", "JdbcSink"]

_SCHEME: Final = "jdbc:postgresql://"
_SAME_MEANING: Final = {
    "user": "user",
    "password": "password",
    "sslmode": "sslmode",
    "sslcert": "sslcert",
    "sslkey": "sslkey",
    "sslrootcert": "sslrootcert",
    "ApplicationName": "application_name",
    "connectTimeout": "connect_timeout",
    "options": "options",
}
_WITHOUT_EFFECT: Final = frozenset({"reWriteBatchedInserts", "prepareThreshold", "stringtype", "loggerLevel"})
"""They tune the Java driver."""

_DEFAULT_BATCH_SIZE: Final = 5_000
_SECONDS_PER_RETRY: Final = 10.0


class JdbcConnectionOptions:
    """Where the database is. Neither the address as given nor the password is shown.

    >>> builder = JdbcConnectionOptions.JdbcConnectionOptionsBuilder().with_url("jdbc:postgresql://db/shop")
    >>> builder.with_user_name("millrace").with_password("hush").build()
    JdbcConnectionOptions('host=db dbname=shop user=millrace')
    """

    def __init__(
        self, url: str, driver_name: str | None = None, user_name: str | None = None, password: str | None = None
    ) -> None:
        self._url = url
        self._driver_name = driver_name
        self._user_name = user_name
        self._password = password
        self._settings = _settings(url)
        if user_name is not None:
            self._settings["user"] = user_name
        if password is not None:
            self._settings["password"] = password
        self._connection(1)

    def get_db_url(self) -> str:
        """The address."""
        return self._url

    def get_driver_name(self) -> str | None:
        """The Java class that was named; there is no need for it here."""
        return self._driver_name

    def get_user_name(self) -> str | None:
        """The user."""
        return self._user_name

    def get_password(self) -> str | None:
        """The password."""
        return self._password

    def _connection(self, retries: int) -> PostgresConnection:
        return PostgresConnection(retry_seconds=retries * _SECONDS_PER_RETRY, **self._settings)

    def __repr__(self) -> str:
        return f"JdbcConnectionOptions({self._connection(1).shown!r})"

    class JdbcConnectionOptionsBuilder:
        """Puts the options together."""

        def __init__(self) -> None:
            self._url: str | None = None
            self._driver_name: str | None = None
            self._user_name: str | None = None
            self._password: str | None = None

        def with_url(self, url: str) -> JdbcConnectionOptions.JdbcConnectionOptionsBuilder:
            """The address: ``jdbc:postgresql://host:port/database``."""
            self._url = url
            return self

        def with_driver_name(self, driver_name: str) -> JdbcConnectionOptions.JdbcConnectionOptionsBuilder:
            """The driver's Java class; kept, but not needed."""
            self._driver_name = driver_name
            return self

        def with_user_name(self, user_name: str) -> JdbcConnectionOptions.JdbcConnectionOptionsBuilder:
            """The user."""
            self._user_name = user_name
            return self

        def with_password(self, password: str) -> JdbcConnectionOptions.JdbcConnectionOptionsBuilder:
            """The password."""
            self._password = password
            return self

        def build(self) -> JdbcConnectionOptions:
            """The options."""
            if self._url is None:
                raise ConfigurationError("JDBC connection options without an address: use with_url(...)")
            return JdbcConnectionOptions(self._url, self._driver_name, self._user_name, self._password)


class JdbcExecutionOptions:
    """How many records make a batch, and how long a lost connection is tried again.

    >>> JdbcExecutionOptions.builder().with_batch_size(200).build().get_batch_size()
    200
    """

    def __init__(self, batch_interval_ms: int = 0, batch_size: int = _DEFAULT_BATCH_SIZE, max_retries: int = 3) -> None:
        for name, number, least in (
            ("batch_interval_ms", batch_interval_ms, 0),
            ("batch_size", batch_size, 1),
            ("max_retries", max_retries, 0),
        ):
            if number < least:
                raise ConfigurationError(f"JDBC execution options: {name}={number}; use {least} or more")
        self._batch_interval_ms = batch_interval_ms
        self._batch_size = batch_size
        self._max_retries = max_retries

    @staticmethod
    def defaults() -> JdbcExecutionOptions:
        """5,000 records a batch, three retries."""
        return JdbcExecutionOptions()

    @staticmethod
    def builder() -> JdbcExecutionOptions.Builder:
        """Begin with the defaults."""
        return JdbcExecutionOptions.Builder()

    def get_batch_interval_ms(self) -> int:
        """How long a record may wait for its batch; here it never waits beyond the end of its epoch."""
        return self._batch_interval_ms

    def get_batch_size(self) -> int:
        """How many records are sent together."""
        return self._batch_size

    def get_max_retries(self) -> int:
        """How often a failed batch is tried again, counted as ten seconds each."""
        return self._max_retries

    class Builder:
        """Puts the options together."""

        def __init__(self) -> None:
            self._options: dict[str, int] = {}

        def with_batch_interval_ms(self, batch_interval_ms: int) -> JdbcExecutionOptions.Builder:
            """How long a record may wait for its batch; here it never waits beyond the end of its epoch."""
            self._options["batch_interval_ms"] = batch_interval_ms
            return self

        def with_batch_size(self, batch_size: int) -> JdbcExecutionOptions.Builder:
            """How many records are sent together."""
            self._options["batch_size"] = batch_size
            return self

        def with_max_retries(self, max_retries: int) -> JdbcExecutionOptions.Builder:
            """How often a failed batch is tried again, counted as ten seconds each."""
            self._options["max_retries"] = max_retries
            return self

        def build(self) -> JdbcExecutionOptions:
            """The options."""
            return JdbcExecutionOptions(**self._options)


class JdbcSink:
    """Makes sinks that run a statement for each record, for ``add_sink`` and ``sink_to``.

    As in Flink, a record of a failed epoch may be written more than once: let the statement be one that may be
    repeated, such as ``INSERT ... ON CONFLICT (...) DO UPDATE``. For rows exactly once, use
    `millrace.connectors.postgres.PostgresSink`.

    >>> options = JdbcConnectionOptions("jdbc:postgresql://db/shop")
    >>> JdbcSink.sink("DELETE FROM basket WHERE id = ?", None, options).mode
    'at-least-once'
    """

    @staticmethod
    def sink(
        sql: str,
        type_info: TypeInformation | None,
        jdbc_connection_options: JdbcConnectionOptions,
        jdbc_execution_options: JdbcExecutionOptions | None = None,
    ) -> PostgresSink:
        """A sink that runs ``sql``, with the fields of a record in place of its ``?``, in their order."""
        fields = len(type_info.get_field_names()) if isinstance(type_info, RowTypeInfo) else None
        values = psycopg_placeholders(sql)[1]
        if fields is not None and fields != values:
            raise GraphError(f"{sql!r} takes {values} values, but records of {type_info} have {fields} fields")
        options = jdbc_execution_options or JdbcExecutionOptions.defaults()
        return PostgresSink(
            jdbc_connection_options._connection(options.get_max_retries()),
            statement=sql,
            mode="at-least-once",
            batch_size=options.get_batch_size(),
        )


def _settings(url: str) -> dict[str, Any]:
    """A JDBC address as settings of libpq."""
    if not url.startswith(_SCHEME):
        kind = ":".join(url.split(":", 2)[:2])
        message = (
            f"a JDBC sink for {kind!r} is not there: use jdbc:postgresql://host:port/database, or write to other "
            "databases with Spark (foreachBatch and df.write.jdbc) or a Sink of your own"
        )
        raise ConfigurationError(message)
    parts = urlsplit(url.removeprefix("jdbc:"))
    hosts = [host.rpartition(":") if ":" in host else (host, "", "") for host in parts.netloc.split(",")]
    settings: dict[str, Any] = {
        "host": ",".join(before or after for before, _, after in hosts),
        "dbname": parts.path.lstrip("/"),
    }
    if any(colon for _, colon, _ in hosts):
        settings["port"] = ",".join(after if colon else "" for _, colon, after in hosts)
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        if name == "currentSchema":
            settings["options"] = f"{settings.get('options', '')} -c search_path={value}".strip()
        elif name == "ssl":
            settings.setdefault("sslmode", "verify-full" if value in ("", "true") else "disable")
        elif name in _SAME_MEANING:
            settings[_SAME_MEANING[name]] = value
        elif name not in _WITHOUT_EFFECT:
            known = ", ".join(["currentSchema", "ssl", *_SAME_MEANING])
            raise ConfigurationError(f"the JDBC address has the unknown option {name!r}: use {known}")
    return {name: value for name, value in settings.items() if value}
