"""Writes parts in a task: hidden until the driver commits them."""

from __future__ import annotations

import contextlib
import re
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO, Final

from millrace.connectors.files.buckets import BasePathBuckets, BucketAssigner, BucketContext, checked_bucket
from millrace.connectors.files.location import Location
from millrace.connectors.files.part_formats import PartFormat, PartWriter
from millrace.connectors.files.rolling import OutputFileConfig, RollingPolicy
from millrace.runtime.sink import SinkWriter

__all__ = ["FileWriter", "PartNames", "SinkSettings", "leftover_run"]

IN_PROGRESS: Final = ".inprogress"
PENDING: Final = ".pending"
MAX_OPEN_PARTS: Final = 256
"""Buckets without number would exhaust the open files that a process may have; the oldest part is closed instead."""

_LEFTOVER: Final = re.compile(r"\..+-(?P<run>[0-9a-f]{12})-\d+-[0-9a-f]{12}-\d+.*\.(?:inprogress|pending)")


@dataclass(frozen=True)
class SinkSettings:
    """What a file sink is made of."""

    location: Location
    layout: PartFormat
    buckets: BucketAssigner
    rolling: RollingPolicy
    names: OutputFileConfig
    clock: Callable[[], int]


class PartNames:
    """Names that no other writer gives: not another task, not another attempt, not another run.

    >>> names = PartNames(OutputFileConfig("part", ".txt"), "aaaaaaaaaaaa", 3, "bbbbbbbbbbbb")
    >>> names.next(), names.next()
    ('part-aaaaaaaaaaaa-3-bbbbbbbbbbbb-0.txt', 'part-aaaaaaaaaaaa-3-bbbbbbbbbbbb-1.txt')
    """

    def __init__(self, config: OutputFileConfig, run: str, subtask: int, writer: str) -> None:
        self._beginning = f"{config.part_prefix}-{run}-{subtask}-{writer}"
        self._end = config.part_suffix
        self._count = 0

    def next(self) -> str:
        """The next name."""
        count, self._count = self._count, self._count + 1
        return f"{self._beginning}-{count}{self._end}"


def leftover_run(path: str) -> str | None:
    """The run that an uncommitted file belongs to; None if it is some other file.

    >>> leftover_run("/out/.part-aaaaaaaaaaaa-3-bbbbbbbbbbbb-0.txt.pending")
    'aaaaaaaaaaaa'
    """
    match = _LEFTOVER.fullmatch(path.rpartition("/")[2])
    return match["run"] if match else None


@dataclass
class _Part:
    final: str
    path: str
    stream: BinaryIO
    writer: PartWriter
    opened: int
    last_written: int


class FileWriter(SinkWriter[Any]):
    """One open part for each bucket; ``prepare_commit`` closes them all."""

    def __init__(self, settings: SinkSettings, run: str, subtask: int) -> None:
        self._settings = settings
        self._location = settings.location
        self._run = run
        self._names = PartNames(settings.names, run, subtask, uuid.uuid4().hex[:12])
        self._parts: dict[str, _Part] = {}
        self._prepared: list[dict[str, Any]] = []

    def write(self, value: Any, timestamp: int | None) -> None:
        self.write_batch([value], None if timestamp is None else [timestamp])

    def write_batch(self, values: list[Any], timestamps: list[int] | None) -> None:
        now = self._settings.clock()
        for bucket, records in self._by_bucket(values, timestamps, now):
            self._append(bucket, records, now)

    def prepare_commit(self) -> Sequence[Any]:
        """Close all parts; what the driver gets is plain data, for it is kept in the manifest."""
        for bucket in list(self._parts):
            self._finish(bucket)
        prepared, self._prepared = self._prepared, []
        return prepared

    def close(self) -> None:
        """Throw away what was not prepared."""
        for part in self._parts.values():
            # Closing writes out what is buffered, and may fail for the same reason as the write before.
            with contextlib.suppress(OSError):
                part.stream.close()
            self._location.delete(part.path)
        self._parts.clear()

    def _by_bucket(
        self, values: list[Any], timestamps: list[int] | None, now: int
    ) -> Iterable[tuple[str, Sequence[Any]]]:
        assigner = self._settings.buckets
        if isinstance(assigner, BasePathBuckets):
            return [("", values)] if values else []
        buckets: dict[str, list[Any]] = {}
        for index, value in enumerate(values):
            context = BucketContext(None if timestamps is None else timestamps[index], now)
            buckets.setdefault(assigner.get_bucket_id(value, context), []).append(value)
        return [(checked_bucket(bucket), records) for bucket, records in buckets.items()]

    def _append(self, bucket: str, records: Sequence[Any], now: int) -> None:
        policy = self._settings.rolling
        while records:
            part = self._part(bucket, now)
            taken = part.writer.add(records, policy.part_size)
            part.last_written = now
            if policy.part_size is not None and part.writer.size >= policy.part_size:
                self._finish(bucket)
            records = records[taken:]

    def _part(self, bucket: str, now: int) -> _Part:
        part = self._parts.get(bucket)
        if part is not None:
            if not self._settings.rolling.expired(now, part.opened, part.last_written):
                return part
            self._finish(bucket)
        if len(self._parts) >= MAX_OPEN_PARTS:
            self._finish(next(iter(self._parts)))
        folder = f"{bucket}/" if bucket else ""
        name = self._names.next()
        state = PENDING if self._location.is_object_store else IN_PROGRESS
        path = self._location.path_of(f"{folder}.{name}{state}")
        stream = self._location.create(path)
        part = _Part(folder + name, path, stream, self._settings.layout.start(stream), now, now)
        self._parts[bucket] = part
        return part

    def _finish(self, bucket: str) -> None:
        part = self._parts[bucket]
        part.writer.finish()
        size = part.stream.tell()
        self._location.seal(part.stream)
        pending = part.path
        if pending.endswith(IN_PROGRESS):
            pending = pending.removesuffix(IN_PROGRESS) + PENDING
            self._location.move(part.path, pending)
        del self._parts[bucket]
        self._prepared.append(
            {
                "run": self._run,
                "folder": self._location.shown,
                "pending": pending,
                "final": self._location.path_of(part.final),
                "bytes": size,
            }
        )
