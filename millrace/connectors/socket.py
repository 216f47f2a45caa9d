"""Streams that the driver takes in and that cannot be read twice, such as the lines that arrive at a socket."""

from __future__ import annotations

import codecs
import socket
import threading
from abc import abstractmethod
from collections import deque
from collections.abc import Iterator
from typing import Any, Final, Generic, TypeVar

from millrace.connectors.collection import BATCH_RECORDS
from millrace.errors import GraphError, JobError
from millrace.runtime.operator import Batch
from millrace.runtime.source import Source

__all__ = ["DriverFedSource", "Feed", "SocketTextSource"]

T = TypeVar("T")

BACKLOG: Final = 100_000
"""How many records may wait for the next epoch before the feeding thread has to wait itself."""

RETRY_SECONDS: Final = 0.5


class Feed(Generic[T]):
    """Records on their way from the feeding thread to the epochs that read them.

    >>> feed = Feed[int]()
    >>> feed.put(1), feed.put(2), feed.take(None)
    (True, True, [1, 2])
    """

    def __init__(self) -> None:
        self._waiting: deque[T] = deque()
        self._changed = threading.Condition()
        self.stopped = threading.Event()
        """Set when the job is over and nobody takes records any more."""
        self.ended = False
        """There will be no more records."""
        self.error: BaseException | None = None

    def put(self, record: T) -> bool:
        """Add a record, and wait if too many are there; False means that the job is over and feeding should end."""
        with self._changed:
            while len(self._waiting) >= BACKLOG and not self.stopped.is_set():
                self._changed.wait()
            if self.stopped.is_set():
                return False
            self._waiting.append(record)
            return True

    def take(self, limit: int | None) -> list[T]:
        """The records that are there, at most ``limit`` of them."""
        with self._changed:
            count = len(self._waiting) if limit is None else min(limit, len(self._waiting))
            records = [self._waiting.popleft() for _ in range(count)]
            self._changed.notify_all()
            return records

    @property
    def over(self) -> bool:
        """Whether all records have been taken and no more will come."""
        with self._changed:
            return self.ended and not self._waiting

    def end(self, error: BaseException | None) -> None:
        """The feeding thread is done."""
        with self._changed:
            self.error = error
            self.ended = True

    def stop(self) -> None:
        """The job is over."""
        self.stopped.set()
        with self._changed:
            self._changed.notify_all()


