"""Damaged checkpoints are found, named, and left behind for an older one that is whole."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from millrace.errors import RestoreError
from millrace.runtime.ledger import Ledger
from millrace.state.manifest import Manifest, StatePart, checksum_of, epochs_in, manifest_name
from millrace.state.parts import PartReader, newest_whole
from millrace.state.storage import Storage
from millrace.testing import LocalRun

from .programs import Committed, counting, environment

NUMBERS = 60
EXPECTED = 2 * 60 + 5


def a_run(folder: Path, epochs: int, sink: Committed, retained: int = 3) -> LocalRun:
    env = environment(execution_checkpointing_num__retained=retained)
    counting(env, NUMBERS, sink)
    run = LocalRun(env, storage=str(folder))
    for _ in range(epochs):
        run.run_epoch(5)
    return run


def put_parts_into_files(folder: Path) -> None:
    """What the workers do with parts that are large: LocalRun keeps them inside the manifests."""
    storage = Storage(str(folder))
    for epoch in epochs_in(storage):
        manifest = Manifest.from_json(storage.read(manifest_name(epoch)), "")
        for task, data in manifest.inline.items():
            storage.write(f"state/{task}-{epoch}", data)
        manifest.inline.clear()
        for task, parts in manifest.parts.items():
            manifest.parts[task] = [
                StatePart(p.epoch, p.attempt, p.full, p.size, f"state/{task}-{p.epoch}", p.checksum) for p in parts
            ]
        storage.write(manifest_name(epoch), manifest.to_json())


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))


DAMAGES: dict[str, Callable[[Path], None]] = {"truncated": truncate, "missing": Path.unlink, "flipped": flip}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_manifest_is_left_for_the_one_before(damage: str, tmp_path: Path) -> None:
    sink = Committed()
    a_run(tmp_path, 4, sink)
    DAMAGES[damage](tmp_path / manifest_name(4))
    manifest, damaged = newest_whole(Storage(str(tmp_path)))
    assert manifest is not None
    assert manifest.epoch == 3
    if damage != "missing":
        assert f"{tmp_path}/{manifest_name(4)} is damaged" in str(damaged[0][1])
    run = a_run(tmp_path, 0, sink)
    run.run(5)
    # The fifth part of the input is committed twice: its sink cannot know that it was made again.
    assert len(set(sink.rows)) == EXPECTED


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_part_in_a_file_is_named_and_left_behind(damage: str, tmp_path: Path) -> None:
    sink = Committed()
    a_run(tmp_path, 4, sink)
    put_parts_into_files(tmp_path)
    DAMAGES[damage](tmp_path / "state" / "1" / "0-4")
    manifest, damaged = newest_whole(Storage(str(tmp_path)))
    assert manifest is not None
    assert manifest.epoch == 3
    assert f"{tmp_path}/state/1/0-4 is" in str(damaged[0][1])
    run = a_run(tmp_path, 0, sink)
    run.run(5)
    assert len(set(sink.rows)) == EXPECTED


def test_a_part_inside_an_older_manifest_counts(tmp_path: Path) -> None:
    a_run(tmp_path, 3, Committed())
    flip(tmp_path / manifest_name(1))
    with pytest.raises(RestoreError, match=manifest_name(1)):
        a_run(tmp_path, 0, Committed())


def test_without_anything_whole_it_is_refused_with_the_files_name(tmp_path: Path) -> None:
    a_run(tmp_path, 4, Committed(), retained=1)
    put_parts_into_files(tmp_path)
    flip(tmp_path / "state" / "1" / "0-1")
    with pytest.raises(RestoreError, match=r"state/1/0-1 is damaged, its checksum does not match.*num-retained"):
        a_run(tmp_path, 0, Committed())


def test_every_single_bit_of_a_manifest_counts() -> None:
    data = Manifest(
        7, "f", positions={"a": {"0": 5}}, parts={"0/0": [StatePart(7, 1, True, 2)]}, inline={"0/0": b"ab"}
    ).to_json()
    for position in range(len(data)):
        for bit in range(8):
            damaged = bytearray(data)
            damaged[position] ^= 1 << bit
            with pytest.raises(RestoreError, match="the-file"):
                Manifest.from_json(bytes(damaged), "the-file")
    for length in range(len(data)):
        with pytest.raises(RestoreError, match="the-file"):
            Manifest.from_json(data[:length], "the-file")


def test_a_later_format_is_refused() -> None:
    with pytest.raises(RestoreError, match="x has format 99; .* reads up to 2: upgrade Millrace"):
        Manifest.from_json(Manifest(1, "", version=99).to_json(), "x")


@pytest.mark.parametrize("retained", [1, 2, 4])
def test_as_many_as_are_retained_can_be_restored(retained: int, tmp_path: Path) -> None:
    sink = Committed()
    a_run(tmp_path, 7, sink, retained)
    put_parts_into_files(tmp_path)
    storage = Storage(str(tmp_path))
    for epoch in range(8 - retained, 8):
        PartReader(storage, Manifest.from_json(storage.read(manifest_name(epoch)), "")).check()
    for epoch in range(9 - retained, 8):
        (tmp_path / manifest_name(epoch)).unlink()
    again = Committed()
    a_run(tmp_path, 0, again, retained).run(5)
    assert set(sink.rows) | set(again.rows) == {*sink.rows, *again.rows}
    assert len({*sink.rows, *again.rows}) == EXPECTED


class Sizes(Ledger):
    """A ledger that wants a full snapshot of every task in every third epoch."""

    def wants_full(self) -> list[str]:
        return [] if self.last is None or self.last.epoch % 3 else list(self.last.parts)


def test_what_no_retained_manifest_needs_is_deleted(tmp_path: Path) -> None:
    run = a_run(tmp_path, 0, Committed(), retained=2)
    run._ledger.__class__ = Sizes
    for _ in range(6):
        run.run_epoch(3)
    # Fulls are made in the epochs 1 and 4. The retained 5 and 6 need the parts from 4 on.
    assert epochs_in(Storage(str(tmp_path))) == [4, 5, 6]


def test_files_go_with_the_last_manifest_that_needs_them(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    ledger = Ledger(storage, {}, retained=2)
    for epoch in range(1, 6):
        storage.write(f"state/{epoch}", b"x")
        ledger.write(_manifest_with_file(epoch), _nothing())
        ledger.publish()
    assert storage.names("state") == ["4", "5"]
    assert epochs_in(storage) == [4, 5]


def _manifest_with_file(epoch: int) -> Manifest:
    part = StatePart(epoch, 0, True, 1, f"state/{epoch}", checksum_of(b"x"))
    return Manifest(epoch, f"graph {epoch}", parts={"0/0": [part]})


def _nothing() -> object:
    from millrace.runtime.ledger import EpochResult

    return EpochResult()


def test_a_damaged_manifest_is_kept_for_people_to_look_at(tmp_path: Path) -> None:
    a_run(tmp_path, 3, Committed())
    flip(tmp_path / manifest_name(3))
    shutil.copytree(tmp_path, tmp_path / "copy")
    a_run(tmp_path, 0, Committed())
    assert [path.name[:13] for path in (tmp_path / "damaged").iterdir()] == ["000000000003-"]
    assert epochs_in(Storage(str(tmp_path))) == [1, 2]
