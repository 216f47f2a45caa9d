"""Watermark alignment."""

from __future__ import annotations

import pytest

from millrace.common.constants import LONG_MIN
from millrace.connectors.sequence import NumberSequenceSource
from millrace.runtime.alignment import AlignmentGroup, alignment_groups, paused_splits
from millrace.runtime.coordinator import SourceCoordinator

GROUP = AlignmentGroup("g", 10, frozenset({"a", "b"}))


@pytest.mark.parametrize(("ahead", "paused"), [(9, set()), (10, set()), (11, {"b/0"})])
def test_a_split_waits_when_it_is_more_than_the_drift_ahead(ahead: int, paused: set[str]) -> None:
    assert paused_splits([GROUP], {"a/0": 100, "b/0": 100 + ahead}) == paused


def test_splits_without_a_watermark_and_other_sources_do_not_count() -> None:
    assert paused_splits([GROUP], {"a/0": LONG_MIN, "c/0": 0, "b/0": 500}) == set()


def test_groups_gather_their_sources() -> None:
    groups = alignment_groups([("g", 10, frozenset("a")), ("h", 1, frozenset("c")), ("g", 7, frozenset("b"))])
    assert groups == [AlignmentGroup("g", 7, frozenset("ab")), AlignmentGroup("h", 1, frozenset("c"))]


def test_a_paused_split_is_not_read_but_still_owned() -> None:
    coordinator = SourceCoordinator({"n": (NumberSequenceSource(1, 10), 2)}, [AlignmentGroup("g", 10, frozenset("n"))])
    coordinator.observe({"n/1..5": 100, "n/6..10": 80})
    plan = coordinator.plan(2)
    assert plan.paused == ["n/1..5"]
    assert plan.splits == {0: {"n": ["1..5"]}, 1: {"n": ["6..10"]}}
    assert list(plan.ranges) == [1]
    assert not plan.last
