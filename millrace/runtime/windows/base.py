"""What all window operators share: contents and function, the watermark, late records, results, errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from millrace.common.constants import LONG_MIN
from millrace.common.output_tag import OutputTag
from millrace.errors import TimeError
from millrace.runtime.functions import UserFunction
from millrace.runtime.operator import Batch, Operator, OperatorContext, RecordFailure, preview
from millrace.runtime.windows.adoption import check_contents
from millrace.runtime.windows.contents import Contents
from millrace.runtime.windows.emitter import Emitter
from millrace.runtime.windows.functions import WindowFunctionCall
from millrace.runtime.windows.windows import is_element_late

__all__ = ["WindowingOperator", "with_keys"]


class WindowingOperator(Operator):
    """Base of the operators that run windows."""

    def __init__(
        self,
        contents: Contents,
        function: WindowFunctionCall,
        lateness: int = 0,
        late_tag: OutputTag | None = None,
        *,
        merging: bool = False,
    ) -> None:
        self._contents = contents
        self._function = function
        self._lateness = lateness
        self._late_tag = late_tag
        self._merging = merging

    def open(self) -> None:
        store = self.context.store
        self._keyed = store.keyed
        self._watermark = store.operator.per_task("watermark", lambda: LONG_MIN)
        self._late_dropped = self.context.metrics.counter("numLateRecordsDropped")
        self._emitter = Emitter()
        check_contents(self.context, self._contents.state_name)
        context = with_keys(self.context)
        self._contents.open(context)
        self._function.open(context, self._watermark, self._emitter, self._merging)

    def restart_time(self) -> None:
        self._watermark.value = LONG_MIN
        self.refresh()

    @property
    def can_catch_up(self) -> bool:
        return not any(function.keeps_state for function in self._functions())

    def end_epoch(self) -> Sequence[Any]:
        for function in self._functions():
            function.snapshot(self.context.epoch)
        return ()

    def on_checkpoint_complete(self, checkpoint_id: int) -> None:
        for function in self._functions():
            function.checkpoint_complete(checkpoint_id)

    def on_checkpoint_aborted(self, checkpoint_id: int) -> None:
        for function in self._functions():
            function.checkpoint_aborted(checkpoint_id)

    def _functions(self) -> list[UserFunction]:
        return [function for function in (self._contents.function, self._function.function) if function is not None]

    def close(self) -> None:
        self._contents.close()
        self._function.close()

    def _late(self, value: Any, timestamp: int) -> None:
        """A record that no window took."""
        if not is_element_late(timestamp, self._lateness, self._watermark.value):
            return
        if self._late_tag is not None:
            self._emitter.side(self._late_tag, value, timestamp)
        else:
            self._late_dropped.inc()

    def _results(self, key: Any, window: Any, elements: list[Any]) -> None:
        """Call the window function and keep what it returns."""
        try:
            self._emitter.collect(self._function.emit(key, window, elements), window.max_timestamp())
        except Exception as error:
            raise self._failure(error, self._function.name, f"{window!r} of key {key!r}") from error

    def _clear_function(self, key: Any, window: Any) -> None:
        self._keyed.current_key = key
        try:
            self._function.clear(window)
        except Exception as error:
            raise self._failure(error, "clear()", f"{window!r} of key {key!r}") from error

    def _failure(self, error: Exception, what: str, record: Any) -> RecordFailure:
        return RecordFailure(error, self.context, what, record)

    def _require_timestamps(self, batch: Batch) -> list[int]:
        times = batch.timestamps
        if times is None:
            self._refuse(batch.values[0])
        if min(times) == LONG_MIN:
            self._refuse(batch.values[times.index(LONG_MIN)])
        return times

    def _refuse(self, value: Any) -> NoReturn:
        message = (
            f"{self.context.name} (uid {self.context.uid}): the record {preview(value)} has no timestamp, and windows "
            "in event time need one. Call assign_timestamps_and_watermarks(WatermarkStrategy"
            ".for_bounded_out_of_orderness(...).with_timestamp_assigner(...)) before window(), "
            "or use processing-time windows"
        )
        raise TimeError(message)


def with_keys(context: OperatorContext) -> OperatorContext:
    """The context for user functions: the records of window_all() have one key for all, and so state as well."""
    if context.keyed:
        return context
    keyed = OperatorContext(
        context.name,
        context.uid,
        context.store,
        context.clock,
        subtask=context.subtask,
        parallelism=context.parallelism,
        max_parallelism=context.max_parallelism,
        attempt=context.attempt,
        keyed=True,
        metrics=context.metrics,
        parameters=context.parameters,
    )
    keyed.restored = context.restored
    return keyed
