"""Checkpoint storage: a folder on any file system that pyarrow or fsspec can reach."""

from __future__ import annotations

import os
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
        self._fs.move(self._write_beside(name, data), self._path(name))

    def create(self, name: str, data: bytes) -> None:
        """Write a file that must not be there yet; FileExistsError if it is.

        On local disks no two processes can both succeed. Other file systems offer no such step to pyarrow: there the
        look and the write are two.
        """
        path = self._path(name)
        if self.exists(name):
            raise FileExistsError(path)
        beside = self._write_beside(name, data)
        if isinstance(self._fs, arrow_fs.LocalFileSystem):
            try:
                os.link(beside, path)
            except FileExistsError:
                raise
            except OSError:  # a file system without hard links
                self._fs.move(beside, path)
                return
            finally:
                if os.path.exists(beside):
                    os.unlink(beside)
        else:
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

    def move(self, name: str, to: str) -> None:
        """Give a file another name, in this storage."""
        path = self._path(to)
        self._fs.create_dir(path.rsplit("/", 1)[0], recursive=True)
        self._fs.move(self._path(name), path)

    def same_place(self, location: str) -> bool:
        """Whether an address leads here."""
        other = Storage(location)
        return bool(self._root == other._root and type(self._fs) is type(other._fs))

    def _write_beside(self, name: str, data: bytes) -> str:
        folder = self._path(name).rsplit("/", 1)[0]
        beside = f"{folder}/.{uuid.uuid4().hex}.tmp"
        self._fs.create_dir(folder, recursive=True)
        with self._fs.open_output_stream(beside) as stream:
            stream.write(data)
        return beside

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}"
