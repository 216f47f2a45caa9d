"""One driver for one checkpoint folder: who owns it, whether that one is alive, and what becomes of the others."""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Final

from millrace.errors import JobError
from millrace.state.storage import Storage

__all__ = ["Fence", "FencedError", "Owner"]

_OWNER: Final = "owner/owner.json"
_BEATS_PER_TIMEOUT: Final = 6


class FencedError(JobError):
    """Another run owns the checkpoint folder; this one must not commit any more."""


@dataclass(frozen=True)
class Owner:
    """The run that a checkpoint folder belongs to. ``process`` tells a process from a later one with the same pid."""

    run: str
    job: str
    host: str
    pid: int
    process: str
    since: str

    @property
    def beat(self) -> str:
        """The file that this run, and nobody else, writes as long as it lives."""
        return f"owner/{self.run}.beat"

    def __str__(self) -> str:
        return f"job {self.job!r} (run {self.run}, process {self.pid} on {self.host}, since {self.since})"


class Fence:
    """The right to commit to a checkpoint folder.

    A run takes the folder at its start and is refused while the owner is alive: its process exists, if it is on the
    same machine, and its last sign of life is not older than ``timeout_s``. A run that lost the folder finds out
    before its next commit.

    >>> import tempfile
    >>> storage = Storage(tempfile.mkdtemp())
    >>> with Fence(storage, "first", "sums"):
    ...     Fence(storage, "second", "sums").take()  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    millrace.errors.JobError: ... is in use by job 'sums' (run first, ...
    """

    def __init__(self, storage: Storage, run: str, job: str, timeout_s: float = 60.0) -> None:
        self._storage = storage
        self._timeout = timeout_s
        pid = os.getpid()
        now = datetime.now(UTC).isoformat(timespec="seconds")
        self.owner = Owner(run, job, socket.gethostname(), pid, _process_start(pid), now)
        self._over = threading.Event()
        self._heart: threading.Thread | None = None

    def __enter__(self) -> Fence:
        self.take()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def take(self) -> None:
        """Become the owner, or raise a JobError that says who is."""
        other = self._read()
        if other is not None and other.run != self.owner.run:
            if self._alive(other):
                message = (
                    f"the checkpoint folder {self._storage.location} is in use by {other}. Stop that job first, or "
                    f"give this one another execution.checkpointing.dir. If that job is dead, it is taken over after "
                    f"{self._timeout:g} s without a sign of life; to take over at once, delete "
                    f"{self._storage.location}/{_OWNER}"
                )
                raise JobError(message)
            self._storage.delete(other.beat)
        self._beat()
        self._storage.write(_OWNER, json.dumps(asdict(self.owner), indent=1).encode())
        self._heart = threading.Thread(target=self._keep_beating, name="millrace-heartbeat", daemon=True)
        self._heart.start()

    def check(self) -> None:
        """FencedError if the folder belongs to somebody else by now."""
        other = self._read()
        if other is None or other.run != self.owner.run:
            taken = "has no owner any more" if other is None else f"was taken over by {other}"
            message = (
                f"the checkpoint folder {self._storage.location} {taken}: this run ({self.owner}) ends without another "
                f"commit"
            )
            raise FencedError(message)

    def release(self) -> None:
        """Leave the folder to whoever comes next."""
        self._over.set()
        if self._heart is not None:
            self._heart.join()
        try:
            other = self._read()
            if other is not None and other.run == self.owner.run:
                self._storage.delete(_OWNER)
            self._storage.delete(self.owner.beat)
        except OSError:
            return  # whoever comes next finds a dead process or an old sign of life

    def _read(self) -> Owner | None:
        try:
            return Owner(**json.loads(self._storage.read(_OWNER)))
        except FileNotFoundError:
            return None
        except (ValueError, TypeError):
            return None  # torn by a crash of the machine: nobody can be its owner

    def _alive(self, other: Owner) -> bool:
        if other.host == self.owner.host and _process_start(other.pid) != other.process:
            return False
        try:
            last = float(self._storage.read(other.beat))
        except (OSError, ValueError):
            return False
        return time.time() - last < self._timeout

    def _keep_beating(self) -> None:
        while not self._over.wait(self._timeout / _BEATS_PER_TIMEOUT):
            try:
                self._beat()
            except OSError:
                continue  # the next commit fails for the same reason, and says so

    def _beat(self) -> None:
        self._storage.write(self.owner.beat, f"{time.time():.3f}".encode())


def _process_start(pid: int) -> str:
    """Something that differs between two processes that had the same pid; empty if there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            # The name in parentheses may hold blanks; the state and the start time are the 1st and 20th field after it.
            fields = file.read().rpartition(")")[2].split()
            return "" if fields[0] in "ZX" else fields[19]
    except FileNotFoundError:
        if os.path.isdir("/proc/self"):
            return ""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return ""
    except PermissionError:
        return "running"
    return "running"
