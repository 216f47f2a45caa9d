"""A PostgreSQL server of the tests' own: on loopback, on a free port, in a folder that goes away with it."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

__all__ = ["PASSWORD", "PostgresServer", "postgres"]

PASSWORD = "open-sesame"
SETTINGS = {
    "max_prepared_transactions": "20",
    "listen_addresses": "127.0.0.1",
    # A killed server loses nothing that the operating system has: only a power cut would show the difference.
    "fsync": "off",
    "autovacuum": "off",
    "shared_buffers": "16MB",
}


class PostgresServer:
    """Starts, stops and kills PostgreSQL. ``settings`` are those of postgresql.conf."""

    def __init__(self, **settings: str) -> None:
        self.bin = _programs()
        self.folder = Path(tempfile.mkdtemp(prefix="millrace-postgres-"))
        self.folder.chmod(0o755)
        self.data = self.folder / "data"
        self.port = _free_port()
        self._settings = {**SETTINGS, "unix_socket_directories": str(self.folder), **settings}
        self._process: subprocess.Popen[bytes] | None = None
        # PostgreSQL refuses to run as root.
        self._account: dict[str, Any] = {"user": "postgres", "group": "postgres"} if os.getuid() == 0 else {}
        if self._account:
            shutil.chown(self.folder, **self._account)
        secret = self.folder / "password"
        secret.write_text(PASSWORD)
        command = [f"{self.bin}/initdb", "-D", str(self.data), "-U", "millrace", "-A", "scram-sha-256", "--no-sync"]
        made = subprocess.run(
            [*command, "-E", "UTF8", "--locale=C", f"--pwfile={secret}"],
            **self._account,
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
        )
        if made.returncode:
            raise RuntimeError(f"initdb failed: {made.stderr}")

    @property
    def address(self) -> str:
        return f"postgresql://millrace:{PASSWORD}@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        options = [text for name, value in self._settings.items() for text in ("-c", f"{name}={value}")]
        command = [f"{self.bin}/postgres", "-D", str(self.data), "-p", str(self.port), *options]
        with (self.folder / "log").open("ab") as log:
            process = subprocess.Popen(command, **self._account, cwd=self.folder, stdout=log, stderr=log)
        self._process = process
        deadline = time.monotonic() + 30
        while True:
            try:
                psycopg.connect(self.address, connect_timeout=2).close()
                return
            except psycopg.OperationalError as error:
                if process.poll() is not None or time.monotonic() > deadline:
                    log_text = (self.folder / "log").read_text(errors="replace")
                    raise RuntimeError(f"PostgreSQL does not start: {error}\n{log_text}") from error
            time.sleep(0.02)

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """SIGINT ends all sessions and shuts down; SIGQUIT leaves recovery to the next start."""
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(how)
            process.wait(30)

    def restart(self, how: signal.Signals = signal.SIGINT) -> None:
        self.stop(how)
        self.start()

    def remove(self) -> None:
        self.stop(signal.SIGQUIT)
        shutil.rmtree(self.folder, ignore_errors=True)

    def connect(self) -> psycopg.Connection[Any]:
        return psycopg.connect(self.address, autocommit=True)

    def run(self, statement: str, *values: Any) -> list[Any]:
        """The rows of a statement, sorted; single columns without their tuple."""
        with self.connect() as connection:
            cursor = connection.execute(statement.encode(), values or None)
            if cursor.description is None:
                return []
            return sorted(row[0] if len(row) == 1 else row for row in cursor.fetchall())

    def cut_connections(self) -> int:
        """End all sessions but this one, as a broken network would."""
        return sum(
            self.run(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
            )
        )

    def prepared(self) -> list[str]:
        return self.run("SELECT gid FROM pg_prepared_xacts")


@contextlib.contextmanager
def running(**settings: str) -> Iterator[PostgresServer]:
    server = PostgresServer(**settings)
    try:
        server.start()
        yield server
    finally:
        server.remove()


_shared: list[PostgresServer] = []
_users: list[object] = []


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """The server that all tests share, whichever modules import this fixture."""
    if not _users:
        server = PostgresServer()
        _shared.append(server)
        server.start()
    _users.append(object())
    yield _shared[-1]
    _users.pop()
    if not _users:
        _shared.pop().remove()


def _programs() -> Path:
    """The folder with initdb and postgres; Debian does not put it on the PATH."""
    found = shutil.which("initdb")
    places = [Path(found).resolve().parent] if found else []
    debian = Path("/usr/lib/postgresql")
    if debian.is_dir():
        places += sorted((place / "bin" for place in debian.iterdir()), key=lambda p: int(p.parent.name), reverse=True)
    for place in places:
        if (place / "initdb").exists() and (place / "postgres").exists():
            return place
    raise RuntimeError(
        "these tests need a PostgreSQL server: apt-get install --yes --no-install-recommends postgresql "
        "('make setup' does that if it runs as root)"
    )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
