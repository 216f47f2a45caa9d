"""The operator harness: the very operators that Spark runs, driven by hand."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, TypeVar

from millrace.common.constants import LONG_MAX, LONG_MIN
from millrace.common.output_tag import OutputTag
from millrace.errors import StateError
from millrace.runtime.batch_keyed import BatchKeyedOperator
from millrace.runtime.operator import Batch, Collected, Operator, OperatorContext, RecordFailure
from millrace.runtime.timer_service import require_time
from millrace.runtime.valve import Valve
from millrace.state.key_groups import KeyRouter
from millrace.state.store import OperatorStore
from millrace.testing.snapshots import read_snapshots, write_snapshot

__all__ = ["OperatorHarness"]

T = TypeVar("T")
Self = TypeVar("Self", bound="OperatorHarness")
Selector = Callable[[Any], Any]
Record = tuple[Any, int | None]
"""A value and its timestamp, None if it has none."""


class OperatorHarness:
    """One task with one operator: you are its input, its watermarks and its clock, and read what comes out.

    `harness_for` makes one for a function of yours. This class itself takes any operator. A key selector makes the
    stream keyed; ``inputs=2`` gives it a second input, keyed by ``second_key_selector`` if there is one. ``subtask``
    and ``parallelism`` say which of how many tasks this is. ``batch`` runs the operator as in batch mode: everything
    happens at the end of the input. The clock stands at ``processing_time`` until it is set.

    The harness opens by itself at its first use. As a context manager it is closed at the end.

    >>> from millrace.runtime.functions import UserFunction
    >>> from millrace.runtime.operators.stateless import MapOperator
    >>> with OperatorHarness(MapOperator(UserFunction(str.upper, "map"))) as harness:
    ...     harness.process_element("a", 5)
    ...     harness.process_watermark(7)
    ...     harness.get_output(), harness.watermarks()
    ([('A', 5)], [7])

    A function's own exception comes out as it is, with notes on where it happened:

    >>> with OperatorHarness(MapOperator(UserFunction(int, "map")), name="parse") as harness:
    ...     try:
    ...         harness.process_element("one")
    ...     except ValueError as error:
    ...         print(error.__notes__)
    ["in operator 'parse' (uid parse), subtask 0, map()", "record: 'one'"]
    """

    def __init__(
        self,
        operator: Operator,
        *,
        key_selector: Selector | None = None,
        second_key_selector: Selector | None = None,
        inputs: int = 1,
        name: str = "operator",
        uid: str | None = None,
        subtask: int = 0,
        parallelism: int = 1,
        max_parallelism: int = 128,
        processing_time: int = 0,
        parameters: Mapping[str, str] | None = None,
        batch: bool = False,
        restore_from: bytes | Sequence[bytes] | None = None,
    ) -> None:
        # The operator of a restored harness must be one that never ran, so keep a copy. Deep copies share plain
        # functions: what a lambda in a test writes to stays the test's own.
        try:
            self._pristine: Operator | Exception = copy.deepcopy(operator)
        except Exception as error:
            self._pristine = error
        self._settings: dict[str, Any] = {
            "key_selector": key_selector,
            "second_key_selector": second_key_selector,
            "inputs": inputs,
            "name": name,
            "uid": uid,
            "max_parallelism": max_parallelism,
            "parameters": parameters,
            "batch": batch,
        }
        self._selectors = (_selecting(key_selector), _selecting(second_key_selector))[:inputs]
        self._router = KeyRouter(parallelism, max_parallelism)
        self._now = processing_time
        self._output = Collected()
        self._valve = Valve(range(inputs))
        self._state = "new"
        store = OperatorStore(self._clock)
        self.context = OperatorContext(
            name,
            uid or name,
            store,
            self._clock,
            subtask=subtask,
            parallelism=parallelism,
            max_parallelism=max_parallelism,
            keyed=key_selector is not None,
            parameters=parameters,
        )
        self.operator = operator
        if batch:
            operator.use_batch_mode()
            self.operator = BatchKeyedOperator(operator) if self.context.keyed else operator
        self.operator.setup(self.context, self._output)
        if restore_from is not None:
            content = read_snapshots(restore_from, subtask, parallelism, max_parallelism)
            store.apply(content.store)
            self._now = max(self._now, content.processing_time)
            self.context.restored = True
            if content.valve is not None:
                self._valve.restore(content.valve)

    def open(self: Self) -> Self:
        """Open the function; needed only when you want that to happen before the first element."""
        if self._state == "closed":
            message = f"the harness of {self.context.name} is closed: make a new one, or restore() from a snapshot"
            raise StateError(message)
        if self._state == "new":
            self._state = "open"
            self._guard(self.operator.open)
        return self

    def close(self) -> None:
        """Close the function. What came out can still be read."""
        if self._state == "open":
            self._state = "closed"
            self._guard(self.operator.close)

    def __enter__(self: Self) -> Self:
        return self.open()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Input

    def process_element(self, value: Any, timestamp: int | None = None) -> None:
        """Send a record to the first input."""
        self.process_batch([value], None if timestamp is None else [timestamp])

    def process_element1(self, value: Any, timestamp: int | None = None) -> None:
        """Send a record to the first input."""
        self.process_element(value, timestamp)

    def process_element2(self, value: Any, timestamp: int | None = None) -> None:
        """Send a record to the second input."""
        self.process_batch([value], None if timestamp is None else [timestamp], side=1)

    def process_broadcast_element(self, value: Any, timestamp: int | None = None) -> None:
        """Send a record to the broadcast input, which is the second one."""
        self.process_element2(value, timestamp)

    def process_batch(
        self, values: Iterable[Any], timestamps: Iterable[int | None] | None = None, *, side: int = 0
    ) -> None:
        """Send records that reach the operator together, as between two watermarks; ``side`` 1 is the second input.

        >>> from millrace.testing import harness_for
        >>> harness = harness_for(lambda text: text * 2)
        >>> harness.process_batch(["a", "b"], [1, 2])
        >>> harness.get_output()
        [('aa', 1), ('bb', 2)]
        """
        self._check_side(side)
        elements = list(values)
        times = None if timestamps is None else [self._time(time) for time in timestamps]
        if times is not None and len(times) != len(elements):
            message = f"{len(elements)} values but {len(times)} timestamps: give one for each, None where there is none"
            raise ValueError(message)
        selector = self._selectors[side]
        keys = None if selector is None else [selector(value) for value in elements]
        if keys is not None:
            self._check_keys(keys)
        self.open()
        self._guard(self.operator.process, Batch(elements, times, keys), side)

    def process_watermark(self, watermark: int) -> None:
        """Let event time come to ``watermark`` on all inputs; one that is not greater than the last does nothing."""
        for side in range(len(self._selectors)):
            self._watermark(side, watermark)

    def process_watermark1(self, watermark: int) -> None:
        """Let event time come to ``watermark`` on the first input; the operator sees the minimum of both."""
        self._watermark(0, watermark)

    def process_watermark2(self, watermark: int) -> None:
        """Let event time come to ``watermark`` on the second input; the operator sees the minimum of both."""
        self._watermark(1, watermark)

    def mark_idle(self, side: int | None = None) -> None:
        """Say that an input (0 or 1), or all of them, is idle: it no longer holds event time back."""
        self._status(side, True)

    def mark_active(self, side: int | None = None) -> None:
        """Say that an input, or all of them, is active again."""
        self._status(side, False)

    def set_processing_time(self, now: int) -> None:
        """Set the clock and fire the processing-time timers that are due, in order."""
        now = self._time(now)
        if now < self._now:
            message = f"the clock stands at {self._now} and cannot go back to {now}"
            raise ValueError(message)
        self._now = now
        self.open()
        self._guard(self.operator.on_processing_time, now)

    def get_processing_time(self) -> int:
        """Where the clock stands."""
        return self._now

    def get_watermark(self) -> int:
        """Event time as the operator has seen it: the minimum over the inputs."""
        return self._valve.output

    def end_input(self) -> None:
        """Come to the end of bounded input: event time goes to its end, the operator finishes."""
        self.process_watermark(LONG_MAX)
        self._guard(self.operator.finish)

    # Output

    def get_output(self) -> list[Record]:
        """What came out: (value, timestamp) of each record, None for no timestamp."""
        return [_record(value, time) for kind, value, time in self._records()]

    def outputs(self) -> list[Any]:
        """The values that came out."""
        return [value for _, value, _ in self._records()]

    def events(self) -> list[tuple[Any, ...]]:
        """All that came out, in order: ("record", value, timestamp), ("watermark", time), ("idle", True or False)."""
        return [
            (event[0], *_record(event[1], event[2])) if event[0] == "record" else event for event in self._output.events
        ]

    def watermarks(self) -> list[int]:
        """The watermarks that came out."""
        return [event[1] for event in self._output.events if event[0] == "watermark"]

    def get_side_output(self, tag: OutputTag | str) -> list[Record]:
        """What came out of a side output: (value, timestamp) of each record."""
        tag_id = tag.tag_id if isinstance(tag, OutputTag) else tag
        return [_record(value, time) for value, time in self._output.side.get(tag_id, ())]

    def clear_output(self) -> None:
        """Forget what came out so far."""
        self._output.events.clear()
        self._output.side.clear()

    # State

    def snapshot(self, checkpoint_id: int | None = None) -> bytes:
        """End an epoch and write down all state, timers and watermarks; give it to `restore`.

        Checkpoints are numbered from 1, unless you give a number.

        >>> from millrace.testing import harness_for
        >>> harness = harness_for(lambda a, b: a + b, key_selector=lambda value: "all", operation="reduce")
        >>> harness.process_element(1)
        >>> restored = harness.restore(harness.snapshot())
        >>> restored.process_element(2)
        >>> restored.outputs()
        [3]
        """
        self.open()
        self.context.epoch = self.context.epoch + 1 if checkpoint_id is None else checkpoint_id
        self._guard(self.operator.end_epoch)
        return write_snapshot(self.context, self._now, self._valve)

    def notify_checkpoint_complete(self, checkpoint_id: int | None = None) -> None:
        """Tell the function that a checkpoint, the last one if you do not say which, is safe."""
        self._guard(self.open().operator.on_checkpoint_complete, checkpoint_id or self.context.epoch)

    def notify_checkpoint_aborted(self, checkpoint_id: int | None = None) -> None:
        """Tell the function that a checkpoint, the last one if you do not say which, has come to nothing."""
        self._guard(self.open().operator.on_checkpoint_aborted, checkpoint_id or self.context.epoch)

    def restore(
        self, snapshots: bytes | Sequence[bytes], subtask: int | None = None, parallelism: int | None = None
    ) -> OperatorHarness:
        """A new harness with a fresh copy of the operator, and the state of a snapshot.

        To change the parallelism, give the snapshots of all subtasks, in order, and say which of how many this one is.
        To restore into another version of the function, pass ``restore_from=`` to `harness_for` instead.
        """
        if isinstance(self._pristine, Exception):
            message = (
                f"the function in {self.context.name} cannot be copied ({self._pristine}): "
                "make a new harness with a new function and restore_from=snapshot instead"
            )
            raise StateError(message) from self._pristine
        return type(self)(
            copy.deepcopy(self._pristine),
            **self._settings,
            subtask=self.context.subtask if subtask is None else subtask,
            parallelism=self.context.parallelism if parallelism is None else parallelism,
            restore_from=snapshots,
        )

    def num_keyed_state_entries(self, state_name: str | None = None) -> int:
        """How many entries (a key in a state, or in a window) there are in all states, or in one."""
        tables = self.context.store.keyed.tables()
        return sum(len(table) for name, table in tables.items() if state_name in (None, name))

    def num_event_time_timers(self) -> int:
        """How many event-time timers wait."""
        return len(self.context.store.event_timers)

    def num_processing_time_timers(self) -> int:
        """How many processing-time timers wait."""
        return len(self.context.store.processing_timers)

    def owns(self, key: Any) -> bool:
        """Whether a key belongs to this subtask."""
        return self._router.target(key) == self.context.subtask

    def _clock(self) -> int:
        return self._now

    def _guard(self, call: Callable[..., T], *arguments: Any) -> T:
        """Call into the operator; a user's exception comes out as it is, not as our wrapper around it."""
        try:
            return call(*arguments)
        except RecordFailure as failure:
            error = _with_notes(failure)
        # Outside the handler, so that the wrapper does not show up as the context of the user's exception.
        raise error

    def _watermark(self, side: int, watermark: int) -> None:
        self._check_side(side)
        self.open()
        combined = self._valve.watermark(side, self._time(watermark))
        if combined is not None:
            self._guard(self.operator.on_watermark, combined)

    def _status(self, side: int | None, idle: bool) -> None:
        self.open()
        for one in range(len(self._selectors)) if side is None else (side,):
            self._check_side(one)
            was = self._valve.all_idle
            self._valve.idle(one, idle)
            combined = self._valve.advance()
            if combined is not None:
                self._guard(self.operator.on_watermark, combined)
            if self._valve.all_idle != was:
                self._guard(self.operator.on_idle, self._valve.all_idle)

    def _check_side(self, side: int) -> None:
        if side not in range(len(self._selectors)):
            message = f"{self.context.name} has no input {side + 1}, only {len(self._selectors)}: use inputs=2"
            raise ValueError(message)

    def _check_keys(self, keys: list[Any]) -> None:
        if self.context.parallelism == 1:
            return
        for key, target in zip(keys, self._router.route(keys), strict=True):
            if target != self.context.subtask:
                message = (
                    f"key {key!r} belongs to subtask {target} of {self.context.parallelism}, and this harness is "
                    f"subtask {self.context.subtask}: ask harness.owns(key) first"
                )
                raise ValueError(message)

    def _time(self, time: int | None) -> int:
        return LONG_MIN if time is None else require_time(time, f"the harness of {self.context.name} was called")

    def _records(self) -> list[tuple[Any, ...]]:
        return [event for event in self._output.events if event[0] == "record"]


def _record(value: Any, time: int) -> Record:
    return value, None if time == LONG_MIN else time


def _selecting(selector: Any) -> Selector | None:
    """A key selector as a plain callable, whether it is one or a KeySelector object."""
    get_key: Selector | None = getattr(selector, "get_key", None)
    return selector if get_key is None else get_key


def _with_notes(failure: RecordFailure) -> BaseException:
    error = failure.error
    where = f"in operator {failure.operator!r} (uid {failure.uid}), subtask {failure.subtask}, {failure.what}"
    for note in (where, *([] if failure.preview == "None" else [f"record: {failure.preview}"])):
        if note not in getattr(error, "__notes__", ()):
            error.add_note(note)
    return error
