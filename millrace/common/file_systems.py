"""Opening an address: a local path, or any file system that pyarrow or fsspec can reach."""

from __future__ import annotations

import os
from functools import lru_cache
from typing import Any

import pyarrow.fs as arrow_fs

from millrace.errors import ConfigurationError

__all__ = ["open_file_system"]


@lru_cache(maxsize=64)
def open_file_system(address: str) -> tuple[Any, str]:
    """The pyarrow file system of an address, and the path in it.

    >>> open_file_system("/tmp/data/")[1]
    '/tmp/data'
    """
    if "://" not in address and not address.startswith("file:"):
        return arrow_fs.LocalFileSystem(), os.path.abspath(address)
    try:
        file_system, root = arrow_fs.FileSystem.from_uri(address)
        return file_system, root.rstrip("/")
    except Exception as error:
        return _open_with_fsspec(address, error)


def _open_with_fsspec(address: str, cause: Exception) -> tuple[Any, str]:
    # The address itself may hold a password: messages name its scheme only.
    scheme = address.partition(":")[0]
    try:
        import fsspec
    except ImportError:
        message = (
            f"cannot open the {scheme} address: {cause}. For file systems beyond local disks, HDFS, S3, GCS and Azure, "
            "run: pip install fsspec"
        )
        raise ConfigurationError(message) from cause
    try:
        file_system, root = fsspec.core.url_to_fs(address)
    except Exception as error:
        raise ConfigurationError(f"cannot open the {scheme} address: {error}") from error
    return arrow_fs.PyFileSystem(arrow_fs.FSSpecHandler(file_system)), root.rstrip("/")
