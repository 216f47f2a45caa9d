"""Watermark alignment: splits that run far ahead of the others wait for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from millrace.common.constants import LONG_MIN
from millrace.runtime.spec import StageSpec

__all__ = ["AlignmentGroup", "alignment_groups", "alignment_of", "paused_splits"]


@dataclass(frozen=True)
class AlignmentGroup:
    """The sources that were given the same group name, and how far their splits may be apart."""

    name: str
    max_drift_ms: int
    sources: frozenset[str]


def alignment_groups(members: Iterable[tuple[str, int, frozenset[str]]]) -> list[AlignmentGroup]:
    """Groups from (name, drift, source uids) of each strategy; of several drifts the smallest counts.

    >>> alignment_groups([("g", 10, frozenset({"a"})), ("g", 5, frozenset({"b"}))])[0].max_drift_ms
    5
    """
    groups: dict[str, AlignmentGroup] = {}
    for name, drift, sources in members:
        known = groups.get(name, AlignmentGroup(name, drift, frozenset()))
        groups[name] = AlignmentGroup(name, min(drift, known.max_drift_ms), known.sources | sources)
    return list(groups.values())


def alignment_of(specs: Iterable[StageSpec]) -> list[AlignmentGroup]:
    """The groups that the watermark strategies of a job name."""
    members = []
    for spec in specs:
        for entry in spec.operators:
            alignment = getattr(getattr(entry.operator, "strategy", None), "alignment", None)
            if alignment is not None:
                members.append((alignment.group, alignment.max_drift_ms, entry.sources))
    return alignment_groups(members)


def paused_splits(groups: Iterable[AlignmentGroup], watermarks: Mapping[str, int]) -> set[str]:
    """The splits ("source uid/split") whose watermark is more than the drift ahead of their group's slowest.

    A split that has no watermark yet holds nobody back: it may be empty for a long time.

    >>> group = AlignmentGroup("g", 10, frozenset({"s"}))
    >>> paused_splits([group], {"s/0": 100, "s/1": 110, "s/2": 111})
    {'s/2'}
    """
    paused: set[str] = set()
    for group in groups:
        mine = {
            split: watermark
            for split, watermark in watermarks.items()
            if watermark != LONG_MIN and any(split.startswith(f"{source}/") for source in group.sources)
        }
        if mine:
            limit = min(mine.values()) + group.max_drift_ms
            paused.update(split for split, watermark in mine.items() if watermark > limit)
    return paused
