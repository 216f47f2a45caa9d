"""Functions with state of their task, and functions that listen to checkpoints.

Any function class can be one of these as well: ``class Buffer(MapFunction, CheckpointedFunction)``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from millrace.runtime.checkpointed import (
    FunctionInitializationContext,
    FunctionSnapshotContext,
    OperatorStateStore,
)

__all__ = [
    "CheckpointListener",
    "CheckpointedFunction",
    "FunctionInitializationContext",
    "FunctionSnapshotContext",
    "ListCheckpointed",
    "OperatorStateStore",
]


class CheckpointedFunction(ABC):
    """A function that keeps state of its task: restored before ``open``, written down at every checkpoint.

    >>> from millrace.datastream import FlatMapFunction
    >>> from millrace.datastream.state import ListStateDescriptor
    >>> from millrace.testing import harness_for
    >>> class InPairs(FlatMapFunction, CheckpointedFunction):
    ...     def initialize_state(self, context):
    ...         self.state = context.get_operator_state_store().get_list_state(ListStateDescriptor("waiting"))
    ...         self.waiting = list(self.state.get())
    ...     def snapshot_state(self, context):
    ...         self.state.update(self.waiting)
    ...     def flat_map(self, value):
    ...         self.waiting.append(value)
    ...         if len(self.waiting) == 2:
    ...             yield tuple(self.waiting)
    ...             self.waiting = []
    >>> harness = harness_for(InPairs())
    >>> harness.process_element("a")
    >>> harness = harness.restore(harness.snapshot())
    >>> harness.process_element("b")
    >>> harness.outputs()
    [('a', 'b')]
    """

    @abstractmethod
    def initialize_state(self, context: FunctionInitializationContext) -> None:
        """Get the state, and what is in it; called once for each task, before ``open``."""

    @abstractmethod
    def snapshot_state(self, context: FunctionSnapshotContext) -> None:
        """Put all that must survive into the state; called at the end of every epoch."""


class ListCheckpointed(ABC):
    """A function whose state is a list, which is dealt out to the tasks when the parallelism changes.

    >>> from millrace.datastream import MapFunction
    >>> from millrace.testing import harness_for
    >>> class Count(MapFunction, ListCheckpointed):
    ...     def __init__(self): self.count = 0
    ...     def snapshot_state(self, checkpoint_id, timestamp): return [self.count]
    ...     def restore_state(self, state): self.count = sum(state)
    ...     def map(self, value):
    ...         self.count += 1
    ...         return self.count
    >>> harness = harness_for(Count())
    >>> harness.process_batch(["a", "b"])
    >>> harness = harness.restore(harness.snapshot())
    >>> harness.process_element("c")
    >>> harness.outputs()
    [3]
    """

    @abstractmethod
    def snapshot_state(self, checkpoint_id: int, timestamp: int) -> list[Any]:
        """The state, as a list of parts that may go to different tasks; called at the end of every epoch."""

    @abstractmethod
    def restore_state(self, state: list[Any]) -> None:
        """Take over a list, which may hold the parts of several tasks; called before ``open``, after a restore."""


class CheckpointListener(ABC):
    """A function that is told what became of a checkpoint.

    That a checkpoint is safe is told when the next epoch begins. Not every one is: the last of a bounded job has no
    next epoch, and after a failure only the newest is told of, which stands for all before it.

    >>> from millrace.datastream import MapFunction
    >>> from millrace.testing import harness_for
    >>> class Acknowledge(MapFunction, CheckpointListener):
    ...     def map(self, value): return value
    ...     def notify_checkpoint_complete(self, checkpoint_id): print("safe up to", checkpoint_id)
    >>> harness = harness_for(Acknowledge())
    >>> snapshot = harness.snapshot()
    >>> harness.notify_checkpoint_complete()
    safe up to 1
    """

    @abstractmethod
    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """The checkpoint is complete, and so are all before it."""

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        """The checkpoint has come to nothing; the records since the one before it will come again."""
        return
