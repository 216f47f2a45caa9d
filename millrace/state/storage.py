"""Checkpoint storage: a folder on any file system that pyarrow or fsspec can reach."""

from __future__ import annotations

import uuid

import pyarrow.fs as arrow_fs

from millrace.common.file_systems import open_file_system

__all__ = ["Storage"]


class Storage:
    """Whole files by name, written so that a reader sees all of a file or nothing of it.

    >>> import tempfile
    >>> storage = Storage(tempfile.mkdtemp())
    >>> storage.write("manifests/1.json", b"{}")
    >>> storage.read("manifests/1.json"), storage.names("manifests")
    (b'{}', ['1.json'])
    """

    def __init__(self, location: str) -> None:
        self.location = location
        self._fs, self._root = open_file_system(location)

    def write(self, name: str, data: bytes) -> None:
        """Write a file under its final name in one step: beside it first, then moved over it."""
        path = self._path(name)
        folder = path.rsplit("/", 1)[0]
        beside = f"{folder}/.{uuid.uuid4().hex}.tmp"
        self._fs.create_dir(folder, recursive=True)
        with self._fs.open_output_stream(beside) as stream:
            stream.write(data)
        self._fs.move(beside, path)

    def read(self, name: str) -> bytes:
        """A file's bytes; FileNotFoundError if there is none."""
        with self._fs.open_input_stream(self._path(name)) as stream:
            data: bytes = stream.read()
            return data

    def exists(self, name: str) -> bool:
        """Whether there is such a file."""
        found = self._fs.get_file_info(self._path(name)).type != arrow_fs.FileType.NotFound
        return bool(found)

    def names(self, folder: str) -> list[str]:
        """The names of the files in a folder, sorted; none if there is no such folder."""
        selector = arrow_fs.FileSelector(self._path(folder), allow_not_found=True)
        infos = self._fs.get_file_info(selector)
        return sorted(
            info.base_name
            for info in infos
            if info.type == arrow_fs.FileType.File and not info.base_name.startswith(".")
        )

    def delete(self, name: str) -> None:
        """Remove a file if it is there."""
        if self.exists(name):
            self._fs.delete_file(self._path(name))

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}"
