"""A sink of files that appear whole, and exactly once."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable, Sequence
from typing import Any, Final

from millrace.common.serialization import Encoder
from millrace.common.typeinfo import RowTypeInfo, TypeInformation
from millrace.connectors.files.buckets import BucketAssigner
from millrace.connectors.files.csv_format import CsvLines, CsvStyle
from millrace.connectors.files.location import AnyPath, Location
from millrace.connectors.files.parquet_format import ParquetParts
from millrace.connectors.files.part_formats import EncodedLines, JsonLines, PartFormat
from millrace.connectors.files.rolling import OutputFileConfig, RollingPolicy
from millrace.connectors.files.writer import IN_PROGRESS, FileWriter, SinkSettings, leftover_run
from millrace.errors import GraphError, JobError
from millrace.runtime.context import RuntimeContext
from millrace.runtime.sink import Sink, SinkWriter

__all__ = ["CsvSink", "FileSink", "FileSinkBuilder", "JsonSink", "ParquetSink", "TextSink"]

ABANDONED_MS: Final = 24 * 60 * 60 * 1000
"""A part in progress that nobody has written to for so long belongs to a task that is dead."""

AnyBuckets = BucketAssigner | Callable[[Any], str]


class FileSink(Sink[Any]):
    """Writes parts into a folder; a part is hidden until the epoch that wrote it is committed, and then never changes.

    While it is written, a part has a name with ``.`` in front. The end of the epoch closes it, the commit renames it,
    once. Names hold the run, the task and a random number, so that no attempt and no later run ever touches a committed
    file. What attempts that failed leave behind stays hidden. The driver removes it where it can be sure that nobody
    needs it: parts of this run that were never closed, those of the run that this one resumes, and any that have not
    grown for a day. ``remove_leftovers`` removes all of it.

    >>> import tempfile
    >>> sink = FileSink.for_row_format(tempfile.mkdtemp(), Encoder.simple_string_encoder()).build()
    >>> sink.rolling_policy.part_size
    134217728
    """

    def __init__(
        self,
        path: AnyPath,
        layout: PartFormat,
        *,
        bucket_assigner: AnyBuckets | None = None,
        rolling_policy: RollingPolicy | None = None,
        output_file_config: OutputFileConfig | None = None,
        clock: Callable[[], int] | None = None,
    ) -> None:
        if not isinstance(layout, PartFormat):
            raise GraphError(f"{layout!r} is no PartFormat: use TextSink, CsvSink, JsonSink or ParquetSink")
        buckets = bucket_assigner or BucketAssigner.base_path_bucket_assigner()
        self._settings = SinkSettings(
            Location(path),
            layout,
            buckets if isinstance(buckets, BucketAssigner) else BucketAssigner.of(buckets),
            rolling_policy or RollingPolicy.default_rolling_policy(),
            output_file_config or OutputFileConfig(),
            clock or _now,
        )
        self._run = uuid.uuid4().hex[:12]
        self._users = 0
        self._resumed: set[str] = set()

    @staticmethod
    def for_row_format(base_path: AnyPath, encoder: Encoder) -> FileSinkBuilder:
        """A sink that writes what the encoder makes of each record."""
        return FileSinkBuilder(base_path, EncodedLines(encoder))

    @staticmethod
    def for_bulk_format(base_path: AnyPath, writer_factory: PartFormat) -> FileSinkBuilder:
        """A sink for a format that writes many records at once, such as Parquet."""
        return FileSinkBuilder(base_path, writer_factory)

    @property
    def rolling_policy(self) -> RollingPolicy:
        """When parts are closed."""
        return self._settings.rolling

    def create_writer(self, context: RuntimeContext) -> SinkWriter[Any]:
        return FileWriter(self._settings, self._run, context.get_index_of_this_subtask())

    def open(self) -> None:
        """Make the folder, and clear away what tasks of earlier runs left unfinished long ago."""
        self._users += 1
        location = self._settings.location
        location.make_folder(location.root)
        if not location.is_object_store:
            for path in location.files_older_than((self._settings.clock() - ABANDONED_MS) * 1_000_000):
                if path.endswith(IN_PROGRESS) and leftover_run(path) is not None:
                    location.delete(path)

    def commit(self, committables: Sequence[Any]) -> None:
        """Give the parts their names. A part that has its name already is left as it is."""
        folders: dict[str, list[dict[str, Any]]] = {}
        for part in committables:
            folders.setdefault(part["folder"], []).append(part)
        problems = []
        for folder, parts in folders.items():
            problems += _commit_parts(self._location_of(folder), parts)
        if problems:
            raise JobError("; ".join(problems))
        runs = {part["run"] for part in committables}
        if self._run not in runs:
            self._resumed |= runs
        elif self._resumed:
            # An epoch of this run is committed, so all that the resumed run had left to commit has been before: the
            # rest of what it wrote is in no manifest, and never will be.
            resumed, self._resumed = self._resumed, set()
            self._remove(lambda path, run: run in resumed)

    def close(self) -> None:
        """Clear away the parts that no task of this run has closed."""
        self._users -= 1
        if self._users == 0 and not self._settings.location.is_object_store:
            self._remove(lambda path, run: run == self._run and path.endswith(IN_PROGRESS))

    def remove_leftovers(self) -> int:
        """Remove every uncommitted part below the sink's path; says how many there were.

        Only for a folder that no job writes to, and to which no job that was stopped by a failure is to come back: the
        last epoch of such a job may still have to be committed.
        """
        return self._remove(lambda path, run: True)

    def _remove(self, condemned: Callable[[str, str], bool]) -> int:
        location = self._settings.location
        removed = 0
        for path, _ in location.files():
            run = leftover_run(path)
            if run is not None and condemned(path, run):
                location.delete(path)
                removed += 1
        return removed

    def _location_of(self, folder: str) -> Location:
        own = self._settings.location
        return own if own.shown == folder else Location(folder)


def _commit_parts(location: Location, parts: list[dict[str, Any]]) -> list[str]:
    """Rename; what could not be done comes back as sentences."""
    problems = []
    pending_sizes = location.sizes(part["pending"] for part in parts)
    final_sizes = location.sizes(part["final"] for part in parts)
    folders = set()
    for part, pending_size, final_size in zip(parts, pending_sizes, final_sizes, strict=True):
        pending, final, size = part["pending"], part["final"], part["bytes"]
        if final_size is not None:
            if final_size != size:
                problems.append(f"{final} has {final_size} bytes, but {size} were committed: somebody has changed it")
            elif pending_size is not None:
                # A rename that is a copy was cut off between its two steps.
                location.delete(pending)
        elif pending_size is None:
            problems.append(
                f"neither {pending} nor {final} is there, though an epoch with {size} bytes in it was committed: "
                "put the file back, or start from an earlier checkpoint"
            )
        elif pending_size != size:
            problems.append(f"{pending} has {pending_size} bytes instead of {size}: start from an earlier checkpoint")
        else:
            try:
                location.move(pending, final)
            except OSError as error:
                problems.append(f"{pending} could not be renamed to {final}: {error}; starting again tries again")
            folders.add(os.path.dirname(final))
    location.settle(folders)
    return problems


class FileSinkBuilder:
    """Puts a file sink together.

    >>> import tempfile
    >>> builder = FileSink.for_row_format(tempfile.mkdtemp(), Encoder.simple_string_encoder())
    >>> sink = builder.with_rolling_policy(RollingPolicy.on_checkpoint_rolling_policy()).build()
    >>> sink.rolling_policy.part_size is None
    True
    """

    def __init__(self, base_path: AnyPath, layout: PartFormat) -> None:
        self._path = base_path
        self._layout = layout
        self._buckets: AnyBuckets | None = None
        self._rolling: RollingPolicy | None = None
        self._names: OutputFileConfig | None = None

    def with_bucket_check_interval(self, interval: int) -> FileSinkBuilder:
        """How often the age of parts is looked at; here it is looked at with every batch of records."""
        return self

    def with_bucket_assigner(self, bucket_assigner: AnyBuckets) -> FileSinkBuilder:
        """Which folder a record goes to: an assigner, or a function of the record."""
        self._buckets = bucket_assigner
        return self

    def with_rolling_policy(self, rolling_policy: RollingPolicy) -> FileSinkBuilder:
        """When a part is closed before its epoch ends."""
        self._rolling = rolling_policy
        return self

    def with_output_file_config(self, output_file_config: OutputFileConfig) -> FileSinkBuilder:
        """What parts are called."""
        self._names = output_file_config
        return self

    def disable_compact(self) -> FileSinkBuilder:
        """Parts stay as they were written; they always do."""
        return self

    def build(self) -> FileSink:
        """The sink."""
        return FileSink(
            self._path,
            self._layout,
            bucket_assigner=self._buckets,
            rolling_policy=self._rolling,
            output_file_config=self._names,
        )


class TextSink(FileSink):
    """Lines of text: what ``str`` makes of each record.

    >>> import tempfile
    >>> TextSink(tempfile.mkdtemp()).volatile
    False
    """

    def __init__(
        self,
        path: AnyPath,
        *,
        charset: str = "UTF-8",
        bucket_assigner: AnyBuckets | None = None,
        rolling_policy: RollingPolicy | None = None,
    ) -> None:
        super().__init__(
            path,
            EncodedLines(Encoder.simple_string_encoder(charset)),
            bucket_assigner=bucket_assigner,
            rolling_policy=rolling_policy,
            output_file_config=OutputFileConfig(part_suffix=".txt"),
        )


class CsvSink(FileSink):
    """CSV files, with a header line in each unless ``header=False``; columns from the first record, or as given.

    >>> import tempfile
    >>> CsvSink(tempfile.mkdtemp(), header=False, delimiter=";").volatile
    False
    """

    def __init__(
        self,
        path: AnyPath,
        header: bool = True,
        *,
        columns: Sequence[str] | RowTypeInfo | None = None,
        delimiter: str = ",",
        bucket_assigner: AnyBuckets | None = None,
        rolling_policy: RollingPolicy | None = None,
    ) -> None:
        super().__init__(
            path,
            CsvLines(header=header, columns=columns, style=CsvStyle(delimiter)),
            bucket_assigner=bucket_assigner,
            rolling_policy=rolling_policy,
            output_file_config=OutputFileConfig(part_suffix=".csv"),
        )


class JsonSink(FileSink):
    """A JSON object a line for rows, dicts, dataclasses and named tuples; an array for other tuples.

    >>> import tempfile
    >>> JsonSink(tempfile.mkdtemp()).volatile
    False
    """

    def __init__(
        self,
        path: AnyPath,
        *,
        bucket_assigner: AnyBuckets | None = None,
        rolling_policy: RollingPolicy | None = None,
    ) -> None:
        super().__init__(
            path,
            JsonLines(),
            bucket_assigner=bucket_assigner,
            rolling_policy=rolling_policy,
            output_file_config=OutputFileConfig(part_suffix=".json"),
        )


class ParquetSink(FileSink):
    """Parquet files; columns from the declared type, or from the first records of each file.

    >>> import tempfile
    >>> ParquetSink(tempfile.mkdtemp(), compression="zstd").volatile
    False
    """

    def __init__(
        self,
        path: AnyPath,
        *,
        type_info: TypeInformation | None = None,
        compression: str = "snappy",
        bucket_assigner: AnyBuckets | None = None,
        rolling_policy: RollingPolicy | None = None,
    ) -> None:
        super().__init__(
            path,
            ParquetParts(type_info, compression),
            bucket_assigner=bucket_assigner,
            rolling_policy=rolling_policy,
            output_file_config=OutputFileConfig(part_suffix=".parquet"),
        )


def _now() -> int:
    return time.time_ns() // 1_000_000
