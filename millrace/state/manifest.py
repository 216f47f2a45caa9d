"""The manifest of an epoch: the one file whose appearance makes the epoch real (rule M4).

It names everything the epoch left behind: how far each source was read, where each task's state is, what the sinks
have to commit. Whatever no manifest names does not exist.
"""

from __future__ import annotations

import base64
import json
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from millrace.errors import RestoreError
from millrace.state.storage import Storage

__all__ = ["FORMAT_VERSION", "Manifest", "OperatorEntry", "StatePart", "latest_epoch", "manifest_name", "read_manifest"]

FORMAT_VERSION: Final = 1
_FOLDER: Final = "manifests"


@dataclass(frozen=True)
class StatePart:
    """One snapshot or delta of a task: in a file of its own, or (``file`` None) inside the manifest of its epoch."""

    epoch: int
    attempt: int
    full: bool
    size: int
    file: str | None = None


@dataclass(frozen=True)
class OperatorEntry:
    """Where an operator's state is: in the parts of the tasks of its stage."""

    name: str
    stage: str
    parallelism: int
    max_parallelism: int


@dataclass
class Manifest:
    """Everything that an epoch left behind. ``parts`` lists, for each task ("stage/index"), the last full snapshot
    and the deltas after it."""

    epoch: int
    fingerprint: str
    job_name: str = ""
    positions: dict[str, dict[str, Any]] = field(default_factory=dict)
    finished: list[str] = field(default_factory=list)
    split_parallelism: dict[str, int] = field(default_factory=dict)
    operators: dict[str, OperatorEntry] = field(default_factory=dict)
    parts: dict[str, list[StatePart]] = field(default_factory=dict)
    inline: dict[str, bytes] = field(default_factory=dict)
    committables: dict[str, bytes] = field(default_factory=dict)
    spark_batch: int = -1
    done: bool = False
    version: int = FORMAT_VERSION

    def to_json(self) -> bytes:
        """Readable by people and by later versions."""
        content = asdict(self)
        for name in ("inline", "committables"):
            content[name] = {key: base64.b64encode(data).decode() for key, data in content[name].items()}
        return json.dumps(content, indent=1).encode()

    @classmethod
    def from_json(cls, data: bytes, name: str) -> Manifest:
        """What ``to_json`` wrote, or a RestoreError that names the file."""
        try:
            content = json.loads(data)
            version = content["version"]
            if version > FORMAT_VERSION:
                message = (
                    f"{name} has format {version}; this version of Millrace reads up to {FORMAT_VERSION}: "
                    f"upgrade Millrace"
                )
                raise RestoreError(message)
            content["operators"] = {uid: OperatorEntry(**entry) for uid, entry in content["operators"].items()}
            content["parts"] = {task: [StatePart(**part) for part in parts] for task, parts in content["parts"].items()}
            for key in ("inline", "committables"):
                content[key] = {task: base64.b64decode(text) for task, text in content[key].items()}
            return cls(**content)
        except (KeyError, TypeError, ValueError) as error:
            message = f"{name} is damaged ({type(error).__name__}: {error}): restore from an older checkpoint"
            raise RestoreError(message) from error

    def write(self, storage: Storage) -> None:
        """Make the epoch real."""
        storage.write(manifest_name(self.epoch), self.to_json())


def manifest_name(epoch: int) -> str:
    """The file of an epoch's manifest."""
    return f"{_FOLDER}/{epoch:012d}.json"


def latest_epoch(storage: Storage) -> int | None:
    """The last epoch that has a manifest."""
    names = [name for name in storage.names(_FOLDER) if name.endswith(".json")]
    return int(names[-1].removesuffix(".json")) if names else None


def read_manifest(storage: Storage, epoch: int) -> Manifest:
    """The manifest of an epoch."""
    name = manifest_name(epoch)
    try:
        return Manifest.from_json(storage.read(name), f"{storage.location}/{name}")
    except FileNotFoundError:
        message = f"no manifest of epoch {epoch} in {storage.location}: the checkpoint is incomplete"
        raise RestoreError(message) from None
