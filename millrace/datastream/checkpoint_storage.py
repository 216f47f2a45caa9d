"""Where checkpoints go."""

from __future__ import annotations

from abc import ABC
from typing import Final

__all__ = ["CheckpointStorage", "CustomCheckpointStorage", "FileSystemCheckpointStorage", "JobManagerCheckpointStorage"]


class CheckpointStorage(ABC):  # noqa: B024
    """Base of the storages. Where a job writes is the setting ``execution.checkpointing.dir``.

    >>> issubclass(FileSystemCheckpointStorage, CheckpointStorage)
    True
    """


class JobManagerCheckpointStorage(CheckpointStorage):
    """Checkpoints in the memory of the process that runs the job; lost with it.

    >>> JobManagerCheckpointStorage().get_max_state_size()
    5242880
    """

    DEFAULT_MAX_STATE_SIZE: Final = 5 * 1024 * 1024

    def __init__(self, checkpoint_path: str | None = None, max_state_size: int | None = None) -> None:
        self._checkpoint_path = None if checkpoint_path is None else checkpoint_path.rstrip("/") or "/"
        self._max_state_size = self.DEFAULT_MAX_STATE_SIZE if max_state_size is None else max_state_size

    def get_checkpoint_path(self) -> str | None:
        """Where checkpoints are written in addition."""
        return self._checkpoint_path

    def get_savepoint_path(self) -> str | None:
        """Where savepoints go; None leaves it to the configuration."""
        return None

    def get_max_state_size(self) -> int:
        """The largest state of a task, in bytes."""
        return self._max_state_size


class FileSystemCheckpointStorage(CheckpointStorage):
    """Checkpoints as files in a directory.

    >>> FileSystemCheckpointStorage("file:///checkpoints").get_min_file_size_threshold()
    20480
    """

    DEFAULT_FILE_STATE_SIZE_THRESHOLD: Final = 20 * 1024
    MAX_FILE_STATE_THRESHOLD: Final = 1024 * 1024

    def __init__(
        self, checkpoint_path: str, file_state_size_threshold: int | None = None, write_buffer_size: int = -1
    ) -> None:
        self._checkpoint_path = checkpoint_path.rstrip("/") or "/"
        threshold = self.DEFAULT_FILE_STATE_SIZE_THRESHOLD
        self._threshold = threshold if file_state_size_threshold is None else file_state_size_threshold
        self._write_buffer_size = write_buffer_size

    def get_checkpoint_path(self) -> str:
        """Where checkpoints are written."""
        return self._checkpoint_path

    def get_savepoint_path(self) -> str | None:
        """Where savepoints go; None leaves it to the configuration."""
        return None

    def get_min_file_size_threshold(self) -> int:
        """State smaller than this, in bytes, shares a file with other state."""
        return self._threshold

    def get_write_buffer_size(self) -> int:
        """The size of a write buffer, in bytes."""
        return self._threshold if self._write_buffer_size < 0 else self._write_buffer_size


class CustomCheckpointStorage(CheckpointStorage):
    """Names a storage class of one's own; kept for programs that set it.

    >>> CustomCheckpointStorage("my.Storage").class_name
    'my.Storage'
    """

    def __init__(self, class_name: str) -> None:
        self.class_name = class_name
