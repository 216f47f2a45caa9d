"""Files as a source: read once as they are, or a folder that is watched."""

from __future__ import annotations

import contextlib
import glob
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import PurePosixPath
from typing import Any, BinaryIO, Final

from millrace.common.time import Duration, Time, millis
from millrace.common.typeinfo import RowTypeInfo, TypeInformation
from millrace.connectors.files.csv_format import CsvFormat, CsvStyle
from millrace.connectors.files.location import AnyPath, Location
from millrace.connectors.files.parquet_format import ParquetFormat
from millrace.connectors.files.read_formats import FileFormat, JsonFormat
from millrace.connectors.text import OPENERS
from millrace.errors import ConfigurationError, GraphError, JobError
from millrace.runtime.source import Source

__all__ = ["CsvSource", "FileSource", "FileSourceBuilder", "JsonSource", "ParquetSource"]

SPLIT_BYTES: Final = 128 * 1024 * 1024
"""Larger files of lines are read from several places at once."""

SMALL_RANGE: Final = 1 << 16

Interval = Duration | Time | timedelta | int

_RANGE: Final = re.compile(r"(?P<file>.*) from byte (?P<offset>\d+)", re.DOTALL)


class FileSource(Source[Any]):
    """The records of files: single files, folders with all below them, local patterns, addresses on other file systems.

    In folders, names that begin with ``.`` or ``_`` are left out. Each file is a split; large files of lines are
    several, unless ``split_bytes`` is None. A file must not change once it is there: move it into the folder when it is
    complete. Files named .gz, .bz2 and .xz are decompressed; like those whose format cannot be entered in the middle,
    they are read in one go.

    >>> import pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "a.txt").write_text("to\\nbe\\n")
    >>> from millrace.connectors.files.read_formats import StreamFormat
    >>> source = FileSource.for_record_stream_format(StreamFormat.text_line_format(), folder).build()
    >>> ((split, start),) = source.splits(1).items()
    >>> source.advance(split, start, 1), list(source.read(split, 3, 6))
    ((3, False), [['be']])
    """

    def __init__(
        self,
        paths: AnyPath | Iterable[AnyPath],
        layout: FileFormat,
        *,
        monitor: Interval | None = None,
        split_bytes: int | None = SPLIT_BYTES,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
        if not given:
            raise GraphError("a file source needs at least one path")
        if not isinstance(layout, FileFormat):
            raise GraphError(f"{layout!r} is no FileFormat: use StreamFormat.text_line_format(), CsvSource, ...")
        if split_bytes is not None and split_bytes < 1:
            raise ConfigurationError(f"split_bytes={split_bytes}: use 1 or more, or None to keep files whole")
        self._places = [_Place.of(os.fspath(path)) for path in given]
        self._format = layout
        self._interval = None if monitor is None else millis(monitor) / 1000
        self._range = split_bytes or 0
        self._clock = clock
        self._known: dict[str, dict[str, int]] = {}
        self._listed: float | None = None
        self.bounded = monitor is None
        if self.bounded and not self._list():
            shown = ", ".join(repr(os.fspath(path)) for path in given)
            raise GraphError(f"no file to read at {shown}: check the path, or wait for files with monitor_continuously")

    @staticmethod
    def for_record_stream_format(stream_format: FileFormat, *paths: AnyPath) -> FileSourceBuilder:
        """A source for a format that is read record by record."""
        return FileSourceBuilder(stream_format, paths)

    @staticmethod
    def for_bulk_file_format(bulk_format: FileFormat, *paths: AnyPath) -> FileSourceBuilder:
        """A source for a format that is read many records at a time."""
        return FileSourceBuilder(bulk_format, paths)

    def splits(self, parallelism: int) -> dict[str, int]:
        return {split: start for splits in self._list().values() for split, start in splits.items()}

    def advance(self, split: str, position: int, limit: int | None) -> tuple[int, bool]:
        file, offset = _file_and_offset(split)
        with self._open(file) as stream:
            if self._in_one_go(file):
                return stream.seek(0, 2), True
            stop = self._format.extent(stream)
            if self._has_ranges(file):
                stop = _line_start(stream, offset + self._range, stop)
            end = stop if limit is None else min(stop, self._format.end_after(stream, position, limit))
        return max(position, end), end == stop

    def read(self, split: str, start: int, end: int) -> Iterator[list[Any]]:
        if start >= end:
            return
        # Many splits are read in turn: those that are soon over must not all keep a file open meanwhile.
        batches = self._read(split, start, end)
        yield from list(batches) if end - start <= SMALL_RANGE else batches

    def _read(self, split: str, start: int, end: int) -> Iterator[list[Any]]:
        file, _ = _file_and_offset(split)
        with self._open(file) as stream:
            if self._in_one_go(file):
                opener = OPENERS.get(PurePosixPath(file).suffix, contextlib.nullcontext)
                with opener(stream) as content:
                    yield from self._format.read(content, 0, None, file)
            else:
                yield from self._format.read(stream, start, end, file)

    def __getstate__(self) -> dict[str, Any]:
        # What is there is looked up on the driver alone.
        return {**self.__dict__, "_known": {}, "_listed": None, "_clock": time.monotonic}

    def _list(self) -> dict[str, dict[str, int]]:
        """The splits of each file; looked up once, or again after the interval. Files that went are kept."""
        now = self._clock()
        if self._listed is None or (self._interval is not None and now - self._listed >= self._interval):
            self._listed = now
            for place in self._places:
                for path, size in place.files():
                    name = place.location.prefix + path
                    # In a watched folder, an empty file is one that somebody has only begun to write.
                    if name not in self._known and (size or self.bounded):
                        self._known[name] = self._splits_of(name, size)
        return self._known

    def _splits_of(self, file: str, size: int) -> dict[str, int]:
        splits = {_split_name(file, 0): 0}
        if self._has_ranges(file) and size > self._range:
            with self._open(file) as stream:
                for offset in range(self._range, size, self._range):
                    splits[_split_name(file, offset)] = _line_start(stream, offset, size)
        return splits

    def _has_ranges(self, file: str) -> bool:
        return self._range > 0 and self._format.by_line and not self._in_one_go(file)

    def _in_one_go(self, file: str) -> bool:
        return not self._format.steps or PurePosixPath(file).suffix in OPENERS

    def _open(self, file: str) -> BinaryIO:
        locations = [place.location for place in self._places if file.startswith(place.location.prefix)]
        location = max(locations, key=lambda found: len(found.prefix))
        try:
            return location.open(file[len(location.prefix) :])
        except FileNotFoundError as error:
            raise JobError(f"{file} was there when the job listed its files and is gone now: put it back") from error


@dataclass(frozen=True)
class _Place:
    """A location or, with a pattern, those of its files that fit."""

    location: Location
    pattern: str | None

    @classmethod
    def of(cls, path: str) -> _Place:
        if "://" in path or not glob.has_magic(path) or os.path.exists(path):
            return cls(Location(path), None)
        return cls(Location(os.sep), os.path.abspath(path))

    def files(self) -> Iterator[tuple[str, int]]:
        if self.pattern is not None:
            for found in sorted(glob.glob(self.pattern, recursive=True)):
                if os.path.isfile(found) and not _hidden(os.path.basename(found)):
                    yield found, os.path.getsize(found)
            return
        root = self.location.root
        for path, size in self.location.files():
            if path == root or not _hidden(path.removeprefix(root).lstrip("/")):
                yield path, size


def _hidden(path: str) -> bool:
    return any(part.startswith((".", "_")) for part in path.split("/"))


def _split_name(file: str, offset: int) -> str:
    return file if offset == 0 and not _RANGE.fullmatch(file) else f"{file} from byte {offset}"


def _file_and_offset(split: str) -> tuple[str, int]:
    match = _RANGE.fullmatch(split)
    return (match["file"], int(match["offset"])) if match else (split, 0)


def _line_start(stream: BinaryIO, offset: int, size: int) -> int:
    """Where the first line begins at or after ``offset``; ``size`` if there is none."""
    if offset >= size:
        return size
    stream.seek(offset - 1)
    return offset - 1 + len(stream.readline())


class FileSourceBuilder:
    """Puts a file source together; unless told otherwise, it reads what is there and ends.

    >>> import tempfile
    >>> from millrace.connectors.files.read_formats import StreamFormat
    >>> builder = FileSource.for_record_stream_format(StreamFormat.text_line_format(), tempfile.mkdtemp())
    >>> builder.monitor_continuously(Duration.of_seconds(1)).build().bounded
    False
    """

    def __init__(self, layout: FileFormat, paths: Sequence[AnyPath]) -> None:
        self._layout = layout
        self._paths = paths
        self._monitor: Interval | None = None
        self._split_bytes: int | None = SPLIT_BYTES

    def monitor_continuously(self, discovery_interval: Interval) -> FileSourceBuilder:
        """Read what is there, and then each file that comes, looking for new ones this often."""
        if millis(discovery_interval) <= 0:
            raise ConfigurationError(f"monitor_continuously({discovery_interval!r}): use an interval above 0")
        self._monitor = discovery_interval
        return self

    def process_static_file_set(self) -> FileSourceBuilder:
        """Read what is there now, and end."""
        self._monitor = None
        return self

    def set_split_bytes(self, split_bytes: int | None) -> FileSourceBuilder:
        """Read files of lines that are larger than this from several places at once; None keeps files whole."""
        self._split_bytes = split_bytes
        return self

    def build(self) -> FileSource:
        """The source."""
        return FileSource(self._paths, self._layout, monitor=self._monitor, split_bytes=self._split_bytes)


class CsvSource(FileSource):
    """CSV files: dicts of text or, with a type, rows whose cells have been read as it says.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "words.csv"
    >>> _ = path.write_text("word,count\\na,1\\n")
    >>> list(CsvSource(path).read(str(path), 0, path.stat().st_size))
    [[{'word': 'a', 'count': '1'}]]
    """

    def __init__(
        self,
        paths: AnyPath | Iterable[AnyPath],
        header: bool = True,
        *,
        type_info: RowTypeInfo | None = None,
        columns: Sequence[str] | None = None,
        delimiter: str = ",",
        ignore_parse_errors: bool = False,
        monitor: Interval | None = None,
    ) -> None:
        layout = CsvFormat(
            header,
            type_info=type_info,
            columns=columns,
            style=CsvStyle(delimiter),
            ignore_parse_errors=ignore_parse_errors,
        )
        super().__init__(paths, layout, monitor=monitor)


class JsonSource(FileSource):
    """Files of one JSON text a line: what JSON makes of it or, with a type, rows.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "words.json"
    >>> _ = path.write_text('{"word": "a", "count": 1}\\n')
    >>> list(JsonSource(path).read(str(path), 0, path.stat().st_size))
    [[{'word': 'a', 'count': 1}]]
    """

    def __init__(
        self,
        paths: AnyPath | Iterable[AnyPath],
        *,
        type_info: TypeInformation | None = None,
        ignore_parse_errors: bool = False,
        monitor: Interval | None = None,
        split_bytes: int | None = SPLIT_BYTES,
    ) -> None:
        super().__init__(paths, JsonFormat(type_info, ignore_parse_errors), monitor=monitor, split_bytes=split_bytes)


class ParquetSource(FileSource):
    """Parquet files: dicts or, with a type, rows; only the wanted columns are read.

    >>> import pathlib, tempfile
    >>> import pyarrow as pa, pyarrow.parquet as pq
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "words.parquet"
    >>> pq.write_table(pa.table({"word": ["a", "b"], "count": [1, 2]}), path)
    >>> list(ParquetSource(path, columns=["word"]).read(str(path), 1, 2))
    [[{'word': 'b'}]]
    """

    def __init__(
        self,
        paths: AnyPath | Iterable[AnyPath],
        *,
        type_info: RowTypeInfo | None = None,
        columns: Sequence[str] | None = None,
        monitor: Interval | None = None,
    ) -> None:
        super().__init__(paths, ParquetFormat(type_info, columns), monitor=monitor)
