"""Sinks for stores with transactions: prepared in the tasks, committed on the driver once the manifest is written."""

from __future__ import annotations

import contextlib
import hashlib
import re
import uuid
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, Final, Generic, TypeVar

from millrace.errors import ConfigurationError, GraphError
from millrace.runtime.context import RuntimeContext
from millrace.runtime.sink import Sink, SinkWriter

__all__ = ["TransactionId", "TwoPhaseCommitSink"]

T = TypeVar("T")
X = TypeVar("X")

_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,60}")
_ID: Final = re.compile(r"millrace/([^/]+)/([0-9a-f]{12})/([0-9a-f]{8}-\d+)/[0-9a-f]{12}")

_open_sinks: dict[tuple[type, str], TwoPhaseCommitSink[Any, Any]] = {}
"""Sinks of the jobs that run in this process, to notice two with one name."""


class TransactionId(str):
    """The name of one transaction: it says which sink, which run and which task it belongs to, and is never used again.

    At most 128 characters, of them only letters, digits and ``/ - _ .``.

    >>> first = TransactionId.new("orders", "0123456789ab", "deadbeef-3")
    >>> first.startswith("millrace/orders/0123456789ab/deadbeef-3/"), len(first)
    (True, 52)
    >>> first.run, first.task
    ('0123456789ab', 'deadbeef-3')
    >>> TransactionId("somebody else's").run is None
    True
    """

    @classmethod
    def new(cls, name: str, run: str, task: str) -> TransactionId:
        """A name that nobody has given before."""
        return cls(f"{cls.prefix(name)}{run}/{task}/{uuid.uuid4().hex[:12]}")

    @staticmethod
    def prefix(name: str) -> str:
        """What the names of all transactions of a sink begin with."""
        return f"millrace/{name}/"

    def renewed(self) -> TransactionId:
        """Another name for the same task."""
        return TransactionId(f"{self.rpartition('/')[0]}/{uuid.uuid4().hex[:12]}")

    @property
    def run(self) -> str | None:
        """The run it was begun in; None if the name is not one of ours."""
        match = _ID.fullmatch(self)
        return match[2] if match else None

    @property
    def task(self) -> str | None:
        """The task it was begun by; None if the name is not one of ours."""
        match = _ID.fullmatch(self)
        return match[3] if match else None


