"""The sources and sinks that come with the API, without a job around them."""

from __future__ import annotations

import gzip
import json
import pickle
import socket
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millrace.common.rendering import renderer
from millrace.common.row import Row, RowKind
from millrace.common.typeinfo import Types
from millrace.connectors import (
    CollectionSource,
    CollectSink,
    DiscardSink,
    FunctionSink,
    GeneratorSource,
    NumberSequenceSource,
    PrintSink,
    SocketTextSource,
    TextFileSource,
)
from millrace.connectors.collect_sink import CollectedRecords
from millrace.connectors.print_sink import line_prefix
from millrace.datastream import SinkFunction, SourceFunction
from millrace.datastream._source_function import FunctionSource
from millrace.errors import GraphError, JobError
from millrace.runtime.context import RuntimeContext
from millrace.runtime.operator import Batch, OperatorContext
from millrace.runtime.source import Source
from millrace.state.store import OperatorStore

LIMITS = st.lists(st.integers(1, 7), max_size=20)


def read_all(source: Source[Any], parallelism: int, limits: list[int]) -> dict[str, list[Any]]:
    """Every split read to its end, in steps of the given sizes and then in one; the source travels as it would."""
    reader: Source[Any] = pickle.loads(pickle.dumps(source))
    read: dict[str, list[Any]] = {}
    for split, start in source.splits(parallelism).items():
        position, finished, steps = start, False, iter(limits)
        read[split] = []
        while not finished:
            end, finished = source.advance(split, position, next(steps, None))
            assert json.loads(json.dumps(end)) == end
            for batch in reader.read(split, position, end):
                read[split].extend(batch.values if isinstance(batch, Batch) else batch)
            position = end
    return read


def context(subtask: int = 0, parallelism: int = 1) -> RuntimeContext:
    store = OperatorStore(lambda: 0)
    return RuntimeContext(OperatorContext("sink", "1", store, lambda: 0, subtask=subtask, parallelism=parallelism))


def square(index: int) -> int:
    return index * index


# Sources


@settings(deadline=None)
@given(values=st.lists(st.integers(), min_size=1, max_size=30), limits=LIMITS)
def test_a_collection_is_read_in_order_whatever_the_steps(values: list[int], limits: list[int]) -> None:
    assert read_all(CollectionSource(values), 3, limits) == {"0": values}


def test_a_long_collection_comes_in_several_lists() -> None:
    source = CollectionSource(range(10_000))
    assert [len(batch) for batch in source.read("0", 5, 9_000)] == [4096, 4096, 803]
    assert source.bounded
    assert not source.parallel


@settings(deadline=None)
@given(start=st.integers(-50, 50), count=st.integers(1, 40), parallelism=st.integers(1, 8), limits=LIMITS)
def test_a_sequence_gives_every_number_once(start: int, count: int, parallelism: int, limits: list[int]) -> None:
    read = read_all(NumberSequenceSource(start, start + count - 1), parallelism, limits)
    assert [number for numbers in read.values() for number in numbers] == list(range(start, start + count))
    assert len(read) == min(parallelism, count)


def test_a_sequence_is_cut_into_ranges_of_about_the_same_length() -> None:
    assert NumberSequenceSource(0, 9).splits(4) == {"0..2": 0, "3..5": 3, "6..7": 6, "8..9": 8}
    assert NumberSequenceSource(-3, -2).splits(1) == {"-3..-2": -3}


@settings(deadline=None)
@given(count=st.integers(1, 40), splits=st.integers(1, 8), limits=LIMITS)
def test_a_generator_gives_every_number_once(count: int, splits: int, limits: list[int]) -> None:
    read = read_all(GeneratorSource(square, count, splits=splits), 1, limits)
    assert sorted(value for values in read.values() for value in values) == [square(n) for n in range(count)]


def test_the_numbers_of_a_generator_are_dealt_out_in_turn() -> None:
    assert read_all(GeneratorSource(square, 5), 2, []) == {"0/2": [0, 4, 16], "1/2": [1, 9]}


def test_a_generator_keeps_to_its_rate() -> None:
    now = 100.0
    source = GeneratorSource(square, records_per_second=10, splits=2, clock=lambda: now)
    assert not source.bounded
    assert source.advance("0/2", 7, 1000) == (7, False)
    now = 101.0
    assert source.advance("0/2", 7, 1000) == (12, False)
    assert source.advance("0/2", 12, 1000) == (12, False)
    now = 101.5
    assert source.advance("0/2", 12, 1000) == (14, False)
    assert source.advance("0/2", 12, 1) == (13, False)


