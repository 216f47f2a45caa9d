"""Window functions of every form: calls, state, side outputs, life cycle, errors."""

from __future__ import annotations

from typing import Any

import pytest

from millrace.common.constants import LONG_MAX
from millrace.common.output_tag import OutputTag
from millrace.errors import StateError, TimeError
from millrace.runtime.operator import RecordFailure
from millrace.runtime.windows.assigners import (
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from millrace.runtime.windows.build import WindowSpec
from millrace.runtime.windows.counting import GlobalWindows
from millrace.runtime.windows.functions import WindowFunctionKind
from millrace.runtime.windows.triggers import CountTrigger, EventTimeTrigger, PurgingTrigger
from millrace.runtime.windows.windows import TimeWindow
from millrace.state.descriptors import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from tests.windows.harness import PATHS, Run

pytestmark = pytest.mark.usefixtures("each_backend")

both = pytest.mark.parametrize("path", PATHS)
Kind = WindowFunctionKind
TUMBLING = TumblingEventTimeWindows.of(1000)


class Mean:
    """An AggregateFunction."""

    def create_accumulator(self) -> Any:
        return (0, 0)

    def add(self, value: Any, accumulator: Any) -> Any:
        return (accumulator[0] + value, accumulator[1] + 1)

    def get_result(self, accumulator: Any) -> Any:
        return accumulator[0] / accumulator[1]

    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        return (acc_a[0] + acc_b[0], acc_a[1] + acc_b[1])


class Applying:
    def apply(self, key: Any, window: Any, inputs: Any) -> Any:
        return [(key, window.start, sorted(inputs))]


class Processing:
    """A ProcessWindowFunction."""

    def process(self, key: Any, context: Any, elements: Any) -> Any:
        yield (key, context.window().start, sorted(elements))


class ApplyingAll:
    def apply(self, window: Any, inputs: Any) -> Any:
        return [(window.start, sorted(inputs))]


class ProcessingAll:
    def process(self, context: Any, elements: Any) -> Any:
        yield (context.window().start, sorted(elements))


@both
@pytest.mark.parametrize(
    ("kind", "function"),
    [
        (Kind.APPLY, Applying()),
        (Kind.APPLY, Applying().apply),
        (Kind.PROCESS, Processing()),
        (Kind.PROCESS, Processing().process),
    ],
)
def test_keyed_functions(path: str, kind: WindowFunctionKind, function: Any) -> None:
    run = Run(WindowSpec(TUMBLING, function_kind=kind, function=function), path)
    run.batch([("a", 2, 10), ("b", 5, 20), ("a", 1, 30), ("a", 7, 1500)])
    assert run.watermark(LONG_MAX).take() == [(("a", 0, [1, 2]), 999), (("b", 0, [5]), 999), (("a", 1000, [7]), 1999)]
    assert run.stored() == 0


@both
@pytest.mark.parametrize(
    ("kind", "function"),
    [
        (Kind.APPLY_ALL, ApplyingAll()),
        (Kind.APPLY_ALL, lambda window, inputs: [(window.start, sorted(inputs))]),
        (Kind.PROCESS_ALL, ProcessingAll()),
        (Kind.PROCESS_ALL, lambda context, elements: [(context.window().start, sorted(elements))]),
    ],
)
def test_functions_without_keys(path: str, kind: WindowFunctionKind, function: Any) -> None:
    run = Run(WindowSpec(TUMBLING, function_kind=kind, function=function), path, keyed=False)
    run.batch([("", 2, 10), ("", 1, 30)])
    run.restore()
    run.add(0, 40).add(7, 1500)
    assert run.watermark(LONG_MAX).take() == [((0, [0, 1, 2]), 999), ((1000, [7]), 1999)]


@both
@pytest.mark.parametrize("assigner", [TUMBLING, EventTimeSessionWindows.with_gap(1000)])
def test_incremental_aggregation_with_a_process_function(path: str, assigner: Any) -> None:
    spec = WindowSpec(assigner, aggregate=Mean(), function_kind=Kind.PROCESS, function=Processing())
    run = Run(spec, path)
    run.add(1, 0, "a").add(2, 500, "a").add(6, 999, "a")
    assert run.watermark(LONG_MAX).take()[0][0] == ("a", 0, [3.0])


@both
@pytest.mark.parametrize("assigner", [TUMBLING, EventTimeSessionWindows.with_gap(500)])
def test_aggregate_alone(path: str, assigner: Any) -> None:
    run = Run(WindowSpec(assigner, aggregate=Mean()), path)
    run.add(1, 0).add(6, 900).add(2, 450)
    assert [value for value, _ in run.watermark(LONG_MAX).take()] == [3.0]


@both
def test_a_reduce_function_object(path: str) -> None:
    class Largest:
        opened: list[str] = []

        def open(self, context: Any) -> None:
            self.opened.append(context.get_task_name_with_subtasks())

        def close(self) -> None:
            self.opened.append("closed")

        def reduce(self, a: Any, b: Any) -> Any:
            return max(a, b)

    Largest.opened.clear()
    run = Run(WindowSpec(TUMBLING, reduce=Largest()), path)
    run.add(1, 0).add(6, 900).add(2, 450)
    assert run.watermark(999).take() == [(6, 999)]
    run.operator.close()
    assert Largest.opened == ["windows (1/1)", "closed"]


TAG = OutputTag("small")


@both
def test_side_outputs_by_yield_and_by_context(path: str) -> None:
    def split(key: Any, context: Any, elements: Any) -> Any:
        for element in elements:
            if element < 10:
                yield TAG, element
            else:
                yield element
        context.output(OutputTag("done"), key)
        yield ("not", "a tag")

    run = Run(WindowSpec(TUMBLING, function_kind=Kind.PROCESS, function=split), path)
    run.add(5, 1, "a").add(15, 2, "a").watermark(5000)
    assert run.take() == [(15, 999), (("not", "a tag"), 999)]
    assert run.late("small") == [(5, 999)]
    assert run.late("done") == [("a", 999)]


@both
def test_none_means_no_result(path: str) -> None:
    run = Run(WindowSpec(TUMBLING, function_kind=Kind.APPLY, function=lambda *_: None), path)
    run.add(5, 1).watermark(5000)
    assert run.take() == []


@both
def test_the_function_may_do_what_it_likes_with_the_list(path: str) -> None:
    def empty(key: Any, window: Any, inputs: Any) -> Any:
        result = list(inputs)
        inputs.clear()
        return [result]

    spec = WindowSpec(TUMBLING, function_kind=Kind.APPLY, function=empty, allowed_lateness=500)
    run = Run(spec, path)
    run.add(5, 1).watermark(1000).add(6, 2)
    assert run.take() == [([5], 999), ([5, 6], 999)]


class Counting:
    """Keeps per-window and global state, clears the former."""

    fired = ValueStateDescriptor("fired")
    total = ValueStateDescriptor("total")

    def process(self, key: Any, context: Any, elements: Any) -> Any:
        fired = context.window_state().get_state(self.fired)
        total = context.global_state().get_state(self.total)
        fired.update((fired.value() or 0) + 1)
        total.update((total.value() or 0) + 1)
        yield (key, fired.value(), total.value(), context.current_watermark(), context.current_processing_time())

    def clear(self, context: Any) -> None:
        context.window_state().get_state(self.fired).clear()


@both
def test_window_state_and_global_state(path: str) -> None:
    spec = WindowSpec(TUMBLING, function_kind=Kind.PROCESS, function=Counting(), allowed_lateness=500)
    run = Run(spec, path)
    run.clock(77).add(1, 5, "a").add(1, 6, "b")
    assert run.watermark(1000).take() == [(("a", 1, 1, 1000, 77), 999), (("b", 1, 1, 1000, 77), 999)]
    run.restore()
    assert run.add(1, 5, "a").take() == [(("a", 2, 2, 1000, 77), 999)]
    run.add(1, 1500, "a").watermark(2499)
    assert run.take() == [(("a", 1, 3, 2499, 77), 1999)]
    run.watermark(5000)
    tables = {name: len(table) for name, table in run.store.keyed.tables().items() if len(table)}
    assert tables == {"total": 2}


@both
def test_clear_is_called_once_for_each_key_and_window(path: str) -> None:
    cleared = []

    class Noting(Processing):
        def clear(self, context: Any) -> None:
            cleared.append(context.window())

    spec = WindowSpec(SlidingEventTimeWindows.of(2000, 1000), function_kind=Kind.PROCESS, function=Noting())
    run = Run(spec, path)
    run.add(1, 5, "a").add(2, 5, "b").add(3, 7, "a").watermark(999)
    assert cleared == [TimeWindow(-1000, 1000)] * 2
    run.watermark(LONG_MAX)
    assert cleared == [TimeWindow(-1000, 1000)] * 2 + [TimeWindow(0, 2000)] * 2


@both
def test_clear_of_a_session_gets_the_merged_window(path: str) -> None:
    cleared = []

    class Noting(Processing):
        def clear(self, context: Any) -> None:
            cleared.append(context.window())

    spec = WindowSpec(
        EventTimeSessionWindows.with_gap(10), function_kind=Kind.PROCESS, function=Noting(), allowed_lateness=100
    )
    run = Run(spec, path)
    run.add(1, 0).add(2, 15).add(3, 7).watermark(123)
    assert cleared == []
    run.watermark(124)
    assert cleared == [TimeWindow(0, 25)]


def test_purging_with_lateness_and_clear_goes_the_general_way() -> None:
    trigger = PurgingTrigger.of(EventTimeTrigger.create())
    spec = WindowSpec(TUMBLING, trigger=trigger, function_kind=Kind.PROCESS, function=Counting(), allowed_lateness=500)
    run = Run(spec)
    assert run.kind == "WindowOperator"
    run.add(1, 5, "a").watermark(999).add(1, 5, "a").watermark(1499)
    assert [value[1] for value, _ in run.take()] == [1, 2]
    assert {name: len(table) for name, table in run.store.keyed.tables().items() if len(table)} == {"total": 1}


@both
@pytest.mark.parametrize(
    "get",
    [
        lambda store: store.get_state(ValueStateDescriptor("mine")),
        lambda store: store.get_list_state(ListStateDescriptor("mine")),
        lambda store: store.get_map_state(MapStateDescriptor("mine")),
        lambda store: store.get_reducing_state(ReducingStateDescriptor("mine", max)),
        lambda store: store.get_aggregating_state(AggregatingStateDescriptor("mine", Mean())),
    ],
)
def test_sessions_have_global_but_no_window_state(path: str, get: Any) -> None:
    def asks_global(key: Any, context: Any, elements: Any) -> Any:
        get(context.global_state()).clear()
        yield key

    def asks_window(key: Any, context: Any, elements: Any) -> Any:
        yield get(context.window_state())

    sessions = EventTimeSessionWindows.with_gap(10)
    run = Run(WindowSpec(sessions, function_kind=Kind.PROCESS, function=asks_global), path)
    assert run.add(1, 0).watermark(100).take() == [("key", 9)]
    run = Run(WindowSpec(sessions, function_kind=Kind.PROCESS, function=asks_window), path)
    with pytest.raises(RecordFailure) as failure:
        run.add(1, 0).watermark(100)
    assert isinstance(failure.value.error, StateError)
    assert "'mine'" in str(failure.value.error) and "global_state()" in str(failure.value.error)


@both
def test_rich_window_functions_open_and_close_and_have_keyed_state(path: str) -> None:
    events: list[str] = []

    class Rich:
        def open(self, runtime_context: Any) -> None:
            self.seen = runtime_context.get_state(ValueStateDescriptor("seen"))
            events.append("open")

        def close(self) -> None:
            events.append("close")

        def process(self, key: Any, context: Any, elements: Any) -> Any:
            self.seen.update((self.seen.value() or 0) + 1)
            yield (key, self.seen.value())

    run = Run(WindowSpec(TUMBLING, function_kind=Kind.PROCESS, function=Rich()), path)
    run.add(1, 5, "a").add(1, 1005, "a").add(1, 1005, "b").watermark(5000)
    assert run.take() == [(("a", 1), 999), (("a", 2), 1999), (("b", 1), 1999)]
    run.operator.close()
    assert events == ["open", "close"]


def test_state_of_a_function_without_keys() -> None:
    class Rich:
        def open(self, runtime_context: Any) -> None:
            self.seen = runtime_context.get_state(ValueStateDescriptor("seen"))

        def process(self, context: Any, elements: Any) -> Any:
            self.seen.update((self.seen.value() or 0) + 1)
            yield self.seen.value()

    run = Run(WindowSpec(TUMBLING, function_kind=Kind.PROCESS_ALL, function=Rich()), keyed=False)
    run.add(1, 5).add(1, 1005).watermark(5000)
    assert run.take() == [(1, 999), (2, 1999)]


# Errors


def failing(*_: Any) -> Any:
    raise ZeroDivisionError("oops")


@both
@pytest.mark.parametrize(
    "assigner", [TUMBLING, SlidingEventTimeWindows.of(500, 250), EventTimeSessionWindows.with_gap(500)]
)
def test_a_failing_reduce_names_the_record(path: str, assigner: Any) -> None:
    run = Run(WindowSpec(assigner, reduce=failing), path)
    run.batch([("a", "first", 5), ("b", "other", 900)])
    with pytest.raises(RecordFailure) as failure:
        run.batch([("c", "fine", 10), ("a", "second", 6), ("b", "late", 7)])
    assert isinstance(failure.value.__cause__, ZeroDivisionError)
    assert (failure.value.operator, failure.value.what, failure.value.preview) == ("windows", "reduce()", "'second'")


@both
@pytest.mark.parametrize("assigner", [TUMBLING, EventTimeSessionWindows.with_gap(995)])
def test_a_failing_window_function_names_window_and_key(path: str, assigner: Any) -> None:
    run = Run(WindowSpec(assigner, function_kind=Kind.APPLY, function=failing), path)
    run.add(1, 5, "a")
    with pytest.raises(RecordFailure) as failure:
        run.watermark(LONG_MAX)
    assert failure.value.what == "apply()"
    assert "TimeWindow(start=" in failure.value.preview and "of key 'a'" in failure.value.preview


@both
@pytest.mark.parametrize("assigner", [TUMBLING, EventTimeSessionWindows.with_gap(995)])
def test_a_failing_get_result_is_named(path: str, assigner: Any) -> None:
    class Bad(Mean):
        get_result = failing

    run = Run(WindowSpec(assigner, aggregate=Bad()), path)
    run.add(1, 5, "a")
    with pytest.raises(RecordFailure) as failure:
        run.watermark(LONG_MAX)
    assert isinstance(failure.value.error, ZeroDivisionError)


@both
def test_a_failing_clear_is_named(path: str) -> None:
    class Bad(Processing):
        def clear(self, context: Any) -> None:
            failing()

    run = Run(WindowSpec(TUMBLING, function_kind=Kind.PROCESS, function=Bad()), path)
    run.add(1, 5, "a")
    with pytest.raises(RecordFailure) as failure:
        run.watermark(LONG_MAX)
    assert failure.value.what == "clear()"


@both
def test_a_result_that_is_not_iterable(path: str) -> None:
    run = Run(WindowSpec(TUMBLING, function_kind=Kind.APPLY, function=lambda *_: 5), path)
    run.add(1, 5, "a")
    with pytest.raises(RecordFailure) as failure:
        run.watermark(LONG_MAX)
    assert "returned int, which is not iterable" in str(failure.value.error)


@both
@pytest.mark.parametrize("assigner", [TUMBLING, EventTimeSessionWindows.with_gap(995)])
@pytest.mark.parametrize("times", [(None, None), (5, -(2**63))])
def test_a_record_without_timestamp_names_operator_and_fix(path: str, assigner: Any, times: Any) -> None:
    run = Run(WindowSpec(assigner, reduce=max), path)
    with pytest.raises(TimeError, match=r"windows \(uid windows-1\).*assign_timestamps_and_watermarks"):
        run.batch([("a", "x", times[0]), ("a", "y", times[1])])


@both
def test_side_output_needs_a_tag(path: str) -> None:
    def bad(key: Any, context: Any, elements: Any) -> Any:
        context.output("late", 1)

    run = Run(WindowSpec(TUMBLING, function_kind=Kind.PROCESS, function=bad), path)
    with pytest.raises(RecordFailure) as failure:
        run.add(1, 5).watermark(999)
    assert "OutputTag" in str(failure.value.error)


@both
def test_empty_batches_are_fine(path: str) -> None:
    for assigner in (TUMBLING, EventTimeSessionWindows.with_gap(1)):
        run = Run(WindowSpec(assigner, reduce=max), path)
        run.batch([]).watermark(5)
        assert run.out.events == [("watermark", 5)]


def test_results_come_before_the_watermark_that_made_them() -> None:
    for path in PATHS:
        run = Run(WindowSpec(TUMBLING, reduce=max), path)
        run.add(1, 5).watermark(999)
        assert run.out.events == [("record", 1, 999), ("watermark", 999)]


def test_windows_after_windows() -> None:
    """A result carries its window's last timestamp, so it falls into the same window again."""
    first, second = Run(WindowSpec(TUMBLING, reduce=max)), Run(WindowSpec(TUMBLING, reduce=max))
    first.add(1, 0, "a").add(2, 999, "b").add(3, 1000, "a").watermark(999)
    second.batch([("all", value, time) for value, time in first.take()]).watermark(999)
    assert second.take() == [(2, 999)]


def test_count_trigger_keeps_working_on_the_general_path_in_one_batch() -> None:
    run = Run(WindowSpec(GlobalWindows.create(), trigger=CountTrigger.of(2), reduce=lambda a, b: a + b))
    run.batch([("a", 1, None), ("b", 5, None), ("a", 2, None), ("b", 6, None)])
    assert run.take() == [(3, LONG_MAX), (11, LONG_MAX)]
