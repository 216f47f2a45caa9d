from __future__ import annotations

import os
import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from millrace.common import Encoder
from millrace.common.cloudpickles import by_value
from millrace.connectors.files import BucketAssigner, FileSink, OutputFileConfig, RollingPolicy, TextSink
from millrace.connectors.files.location import Location
from millrace.connectors.files.part_formats import EncodedLines
from millrace.connectors.files.writer import MAX_OPEN_PARTS
from millrace.errors import ConfigurationError, GraphError, JobError, TimeError
from millrace.runtime.context import RuntimeContext
from millrace.runtime.operator import OperatorContext
from millrace.runtime.sink import Sink, SinkWriter
from millrace.state.codec import dump, load
from millrace.state.store import OperatorStore

DAY_MS = 24 * 60 * 60 * 1000


def writer_of(sink: Sink[Any], subtask: int = 0) -> SinkWriter[Any]:
    """A writer as a worker makes it: from the sink's pickle."""
    context = OperatorContext("sink", "sink-1", OperatorStore(lambda: 0), lambda: 0, subtask=subtask, parallelism=4)
    there: Sink[Any] = pickle.loads(by_value(sink))
    return there.create_writer(RuntimeContext(context))


def stored(committables: Sequence[Any]) -> Any:
    """Committables as they come back from a manifest."""
    return load(dump(list(committables)))


def visible(folder: Path) -> list[Path]:
    return sorted(p for p in folder.rglob("*") if p.is_file() and not p.name.startswith("."))


def hidden(folder: Path) -> list[Path]:
    return sorted(p for p in folder.rglob(".*") if p.is_file())


def lines(folder: Path) -> list[str]:
    return sorted(line for path in visible(folder) for line in path.read_text().splitlines())


def test_nothing_is_visible_before_the_commit(tmp_path: Path) -> None:
    sink = TextSink(tmp_path)
    sink.open()
    writer = writer_of(sink)
    writer.write_batch(["a", "b"], None)
    assert visible(tmp_path) == []
    assert [path.name.endswith(".inprogress") for path in hidden(tmp_path)] == [True]
    prepared = writer.prepare_commit()
    assert visible(tmp_path) == []
    assert [path.name.endswith(".pending") for path in hidden(tmp_path)] == [True]
    sink.commit(stored(prepared))
    assert lines(tmp_path) == ["a", "b"]
    assert hidden(tmp_path) == []
    assert [path.suffix for path in visible(tmp_path)] == [".txt"]


def test_an_epoch_without_records_makes_no_file(tmp_path: Path) -> None:
    sink = TextSink(tmp_path)
    writer = writer_of(sink)
    writer.write_batch([], None)
    assert list(writer.prepare_commit()) == []
    assert visible(tmp_path) == hidden(tmp_path) == []


def test_a_part_ends_with_its_epoch(tmp_path: Path) -> None:
    sink = TextSink(tmp_path)
    writer = writer_of(sink)
    for record in ("a", "b", "c"):
        writer.write(record, None)
        sink.commit(stored(writer.prepare_commit()))
    assert sorted(path.read_text() for path in visible(tmp_path)) == ["a\n", "b\n", "c\n"]


def test_committing_twice_changes_nothing(tmp_path: Path) -> None:
    sink = TextSink(tmp_path)
    writer = writer_of(sink)
    writer.write_batch(["a", "b"], None)
    prepared = stored(writer.prepare_commit())
    sink.commit(prepared)
    before = visible(tmp_path)
    sink.commit(prepared)
    assert visible(tmp_path) == before
    assert lines(tmp_path) == ["a", "b"]


def test_a_crash_between_prepare_and_commit_is_made_good_by_the_next_run(tmp_path: Path) -> None:
    first = TextSink(tmp_path)
    first.open()
    writer = writer_of(first)
    writer.write_batch(["a"], None)
    in_manifest = stored(writer.prepare_commit())

    second = TextSink(tmp_path)
    second.open()
    assert lines(tmp_path) == []
    second.commit(in_manifest)
    assert lines(tmp_path) == ["a"]


def test_a_crash_amid_the_commit_is_made_good_by_the_next_run(tmp_path: Path) -> None:
    first = TextSink(tmp_path)
    prepared = []
    for subtask in range(3):
        writer = writer_of(first, subtask)
        writer.write(f"task {subtask}", None)
        prepared += stored(writer.prepare_commit())
    first.commit(prepared[:1])

    second = TextSink(tmp_path)
    second.open()
    second.commit(prepared)
    assert lines(tmp_path) == ["task 0", "task 1", "task 2"]


