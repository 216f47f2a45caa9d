"""Records as lines on the terminal of the program that started the job."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from millrace.common.rendering import renderer
from millrace.common.typeinfo import TypeInformation
from millrace.runtime.context import RuntimeContext
from millrace.runtime.sink import Sink, SinkWriter

__all__ = ["PrintSink", "line_prefix"]


def line_prefix(identifier: str, subtask: int, parallelism: int) -> str:
    """What stands before each line: the identifier, and the number of the task if there are several.

    >>> line_prefix("", 1, 2), line_prefix("rides", 1, 2), line_prefix("rides", 0, 1), line_prefix("", 0, 1)
    ('2> ', 'rides:2> ', 'rides> ', '')
    """
    task = str(subtask + 1) if parallelism > 1 else ""
    prefix = ":".join(part for part in (identifier, task) if part)
    return f"{prefix}> " if prefix else ""


class PrintSink(Sink[Any]):
    """Prints every record on the driver, with ``identifier`` and the number of its task before it.

    >>> sink = PrintSink("rides")
    >>> sink.commit(["rides> start", "rides> end"])
    rides> start
    rides> end
    """

    volatile = True

    def __init__(
        self, identifier: str | None = None, *, to_stderr: bool = False, type_info: TypeInformation | None = None
    ) -> None:
        self._identifier = identifier or ""
        self._to_stderr = to_stderr
        self._type_info = type_info

    def create_writer(self, context: RuntimeContext) -> SinkWriter[Any]:
        return _PrintWriter(
            line_prefix(
                self._identifier, context.get_index_of_this_subtask(), context.get_number_of_parallel_subtasks()
            ),
            self._type_info,
        )

    def commit(self, committables: Sequence[Any]) -> None:
        if committables:
            stream = sys.stderr if self._to_stderr else sys.stdout
            stream.write("\n".join(committables) + "\n")
            stream.flush()


class _PrintWriter(SinkWriter[Any]):
    def __init__(self, prefix: str, type_info: TypeInformation | None) -> None:
        self._prefix = prefix
        self._render = renderer(type_info)
        self._lines: list[str] = []

    def write(self, value: Any, timestamp: int | None) -> None:
        self._lines.append(self._prefix + self._render(value))

    def prepare_commit(self) -> Sequence[Any]:
        lines, self._lines = self._lines, []
        return lines
