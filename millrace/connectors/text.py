"""The lines of text files as a stream."""

from __future__ import annotations

import bz2
import codecs
import glob
import gzip
import lzma
import os
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Final

from millrace.connectors.collection import BATCH_RECORDS
from millrace.errors import GraphError
from millrace.runtime.source import Source

__all__ = ["TextFileSource"]

AnyPath = str | os.PathLike[str]

BLOCK_BYTES: Final = 1 << 20

OPENERS: Final[dict[str, Callable[..., Any]]] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
}


class TextFileSource(Source[str]):
    """The lines of files, without their line ends: a file, a directory, a pattern, or several of them.

    Each file is a split and is read in order; its position is a byte offset, always at the start of a line. Compressed
    files (``.gz``, ``.bz2``, ``.xz``) and charsets of two or four bytes a character cannot be entered in the middle:
    these are read in one go. In a directory, files that begin with ``.`` or ``_`` are left out.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "words.txt"
    >>> _ = path.write_text("to\\nbe\\n")
    >>> source = TextFileSource(path)
    >>> list(source.read(str(path), 3, 6))
    [['be']]
    """

    bounded = True

    def __init__(self, paths: AnyPath | Iterable[AnyPath], charset: str = "UTF-8") -> None:
        try:
            self._charset = codecs.lookup(charset).name
        except LookupError:
            message = f"the charset {charset!r} is unknown: use 'UTF-8' or another name that Python knows"
            raise GraphError(message) from None
        given = [os.fspath(path) for path in ([paths] if isinstance(paths, str | os.PathLike) else paths)]
        self._files = [file for path in given for file in _files(path)]
        if not self._files:
            message = f"no file to read at {', '.join(map(repr, given)) or 'no path'}: check the path"
            raise GraphError(message)
        self._steps_by_line = "\n".encode(self._charset) == b"\n"

    def splits(self, parallelism: int) -> dict[str, int]:
        return dict.fromkeys(self._files, 0)

    def advance(self, split: str, position: int, limit: int | None) -> tuple[int, bool]:
        size = os.path.getsize(split)
        if limit is None or not self._seekable(split):
            return size, True
        with open(split, "rb") as file:
            file.seek(position)
            end = min(size, position + bytes_of_lines(file, limit))
        return end, end == size

    def read(self, split: str, start: int, end: int) -> Iterator[list[str]]:
        if start >= end:
            return
        if not self._seekable(split):
            yield from self._read_whole(split)
            return
        with open(split, "rb") as file:
            file.seek(start)
            if start == 0 and self._charset == "utf-8" and file.read(3) != codecs.BOM_UTF8:
                file.seek(0)
            while file.tell() < end:
                block = file.read(min(BLOCK_BYTES, end - file.tell()))
                if not block.endswith(b"\n"):
                    block += file.readline()
                yield split_lines(block.decode(self._charset))

    def _read_whole(self, path: str) -> Iterator[list[str]]:
        opener = OPENERS.get(Path(path).suffix, open)
        charset = "utf-8-sig" if self._charset == "utf-8" else self._charset
        with opener(path, "rt", encoding=charset, newline="\n") as file:
            while batch := [line.removesuffix("\n").removesuffix("\r") for line in islice(file, BATCH_RECORDS)]:
                yield batch

    def _seekable(self, path: str) -> bool:
        return self._steps_by_line and Path(path).suffix not in OPENERS


def _files(path: str) -> list[str]:
    """The files that a path stands for, sorted, so that every run numbers them the same way."""
    path = path.removeprefix("file://")
    if os.path.isdir(path):
        inside = (found for found in Path(path).rglob("*") if found.is_file())
        return sorted(str(found) for found in inside if not _hidden(found.relative_to(path)))
    if os.path.isfile(path):
        return [path]
    return sorted(found for found in glob.glob(path, recursive=True) if os.path.isfile(found))


def _hidden(path: Path) -> bool:
    return any(part.startswith((".", "_")) for part in path.parts)


def split_lines(text: str) -> list[str]:
    lines = text.removesuffix("\n").split("\n")
    return [line.removesuffix("\r") for line in lines] if "\r" in text else lines


def bytes_of_lines(file: BinaryIO, limit: int) -> int:
    """How many bytes the next ``limit`` lines take."""
    taken = 0
    while limit > 0:
        block = file.read(BLOCK_BYTES)
        if not block:
            break
        ends = block.count(b"\n")
        if ends < limit:
            limit -= ends
            taken += len(block)
            continue
        at = -1
        for _ in range(limit):
            at = block.index(b"\n", at + 1)
        return taken + at + 1
    return taken