def test_a_retried_attempt_does_not_touch_what_the_first_one_wrote(tmp_path: Path) -> None:
    sink = TextSink(tmp_path)
    lost, counted = writer_of(sink), writer_of(sink)
    for writer in (lost, counted):
        writer.write_batch(["a", "b"], None)
    lost.prepare_commit()
    sink.commit(stored(counted.prepare_commit()))
    assert lines(tmp_path) == ["a", "b"]
    assert len(hidden(tmp_path)) == 1


def test_a_restarted_job_never_overwrites_a_file(tmp_path: Path) -> None:
    for record in ("first run", "second run"):
        sink = TextSink(tmp_path)
        sink.open()
        writer = writer_of(sink)
        writer.write(record, None)
        sink.commit(stored(writer.prepare_commit()))
        sink.close()
    assert lines(tmp_path) == ["first run", "second run"]


def test_leftovers_of_the_resumed_run_go_when_the_new_run_has_committed(tmp_path: Path) -> None:
    first = TextSink(tmp_path)
    lost, counted = writer_of(first), writer_of(first)
    for writer in (lost, counted):
        writer.write("a", None)
    lost.prepare_commit()
    in_manifest = stored(counted.prepare_commit())
    writer_of(first).write("never finished", None)
    somebody_else = writer_of(TextSink(tmp_path))
    somebody_else.write("of another job", None)
    of_another_job = stored(somebody_else.prepare_commit())

    second = TextSink(tmp_path)
    second.open()
    second.commit(in_manifest)
    assert len(hidden(tmp_path)) == 3
    writer = writer_of(second)
    writer.write("b", None)
    second.commit(stored(writer.prepare_commit()))
    assert [str(path) for path in hidden(tmp_path)] == [of_another_job[0]["pending"]]
    assert lines(tmp_path) == ["a", "b"]


def test_one_sink_object_behind_two_streams_resumes_both(tmp_path: Path) -> None:
    first = TextSink(tmp_path)
    manifest = []
    for record in ("left", "right"):
        writer = writer_of(first)
        writer.write(record, None)
        manifest.append(stored(writer.prepare_commit()))
    second = TextSink(tmp_path)
    second.open()
    for committables in manifest:
        second.commit(committables)
    assert lines(tmp_path) == ["left", "right"]


def test_close_of_a_writer_and_of_the_run_remove_unfinished_parts(tmp_path: Path) -> None:
    sink = TextSink(tmp_path)
    sink.open()
    failed, killed, prepared = writer_of(sink), writer_of(sink), writer_of(sink)
    for writer in (failed, killed, prepared):
        writer.write("a", None)
    failed.close()
    assert len(hidden(tmp_path)) == 2
    prepared.prepare_commit()
    sink.close()
    # The manifest may name a part that was prepared, whatever kept the commit from being called.
    assert [path.name.endswith(".pending") for path in hidden(tmp_path)] == [True]
    assert sink.remove_leftovers() == 1
    assert hidden(tmp_path) == []


def test_a_sink_in_two_jobs_keeps_the_parts_of_the_one_that_still_runs(tmp_path: Path) -> None:
    sink = TextSink(tmp_path)
    sink.open()
    sink.open()
    writer = writer_of(sink)
    writer.write("a", None)
    sink.close()
    sink.commit(stored(writer.prepare_commit()))
    assert lines(tmp_path) == ["a"]


def test_open_removes_only_what_nobody_has_written_to_for_a_day(tmp_path: Path) -> None:
    old, fresh = writer_of(TextSink(tmp_path)), writer_of(TextSink(tmp_path))
    old.write("old", None)
    (abandoned,) = hidden(tmp_path)
    fresh.write("fresh", None)
    foreign = tmp_path / ".notes.inprogress"
    foreign.write_text("not ours")
    for path in (abandoned, foreign):
        os.utime(path, (0, 0))
    TextSink(tmp_path).open()
    assert not abandoned.exists()
    assert foreign.exists()
    assert len(hidden(tmp_path)) == 2


def test_a_part_that_vanished_is_an_error_that_names_it(tmp_path: Path) -> None:
    sink = TextSink(tmp_path)
    writer = writer_of(sink)
    writer.write("a", None)
    prepared = stored(writer.prepare_commit())
    os.remove(prepared[0]["pending"])
    with pytest.raises(JobError, match=r"neither .*\.pending nor .* is there"):
        sink.commit(prepared)


def test_a_part_that_was_cut_is_not_committed(tmp_path: Path) -> None:
    sink = TextSink(tmp_path)
    torn, whole = writer_of(sink), writer_of(sink)
    torn.write("torn", None)
    whole.write("whole", None)
    prepared = stored([*torn.prepare_commit(), *whole.prepare_commit()])
    os.truncate(prepared[0]["pending"], 2)
    with pytest.raises(JobError, match="2 bytes instead of 5"):
        sink.commit(prepared)
    assert lines(tmp_path) == ["whole"]


