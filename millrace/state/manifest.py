"""The manifest of an epoch: the one file whose appearance makes the epoch real (rule M4).

It names everything the epoch left behind: how far each source was read, where each task's state is, what the sinks
have to commit. Whatever no manifest names does not exist.
"""

from __future__ import annotations

import base64
import json
import re
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from typing import Any, Final

from millrace.errors import RestoreError
from millrace.state.storage import Storage

__all__ = [
    "FORMAT_VERSION",
    "Manifest",
    "OperatorEntry",
    "StateEntry",
    "StatePart",
    "checksum_of",
    "epochs_in",
    "latest_epoch",
    "manifest_name",
    "read_manifest",
]

FORMAT_VERSION: Final = 2
"""1: no checksums. 2: a checksum for each part and for the manifest itself. All of them are read for ever."""

_FOLDER: Final = "manifests"
_CHECKSUM: Final = re.compile(rb',\n "checksum": "([0-9a-f]{32})"\n}\Z')


def checksum_of(data: bytes) -> str:
    """What is written down beside a file or a part, to tell later whether it is whole.

    >>> checksum_of(b"state")
    '87e215c447237b2e892edad6a952ee2c'
    """
    return blake2b(data, digest_size=16).hexdigest()


@dataclass(frozen=True)
class StatePart:
    """One snapshot or delta of a task: in a file of its own, or (``file`` None) inside the manifest of its epoch.

    ``checksum`` is empty in manifests of format 1.
    """

    epoch: int
    attempt: int
    full: bool
    size: int
    file: str | None = None
    checksum: str = ""


@dataclass(frozen=True)
class OperatorEntry:
    """Where an operator's state is: in the parts of the tasks of its stage."""

    name: str
    stage: str
    parallelism: int
    max_parallelism: int


@dataclass(frozen=True)
class StateEntry:
    """One named state of an operator as a savepoint describes it, over all tasks."""

    name: str
    kind: str
    type: str
    entries: int
    bytes: int


@dataclass
class Manifest:
    """Everything that an epoch left behind. ``parts`` lists, for each task ("stage/index"), the last full snapshot
    and the deltas after it.

    ``run`` is the run that wrote it, ``origin`` the savepoint its line of epochs began with. Savepoints also have
    ``states``, ``created`` and ``versions``, for people to read.
    """

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
    run: str = ""
    origin: str = ""
    states: dict[str, list[StateEntry]] = field(default_factory=dict)
    created: str = ""
    versions: dict[str, str] = field(default_factory=dict)

    @property
    def identity(self) -> str:
        """Names this very snapshot, wherever its folder was copied to."""
        return f"{self.run}:{self.epoch}"

    def to_json(self) -> bytes:
        """Readable by people and by later versions; ends with a checksum of all that stands before it."""
        content = asdict(self)
        for name in ("inline", "committables"):
            content[name] = {key: base64.b64encode(data).decode() for key, data in content[name].items()}
        text = json.dumps(content, indent=1).encode()
        return text.removesuffix(b"\n}") + f',\n "checksum": "{checksum_of(text)}"\n}}'.encode()

    @classmethod
    def from_json(cls, data: bytes, name: str) -> Manifest:
        """What ``to_json`` wrote, now or in an earlier version, or a RestoreError that names the file."""
        try:
            found = _CHECKSUM.search(data)
            if found is not None:
                data = data[: found.start()] + b"\n}"
            content = json.loads(data)
            version = content["version"]
            if version > FORMAT_VERSION:
                message = (
                    f"{name} has format {version}; this version of Millrace reads up to {FORMAT_VERSION}: "
                    f"upgrade Millrace"
                )
                raise RestoreError(message)
            if version < 1 or (version == 1) != (found is None):
                raise ValueError("its format and its checksum contradict each other")
            if found is not None and checksum_of(data) != found[1].decode():
                raise ValueError("its checksum does not match its content")
            content["operators"] = {uid: OperatorEntry(**entry) for uid, entry in content["operators"].items()}
            content["parts"] = {task: [StatePart(**part) for part in parts] for task, parts in content["parts"].items()}
            content["states"] = {
                uid: [StateEntry(**entry) for entry in entries] for uid, entries in content.get("states", {}).items()
            }
            for key in ("inline", "committables"):
                content[key] = {task: base64.b64decode(text) for task, text in content[key].items()}
            return cls(**content)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            message = f"{name} is damaged ({type(error).__name__}: {error}): restore from an older checkpoint"
            raise RestoreError(message) from error


def manifest_name(epoch: int) -> str:
    """The file of an epoch's manifest."""
    return f"{_FOLDER}/{epoch:012d}.json"


def epochs_in(storage: Storage) -> list[int]:
    """The epochs that have a manifest, oldest first."""
    stems = (name.removesuffix(".json") for name in storage.names(_FOLDER) if name.endswith(".json"))
    return [int(stem) for stem in stems if stem.isdigit()]


def latest_epoch(storage: Storage) -> int | None:
    """The last epoch that has a manifest."""
    return max(epochs_in(storage), default=None)


def read_manifest(storage: Storage, epoch: int) -> Manifest:
    """The manifest of an epoch."""
    name = manifest_name(epoch)
    try:
        manifest = Manifest.from_json(storage.read(name), f"{storage.location}/{name}")
    except FileNotFoundError:
        message = f"there is no {name} in {storage.location}: the checkpoint is incomplete"
        raise RestoreError(message) from None
    if manifest.epoch != epoch:
        message = f"{storage.location}/{name} is damaged (it tells of epoch {manifest.epoch})"
        raise RestoreError(message)
    return manifest
