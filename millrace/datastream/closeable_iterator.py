"""The results of a running job, one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType
from typing import Any, Final, Self

from millrace.common.job_client import JobClient
from millrace.connectors.collect_sink import CollectedRecords

__all__ = ["CloseableIterator"]

_OVER: Final = object()


class CloseableIterator(Iterator[Any]):
    """Gives results while the job runs. Closing it, or leaving its ``with`` block, stops the job.

    If the job fails, the results it gave before come first, then its error is raised.

    >>> records = CollectedRecords()
    >>> records.add([1, 2])
    >>> records.end()
    >>> with CloseableIterator(records) as results:
    ...     list(results)
    [1, 2]
    """

    def __init__(self, records: CollectedRecords, client: JobClient | None = None) -> None:
        self._records = records
        self._client = client
        self._closed = False
        if client is not None:
            client.get_job_execution_result().add_done_callback(lambda _: records.end())

    def __next__(self) -> Any:
        if self._closed:
            raise StopIteration
        record = self._records.take(default=_OVER)
        if record is _OVER:
            self._closed = True
            if self._client is not None:
                self._client.get_job_execution_result().result()
            raise StopIteration
        return record

    def next(self) -> Any:
        """The next result; StopIteration after the last."""
        return next(self)

    def close(self) -> None:
        """Stop the job if it still runs, and forget results that were not taken."""
        if self._closed:
            return
        self._closed = True
        # In this order: a job that waits for its results to be taken could not be stopped.
        self._records.discard()
        if self._client is not None and not self._client.get_job_execution_result().done():
            self._client.cancel().result()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