def test_a_committed_file_that_somebody_changed_is_noticed(tmp_path: Path) -> None:
    sink = TextSink(tmp_path)
    writer = writer_of(sink)
    writer.write("a", None)
    prepared = stored(writer.prepare_commit())
    sink.commit(prepared)
    Path(prepared[0]["final"]).write_text("something else")
    with pytest.raises(JobError, match="somebody has changed it"):
        sink.commit(prepared)


def test_a_copied_but_not_yet_deleted_part_is_finished(tmp_path: Path) -> None:
    sink = TextSink(tmp_path)
    writer = writer_of(sink)
    writer.write("a", None)
    prepared = stored(writer.prepare_commit())
    Path(prepared[0]["final"]).write_bytes(Path(prepared[0]["pending"]).read_bytes())
    sink.commit(prepared)
    assert lines(tmp_path) == ["a"]
    assert hidden(tmp_path) == []


def test_pending_parts_are_committed_where_they_are_even_if_the_path_has_changed(tmp_path: Path) -> None:
    old = TextSink(tmp_path / "old")
    writer = writer_of(old)
    writer.write("a", None)
    prepared = stored(writer.prepare_commit())
    TextSink(tmp_path / "new").commit(prepared)
    assert lines(tmp_path / "old") == ["a"]


def test_parts_roll_at_their_size(tmp_path: Path) -> None:
    sink = TextSink(tmp_path, rolling_policy=RollingPolicy.default_rolling_policy(part_size=4))
    writer = writer_of(sink)
    writer.write_batch(["a", "b", "c", "long one", "d"], None)
    sink.commit(stored(writer.prepare_commit()))
    assert sorted(path.read_text() for path in visible(tmp_path)) == ["a\nb\n", "c\nlong one\n", "d\n"]


def test_parts_roll_by_age_and_when_idle(tmp_path: Path) -> None:
    now = [0]
    policy = RollingPolicy.default_rolling_policy(rollover_interval=100, inactivity_interval=30)
    layout = EncodedLines(Encoder.simple_string_encoder())
    sink = FileSink(tmp_path, layout, rolling_policy=policy, clock=lambda: now[0])
    context = OperatorContext("sink", "sink-1", OperatorStore(lambda: 0), lambda: 0)
    writer = sink.create_writer(RuntimeContext(context))
    for time, record in [(0, "a"), (29, "b"), (58, "c"), (87, "d"), (99, "e"), (100, "f"), (130, "g")]:
        now[0] = time
        writer.write(record, None)
    sink.commit(stored(writer.prepare_commit()))
    assert sorted(path.read_text() for path in visible(tmp_path)) == ["a\nb\nc\nd\ne\n", "f\n", "g\n"]


def test_records_go_to_their_buckets(tmp_path: Path) -> None:
    builder = FileSink.for_row_format(tmp_path, Encoder.simple_string_encoder())
    config = OutputFileConfig.builder().with_part_prefix("words").with_part_suffix(".log").build()
    sink = builder.with_bucket_assigner(lambda word: f"first={word[0]}").with_output_file_config(config).build()
    writer = writer_of(sink)
    writer.write_batch(["apple", "bean", "avocado"], None)
    sink.commit(stored(writer.prepare_commit()))
    assert lines(tmp_path / "first=a") == ["apple", "avocado"]
    assert lines(tmp_path / "first=b") == ["bean"]
    assert all(p.name.startswith("words-") and p.suffix == ".log" for p in visible(tmp_path))


def test_more_buckets_than_open_files(tmp_path: Path) -> None:
    sink = TextSink(tmp_path, bucket_assigner=str)
    writer = writer_of(sink)
    numbers = list(range(MAX_OPEN_PARTS + 10))
    writer.write_batch(numbers, None)
    writer.write_batch([0, 1, MAX_OPEN_PARTS], None)
    assert len([path for path in hidden(tmp_path) if path.suffix == ".inprogress"]) == MAX_OPEN_PARTS
    sink.commit(stored(writer.prepare_commit()))
    assert sorted(map(int, lines(tmp_path))) == sorted([*numbers, 0, 1, MAX_OPEN_PARTS])
    assert hidden(tmp_path) == []


@pytest.mark.parametrize("bucket", ["../up", "/top", "a//b", "a/", ".hidden", "a/_b", 7, None])
def test_a_bucket_that_readers_would_not_see_is_refused(tmp_path: Path, bucket: Any) -> None:
    writer = writer_of(TextSink(tmp_path, bucket_assigner=lambda record: bucket))
    with pytest.raises(ValueError, match="cannot be a bucket"):
        writer.write("a", None)


