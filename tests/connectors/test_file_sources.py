from __future__ import annotations

import bz2
import gzip
import json
import lzma
import pickle
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from millrace.common import Duration, Types
from millrace.common.cloudpickles import by_value
from millrace.connectors.files import CsvSource, FileSource, JsonSource, ParquetSource
from millrace.connectors.files.csv_format import CsvFormat, CsvStyle
from millrace.connectors.files.location import Location
from millrace.connectors.files.read_formats import JsonFormat, StreamFormat, TextLineFormat
from millrace.errors import ConfigurationError, GraphError, JobError
from millrace.runtime.coordinator import EpochPlan, SourceCoordinator


def read_in_epochs(source: FileSource, limits: list[int | None], parallelism: int = 1) -> list[Any]:
    """Everything a bounded source gives, in epochs of these sizes; driver and workers share nothing but plain data."""
    coordinator = SourceCoordinator({"files": (source, parallelism)})
    worker: FileSource = pickle.loads(by_value(source))
    found = []
    while not coordinator.done:
        limit = limits.pop(0) if limits else None
        plan = EpochPlan.from_json(json.loads(json.dumps(coordinator.plan(limit).to_json())))
        for pieces in plan.ranges.values():
            for piece in pieces:
                for batch in worker.read(piece.split, piece.start, piece.end):
                    found += batch
        coordinator.confirm(plan)
    return found


def text_source(*paths: Any, **options: Any) -> FileSource:
    return FileSource(list(paths), TextLineFormat(), **options)


LINES = st.text(st.characters(exclude_characters="\n\r\ufeff", exclude_categories=["Cs"]), max_size=5)
LIMITS = st.lists(st.integers(1, 4), max_size=12)
FILES = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@FILES
@given(lines=st.lists(LINES, min_size=1, max_size=12), limits=LIMITS, size=st.integers(1, 20), ended=st.booleans())
def test_lines_are_the_same_however_they_are_cut(
    tmp_path: Path, lines: list[str], limits: list[int | None], size: int, ended: bool
) -> None:
    path = tmp_path / "lines.txt"
    # The last line of a file counts only if something is in it or something ends it.
    path.write_bytes("\n".join([*lines, "" if ended else "end"]).encode())
    expected = lines if ended else [*lines, "end"]
    assert read_in_epochs(text_source(path, split_bytes=None), list(limits)) == expected
    assert sorted(read_in_epochs(text_source(path, split_bytes=size), list(limits))) == sorted(expected)


@FILES
@given(cells=st.lists(st.lists(st.text('a",\n\r;é', max_size=4), min_size=2, max_size=2), max_size=10), limits=LIMITS)
def test_csv_is_the_same_however_it_is_cut(tmp_path: Path, cells: list[list[str]], limits: list[int | None]) -> None:
    path = tmp_path / "cells.csv"
    path.write_bytes(CsvStyle().write([["a", "b"], *cells]).encode())
    expected = [{"a": a, "b": b} for a, b in cells]
    assert read_in_epochs(FileSource(path, CsvFormat()), list(limits)) == expected


@FILES
@given(count=st.integers(0, 30), group=st.integers(1, 7), limits=LIMITS)
def test_parquet_is_the_same_however_it_is_cut(
    tmp_path: Path, count: int, group: int, limits: list[int | None]
) -> None:
    path = tmp_path / "numbers.parquet"
    pq.write_table(pa.table({"n": pa.array(range(count), pa.int64())}), path, row_group_size=group)
    assert read_in_epochs(ParquetSource(path), list(limits)) == [{"n": number} for number in range(count)]


@FILES
@given(numbers=st.lists(st.integers(), max_size=12), limits=LIMITS, size=st.integers(1, 20))
def test_json_is_the_same_however_it_is_cut(
    tmp_path: Path, numbers: list[int], limits: list[int | None], size: int
) -> None:
    path = tmp_path / "numbers.json"
    path.write_text("".join(f'{{"n": {number}}}\n' for number in numbers))
    found = read_in_epochs(JsonSource(path, split_bytes=size), list(limits))
    assert sorted(record["n"] for record in found) == sorted(numbers)