class DriverFedSource(Source[T], Generic[T]):
    """A source fed by a thread of the driver. What an epoch reads travels inside its end position.

    So a replay of the epoch reads the same records, even though their origin cannot be asked again. A subclass says in
    ``feed`` where records come from; the split ends when ``feed`` returns.

    >>> class Three(DriverFedSource[int]):
    ...     def feed(self, feed, skip):
    ...         for number in (1, 2, 3):
    ...             feed.put(number)
    >>> source = Three()
    >>> source.start().join()
    >>> end, finished = source.advance("0", [0, []], 2)
    >>> end, finished, list(source.read("0", [0, []], end))
    ([2, [1, 2]], False, [[1, 2]])
    """

    parallel = False

    def __init__(self) -> None:
        self._feed = Feed[T]()
        self._thread: threading.Thread | None = None

    @abstractmethod
    def feed(self, feed: Feed[T], skip: int) -> None:
        """Put records until there are no more, or ``put`` says False. ``skip`` of them were taken in earlier runs."""

    def pack(self, records: list[T]) -> Any:
        """Records as something that can be written as JSON."""
        return records

    def unpack(self, packed: Any) -> list[T] | Batch:
        """What ``pack`` was given."""
        records: list[T] = packed
        return records

    def splits(self, parallelism: int) -> dict[str, Any]:
        return {"0": [0, []]}

    def advance(self, split: str, position: Any, limit: int | None) -> tuple[Any, bool]:
        self.start(position[0])
        records = self._feed.take(limit)
        over, error = self._feed.over, self._feed.error
        if over and error is not None and not records:
            message = f"{self!r} cannot go on: {error}"
            raise JobError(message) from error
        # From here on the stream is known to end, which the planner needs to know to end the job.
        self.bounded = over and error is None
        end = [position[0] + len(records), self.pack(records)] if records else position
        return end, self.bounded

    def read(self, split: str, start: Any, end: Any) -> Iterator[list[T] | Batch]:
        if end[0] > start[0]:
            yield self.unpack(end[1])

    def open(self) -> None:
        # Not started yet: only the first position says how much of it earlier runs have taken.
        self._feed = Feed[T]()
        self._thread = None
        self.bounded = False

    def close(self) -> None:
        self._feed.stop()

    def start(self, skip: int = 0) -> threading.Thread:
        """Start the feeding thread unless it runs; the first ``advance`` does so as well."""
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._run, args=(self._feed, skip), name="millrace-feed", daemon=True
            )
            self._thread.start()
        return self._thread

    def _run(self, feed: Feed[T], skip: int) -> None:
        try:
            self.feed(feed, skip)
        except BaseException as error:  # It belongs to the thread that plans the next epoch.
            feed.end(error)
        else:
            feed.end(None)

    def __getstate__(self) -> dict[str, Any]:
        # Threads and locks stay on the driver: tasks only unpack what a position brings.
        return {name: value for name, value in self.__dict__.items() if name not in ("_feed", "_thread")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._feed = Feed[T]()
        self._thread = None

    def __repr__(self) -> str:
        return type(self).__name__


class SocketTextSource(DriverFedSource[str]):
    """The lines that a server sends over a TCP connection, ended by ``delimiter``.

    Ends when the server closes the connection; with ``max_retry`` it connects again that many times, with -1 for ever.
    What is lost on the way to the driver is lost: a socket cannot be read twice.

    >>> SocketTextSource("localhost", 9999)
    SocketTextSource('localhost', 9999)
    """

    def __init__(self, host: str, port: int, delimiter: str = "\n", max_retry: int = 0) -> None:
        super().__init__()
        if not 1 <= port <= 65_535:
            message = f"socket_text_stream: port {port} does not exist; use 1 to 65535"
            raise GraphError(message)
        if not delimiter:
            message = 'socket_text_stream: the delimiter is empty; use "\\n", for example'
            raise GraphError(message)
        if max_retry < -1:
            message = f"socket_text_stream: max_retry={max_retry}; use 0 or more, or -1 to connect again for ever"
            raise GraphError(message)
        self.host = host
        self.port = port
        self.delimiter = delimiter
        self.max_retry = max_retry

    def feed(self, feed: Feed[str], skip: int) -> None:
        lines = _Lines(self.delimiter, feed)
        attempts = 0
        while not feed.stopped.is_set():
            try:
                self._receive(lines, feed.stopped)
            except OSError:
                if self.max_retry != -1 and attempts >= self.max_retry:
                    raise
            attempts += 1
            if self.max_retry != -1 and attempts > self.max_retry:
                break
            feed.stopped.wait(RETRY_SECONDS)
        lines.end()

    def _receive(self, lines: _Lines, stopped: threading.Event) -> None:
        with socket.create_connection((self.host, self.port), timeout=10) as connection:
            # Waking up now and then is how the thread notices that the job is over.
            connection.settimeout(RETRY_SECONDS)
            while not stopped.is_set():
                try:
                    data = connection.recv(1 << 16)
                except TimeoutError:
                    continue
                if not data:
                    return
                lines.add(data)

    def read(self, split: str, start: Any, end: Any) -> Iterator[list[str] | Batch]:
        for lines in super().read(split, start, end):
            assert isinstance(lines, list)
            for first in range(0, len(lines), BATCH_RECORDS):
                yield lines[first : first + BATCH_RECORDS]

    def __repr__(self) -> str:
        return f"SocketTextSource({self.host!r}, {self.port})"


class _Lines:
    """Cuts what is received into lines."""

    def __init__(self, delimiter: str, feed: Feed[str]) -> None:
        self._delimiter = delimiter
        self._feed = feed
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""

    def add(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + self._decoder.decode(data)).split(self._delimiter)
        for line in lines:
            self._emit(line)

    def end(self) -> None:
        if self._rest:
            self._emit(self._rest)

    def _emit(self, line: str) -> None:
        self._feed.put(line.removesuffix("\r") if self._delimiter == "\n" else line)
