"""Where files are: a local path, or the address of any file system that pyarrow or fsspec can reach."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO, Final
from urllib.parse import urlsplit

import pyarrow.fs as arrow_fs

from millrace.common.file_systems import open_file_system
from millrace.errors import ConfigurationError

__all__ = ["AnyPath", "Location"]

AnyPath = str | os.PathLike[str]

_OBJECT_STORES: Final = frozenset({"s3", "gcs", "abfs"})
"""File systems on which a file appears whole when it is closed, and renaming means copying."""


class Location:
    """A folder or file that a job reads or writes; pickled by its address, opened again where it is used.

    Paths in its methods are paths of the file system, as ``path_of`` and ``files`` give them.

    >>> import tempfile
    >>> folder = Location(tempfile.mkdtemp())
    >>> with folder.create(folder.path_of("a/b.txt")) as stream:
    ...     _ = stream.write(b"hello")
    >>> [path.removeprefix(folder.root) for path, size in folder.files()]
    ['/a/b.txt']
    """

    def __init__(self, place: AnyPath) -> None:
        text = os.fspath(place)
        if not isinstance(text, str) or not text:
            message = f"{place!r} is no place for files: use a path or an address such as s3://bucket/folder"
            raise ConfigurationError(message)
        # Workers may have another working directory: what is meant is known here only.
        self._address = text if "://" in text or text.startswith("file:") else os.path.abspath(text)
        open_file_system(self._address)

    @property
    def file_system(self) -> Any:
        """The pyarrow file system."""
        return open_file_system(self._address)[0]

    @property
    def root(self) -> str:
        """The path of this location in its file system."""
        return open_file_system(self._address)[1]

    @property
    def is_local(self) -> bool:
        """Whether Python's own file functions can be used."""
        return bool(self.file_system.type_name == "local")

    @property
    def is_object_store(self) -> bool:
        """Whether files appear only when they are closed."""
        return self.file_system.type_name in _OBJECT_STORES

    @property
    def prefix(self) -> str:
        """What stands before a path to make it an address; empty for local files. Never holds a password."""
        if self.is_local:
            return ""
        parts = urlsplit(self._address)
        host = parts.netloc.rpartition("@")[2] if self.root.startswith("/") else ""
        return f"{parts.scheme}://{host}"

    @property
    def shown(self) -> str:
        """The address for messages and manifests, without user, password and options."""
        return self.prefix + self.root

    def path_of(self, name: str) -> str:
        """The path of a file below this location."""
        return f"{self.root}/{name}" if self.root else name

    def make_folder(self, path: str) -> None:
        """Make a folder and those above it, unless they are there."""
        if path:
            self.file_system.create_dir(path, recursive=True)

    def create(self, path: str) -> BinaryIO:
        """A new file for writing, and its folder if need be. On local disks, an existing file is an error."""
        self.make_folder(os.path.dirname(path))
        if self.is_local:
            return open(path, "xb", buffering=1 << 20)
        stream: BinaryIO = self.file_system.open_output_stream(path)
        return stream

    def seal(self, stream: BinaryIO) -> None:
        """Close a written file, and on local disks wait until it has reached them."""
        if self.is_local:
            stream.flush()
            os.fsync(stream.fileno())
        stream.close()

    def open(self, path: str) -> BinaryIO:
        """A file for reading, from any position."""
        if self.is_local:
            return open(path, "rb")
        return io.BufferedReader(self.file_system.open_input_file(path), buffer_size=1 << 20)

    def sizes(self, paths: Iterable[str]) -> list[int | None]:
        """How large these files are; None for one that is not there."""
        infos = self.file_system.get_file_info(list(paths))
        return [info.size if info.type == arrow_fs.FileType.File else None for info in infos]

    def move(self, path: str, target: str) -> None:
        """Rename a file."""
        self.file_system.move(path, target)

    def settle(self, folders: Iterable[str]) -> None:
        """On local disks, wait until renames in these folders have reached them."""
        if self.is_local and os.name == "posix":
            for folder in folders:
                handle = os.open(folder, os.O_RDONLY)
                try:
                    os.fsync(handle)
                finally:
                    os.close(handle)

    def delete(self, path: str) -> None:
        """Remove a file; one that is gone or still held open by somebody is left alone."""
        with contextlib.suppress(OSError):
            self.file_system.delete_file(path)

    def files(self) -> Iterator[tuple[str, int]]:
        """Path and size of this file, or of all files below this folder; none if nothing is there."""
        for info in self._infos():
            yield info.path, info.size

    def files_older_than(self, nanos: int) -> Iterator[str]:
        """The files that were last written before this time, in nanoseconds since 1970."""
        for info in self._infos():
            if info.mtime_ns is not None and info.mtime_ns < nanos:
                yield info.path

    def _infos(self) -> list[Any]:
        here = self.file_system.get_file_info(self.root or "/")
        if here.type == arrow_fs.FileType.File:
            return [here]
        selector = arrow_fs.FileSelector(self.root, recursive=True, allow_not_found=True)
        infos = self.file_system.get_file_info(selector)
        return sorted((info for info in infos if info.type == arrow_fs.FileType.File), key=lambda info: info.path)

    def __reduce__(self) -> tuple[Any, ...]:
        return Location, (self._address,)

    def __repr__(self) -> str:
        return f"Location({self.shown!r})"
