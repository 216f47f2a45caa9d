"""Plans epochs: how far each split is read next, and by which task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any

from millrace.errors import JobError
from millrace.runtime.alignment import AlignmentGroup, paused_splits
from millrace.runtime.source import ReadRange, Source

__all__ = ["EpochPlan", "SourceCoordinator"]


@dataclass
class EpochPlan:
    """What the source tasks of one epoch read. ``splits`` are all that a task owns, whether there is something to
    read or not."""

    ranges: dict[int, list[ReadRange]] = field(default_factory=dict)
    splits: dict[int, dict[str, list[str]]] = field(default_factory=dict)
    ended: list[str] = field(default_factory=list)
    last: bool = False
    paused: list[str] = field(default_factory=list)

    @property
    def empty(self) -> bool:
        """Nothing to read and nothing to tell."""
        return not self.ended and not any(self.ranges.values())

    def to_json(self) -> dict[str, Any]:
        """Plain data, to be logged before the epoch runs and replayed if it has to be run again."""
        return {
            "ranges": {
                str(task): [[r.source, r.split, r.start, r.end, r.finished] for r in ranges]
                for task, ranges in self.ranges.items()
            },
            "splits": {str(task): splits for task, splits in self.splits.items()},
            "ended": self.ended,
            "last": self.last,
            "paused": self.paused,
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> EpochPlan:
        """What ``to_json`` gave."""
        return cls(
            {int(task): [ReadRange(*entry) for entry in ranges] for task, ranges in content["ranges"].items()},
            {int(task): splits for task, splits in content["splits"].items()},
            list(content["ended"]),
            bool(content["last"]),
            list(content.get("paused", ())),
        )


class SourceCoordinator:
    """Keeps the position of every split and plans from there. Lives on the driver.

    >>> from millrace.runtime.source import Source
    >>> class Numbers(Source[int]):
    ...     bounded = True
    ...     def splits(self, parallelism): return {"0": 0}
    ...     def advance(self, split, position, limit):
    ...         end = min(5, position + (limit or 5))
    ...         return end, end == 5
    ...     def read(self, split, start, end): yield list(range(start, end))
    >>> coordinator = SourceCoordinator({"n": (Numbers(), 1)})
    >>> plan = coordinator.plan(limit=3)
    >>> [(piece.start, piece.end) for piece in plan.ranges[0]], plan.last
    ([(0, 3)], False)
    >>> coordinator.confirm(plan)
    >>> coordinator.plan(limit=3).last
    True
    """

    def __init__(
        self, sources: Mapping[str, tuple[Source[Any], int]], alignment: Sequence[AlignmentGroup] = ()
    ) -> None:
        self._sources = dict(sources)
        self._alignment = alignment
        self._paused: AbstractSet[str] = frozenset()
        self.positions: dict[str, dict[str, Any]] = {uid: {} for uid in sources}
        # How a source is cut into splits must not change when the job is scaled, or records would be read twice.
        self.split_parallelism = {uid: parallelism for uid, (_, parallelism) in sources.items()}
        self.finished: set[str] = set()
        self.ended: set[str] = set()

    def restore(
        self,
        positions: Mapping[str, Mapping[str, Any]],
        finished: list[str],
        split_parallelism: Mapping[str, int],
    ) -> None:
        """Go on from an earlier run. Sources that are new start from their beginning."""
        self.split_parallelism.update({uid: n for uid, n in split_parallelism.items() if uid in self.positions})
        for uid, splits in positions.items():
            if uid in self.positions:
                self.positions[uid] = dict(splits)
        self.finished = {name for name in finished if any(name.startswith(f"{uid}/") for uid in self.positions)}
        for uid, (source, _) in self._sources.items():
            if source.bounded and self.positions[uid] and self._all_finished(uid):
                self.ended.add(uid)

    @property
    def done(self) -> bool:
        """Whether every source has come to its end."""
        return len(self.ended) == len(self._sources)

    def observe(self, watermarks: Mapping[str, int]) -> None:
        """How far event time has come in each split ("source uid/split"): those too far ahead are not read for now."""
        self._paused = paused_splits(self._alignment, watermarks)

    def plan(self, limit: int | None) -> EpochPlan:
        """The next epoch, with about ``limit`` records of each split. Nothing moves before ``confirm``."""
        plan = EpochPlan()
        for uid, (source, parallelism) in self._sources.items():
            if uid not in self.ended:
                self._plan_source(plan, uid, source, parallelism, limit)
        plan.last = len(self.ended) + len(plan.ended) == len(self._sources)
        return plan

    def confirm(self, plan: EpochPlan) -> None:
        """The epoch is committed: its ends are the new positions."""
        for pieces in plan.ranges.values():
            for piece in pieces:
                self.positions[piece.source][piece.split] = piece.end
                if piece.finished:
                    self.finished.add(piece.key)
        self.ended.update(plan.ended)

    def _plan_source(
        self,
        plan: EpochPlan,
        uid: str,
        source: Source[Any],
        parallelism: int,
        limit: int | None,
    ) -> None:
        positions = self.positions[uid]
        for split, start in source.splits(self.split_parallelism[uid]).items():
            positions.setdefault(split, start)
        still_open = 0
        for index, (split, start) in enumerate(positions.items()):
            if f"{uid}/{split}" in self.finished:
                continue
            task = index % parallelism
            waits = f"{uid}/{split}" in self._paused
            if waits:
                plan.paused.append(f"{uid}/{split}")
            end, finished = (start, False) if waits else source.advance(split, start, limit)
            if finished is False and limit is None and source.bounded and not waits:
                message = (
                    f"source {uid!r}: advance() without a limit did not reach the end of the bounded split {split!r}"
                )
                raise JobError(message)
            plan.splits.setdefault(task, {}).setdefault(uid, []).append(split)
            if finished or end != start:
                plan.ranges.setdefault(task, []).append(ReadRange(uid, split, start, end, finished))
            still_open += not finished
        if source.bounded and not still_open:
            plan.ended.append(uid)

    def _all_finished(self, uid: str) -> bool:
        return all(f"{uid}/{split}" in self.finished for split in self.positions[uid])