class TwoPhaseCommitSink(Sink[T], Generic[T, X]):
    """The base of sinks that write to a store in transactions, exactly once.

    A task begins a transaction with its first record of an epoch, writes to it, and prepares it when the epoch ends:
    from then on the store must be able to commit it whatever happens to the task. What ``prepare`` returns goes into
    the epoch's manifest, and the driver commits it afterwards; after a crash, it does so once more.

    Subclasses give ``begin``, ``write``, ``prepare`` and ``commit_transaction``; ``rollback`` for a transaction that
    was not prepared; and, if the store can list prepared transactions, ``pending`` and ``abort_transaction``: what was
    prepared but is in no manifest is then aborted. ``name`` must be the same when the program is started again, and
    different for any two sinks that write to the same store at the same time.

    >>> prepared, shelf = {}, []
    >>> class Shelf(TwoPhaseCommitSink[str, list[str]]):
    ...     def begin(self, transaction_id):
    ...         return [transaction_id]
    ...     def write(self, transaction, value):
    ...         transaction.append(value)
    ...     def prepare(self, transaction):
    ...         prepared[transaction[0]] = transaction[1:]
    ...         return transaction[0]
    ...     def commit_transaction(self, committable):
    ...         shelf.extend(prepared.pop(committable, []))
    >>> writer = Shelf("shelf").create_writer(None)
    >>> writer.write_batch(["a", "b"], None)
    >>> promised = writer.prepare_commit()
    >>> shelf
    []
    >>> Shelf("shelf").commit(promised)
    >>> Shelf("shelf").commit(promised)
    >>> shelf
    ['a', 'b']
    """

    holds_locks: bool = False
    """Whether a prepared transaction keeps others from writing: then each task looks for those of its own failed
    attempts before every transaction, not only when it starts."""

    def __init__(self, name: str) -> None:
        if not isinstance(name, str) or _NAME.fullmatch(name) is None:
            message = f"a sink cannot be called {name!r}: use up to 60 letters, digits, '_', '.' and '-'"
            raise ConfigurationError(message)
        self.name = name
        self._run_id = uuid.uuid4().hex[:12]
        self._users = 0

    @abstractmethod
    def begin(self, transaction_id: TransactionId) -> X:
        """In a task: start a transaction under this name."""

    @abstractmethod
    def write(self, transaction: X, value: T) -> None:
        """In a task: write one record."""

    def write_all(self, transaction: X, values: Sequence[T]) -> None:
        """In a task: write many records; override it where that is quicker."""
        for value in values:
            self.write(transaction, value)

    @abstractmethod
    def prepare(self, transaction: X) -> Any:
        """In a task: make the transaction durable without showing it. Returns what the driver needs to commit it.

        That has to be plain data, for it is kept in the manifest; None if there is nothing to commit.
        """

    @abstractmethod
    def commit_transaction(self, committable: Any) -> None:
        """On the driver: show what was prepared. If that has been done before, do nothing."""

    def rollback(self, transaction: X) -> None:
        """In a task: throw away a transaction that was not prepared."""
        return

    def pending(self, prefix: str) -> Iterable[str]:
        """In a task: the names, with this prefix, of all transactions that are prepared and not yet committed."""
        return ()

    def abort_transaction(self, transaction_id: str) -> None:
        """In a task: throw away a transaction that is prepared, or that ``pending`` has listed. It may be gone."""
        return

    def disconnect(self) -> None:
        """In a task and on the driver: let go of connections. Another call may follow all the same."""
        return

    def create_writer(self, context: RuntimeContext | None) -> SinkWriter[T]:
        return _TransactionWriter(self, _task_of(context))

    def open(self) -> None:
        """Refuse to run beside another sink of this program with the same name."""
        key = (type(self), self.name)
        if _open_sinks.setdefault(key, self) is not self:
            message = (
                f"two sinks are called {self.name!r}, and each would take the other's transactions for leftovers of a "
                "failed run: give each a name of its own"
            )
            raise GraphError(message)
        self._users += 1

    def commit(self, committables: Sequence[Any]) -> None:
        for committable in committables:
            self.commit_transaction(committable)

    def close(self) -> None:
        self._users = max(0, self._users - 1)
        if self._users == 0:
            key = (type(self), self.name)
            if _open_sinks.get(key) is self:
                del _open_sinks[key]
            self.disconnect()

    def abort_leftovers(self, task: str = "") -> int:
        """Abort what other runs of this sink, and earlier attempts of this task, have prepared; says how much.

        This is for tasks. A task runs only after the driver has committed all that the last manifest names, so what an
        earlier run has left by then is in no manifest.
        """
        aborted = 0
        for name in map(TransactionId, self.pending(TransactionId.prefix(self.name))):
            of_this_task = self.holds_locks and name.run == self._run_id and name.task == task
            if of_this_task or (name.run is not None and name.run != self._run_id):
                self.abort_transaction(name)
                aborted += 1
        return aborted

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_users": 0}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"


class _TransactionWriter(SinkWriter[T], Generic[T, X]):
    """A transaction for each epoch that has records."""

    def __init__(self, sink: TwoPhaseCommitSink[T, X], task: str) -> None:
        self._sink = sink
        self._task = task
        self._transaction: X | None = None
        self._id: TransactionId | None = None
        self._fresh = True
        sink.abort_leftovers(task)

    def write(self, value: T, timestamp: int | None) -> None:
        self.write_batch([value], None)

    def write_batch(self, values: list[T], timestamps: list[int] | None) -> None:
        if self._transaction is None:
            if self._sink.holds_locks and not self._fresh:
                # Another worker may have run this task in between, and died after it had prepared.
                self._sink.abort_leftovers(self._task)
            self._fresh = False
            self._id = TransactionId.new(self._sink.name, self._sink._run_id, self._task)
            self._transaction = self._sink.begin(self._id)
        try:
            self._sink.write_all(self._transaction, values)
        except BaseException:
            self._throw_away()
            raise

    def prepare_commit(self) -> Sequence[Any]:
        if self._transaction is None:
            self._id = None
            return ()
        try:
            committable = self._sink.prepare(self._transaction)
        except BaseException:
            self._throw_away()
            raise
        self._transaction = None
        return () if committable is None else (committable,)

    def checkpoint_aborted(self, checkpoint_id: int) -> None:
        """The epoch that this task ran last is to be run again."""
        self._throw_away()
        if self._id is not None:
            self._sink.abort_transaction(self._id)

    def close(self) -> None:
        self._throw_away()
        self._sink.disconnect()

    def _throw_away(self) -> None:
        transaction, self._transaction = self._transaction, None
        if transaction is not None:
            # The connection may be what has failed; what the store still holds is then found as a leftover.
            with contextlib.suppress(Exception):
                self._sink.rollback(transaction)


def _task_of(context: RuntimeContext | None) -> str:
    """Which task of which operator: one sink object may be behind several streams."""
    uid = "" if context is None else context._context.uid
    index = 0 if context is None else context.get_index_of_this_subtask()
    return f"{hashlib.sha256(uid.encode()).hexdigest()[:8]}-{index}"