def test_a_bounded_generator_ends_at_its_count_and_at_once_when_all_is_asked_for() -> None:
    now = 0.0
    source = GeneratorSource(square, count=10, records_per_second=1, splits=1, clock=lambda: now)
    assert source.advance("0/1", 0, 1000) == (0, False)
    now = 60.0
    assert source.advance("0/1", 0, 1000) == (10, True)
    assert source.advance("0/1", 3, None) == (10, True)


@pytest.mark.parametrize(
    "arguments", [{"count": 0}, {"records_per_second": 0}, {"splits": 0}, {"function": 5}], ids=str
)
def test_generators_that_make_no_sense(arguments: dict[str, Any]) -> None:
    with pytest.raises(GraphError):
        GeneratorSource(**{"function": square, **arguments})


LINES = st.lists(st.text(st.characters(exclude_characters="\n\r", exclude_categories=("Cs",)), max_size=8), max_size=20)


@settings(max_examples=50, deadline=None)
@given(lines=LINES, limits=LIMITS, end=st.booleans(), newline=st.sampled_from(["\n", "\r\n"]))
def test_lines_are_the_same_whatever_the_steps(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], limits: list[int], end: bool, newline: str
) -> None:
    path = tmp_path_factory.mktemp("text") / "lines.txt"
    lines = [line for line in lines if line and not line.startswith("\ufeff")]
    path.write_bytes((newline.join(lines) + (newline if end and lines else "")).encode())
    assert read_all(TextFileSource(path), 1, limits) == {str(path): lines}


def test_empty_lines_stay_and_the_byte_order_mark_goes(tmp_path: Path) -> None:
    path = tmp_path / "lines.txt"
    path.write_bytes("\ufeffa\n\nb\u2028c\n".encode())
    assert read_all(TextFileSource(path), 1, [1, 1]) == {str(path): ["a", "", "b\u2028c"]}


def test_files_in_a_directory_and_by_pattern(tmp_path: Path) -> None:
    (tmp_path / "b.txt").write_text("b1\nb2\n")
    (tmp_path / "a.txt").write_text("a1\n")
    (tmp_path / "_SUCCESS").write_text("")
    (tmp_path / ".hidden").write_text("hidden")
    (tmp_path / "deeper").mkdir()
    (tmp_path / "deeper" / "c.csv").write_text("c1\n")
    everything = {str(tmp_path / "a.txt"): ["a1"], str(tmp_path / "b.txt"): ["b1", "b2"]}
    assert read_all(TextFileSource(str(tmp_path / "*.txt")), 1, [1]) == everything
    everything[str(tmp_path / "deeper" / "c.csv")] = ["c1"]
    assert read_all(TextFileSource(tmp_path), 1, [1]) == everything
    assert read_all(TextFileSource(f"file://{tmp_path}"), 1, [1]) == everything
    assert list(TextFileSource([tmp_path / "b.txt", tmp_path / "a.txt"]).splits(1)) == [
        str(tmp_path / "b.txt"),
        str(tmp_path / "a.txt"),
    ]


@pytest.mark.parametrize("charset", ["UTF-16", "UTF-16-LE", "latin-1", "cp037"])
def test_charsets(tmp_path: Path, charset: str) -> None:
    path = tmp_path / "lines.txt"
    path.write_bytes("grün\nöde\n".encode(charset))
    assert read_all(TextFileSource(path, charset), 1, [1]) == {str(path): ["grün", "öde"]}


def test_compressed_files(tmp_path: Path) -> None:
    path = tmp_path / "lines.txt.gz"
    path.write_bytes(gzip.compress(b"a\r\nb\n" * 5000))
    read = read_all(TextFileSource(path), 1, [1])
    assert read == {str(path): ["a", "b"] * 5000}


def test_an_unknown_charset(tmp_path: Path) -> None:
    with pytest.raises(GraphError, match="the charset 'utf-99' is unknown"):
        TextFileSource(tmp_path, "utf-99")