@pytest.mark.parametrize(
    ("form", "zone", "time", "bucket"),
    [
        ("yyyy-MM-dd--HH", "UTC", 0, "1970-01-01--00"),
        ("yyyy-MM-dd--HH", "Europe/Paris", 1_711_846_799_999, "2024-03-31--01"),
        ("yyyy-MM-dd--HH", "Europe/Paris", 1_711_846_800_000, "2024-03-31--03"),
        ("'year='yyyy/'day='D", "UTC", 1_704_067_200_000, "year=2024/day=1"),
        ("yy/M/d HHmmss.SSS", "UTC", 1_704_067_261_007, "24/1/1 000101.007"),
        ("uuuu''MM", "UTC", -1, "1969'12"),
    ],
)
def test_date_time_buckets(tmp_path: Path, form: str, zone: str, time: int, bucket: str) -> None:
    assigner = BucketAssigner.date_time_bucket_assigner(form, zone)
    layout = EncodedLines(Encoder.simple_string_encoder())
    sink = FileSink(tmp_path, layout, bucket_assigner=assigner, clock=lambda: time)
    writer = writer_of(sink)
    writer.write("a", None)
    sink.commit(stored(writer.prepare_commit()))
    assert lines(tmp_path / bucket) == ["a"]


def test_date_time_buckets_by_event_time(tmp_path: Path) -> None:
    by_day = BucketAssigner.date_time_bucket_assigner("yyyy-MM-dd", "UTC", event_time=True)
    sink = TextSink(tmp_path, bucket_assigner=by_day)
    writer = writer_of(sink)
    writer.write_batch(["a", "b", "c"], [0, DAY_MS, DAY_MS - 1])
    sink.commit(stored(writer.prepare_commit()))
    assert lines(tmp_path / "1970-01-01") == ["a", "c"]
    assert lines(tmp_path / "1970-01-02") == ["b"]
    with pytest.raises(TimeError, match="has no timestamp for its bucket"):
        writer.write("d", None)


@pytest.mark.parametrize("form", ["yyyy-MMM", "EEE", "", "yyyy'", "HH:mm z"])
def test_formats_that_are_not_understood_are_refused(form: str) -> None:
    with pytest.raises(ConfigurationError, match="bucket format"):
        BucketAssigner.date_time_bucket_assigner(form)


def test_mistakes_are_found_when_the_sink_is_made(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="'Middle/Earth' is unknown"):
        BucketAssigner.date_time_bucket_assigner(timezone_id="Middle/Earth")
    with pytest.raises(GraphError, match="no Encoder"):
        FileSink.for_row_format(tmp_path, "utf-8")  # type: ignore[arg-type]
    with pytest.raises(GraphError, match="no PartFormat"):
        FileSink.for_bulk_format(tmp_path, "parquet").build()  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="part_size=0"):
        RollingPolicy.default_rolling_policy(part_size=0)
    with pytest.raises(ConfigurationError, match="parts cannot be called"):
        OutputFileConfig("_part")
    with pytest.raises(ConfigurationError, match="no place for files"):
        TextSink("")
    with pytest.raises(ConfigurationError, match="cannot open the nowhere address"):
        TextSink("nowhere://host/folder")


def test_a_relative_path_means_the_working_directory_of_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    sink = TextSink("out")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    writer = writer_of(sink)
    writer.write("a", None)
    sink.commit(stored(writer.prepare_commit()))
    assert lines(tmp_path / "out") == ["a"]


@pytest.mark.parametrize("scheme", ["file://{folder}", "mock:///{folder}"])
def test_addresses_of_other_file_systems(tmp_path: Path, scheme: str) -> None:
    address = scheme.format(folder=f"{tmp_path}/out%20put".lstrip("/") if "mock" in scheme else f"{tmp_path}/out%20put")
    sink = FileSink.for_row_format(address, Encoder.simple_string_encoder()).build()
    sink.open()
    writer = writer_of(sink)
    writer.write_batch(["a", "b"], None)
    prepared = stored(writer.prepare_commit())
    location = Location(address)
    assert [path.endswith(".pending") for path, _ in location.files()] == [True]
    sink.commit(prepared)
    sink.commit(prepared)
    sink.close()
    ((path, size),) = location.files()
    assert size == 4
    assert location.open(path).read() == b"a\nb\n"


def test_passwords_in_addresses_are_not_written_down() -> None:
    location = Location("s3://key:secret@bucket/folder?region=eu-west-1")
    assert location.shown == "s3://bucket/folder"
    assert "secret" not in repr(location)
