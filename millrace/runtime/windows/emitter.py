"""Collects the results of windows, with their timestamps, until a batch is worth sending."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from millrace.common.output_tag import OutputTag
from millrace.runtime.operator import Batch, Output

__all__ = ["Emitter"]


class Emitter:
    """Results and side outputs on their way out.

    >>> from millrace.runtime.operator import Collected
    >>> emitter, out = Emitter(), Collected()
    >>> emitter.collect([1, (OutputTag("odd"), 3)], 99)
    >>> emitter.flush(out)
    >>> out.events, out.side
    ([('record', 1, 99)], {'odd': [(3, 99)]})
    """

    __slots__ = ("_side", "_times", "_values")

    def __init__(self) -> None:
        self._values: list[Any] = []
        self._times: list[int] = []
        self._side: dict[str, tuple[list[Any], list[int]]] = {}

    def collect(self, results: Iterable[Any] | None, time: int) -> None:
        """Take what a window function returned; a pair (OutputTag, value) goes to the side output."""
        if results is None:
            return
        values, times = self._values, self._times
        try:
            items = iter(results)
        except TypeError:
            message = (
                f"the window function returned {type(results).__name__}, which is not iterable: "
                "return a list, as in `return [result]`, or `yield` each result"
            )
            raise TypeError(message) from None
        for item in items:
            if type(item) is tuple and len(item) == 2 and isinstance(item[0], OutputTag):
                self.side(item[0], item[1], time)
            else:
                values.append(item)
                times.append(time)

    def add_all(self, results: list[Any], time: int) -> None:
        """Take results that are known to have no tag."""
        self._values += results
        self._times += [time] * len(results)

    def side(self, tag: OutputTag, value: Any, time: int) -> None:
        """Take a record for a side output."""
        if not isinstance(tag, OutputTag):
            message = f"a side output is named by an OutputTag, not by {tag!r}: OutputTag('late'), for example"
            raise TypeError(message)
        values, times = self._side.setdefault(tag.tag_id, ([], []))
        values.append(value)
        times.append(time)

    def flush(self, output: Output) -> None:
        """Send what there is."""
        if self._values:
            batch = Batch(self._values, self._times)
            self._values, self._times = [], []
            output.emit(batch)
        if self._side:
            side, self._side = self._side, {}
            for tag_id, (values, times) in side.items():
                output.emit_side(tag_id, Batch(values, times))
