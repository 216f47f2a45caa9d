"""How to reach a PostgreSQL server: settings that keep their secrets, and a session that outlives a lost connection."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeVar

from millrace.errors import ConfigurationError, JobError, MissingDependencyError

if TYPE_CHECKING:
    import psycopg

__all__ = ["PostgresConnection", "PostgresSession", "driver"]

R = TypeVar("R")

_SECRETS: Final = ("password", "sslpassword")
_SHOWN: Final = ("host", "hostaddr", "port", "dbname", "user", "service")
_FIRST_PAUSE_S: Final = 0.05
_LONGEST_PAUSE_S: Final = 2.0

_PASSING: Final = frozenset(
    {
        "40001",  # serialization failure
        "40P01",  # deadlock detected
        "53300",  # too many connections
        "57P01",  # the server is shutting down
        "57P02",  # the server has crashed and restarts
        "57P03",  # the server is starting
    }
)
_AWAY: Final = ("08", "57P")
_HOPELESS: Final = ("authentication failed", "no password supplied", "does not exist", "pg_hba.conf", "certificate")
"""In the text of a refused connection; libpq gives no code with it."""


def driver() -> Any:
    """The psycopg module."""
    try:
        import psycopg
    except ImportError as error:
        message = "PostgreSQL needs the package psycopg: pip install 'millrace[postgres]'"
        raise MissingDependencyError(message) from error
    return psycopg


class PostgresConnection:
    """Where a PostgreSQL server is, and how to log in.

    ``conninfo`` is a ``postgresql://`` address or libpq's ``key=value`` text; anything that libpq knows can be given by
    name as well. The password may be a function, which is called wherever a connection is opened: the program that
    travels to the workers then holds no secret. Without one, libpq looks where it always does (``PGPASSWORD``,
    ``passfile``, ``service``), on the machine that connects.

    Whatever is shown of a connection shows no secret:

    >>> PostgresConnection("postgresql://millrace:hush@db:5433/shop", sslmode="require")
    PostgresConnection('host=db port=5433 dbname=shop user=millrace')

    A lost connection is opened again, and what was under way is repeated, for ``retry_seconds`` at most.
    """

    def __init__(
        self,
        conninfo: str = "",
        *,
        password: str | Callable[[], str] | None = None,
        retry_seconds: float = 30.0,
        connect_timeout: int = 10,
        **settings: Any,
    ) -> None:
        psycopg = driver()
        if retry_seconds < 0:
            raise ConfigurationError(f"retry_seconds={retry_seconds}; use 0 or more")
        try:
            merged = psycopg.conninfo.conninfo_to_dict(conninfo, **settings)
        except psycopg.ProgrammingError:
            # The text of the error repeats the address, and the address may hold the password.
            names = f"the settings {', '.join(settings)}" if settings else "the address"
            message = (
                f"PostgreSQL does not understand {names}: use postgresql://user@host:port/database, or "
                "host=... port=... dbname=... user=..."
            )
            raise ConfigurationError(message) from None
        self._secrets: dict[str, Any] = {name: merged.pop(name) for name in _SECRETS if name in merged}
        if password is not None:
            self._secrets["password"] = password
        self._settings: Mapping[str, Any] = {"connect_timeout": connect_timeout, **merged}
        self.retry_seconds = retry_seconds

    @property
    def shown(self) -> str:
        """What may be printed."""
        return " ".join(f"{name}={self._settings[name]}" for name in _SHOWN if name in self._settings)

    def connect(self) -> psycopg.Connection[tuple[Any, ...]]:
        """A new connection in autocommit mode."""
        secrets = {name: value() if callable(value) else value for name, value in self._secrets.items()}
        made: psycopg.Connection[tuple[Any, ...]] = driver().connect(
            **{"application_name": "millrace", **self._settings, **secrets}, autocommit=True
        )
        return made

    def __repr__(self) -> str:
        return f"PostgresConnection({self.shown!r})"


class PostgresSession:
    """A connection that is opened when it is needed, kept, and opened again when it is lost.

    >>> session = PostgresSession(PostgresConnection("host=127.0.0.1 port=1 dbname=none", retry_seconds=0))
    >>> session.run(lambda connection: connection.execute("SELECT 1"))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    millrace.errors.JobError: PostgreSQL (host=127.0.0.1 port=1 dbname=none) cannot be reached: ...
    """

    def __init__(self, settings: PostgresConnection) -> None:
        self._settings = settings
        self._connection: psycopg.Connection[tuple[Any, ...]] | None = None

    def run(self, action: Callable[[psycopg.Connection[tuple[Any, ...]]], R], passing: Iterable[str] = ()) -> R:
        """Call ``action`` with a connection; again, with a new one, if that is lost.

        ``passing`` are the codes of further errors after which to try again.

        Whether the lost connection had done its work is unknown: ``action`` must be fit for being repeated. After any
        error the connection is closed, and the server rolls back what was open.
        """
        psycopg = driver()
        pause, tries = _FIRST_PAUSE_S, 0
        give_up = time.monotonic() + self._settings.retry_seconds
        while True:
            tries += 1
            try:
                if self._connection is None or self._connection.closed:
                    self._connection = self._settings.connect()
                return action(self._connection)
            except (psycopg.OperationalError, psycopg.InterfaceError) as error:
                self.close()
                hope = _is_lost(error) or error.sqlstate in passing
                if not hope or time.monotonic() + pause > give_up:
                    if error.sqlstate is not None and not error.sqlstate.startswith(_AWAY):
                        raise
                    raise JobError(self._unreachable(error, tries)) from error
            except BaseException:
                self.close()
                raise
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_S)

    def close(self) -> None:
        """Let go of the connection; the next ``run`` opens another."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _unreachable(self, error: Exception, tries: int) -> str:
        again = f" after {tries} tries" if tries > 1 else ""
        return f"PostgreSQL ({self._settings.shown}) cannot be reached{again}: {str(error).strip()}"


def _is_lost(error: psycopg.Error) -> bool:
    """Whether trying again may help: the connection broke, the server is away, or others were in the way."""
    if error.sqlstate is None:
        return not any(text in str(error) for text in _HOPELESS)
    return error.sqlstate in _PASSING or error.sqlstate.startswith("08")
