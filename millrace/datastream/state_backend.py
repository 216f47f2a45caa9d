"""How state is kept while a job runs."""

from __future__ import annotations

from abc import ABC
from enum import Enum
from typing import ClassVar
from urllib.parse import urlsplit

from millrace.errors import ConfigurationError
from millrace.state.rocksdb import LOCAL_DIR
from millrace.state.rocksdb_choice import BACKEND

__all__ = [
    "CustomStateBackend",
    "EmbeddedRocksDBStateBackend",
    "HashMapStateBackend",
    "PredefinedOptions",
    "StateBackend",
]


class StateBackend(ABC):  # noqa: B024
    """Base of the backends; ``backend_type`` is the value of the setting ``state.backend.type``.

    >>> HashMapStateBackend().backend_type
    'hashmap'
    """

    backend_type: ClassVar[str] = "hashmap"

    def settings(self) -> dict[str, str]:
        """The settings of a job that say the same as this object."""
        return {BACKEND: self.backend_type}


class HashMapStateBackend(StateBackend):
    """State as Python objects in the memory of the workers.

    >>> isinstance(HashMapStateBackend(), StateBackend)
    True
    """


class PredefinedOptions(Enum):
    """Sets of tuning options for RocksDB.

    >>> PredefinedOptions.FLASH_SSD_OPTIMIZED.name
    'FLASH_SSD_OPTIMIZED'
    """

    DEFAULT = 0
    SPINNING_DISK_OPTIMIZED = 1
    SPINNING_DISK_OPTIMIZED_HIGH_MEM = 2
    FLASH_SSD_OPTIMIZED = 3


class EmbeddedRocksDBStateBackend(StateBackend):
    """State in RocksDB, on the disks of the workers: it may be larger than their memory.

    Needs the package rocksdict (``pip install 'millrace[rocksdb]'``). Checkpoints hold only what has changed, asked for
    or not, and are the same as those of HashMapStateBackend: a job may change from one to the other. Tuning options
    and transfer threads are kept for programs that set them, and change nothing.

    >>> backend = EmbeddedRocksDBStateBackend()
    >>> backend.set_db_storage_paths("/fast", "/fast2")
    >>> backend.get_db_storage_paths(), backend.get_number_of_transfer_threads()
    (['/fast', '/fast2'], 4)
    """

    backend_type: ClassVar[str] = "rocksdb"

    def __init__(self, enable_incremental_checkpointing: bool | None = None) -> None:
        self._incremental = bool(enable_incremental_checkpointing)
        self._paths: list[str] | None = None
        self._predefined = PredefinedOptions.DEFAULT
        self._options: str | None = None
        self._transfer_threads = 4

    def settings(self) -> dict[str, str]:
        """The settings of a job that say the same as this object."""
        return super().settings() | ({LOCAL_DIR: ",".join(self._paths)} if self._paths else {})

    def is_incremental_checkpoints_enabled(self) -> bool:
        """Whether a checkpoint holds only what has changed."""
        return self._incremental

    def set_db_storage_paths(self, *paths: str) -> None:
        """Set the directories of the databases."""
        if not paths:
            raise ConfigurationError("set_db_storage_paths: give at least one directory")
        self._paths = [urlsplit(path).path.rstrip("/") or "/" for path in paths]

    def get_db_storage_paths(self) -> list[str] | None:
        """The directories of the databases; None leaves the choice to the worker."""
        return None if self._paths is None else list(self._paths)

    def set_predefined_options(self, options: PredefinedOptions) -> None:
        """Choose a set of tuning options."""
        self._predefined = options

    def get_predefined_options(self) -> PredefinedOptions:
        """The chosen set of tuning options."""
        return self._predefined

    def set_options(self, options_factory_class_name: str) -> None:
        """Name a class that makes tuning options."""
        self._options = options_factory_class_name

    def get_options(self) -> str | None:
        """The class that makes tuning options, if one was named."""
        return self._options

    def set_number_of_transfer_threads(self, number_of_transfering_threads: int) -> None:
        """Set how many threads write and read snapshots."""
        if number_of_transfering_threads < 1:
            message = f"set_number_of_transfer_threads: {number_of_transfering_threads} is too few; use 1 or more"
            raise ConfigurationError(message)
        self._transfer_threads = number_of_transfering_threads

    def get_number_of_transfer_threads(self) -> int:
        """How many threads write and read snapshots."""
        return self._transfer_threads


class CustomStateBackend(StateBackend):
    """Names a backend of one's own by its value of ``state.backend.type``.

    >>> CustomStateBackend("my.Backend").class_name
    'my.Backend'
    """

    def __init__(self, class_name: str) -> None:
        self.class_name = class_name

    def settings(self) -> dict[str, str]:
        """The settings of a job that say the same as this object."""
        return {BACKEND: self.class_name}
