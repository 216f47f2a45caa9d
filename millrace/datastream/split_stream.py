"""One stream as several named ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from millrace.common.output_tag import OutputTag
from millrace.datastream._checks import check_function
from millrace.datastream.functions import ProcessFunction
from millrace.errors import GraphError
from millrace.runtime.functions import UserFunction
from millrace.runtime.operators.process import ProcessOperator

if TYPE_CHECKING:
    from millrace.datastream.data_stream import DataStream

__all__ = ["SplitStream"]


class SplitStream:
    """A stream whose records have names; ``select`` reads the records that have one of the given names.

    >>> from millrace.datastream import StreamExecutionEnvironment
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> parity = env.from_sequence(1, 10).split(lambda n: "even" if n % 2 == 0 else "odd")
    >>> even = parity.select("even")
    """

    def __init__(self, stream: DataStream, output_selector: Callable[[Any], str | Iterable[str]]) -> None:
        check_function(output_selector, "split", (), ("select",))
        self._function = _Split(output_selector)
        operator = ProcessOperator(UserFunction(self._function, "process_element"))
        self._split = stream._transform("Split", operator, keyed=False)
        self._stream = stream

    def select(self, *output_names: str) -> DataStream:
        """The records that have at least one of these names, each of them once."""
        if not output_names or not all(isinstance(name, str) for name in output_names):
            message = f'select takes one name or several, not {output_names!r}: select("even"), for example'
            raise GraphError(message)
        tag = self._function.selection(frozenset(output_names))
        selected = self._split.get_side_output(tag)
        selected._declared, selected._known = self._stream._declared, self._stream._known
        return selected


class _Split(ProcessFunction):
    """Asks the selector once for each record, and sends the record to every selection that wants one of its names."""

    def __init__(self, selector: Any) -> None:
        self._select = getattr(selector, "select", selector)
        self._selections: list[tuple[OutputTag, frozenset[str]]] = []

    def selection(self, names: frozenset[str]) -> OutputTag:
        """The side output for the records with one of the names."""
        tag = OutputTag(f"select({', '.join(sorted(names))})")
        if (tag, names) not in self._selections:
            self._selections.append((tag, names))
        return tag

    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Iterator[Any]:
        given = self._select(value)
        names = {given} if isinstance(given, str) else set(given or ())
        for tag, wanted in self._selections:
            if not wanted.isdisjoint(names):
                yield tag, value
