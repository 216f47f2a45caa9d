"""Asking a running job for a savepoint: from its own process, or through a file in its checkpoint folder."""

from __future__ import annotations

import json
import queue
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from millrace.common.completable_future import CompletableFuture
from millrace.errors import JobError
from millrace.runtime.coordinator import EpochPlan, SourceCoordinator
from millrace.runtime.ledger import Ledger
from millrace.runtime.savepoints import write_savepoint
from millrace.state.storage import Storage

__all__ = ["DRAINED", "SavepointDesk", "SavepointRequest", "ask_through_files", "drain_plan"]

DRAINED: Final = "drained"
"""The fingerprint of a drained epoch: no task stands where it stood, because event time is over for all of them."""

_FOLDER: Final = "control"
_LOOK_EVERY_SECONDS: Final = 0.5


@dataclass
class SavepointRequest:
    """Somebody wants a savepoint; ``stop`` ends the job after it, ``drain`` ends event time before."""

    directory: str
    stop: bool = False
    drain: bool = False
    path: CompletableFuture[str] = field(default_factory=CompletableFuture)


class SavepointDesk:
    """Takes requests from any thread and from the checkpoint folder; the epoch loop serves them between epochs."""

    def __init__(self, storage: Storage | None = None) -> None:
        self._storage = storage
        self._queue: queue.SimpleQueue[SavepointRequest] = queue.SimpleQueue()
        self._closed = False
        self._looked = 0.0
        self._seen: set[str] = set()

    def put(self, request: SavepointRequest) -> None:
        """Ask for a savepoint; the answer comes through the request's future."""
        if self._closed:
            request.path.set_exception(JobError("the job has ended: there is no state to save any more"))
        else:
            self._queue.put(request)

    def next(self) -> SavepointRequest | None:
        """The next request to serve."""
        self._look_into_folder()
        try:
            return self._queue.get_nowait()
        except queue.Empty:
            return None

    def close(self) -> None:
        """The job has ended: whoever still waits is told so."""
        self._closed = True
        self._looked = 0.0
        while (request := self.next()) is not None:
            request.path.set_exception(JobError("the job ended before the savepoint was written"))

    @staticmethod
    def serve(request: SavepointRequest, ledger: Ledger) -> bool:
        """Write the savepoint; an error is the asker's, not the job's."""
        assert ledger.last is not None
        try:
            path = write_savepoint(ledger.storage, ledger.last, request.directory)
        except Exception as error:
            request.path.set_exception(error)
            return False
        request.path.set_result(path)
        return True

    def _look_into_folder(self) -> None:
        now = time.monotonic()
        if self._storage is None or now - self._looked < _LOOK_EVERY_SECONDS:
            return
        self._looked = now
        for name in self._storage.names(_FOLDER):
            if name.endswith(".ask") and name not in self._seen:
                self._seen.add(name)
                self._queue.put(self._request(f"{_FOLDER}/{name}"))

    def _request(self, name: str) -> SavepointRequest:
        storage = self._storage
        assert storage is not None
        wanted = json.loads(storage.read(name))
        request = SavepointRequest(wanted["directory"], wanted["stop"], wanted["drain"])

        def answer(path: CompletableFuture[str]) -> None:
            error = path.exception()
            told = {"path": path.result()} if error is None else {"error": f"{type(error).__name__}: {error}"}
            storage.delete(name)
            storage.write(name.replace(".ask", ".answer"), json.dumps(told).encode())

        request.path.add_done_callback(answer)
        return request


def drain_plan(coordinator: SourceCoordinator) -> EpochPlan:
    """An epoch that reads nothing and ends event time, with LONG_MAX on every split (rule 34)."""
    return EpochPlan(ended=[uid for uid in coordinator.positions if uid not in coordinator.ended], last=True)


def ask_through_files(
    storage: Storage,
    directory: str,
    *,
    stop: bool,
    drain: bool,
    timeout_s: float,
    sleep: Callable[[float], None] = time.sleep,
) -> str:
    """Ask the job that runs on a checkpoint folder for a savepoint, and wait for the path."""
    stem = f"{_FOLDER}/{uuid.uuid4().hex}"
    wanted = {"directory": directory, "stop": stop, "drain": drain}
    storage.write(f"{stem}.ask", json.dumps(wanted).encode())
    end = time.monotonic() + timeout_s
    while time.monotonic() < end:
        if storage.exists(f"{stem}.answer"):
            told = json.loads(storage.read(f"{stem}.answer"))
            storage.delete(f"{stem}.answer")
            if "error" in told:
                raise JobError(f"the job could not write a savepoint: {told['error']}")
            return str(told["path"])
        sleep(_LOOK_EVERY_SECONDS / 5)
    storage.delete(f"{stem}.ask")
    message = f"no answer within {timeout_s:g} s: is a job running with execution.checkpointing.dir {storage.location}?"
    raise JobError(message)
