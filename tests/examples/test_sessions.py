from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest
import sessions
from sessions import (
    BATCH_MS,
    DISORDER_MS,
    GAP_MS,
    Click,
    Growing,
    Session,
    by_batches,
    by_session_windows,
    clicks_of,
)

from millrace.common import Duration, WatermarkStrategy
from millrace.connectors.callback import CallbackSink
from millrace.datastream import StreamExecutionEnvironment
from tests.examples.local import run_here

PNG = b"\x89PNG\r\n\x1a\n"


def run(data: list[Click], parallelism: int = 1, per_epoch: int | None = None) -> tuple[list[Session], list[Session]]:
    """The sessions that batches find, and those that session windows find."""
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(DISORDER_MS))
    clicks = env.from_collection(data).assign_timestamps_and_watermarks(
        strategy.with_timestamp_assigner(lambda click: click.time)
    )
    pieces: list[Session] = []
    whole: list[Session] = []
    by_batches(clicks).sink_to(CallbackSink(pieces.extend))
    by_session_windows(clicks).sink_to(CallbackSink(whole.extend))
    run_here(env, per_epoch)
    return pieces, whole


def oracle(data: list[Click], batch_ms: int | None) -> set[Session]:
    """Sort, then cut where the pause is too long, and at the borders of batches if there are any."""
    times: defaultdict[tuple[str, int], list[int]] = defaultdict(list)
    for click in data:
        times[click.user, 0 if batch_ms is None else click.time // batch_ms].append(click.time)
    found = set()
    for (user, _), clicks in times.items():
        run: list[int] = []
        for time in [*sorted(clicks), None]:
            if run and (time is None or time - run[-1] > GAP_MS):
                found.add(Session(user, run[0], run[-1], len(run)))
                run = []
            if time is not None:
                run.append(time)
    return found


@pytest.mark.parametrize(("pause", "found"), [(GAP_MS - 1, 1), (GAP_MS, 1), (GAP_MS + 1, 2)])
def test_a_session_ends_after_a_pause_longer_than_the_gap(pause: int, found: int) -> None:
    pieces, whole = run([Click("user 1", 0), Click("user 1", pause)])
    assert len(whole) == len(pieces) == found


def test_a_session_over_a_border_is_one_for_windows_and_two_for_batches() -> None:
    pieces, whole = run([Click("user 1", BATCH_MS - 1), Click("user 1", BATCH_MS)])
    assert whole == [Session("user 1", BATCH_MS - 1, BATCH_MS, 2)]
    assert set(pieces) == {
        Session("user 1", BATCH_MS - 1, BATCH_MS - 1, 1),
        Session("user 1", BATCH_MS, BATCH_MS, 1),
    }


def test_a_click_between_two_sessions_makes_them_one() -> None:
    _, whole = run([Click("user 1", 0), Click("user 1", 40_000), Click("user 1", 20_000)])
    assert whole == [Session("user 1", 0, 40_000, 3)]


def test_an_empty_accumulator_merges_with_anything() -> None:
    growing = Growing()
    one = growing.add(Click("user 1", 5), growing.create_accumulator())
    assert growing.merge(None, one) == growing.merge(one, None) == one == Session("user 1", 5, 5, 1)
    assert growing.merge(None, None) is None


@pytest.mark.parametrize(("parallelism", "per_epoch"), [(1, None), (2, None), (2, 20), (3, 7)])
def test_both_ways_find_what_the_oracle_finds(parallelism: int, per_epoch: int | None) -> None:
    data = clicks_of(users=8, minutes=12, seed=3)
    pieces, whole = run(data, parallelism, per_epoch)
    assert len(pieces) == len(set(pieces)) and set(pieces) == oracle(data, BATCH_MS)
    assert len(whole) == len(set(whole)) and set(whole) == oracle(data, None)
    assert sum(one.clicks for one in pieces) == sum(one.clicks for one in whole) == len(data)
    assert len(pieces) > len(whole)


def test_clicks_are_out_of_order_by_no_more_than_the_bound() -> None:
    data = clicks_of(users=8, minutes=12, seed=3)
    newest = 0
    behind = []
    for click in data:
        newest = max(newest, click.time)
        behind.append(newest - click.time)
    assert 0 < max(behind) <= DISORDER_MS
    assert data == clicks_of(users=8, minutes=12, seed=3)


def test_the_script(spark: object, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "sessions.png"
    assert sessions.main(["--users", "3", "--minutes", "5", "--out", str(out)]) == 0
    data = clicks_of(3, 5, 1)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"{len(data)} clicks of 3 users in 5 minutes"
    assert lines[1].split()[:4] == ["session", "windows:", str(len(oracle(data, None))), "sessions"]
    assert lines[2].split()[:3] == ["micro-batches:", str(len(oracle(data, BATCH_MS))), "sessions"]
    assert out.read_bytes().startswith(PNG)