def test_a_large_file_is_read_from_several_places(tmp_path: Path) -> None:
    path = tmp_path / "numbers.txt"
    path.write_text("".join(f"{number}\n" for number in range(100_000)))
    source = text_source(path, split_bytes=100_000)
    name = str(path)
    starts = source.splits(1)
    assert list(starts) == [name, *(f"{name} from byte {n}00000" for n in range(1, 6))]
    whole = path.read_bytes()
    assert all(start == 0 or whole[start - 1 : start] == b"\n" for start in starts.values())
    assert sorted(map(int, read_in_epochs(source, [7, 1_000, None]))) == list(range(100_000))
    assert list(text_source(path, split_bytes=None).splits(4)) == [name]
    assert list(FileSource(path, CsvFormat(), split_bytes=10).splits(4)) == [name]


def test_a_file_that_is_called_like_a_part_of_one(tmp_path: Path) -> None:
    path = tmp_path / "a.txt from byte 3"
    path.write_text("one\ntwo\n")
    assert read_in_epochs(text_source(path), [1]) == ["one", "two"]


def test_folders_are_read_with_all_below_them_but_what_is_hidden(tmp_path: Path) -> None:
    for name in ["b.txt", "a.txt", "deep/er/c.txt", ".part.inprogress", "_SUCCESS", "_temporary/d.txt", "deep/.e.txt"]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"{name}\n")
    assert read_in_epochs(text_source(tmp_path), []) == ["a.txt", "b.txt", "deep/er/c.txt"]
    assert read_in_epochs(text_source(tmp_path / "_SUCCESS"), []) == ["_SUCCESS"]
    assert read_in_epochs(text_source(f"{tmp_path}/*.txt", tmp_path / "a.txt"), []) == ["a.txt", "b.txt"]
    assert read_in_epochs(text_source(f"{tmp_path}/**/*.txt"), [])[-1] == "deep/er/c.txt"
    assert read_in_epochs(text_source(f"file://{tmp_path}/deep"), []) == ["deep/er/c.txt"]


def test_line_ends_byte_order_marks_and_charsets(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"\xef\xbb\xbfone\r\n\r\ntwo")
    assert read_in_epochs(text_source(path), [1]) == ["one", "", "two"]
    path.write_bytes("é\nü\n".encode("latin-1"))
    assert read_in_epochs(FileSource(path, StreamFormat.text_line_format("latin-1")), [1]) == ["é", "ü"]
    path.write_bytes("é\n\u0a0a\n".encode("utf-16"))
    assert read_in_epochs(FileSource(path, TextLineFormat("utf-16")), [1]) == ["é", "\u0a0a"]
    with pytest.raises(GraphError, match="the charset 'utf-99' is unknown"):
        StreamFormat.text_line_format("utf-99")


@pytest.mark.parametrize(("suffix", "compress"), [("gz", gzip.compress), ("bz2", bz2.compress), ("xz", lzma.compress)])
def test_compressed_files(tmp_path: Path, suffix: str, compress: Callable[[bytes], bytes]) -> None:
    (tmp_path / f"a.txt.{suffix}").write_bytes(compress(b"one\ntwo\n" * 1000))
    assert read_in_epochs(text_source(tmp_path, split_bytes=5), [3]) == ["one", "two"] * 1000
    (tmp_path / f"a.txt.{suffix}").write_bytes(compress(b"n\n1\n2\n"))
    assert read_in_epochs(CsvSource(tmp_path), [1]) == [{"n": "1"}, {"n": "2"}]


