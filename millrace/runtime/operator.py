"""What an operator is: the smallest thing that a task runs.

Records reach an operator in batches, lists that were cut only where a watermark stands between two records, so that
the work per record is the user's own function and little else. A batch's lists may be shared with other operators:
nobody writes to a list it was given.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import length_hint
from typing import Any, Final

from millrace.common.constants import LONG_MIN
from millrace.metrics import MetricGroup
from millrace.state.store import OperatorStore

__all__ = [
    "Batch",
    "Collected",
    "Operator",
    "OperatorContext",
    "Output",
    "RecordFailure",
    "SplitCursor",
    "last_taken",
    "preview",
]

Clock = Callable[[], int]
"""Processing time, in milliseconds since the epoch."""


class Batch:
    """Records between two watermarks.

    ``timestamps`` is None when no record has one; a single record without one carries LONG_MIN. ``keys`` is there
    after a key_by.

    >>> batch = Batch(["a", "b"], [1, 2])
    >>> len(batch), batch.times()
    (2, [1, 2])
    """

    __slots__ = ("keys", "timestamps", "values")

    def __init__(self, values: list[Any], timestamps: list[int] | None = None, keys: list[Any] | None = None) -> None:
        self.values = values
        self.timestamps = timestamps
        self.keys = keys

    def __len__(self) -> int:
        return len(self.values)

    def times(self) -> list[int]:
        """The timestamps, with LONG_MIN for every record when the batch has none."""
        return [LONG_MIN] * len(self.values) if self.timestamps is None else self.timestamps


class Output(ABC):
    """Where an operator sends what it makes; the task decides what stands behind it."""

    @abstractmethod
    def emit(self, batch: Batch) -> None:
        """Records for the main output."""

    @abstractmethod
    def emit_side(self, tag_id: str, batch: Batch) -> None:
        """Records for the side output named ``tag_id``; dropped when nobody reads it."""

    @abstractmethod
    def emit_watermark(self, watermark: int) -> None:
        """No record at or before ``watermark`` follows. Goes to the main and to all side outputs."""

    @abstractmethod
    def emit_idle(self, idle: bool) -> None:
        """Whether this operator's output is left out of the minimum downstream."""


class Collected(Output):
    """An output that remembers everything, in order; the harness and the unit tests read it.

    >>> out = Collected()
    >>> out.emit(Batch(["a"], [5]))
    >>> out.emit_watermark(7)
    >>> out.events
    [('record', 'a', 5), ('watermark', 7)]
    """

    def __init__(self) -> None:
        self.events: list[tuple[Any, ...]] = []
        self.side: dict[str, list[tuple[Any, int]]] = {}

    def emit(self, batch: Batch) -> None:
        self.events.extend(("record", value, time) for value, time in zip(batch.values, batch.times(), strict=True))

    def emit_side(self, tag_id: str, batch: Batch) -> None:
        self.side.setdefault(tag_id, []).extend(zip(batch.values, batch.times(), strict=True))

    def emit_watermark(self, watermark: int) -> None:
        self.events.append(("watermark", watermark))

    def emit_idle(self, idle: bool) -> None:
        self.events.append(("idle", idle))


class SplitCursor:
    """Which source split the records that now run through a task come from; one for all operators of the task.

    Behind an exchange there are no splits: everything comes from the split with the empty name.
    """

    __slots__ = ("active", "finished", "paused", "split")

    def __init__(self) -> None:
        self.split = ""
        self.active: dict[str, list[str]] = {}
        self.finished: set[str] = set()
        self.paused: set[str] = set()

    def splits_of(self, sources: frozenset[str]) -> list[str]:
        """All splits that this task reads for the given sources (their uids) and that have not ended."""
        return [split for source in sources for split in self.active.get(source, ())]


class OperatorContext:
    """What a task gives to each of its operators.

    The task keeps ``epoch``, the number of the epoch at hand, which is that of the checkpoint at its end, and
    ``restored``: whether the task goes on from a checkpoint.
    """

    __slots__ = (
        "attempt",
        "clock",
        "cursor",
        "epoch",
        "keyed",
        "max_parallelism",
        "metrics",
        "name",
        "parallelism",
        "parameters",
        "restored",
        "sources",
        "store",
        "subtask",
        "uid",
    )

    def __init__(
        self,
        name: str,
        uid: str,
        store: OperatorStore,
        clock: Clock,
        *,
        subtask: int = 0,
        parallelism: int = 1,
        max_parallelism: int = 128,
        attempt: int = 0,
        keyed: bool = False,
        metrics: MetricGroup | None = None,
        parameters: Mapping[str, str] | None = None,
        cursor: SplitCursor | None = None,
        sources: frozenset[str] = frozenset(),
    ) -> None:
        self.name = name
        self.uid = uid
        self.store = store
        self.clock = clock
        self.subtask = subtask
        self.parallelism = parallelism
        self.max_parallelism = max_parallelism
        self.attempt = attempt
        self.keyed = keyed
        self.metrics = metrics if metrics is not None else MetricGroup()
        self.parameters = dict(parameters or {})
        self.cursor = cursor if cursor is not None else SplitCursor()
        self.sources = sources
        self.epoch = 0
        self.restored = False