def serve(*connections: list[bytes]) -> tuple[int, threading.Thread]:
    """A server that takes one connection after the other and sends each its pieces."""
    server = socket.create_server(("127.0.0.1", 0))

    def run() -> None:
        with server:
            for pieces in connections:
                client, _ = server.accept()
                with client:
                    for piece in pieces:
                        client.sendall(piece)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return server.getsockname()[1], thread


def test_lines_from_a_socket() -> None:
    port, server = serve([b"on", b"e\r\ntwo\nthr", b"ee"])
    source = SocketTextSource("127.0.0.1", port)
    assert not source.bounded
    source.start().join()
    server.join()
    first, finished = source.advance("0", [0, []], 2)
    assert (first, finished) == ([2, ["one", "two"]], False)
    last, finished = source.advance("0", first, None)
    assert (last, finished) == ([3, ["three"]], True)
    assert source.bounded
    reader = pickle.loads(pickle.dumps(source))
    assert list(reader.read("0", [0, []], first)) == [["one", "two"]]
    assert list(reader.read("0", first, last)) == [["three"]]
    assert list(reader.read("0", last, last)) == []
    source.close()


def test_a_socket_is_connected_again_as_often_as_told() -> None:
    port, server = serve([b"a;b;"], [b"c;"])
    source = SocketTextSource("127.0.0.1", port, delimiter=";", max_retry=1)
    source.start().join()
    server.join()
    assert source.advance("0", [0, []], None) == ([3, ["a", "b", "c"]], True)


def test_a_socket_without_a_server() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    source = SocketTextSource("127.0.0.1", port)
    source.start().join()
    with pytest.raises(JobError, match="SocketTextSource.* cannot go on"):
        source.advance("0", [0, []], None)


@pytest.mark.parametrize("arguments", [("h", 0), ("h", 70_000), ("h", 1, ""), ("h", 1, "\n", -2)])
def test_sockets_that_make_no_sense(arguments: tuple[Any, ...]) -> None:
    with pytest.raises(GraphError, match="socket_text_stream"):
        SocketTextSource(*arguments)


class Counting(SourceFunction):
    def run(self, ctx: SourceFunction.SourceContext) -> Any:
        yield from range(5)


class Timed(SourceFunction):
    def run(self, ctx: SourceFunction.SourceContext) -> None:
        ctx.collect("none")
        ctx.collect_with_timestamp("five", 5)


class Failing(SourceFunction):
    def run(self, ctx: SourceFunction.SourceContext) -> Any:
        yield 1
        raise OSError("gone")


@settings(deadline=None)
@given(limits=LIMITS)
def test_a_source_function(limits: list[int]) -> None:
    source = FunctionSource(Counting())
    source.start().join()
    assert read_all(source, 1, limits) == {"0": [0, 1, 2, 3, 4]}


def test_a_source_function_with_timestamps() -> None:
    source = FunctionSource(Timed())
    source.start().join()
    end, _ = source.advance("0", [0, []], None)
    (batch,) = source.read("0", [0, []], end)
    assert isinstance(batch, Batch)
    assert (batch.values, batch.timestamps) == (["none", "five"], [-(2**63), 5])


def test_a_source_function_goes_on_where_an_earlier_run_stopped() -> None:
    source = FunctionSource(Counting())
    source.open()
    source.advance("0", [3, []], 0)
    source.start().join()
    end, finished = source.advance("0", [3, []], None)
    assert list(source.read("0", [3, []], end))[0].values == [3, 4]  # type: ignore[union-attr]
    assert (end[0], finished) == (5, True)


def test_a_source_function_runs_again_in_the_next_job() -> None:
    source = FunctionSource(Counting())
    for _ in range(2):
        source.open()
        assert not source.bounded
        source.start().join()
        assert read_all(source, 1, []) == {"0": [0, 1, 2, 3, 4]}
        source.close()


def test_a_source_function_ends_when_the_job_does() -> None:
    class Endless(SourceFunction):
        def run(self, ctx: SourceFunction.SourceContext) -> Any:
            number = 0
            while True:
                ctx.collect(number)
                number += 1

    source = FunctionSource(Endless())
    thread = source.start()
    source.close()
    thread.join(timeout=60)
    assert not thread.is_alive()


def test_a_source_function_that_fails_gives_what_it_had_first() -> None:
    source = FunctionSource(Failing())
    source.start().join()
    end, finished = source.advance("0", [0, []], None)
    assert (end[0], finished) == (1, False)
    with pytest.raises(JobError, match="Failing.* cannot go on: gone") as failure:
        source.advance("0", end, None)
    assert isinstance(failure.value.__cause__, OSError)


