"""Reading the parts that a manifest names, and telling whether they are whole."""

from __future__ import annotations

from millrace.errors import RestoreError
from millrace.state.manifest import Manifest, StatePart, checksum_of, epochs_in, manifest_name, read_manifest
from millrace.state.storage import Storage

__all__ = ["PartReader", "newest_whole"]


class PartReader:
    """Reads the parts of one manifest; parts inside older manifests come from there, each of them read once.

    >>> import tempfile
    >>> manifest = Manifest(1, "", parts={"0/0": [StatePart(1, 0, True, 3)]}, inline={"0/0": b"abc"})
    >>> PartReader(Storage(tempfile.mkdtemp()), manifest).read("0/0", manifest.parts["0/0"][0])
    b'abc'
    """

    def __init__(self, storage: Storage, manifest: Manifest) -> None:
        self.storage = storage
        self.manifest = manifest
        self._owners = {manifest.epoch: manifest}

    def read(self, task: str, part: StatePart) -> bytes:
        """The bytes of a part; a RestoreError names the file that is missing or damaged."""
        where = f"{self.storage.location}/{part.file or manifest_name(part.epoch)}"
        try:
            data = self._owner(part.epoch).inline[task] if part.file is None else self.storage.read(part.file)
        except (OSError, KeyError) as error:
            reason = "is missing" if isinstance(error, FileNotFoundError) else f"cannot be read: {error!r}"
            raise RestoreError(f"state of task {task} is lost: {where} {reason}") from error
        if len(data) != part.size:
            message = f"state of task {task} is lost: {where} is damaged, {len(data)} bytes instead of {part.size}"
            raise RestoreError(message)
        if part.checksum and checksum_of(data) != part.checksum:
            raise RestoreError(f"state of task {task} is lost: {where} is damaged, its checksum does not match")
        return data

    def check(self) -> None:
        """Read everything once; RestoreError if something is not as it was written."""
        for task, parts in self.manifest.parts.items():
            for part in parts:
                self.read(task, part)

    def _owner(self, epoch: int) -> Manifest:
        if epoch not in self._owners:
            self._owners[epoch] = read_manifest(self.storage, epoch)
        return self._owners[epoch]


def newest_whole(storage: Storage) -> tuple[Manifest | None, list[tuple[int, RestoreError]]]:
    """The newest manifest that is whole, and the newer epochs with what is wrong with each.

    RestoreError if there are manifests and none is whole.
    """
    damaged: list[tuple[int, RestoreError]] = []
    for epoch in reversed(epochs_in(storage)):
        try:
            manifest = read_manifest(storage, epoch)
            PartReader(storage, manifest).check()
        except RestoreError as error:
            damaged.append((epoch, error))
        else:
            return manifest, damaged
    if damaged:
        message = (
            f"{damaged[0][1]}. None of the {len(damaged)} epochs kept in {storage.location} is whole: start from a "
            "savepoint, or remove the folder to start anew. execution.checkpointing.num-retained keeps more of them"
        )
        raise RestoreError(message) from damaged[0][1]
    return None, []
