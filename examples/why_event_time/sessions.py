"""Why event time, part 2: sessions that micro-batches cut apart and session windows keep whole.

Users click, pause, and click again. A session is a run of clicks with no pause longer than half a minute. A job that
looks for sessions in each minute of data on its own cuts every session that is under way when the minute is over: it
sees more sessions than there were, and shorter ones. Session windows have no such borders. They grow with the clicks
and end when the user does.

The micro-batches here are even cut by event time, without a single click in the wrong one: it is the cutting itself
that does the harm.

    python examples/why_event_time/sessions.py --out sessions.png
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from matplotlib.figure import Figure

from millrace.common import Duration, Time, WatermarkStrategy
from millrace.connectors.callback import CallbackSink
from millrace.datastream import AggregateFunction, DataStream, ProcessWindowFunction, StreamExecutionEnvironment
from millrace.datastream.window import EventTimeSessionWindows, TimeWindow, TumblingEventTimeWindows

GAP_MS = 30_000
BATCH_MS = 60_000
DISORDER_MS = 5_000


@dataclass(frozen=True, slots=True)
class Click:
    """A click of a user, at ``time`` in milliseconds."""

    user: str
    time: int


@dataclass(frozen=True, slots=True)
class Session:
    """A run of clicks: who, when it began and ended, and how many."""

    user: str
    first: int
    last: int
    clicks: int

    def with_click(self, click: Click) -> Session:
        """The session with one more click in it."""
        return replace(self, first=min(self.first, click.time), last=max(self.last, click.time), clicks=self.clicks + 1)


def clicks_of(users: int, minutes: int, seed: int) -> list[Click]:
    """Everybody's clicks, in the order in which they arrive: each up to DISORDER_MS after it happened."""
    arrivals: list[tuple[int, Click]] = []
    for number in range(users):
        draw = random.Random(f"{seed} user {number}")
        time = draw.randint(0, 60_000)
        while time < minutes * 60_000:
            arrivals.append((time + draw.randint(0, DISORDER_MS), Click(f"user {number + 1}", time)))
            goes_away = draw.random() < 0.12
            time += draw.randint(GAP_MS + 5_000, 4 * GAP_MS) if goes_away else draw.randint(1_000, 20_000)
    return [click for _, click in sorted(arrivals, key=lambda arrival: (arrival[0], arrival[1].user))]


class Growing(AggregateFunction):
    """A session that grows by clicks, and by other sessions that turn out to be the same one."""

    def create_accumulator(self) -> Session | None:
        return None

    def add(self, value: Click, accumulator: Session | None) -> Session:
        return (accumulator or Session(value.user, value.time, value.time, 0)).with_click(value)

    def get_result(self, accumulator: Session | None) -> Session | None:
        return accumulator

    def merge(self, acc_a: Session | None, acc_b: Session | None) -> Session | None:
        if acc_a is None or acc_b is None:
            return acc_a or acc_b
        first, last = min(acc_a.first, acc_b.first), max(acc_a.last, acc_b.last)
        return Session(acc_a.user, first, last, acc_a.clicks + acc_b.clicks)


class SessionsOfBatch(ProcessWindowFunction[Click, Session, str, TimeWindow]):
    """Finds the sessions in one batch of a user's clicks, as a job has to that sees one batch at a time."""

    def process(
        self, key: str, context: ProcessWindowFunction.Context[TimeWindow], elements: Iterable[Click]
    ) -> Iterator[Session]:
        session: Session | None = None
        for click in sorted(elements, key=lambda click: click.time):
            if session is not None and click.time - session.last > GAP_MS:
                yield session
                session = None
            session = (session or Session(key, click.time, click.time, 0)).with_click(click)
        if session is not None:
            yield session


def by_batches(clicks: DataStream) -> DataStream:
    """Sessions as fixed batches show them."""
    return (
        clicks.key_by(lambda click: click.user)
        .window(TumblingEventTimeWindows.of(Time.milliseconds(BATCH_MS)))
        .process(SessionsOfBatch())
        .name("sessions within batches")
    )


def by_session_windows(clicks: DataStream) -> DataStream:
    """Sessions as they were."""
    return (
        clicks.key_by(lambda click: click.user)
        .window(EventTimeSessionWindows.with_gap(Time.milliseconds(GAP_MS)))
        .aggregate(Growing())
        .name("session windows")
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Find sessions both ways, compare and draw them."""
    args = arguments(argv)
    data = clicks_of(args.users, args.minutes, args.seed)
    env = StreamExecutionEnvironment.get_execution_environment()
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(DISORDER_MS)).with_timestamp_assigner(
        lambda click: click.time
    )
    clicks = env.from_collection(data).assign_timestamps_and_watermarks(strategy)
    pieces: list[Session] = []
    sessions: list[Session] = []
    by_batches(clicks).sink_to(CallbackSink(pieces.extend))
    by_session_windows(clicks).sink_to(CallbackSink(sessions.extend))
    env.execute("sessions")

    cut = [session for session in sessions if session not in set(pieces)]
    print(f"{len(data)} clicks of {args.users} users in {args.minutes} minutes")
    print(f"session windows: {len(sessions):3} sessions of {mean_seconds(sessions):5.1f} s on average")
    print(f"micro-batches:   {len(pieces):3} sessions of {mean_seconds(pieces):5.1f} s on average")
    print(f"{len(cut)} of {len(sessions)} sessions were cut")
    draw(data, pieces, sessions, args.minutes, args.out)
    print(f"see {args.out}")
    return 0


def mean_seconds(sessions: list[Session]) -> float:
    """How long sessions are on average."""
    return sum(session.last - session.first for session in sessions) / len(sessions) / 1000


def draw(data: list[Click], pieces: list[Session], sessions: list[Session], minutes: int, out: Path) -> None:
    """A line for each user: cut by batches above, whole below."""
    users = sorted({click.user for click in data}, key=lambda user: int(user.split()[1]))
    figure = Figure(figsize=(11, 2.2 + 0.75 * len(users)), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True)
    whole = set(sessions)
    for axes, found in ((above, pieces), (below, sessions)):
        for colour, name, shown in (
            ("tab:blue", "whole session", [one for one in found if one in whole]),
            ("tab:orange", "piece of a session that was cut", [one for one in found if one not in whole]),
        ):
            axes.barh(
                [users.index(one.user) for one in shown],
                # A session of one click has no length, and would not show.
                [max(one.last - one.first, 3000) / 60_000 for one in shown],
                left=[one.first / 60_000 for one in shown],
                height=0.55,
                color=colour,
                label=name if shown else None,
            )
        axes.plot(
            [click.time / 60_000 for click in data],
            [users.index(click.user) for click in data],
            "k|",
            markersize=6,
            label="click",
        )
        axes.set_yticks(range(len(users)), users)
        axes.invert_yaxis()
    for border in range(0, minutes + 1, BATCH_MS // 60_000):
        above.axvline(border, color="0.4", linestyle="--", linewidth=1, label=None if border else "border of a batch")
    above.set_title(f"Micro-batches of {BATCH_MS // 1000} s find {len(pieces)} sessions")
    below.set_title(f"Session windows with a gap of {GAP_MS // 1000} s find {len(sessions)} sessions, as there were")
    below.set_xlabel("event time (minutes)")
    handles, labels = above.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    figure.savefig(out, dpi=110)


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--users", type=int, default=5, help="how many users click (default %(default)s)")
    parser.add_argument("--minutes", type=int, default=10, help="for how long (default %(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    beside = Path(__file__).with_name("sessions.png")
    parser.add_argument("--out", type=Path, default=beside, help="where the picture goes (default: beside the program)")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