class Operator(ABC):
    """Turns batches into batches. One instance lives in one task, across all its epochs.

    Life: ``setup`` (the task wires it), the task restores ``context.store``, ``open``, then any number of ``process``,
    ``on_watermark``, ``on_processing_time`` and, at the end of every epoch, ``end_epoch``; ``finish`` at the end of
    bounded input, after the watermark LONG_MAX; ``close``.

    An operator that changes what it remembers keeps it in ``context.store``: the task takes the deltas from there.
    """

    context: OperatorContext
    output: Output

    def setup(self, context: OperatorContext, output: Output) -> None:
        """Take the services of the task. State is not there yet."""
        self.context = context
        self.output = output

    def open(self) -> None:
        """Called once, when state has been restored and before the first record."""
        return

    def refresh(self) -> None:
        """State was brought up to date from outside after ``open``: forget or reread what was derived from it."""
        return

    def use_batch_mode(self) -> None:
        """The job runs in batch mode: called before ``open``."""
        return

    def restart_time(self) -> None:
        """Batch mode only: the next key begins, and with it event time, at LONG_MIN."""
        return

    @abstractmethod
    def process(self, batch: Batch, side: int = 0) -> None:
        """Take records; ``side`` is 1 for the second input of a two-input operator."""

    def on_watermark(self, watermark: int) -> None:
        """Event time has come to ``watermark``: the minimum over all inputs, always increasing."""
        self.output.emit_watermark(watermark)

    def on_idle(self, idle: bool) -> None:
        """All inputs have become idle, or one of them is active again."""
        self.output.emit_idle(idle)

    def on_processing_time(self, now: int) -> None:
        """The clock says ``now``; called at least twice in each epoch."""
        return

    def next_processing_time(self) -> int | None:
        """When this operator wants ``on_processing_time`` to be called even if no record comes."""
        return None

    def end_epoch(self) -> Sequence[Any]:
        """Get ready for the snapshot; a sink returns what is to be committed once the manifest is written."""
        return ()

    @property
    def can_catch_up(self) -> bool:
        """Whether an open operator can go on after its state was changed from outside, with ``refresh``."""
        return True

    def on_checkpoint_complete(self, checkpoint_id: int) -> None:
        """The epoch of this number is committed; called once the next one begins."""
        return

    def on_checkpoint_aborted(self, checkpoint_id: int) -> None:
        """The epoch of this number was run, but will never be committed."""
        return

    def finish(self) -> None:
        """The bounded input is over and LONG_MAX has been seen."""
        return

    def close(self) -> None:
        """Let go of resources."""
        return


class RecordFailure(Exception):
    """A user function raised: which operator, on what, and the exception itself as ``__cause__``."""

    PREVIEW: Final = 200

    def __init__(self, error: BaseException, context: OperatorContext, what: str, record: Any) -> None:
        super().__init__(f"{type(error).__name__} in {context.name}")
        self.error = error
        self.operator = context.name
        self.uid = context.uid
        self.subtask = context.subtask
        self.what = what
        self.preview = preview(record)


def preview(record: Any, limit: int = RecordFailure.PREVIEW) -> str:
    """A record as it is shown in an error: its repr, cut, and never itself a cause of failure."""
    try:
        text = repr(record)
    except Exception as error:
        text = f"<{type(record).__name__} whose repr raised {type(error).__name__}>"
    return text if len(text) <= limit else text[: limit - 1] + "…"


def last_taken(iterator: Iterator[Any], values: Sequence[Any]) -> Any:
    """The element that ``iterator``, a plain iterator over the list ``values``, gave last.

    Hot loops run over a list iterator without counting; when one of them raises, this finds the record it raised on.

    >>> it = iter([10, 20, 30])
    >>> _ = next(it), next(it)
    >>> last_taken(it, [10, 20, 30])
    20
    """
    return values[max(len(values) - length_hint(iterator) - 1, 0)]