# Sinks


@pytest.mark.parametrize(
    ("value", "text"),
    [("a", "a"), (1, "1"), (None, "None"), (("a", 1), "('a', 1)"), (Row("a", 1), "<Row('a', 1)>")],
)
def test_printed_values_of_undeclared_type(value: Any, text: str) -> None:
    assert renderer(None)(value) == text
    assert renderer(Types.PICKLED_BYTE_ARRAY())(value) == text


@pytest.mark.parametrize(
    ("row", "text"),
    [
        (Row("a", 1), "+I[a, 1]"),
        (Row("x", None), "+I[x, null]"),
        (Row.of_kind(RowKind.DELETE, "a", 2), "-D[a, 2]"),
        (Row.of_kind(RowKind.UPDATE_BEFORE, "a", 2), "-U[a, 2]"),
        (Row.of_kind(RowKind.UPDATE_AFTER, "a", 2), "+U[a, 2]"),
    ],
)
def test_printed_rows(row: Row, text: str) -> None:
    assert renderer(Types.ROW([Types.STRING(), Types.INT()]))(row) == text


def test_prefixes() -> None:
    assert line_prefix("", 0, 1) == ""
    assert line_prefix("", 0, 2) == "1> "
    assert line_prefix("id", 0, 1) == "id> "
    assert line_prefix("id", 1, 2) == "id:2> "


def test_print_sink(capsys: pytest.CaptureFixture[str]) -> None:
    for sink in (PrintSink("id"), PrintSink(to_stderr=True)):
        assert sink.volatile
        writer = pickle.loads(pickle.dumps(sink)).create_writer(context(1, 2))
        writer.write_batch(["a", "b"], None)
        sink.commit(writer.prepare_commit())
        sink.commit(writer.prepare_commit())
    printed = capsys.readouterr()
    assert printed.out == "id:2> a\nid:2> b\n"
    assert printed.err == "2> a\n2> b\n"


def test_collect_sink_keeps_its_records_on_the_driver() -> None:
    sink = CollectSink()
    sink.records.add(["here"])
    travelled = pickle.loads(pickle.dumps(sink))
    writer = travelled.create_writer(context())
    writer.write("a", None)
    sink.commit(writer.prepare_commit())
    assert list(writer.prepare_commit()) == []
    sink.records.end()
    assert [sink.records.take(), sink.records.take(), sink.records.take("over")] == ["here", "a", "over"]


def test_records_that_nobody_takes_are_dropped() -> None:
    records = CollectedRecords()
    records.add([1])
    records.discard()
    records.add([2])
    assert records.take("over") == "over"


def test_a_job_waits_for_its_results_to_be_taken() -> None:
    records = CollectedRecords()
    records.add(list(range(100_000)))
    added = threading.Thread(target=records.add, args=([-1],), daemon=True)
    added.start()
    assert records.take() == 0
    added.join(timeout=60)
    assert not added.is_alive()


def test_function_sinks() -> None:
    events: list[Any] = []

    class Full(SinkFunction):
        def open(self, runtime_context: RuntimeContext) -> None:
            events.append(("open", runtime_context.get_index_of_this_subtask()))

        def invoke(self, value: Any, context: SinkFunction.Context) -> None:
            events.append((value, context.timestamp()))

        def close(self) -> None:
            events.append("close")

    class Short(SinkFunction):
        def write(self, value: Any) -> None:
            events.append(value)

    class OnlyValue(SinkFunction):
        def invoke(self, value: Any) -> None:  # type: ignore[override]
            events.append(value)

    class NoBase:
        def write(self, value: Any) -> None:
            events.append(value)

    for function in (Full(), Short(), OnlyValue(), NoBase(), events.append):
        writer = FunctionSink(function).create_writer(context(1, 2))
        writer.write_batch(["a"], [5])
        writer.write("b", None)
        writer.close()
    assert events == [("open", 1), ("a", 5), ("b", None), "close", *["a", "b"] * 4]


def test_discard() -> None:
    writer = DiscardSink().create_writer(context())
    writer.write("a", None)
    writer.write_batch(["a"], None)
    assert list(writer.prepare_commit()) == []
