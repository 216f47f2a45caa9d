"""One driver for one checkpoint folder."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from millrace.errors import JobError
from millrace.runtime.ledger import EpochResult, Ledger
from millrace.state.fence import Fence, FencedError
from millrace.state.manifest import Manifest, epochs_in
from millrace.state.storage import Storage

OWNER = "owner/owner.json"


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return Storage(str(tmp_path))


def change_owner(storage: Storage, **changes: object) -> None:
    storage.write(OWNER, json.dumps({**json.loads(storage.read(OWNER)), **changes}).encode())


def test_the_second_is_refused_while_the_first_is_alive(storage: Storage) -> None:
    with Fence(storage, "run-1", "sums") as first, pytest.raises(JobError) as caught:
        Fence(storage, "run-2", "sums").take()
    message = str(caught.value)
    assert f"{storage.location} is in use by job 'sums' (run run-1, process {first.owner.pid} on" in message
    assert f"since {first.owner.since})" in message
    assert "taken over after 60 s without a sign of life" in message
    assert f"delete {storage.location}/{OWNER}" in message


def test_a_folder_that_was_left_is_free(storage: Storage) -> None:
    with Fence(storage, "run-1", "sums"):
        pass
    assert storage.names("owner") == []
    with Fence(storage, "run-2", "sums") as second:
        second.check()


def test_a_dead_process_of_this_machine_is_taken_over(storage: Storage) -> None:
    code = (
        "import os, sys; from millrace.state.fence import Fence; from millrace.state.storage import Storage; "
        "Fence(Storage(sys.argv[1]), 'dead', 'sums').take(); os._exit(9)"
    )
    subprocess.run([sys.executable, "-c", code, storage.location], check=False)
    assert json.loads(storage.read(OWNER))["run"] == "dead"
    with Fence(storage, "run-2", "sums") as second:
        second.check()
        assert storage.names("owner") == ["owner.json", "run-2.beat"]


def test_another_process_with_the_same_pid_is_not_the_owner(storage: Storage) -> None:
    Fence(storage, "run-1", "sums").take()
    change_owner(storage, process="long ago")
    Fence(storage, "run-2", "sums").take()


def test_a_machine_that_says_nothing_is_taken_over(storage: Storage) -> None:
    first = Fence(storage, "run-1", "sums")
    first.take()
    change_owner(storage, host="elsewhere", pid=1)
    with pytest.raises(JobError, match="on elsewhere"):
        Fence(storage, "run-2", "sums").take()
    storage.write(first.owner.beat, b"1000.0")
    second = Fence(storage, "run-2", "sums")
    second.take()
    with pytest.raises(FencedError, match=r"was taken over by job 'sums' \(run run-2"):
        first.check()
    first.release()
    second.check()


def ledger(storage: Storage, fence: Fence) -> Ledger:
    return Ledger(storage, {}, run=fence.owner.run, fence=fence)


def test_a_fenced_off_driver_cannot_commit(storage: Storage) -> None:
    old, new = Fence(storage, "old", "sums"), Fence(storage, "new", "sums")
    old.take()
    before = ledger(storage, old)
    before.commit(Manifest(1, "g"), EpochResult())
    storage.delete(OWNER)
    new.take()
    after = ledger(storage, new)
    assert after.resume() is not None
    with pytest.raises(FencedError, match="ends without another commit"):
        before.commit(Manifest(2, "g"), EpochResult())
    assert epochs_in(storage) == [1]
    after.commit(Manifest(2, "g"), EpochResult())
    assert epochs_in(storage) == [2]


def test_an_epoch_that_another_run_has_written_is_not_written_again(storage: Storage) -> None:
    """Even if the old driver looked at the owner just before the new one came."""
    Ledger(storage, {}, run="one").commit(Manifest(1, "g"), EpochResult())
    with pytest.raises(FencedError, match=r"manifests/000000000001.json was written by another run: this run \(two\)"):
        Ledger(storage, {}, run="two").commit(Manifest(1, "g"), EpochResult())


def test_a_torn_owner_file_is_nobodys(storage: Storage) -> None:
    storage.write(OWNER, b'{"run": ')
    Fence(storage, "run-1", "sums").take()