def test_empty_files(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("")
    assert read_in_epochs(text_source(tmp_path), [1]) == []
    assert read_in_epochs(CsvSource(tmp_path), [1]) == []
    (tmp_path / "a").write_text("only,a,header\n")
    assert read_in_epochs(CsvSource(tmp_path), [1]) == []


def test_a_watched_folder_gives_new_files_once(tmp_path: Path) -> None:
    now = [0.0]
    folder = tmp_path / "comes later"
    source = text_source(folder, monitor=Duration.of_seconds(10), clock=lambda: now[0])
    coordinator = SourceCoordinator({"files": (source, 1)})

    def epoch() -> list[str]:
        plan = coordinator.plan(100)
        pieces = [piece for ranges in plan.ranges.values() for piece in ranges]
        coordinator.confirm(plan)
        return [line for p in pieces for batch in source.read(p.split, p.start, p.end) for line in batch]

    assert not source.bounded
    assert epoch() == []
    folder.mkdir()
    (folder / "a").write_text("one\n")
    (folder / "begun").write_text("")
    now[0] = 9.9
    assert epoch() == []
    now[0] = 10.0
    assert epoch() == ["one"]
    (folder / "b").write_text("two\n")
    (folder / "begun").write_text("three\n")
    (folder / ".c").write_text("hidden\n")
    now[0] = 25.0
    assert sorted(epoch()) == ["three", "two"]
    now[0] = 50.0
    assert epoch() == []


def test_a_watched_folder_goes_on_where_it_was(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one\ntwo\n")
    before = SourceCoordinator({"files": (text_source(tmp_path, monitor=1), 1)})
    before.confirm(before.plan(1))
    (tmp_path / "b").write_text("three\n")
    source = text_source(tmp_path, monitor=1)
    after = SourceCoordinator({"files": (source, 1)})
    after.restore(json.loads(json.dumps(before.positions)), sorted(before.finished), {})
    ranges = after.plan(None).ranges[0]
    assert [list(source.read(r.split, r.start, r.end)) for r in ranges] == [[["two"]], [["three"]]]


def test_any_range_can_be_read_again(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text("".join(f"{number}\n" for number in range(50)))
    source = FileSource(path, JsonFormat(Types.INT()))
    cuts = [0]
    while cuts[-1] < path.stat().st_size:
        cuts.append(source.advance(str(path), cuts[-1], random.Random(cuts[-1]).randint(1, 9))[0])
    for start, end in zip(cuts, cuts[1:], strict=False):
        assert list(source.read(str(path), start, end)) == list(source.read(str(path), start, end))
    assert [n for batch in source.read(str(path), 0, cuts[-1]) for n in batch] == list(range(50))
    assert list(source.read(str(path), cuts[3], cuts[3])) == []


def test_other_file_systems() -> None:
    folder = Location("mock:///files/in")
    with folder.create(folder.path_of("a.txt")) as stream:
        stream.write(b"one\ntwo\n" * 100)
    with folder.create(folder.path_of("_b.txt")) as stream:
        stream.write(b"hidden\n")
    source = text_source("mock:///files/in", split_bytes=100)
    assert len(source.splits(1)) == 8
    assert sorted(read_in_epochs(source, [3, 5])) == ["one"] * 100 + ["two"] * 100


def test_mistakes(tmp_path: Path) -> None:
    with pytest.raises(GraphError, match="no file to read at '.*nowhere'"):
        text_source(tmp_path / "nowhere")
    with pytest.raises(GraphError, match="at least one path"):
        FileSource.for_record_stream_format(TextLineFormat()).build()
    with pytest.raises(GraphError, match="no FileFormat"):
        FileSource(tmp_path, "csv")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="split_bytes=0"):
        text_source(tmp_path, split_bytes=0)
    builder = FileSource.for_record_stream_format(TextLineFormat(), tmp_path)
    with pytest.raises(ConfigurationError, match="use an interval above 0"):
        builder.monitor_continuously(Duration.of_millis(0))
    path = tmp_path / "a.txt"
    path.write_text("one\n")
    source = builder.build()
    path.unlink()
    with pytest.raises(JobError, match=r"a\.txt was there when the job listed its files"):
        source.advance(str(path), 0, None)
