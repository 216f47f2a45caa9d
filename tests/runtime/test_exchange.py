"""Routing and chunks: every record reaches the right task, in order, with its time and the watermarks around it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millrace.common.constants import LONG_MIN
from millrace.errors import GraphError
from millrace.graph.partitioners import (
    Broadcast,
    Custom,
    Forward,
    Global,
    KeyBy,
    Partitioner,
    Rebalance,
    Rescale,
    Shuffle,
)
from millrace.runtime import exchange
from millrace.runtime.chunk import ChunkRow, Mark, decode
from millrace.runtime.exchange import ExchangeWriter, make_router, rescale_targets
from millrace.runtime.operator import Batch, OperatorContext, RecordFailure
from millrace.state.key_groups import key_group, subtask_of_group
from millrace.state.store import OperatorStore


def writer_for(
    partitioner: Partitioner, targets: int, task: int = 0, tasks: int = 1
) -> tuple[ExchangeWriter, list[ChunkRow]]:
    rows: list[ChunkRow] = []
    context = OperatorContext("op", "op-uid", OperatorStore(), lambda: 0)
    routing = make_router(partitioner, task=task, tasks=tasks, targets=targets, max_parallelism=128, context=context)
    return ExchangeWriter(3, 1, targets, task, routing, rows.append), rows


def received(rows: list[ChunkRow], target: int) -> list[Any]:
    return [value for row in rows if row.target == target for value in decode(row.blob)[1]]


def test_a_keyed_record_goes_to_the_owner_of_its_key_group() -> None:
    writer, rows = writer_for(KeyBy(lambda value: value), 3)
    writer.write(Batch(["a", "key1", "flink"], [1, 2, 3]))
    writer.flush()
    assert [received(rows, target) for target in range(3)] == [["key1"], ["a"], ["flink"]]


@given(st.lists(st.lists(st.one_of(st.integers(), st.text(max_size=3)), max_size=20), max_size=5), st.integers(1, 5))
def test_keys_and_values_stay_together_and_in_order(batches: list[list[Any]], targets: int) -> None:
    writer, rows = writer_for(KeyBy(lambda value: value), targets)
    for batch in batches:
        writer.write(Batch(batch))
    writer.flush()
    everything = [value for batch in batches for value in batch]
    for target in range(targets):
        mine = [v for v in everything if subtask_of_group(key_group(v, 128), targets, 128) == target]
        assert received(rows, target) == mine
        assert [key for row in rows if row.target == target for key in decode(row.blob)[0] or []] == mine


@pytest.mark.parametrize(
    ("partitioner", "expected"),
    [
        (Rebalance(), [[0, 3], [1, 4], [2, 5]]),
        (Broadcast(), [[0, 1, 2, 3, 4, 5]] * 3),
        (Global(), [[0, 1, 2, 3, 4, 5], [], []]),
        (Forward(), [[0, 1, 2, 3, 4, 5], [], []]),
        (Custom(lambda key, width: key % width, lambda value: value * 2), [[0, 3], [2, 5], [1, 4]]),
    ],
)
def test_each_partitioner(partitioner: Partitioner, expected: list[list[int]]) -> None:
    writer, rows = writer_for(partitioner, 3)
    writer.write(Batch([0, 1, 2, 3]))
    writer.write(Batch([4, 5]))
    writer.flush()
    assert [received(rows, target) for target in range(3)] == expected


def test_forwarding_across_an_exchange_stays_with_the_task() -> None:
    writer, rows = writer_for(Forward(), 3, task=2, tasks=3)
    writer.write(Batch(["x"]))
    writer.flush()
    assert received(rows, 2) == ["x"]


def test_shuffle_is_even_and_the_same_whatever_the_batches() -> None:
    spread = []
    for size in (1, 7, 1000):
        writer, rows = writer_for(Shuffle(), 4)
        for start in range(0, 1000, size):
            writer.write(Batch(list(range(start, min(1000, start + size)))))
        writer.flush()
        spread.append([received(rows, target) for target in range(4)])
    assert spread[0] == spread[1] == spread[2]
    assert all(200 < len(values) < 300 for values in spread[0])


@given(st.integers(1, 8), st.integers(1, 8))
def test_rescale_covers_every_target_and_gives_every_task_some(tasks: int, targets: int) -> None:
    shares = [list(rescale_targets(task, tasks, targets)) for task in range(tasks)]
    assert all(shares)
    assert sorted({target for share in shares for target in share}) == list(range(targets))
    if targets > tasks:
        assert sum(len(share) for share in shares) == targets


def test_rescale_routes_within_its_share() -> None:
    writer, rows = writer_for(Rescale(), 4, task=1, tasks=2)
    writer.write(Batch([0, 1, 2]))
    writer.flush()
    assert received(rows, 0) == received(rows, 1) == []
    assert sorted(received(rows, 2) + received(rows, 3)) == [0, 1, 2]


def test_watermarks_stand_where_they_were_sent_and_only_the_last_of_a_run_stays() -> None:
    writer, rows = writer_for(Global(), 1)
    writer.write(Batch(["a"], [5]))
    writer.watermark(3)
    writer.watermark(4)
    writer.write(Batch(["b"], [6]))
    writer.idle(True)
    writer.flush()
    (row,) = rows
    assert decode(row.blob) == (None, ["a", "b"], [5, 6], [Mark(1, 4), Mark(2, None, True)])


def test_a_chunk_starts_with_the_watermark_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "CHUNK_RECORDS", 2)
    writer, rows = writer_for(Global(), 1)
    writer.write(Batch([1, 2]))
    writer.watermark(10)
    writer.write(Batch([3, 4]))
    writer.watermark(20)
    writer.write(Batch([5]))
    writer.flush()
    assert [(row.sequence, row.watermark) for row in rows] == [(0, LONG_MIN + 2), (1, LONG_MIN + 2), (2, 10)]
    assert [decode(row.blob)[1] for row in rows] == [[1, 2], [3, 4], [5]]


def test_batches_with_and_without_timestamps_mix() -> None:
    for order in ([None, [7, 8]], [[7, 8], None]):
        writer, rows = writer_for(Rebalance(), 2)
        for times in order:
            writer.write(Batch(["x", "y"], times))
        writer.flush()
        seen = {tuple(decode(row.blob)[2] or ()) for row in rows}
        assert seen == ({(LONG_MIN, 7), (LONG_MIN, 8)} if order[0] is None else {(7, LONG_MIN), (8, LONG_MIN)})


@pytest.mark.parametrize(
    ("partitioner", "what"),
    [
        (KeyBy(lambda value: value["missing"]), "key_by"),
        (Custom(lambda key, width: 9, lambda value: value), "partition_custom"),
    ],
)
def test_a_failing_selector_names_the_record(partitioner: Partitioner, what: str) -> None:
    writer, _ = writer_for(partitioner, 2)
    with pytest.raises(RecordFailure) as caught:
        writer.write(Batch([{"id": 1}]))
    assert caught.value.what == what
    assert caught.value.preview == "{'id': 1}"
    assert caught.value.uid == "op-uid"


def test_an_answer_out_of_range_says_the_range() -> None:
    writer, _ = writer_for(Custom(lambda key, width: -1, lambda value: value), 2)
    with pytest.raises(RecordFailure) as caught:
        writer.write(Batch([1]))
    assert isinstance(caught.value.error, GraphError)
    assert "there are 2 partitions, numbered from 0" in str(caught.value.error)


def test_a_channel_without_records_is_taken_first() -> None:
    writer, rows = writer_for(Global(), 1)
    writer.idle(True)
    writer.flush()
    writer.watermark(7)
    writer.flush()
    writer.write(Batch([1]))
    writer.watermark(8)
    writer.flush()
    assert [(row.sequence, row.watermark) for row in rows] == [(0, LONG_MIN + 1), (0, LONG_MIN + 1), (0, 7)]
