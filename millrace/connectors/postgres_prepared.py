"""Prepared transactions of PostgreSQL: ending them, and what to say when they fail."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from millrace.connectors.postgres_connection import driver
from millrace.errors import ConfigurationError, JobError

if TYPE_CHECKING:
    import psycopg

__all__ = ["BUSY", "commit_prepared", "end_prepared", "explained", "no_prepared"]

BUSY: Final = "55000"
"""The code for: another session is at this very transaction, perhaps a lost one of our own."""


def end_prepared(connection: psycopg.Connection[Any], verb: str, name: str) -> bool:
    """Commit or roll back a prepared transaction; False if there is none of that name."""
    from psycopg import sql

    try:
        connection.execute(sql.SQL("{} PREPARED {}").format(sql.SQL(verb), name))
    except driver().errors.UndefinedObject:
        return False
    return True


def commit_prepared(connection: psycopg.Connection[Any], committable: dict[str, Any], sink: str) -> None:
    """Commit what a task has prepared, unless that was done before."""
    name, number = committable["id"], committable["xid"]
    if end_prepared(connection, "COMMIT", name):
        return
    # It was committed before, or it is lost: the server knows what became of the transaction.
    try:
        row = connection.execute("SELECT pg_xact_status(%s::xid8)", [number]).fetchone()
        status = "committed" if row is None or row[0] is None else str(row[0])  # None: ages ago, long decided
    except driver().errors.InvalidParameterValue:
        status = "unknown to this server"
    if status != "committed":
        message = (
            f"{sink}: the prepared transaction {name!r} of a finished epoch is gone, and its status is {status}. It "
            "was rolled back by somebody else (another sink with the same name, an administrator), or this is another "
            "database. Start from an earlier checkpoint to write its rows again"
        )
        raise JobError(message)


def explained(error: Exception, sink: str) -> Exception | None:
    """An error of the server with what to do about it; None if there is nothing to say."""
    errors = driver().errors
    if isinstance(error, errors.LockNotAvailable):
        message = (
            f"{sink} has waited in vain for a row that another transaction holds ({str(error).strip()}). If two "
            "tasks of the job write rows with the same unique key, they wait for each other until the epoch ends: "
            "key_by that key ahead of the sink, or use mode='staged'. Others that may hold it are in "
            "pg_prepared_xacts"
        )
        return JobError(message)
    if isinstance(error, errors.ObjectNotInPrerequisiteState | errors.OutOfMemory) and "prepared" in str(error):
        return ConfigurationError(f"{str(error).strip()}. {no_prepared()}")
    return None


def no_prepared(where: str = "") -> str:
    """What to do about a server without prepared transactions."""
    at = f" at {where}" if where else ""
    return (
        f"mode='prepared' needs prepared transactions{at}: set max_prepared_transactions in postgresql.conf to at "
        "least twice the number of tasks that write, and restart the server; or use mode='staged'"
    )
