"""Views per campaign in 10-second windows of event time: a miniature of the Yahoo! streaming benchmark.

Generated ad events are parsed, filtered to views, joined to their campaign and counted per campaign and window. Late
events and malformed ones go to side outputs. At the end, plain Spark SQL counts the same input again, and the program
says whether every window agrees.

    python -m millrace run examples/ad_campaigns.py --events 300000
    python -m millrace run examples/ad_campaigns.py --unbounded        # until Ctrl-C
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from typing import Any

from ad_events import AdEvents
from ad_recount import recount
from ad_view import AdView

from millrace.common import Configuration, Duration, Time, WatermarkStrategy
from millrace.connectors.callback import CallbackSink
from millrace.datastream import OutputTag, ProcessFunction, ProcessWindowFunction, StreamExecutionEnvironment
from millrace.datastream.functions import AggregateFunction
from millrace.datastream.window import TumblingEventTimeWindows

WINDOW_MS = 10_000
MALFORMED = OutputTag("malformed")
LATE = OutputTag("late")


class Parse(ProcessFunction):
    """JSON to a dict; what is no JSON goes to a side output instead of failing the job."""

    def process_element(self, value: str, ctx: ProcessFunction.Context) -> Iterator[Any]:
        try:
            yield json.loads(value)
        except json.JSONDecodeError:
            yield MALFORMED, value


class Count(AggregateFunction):
    """Counts views while they come in."""

    def create_accumulator(self) -> int:
        return 0

    def add(self, value: Any, accumulator: int) -> int:
        return accumulator + 1

    def get_result(self, accumulator: int) -> int:
        return accumulator

    def merge(self, acc_a: int, acc_b: int) -> int:
        return acc_a + acc_b


class WithWindow(ProcessWindowFunction):
    """Adds campaign and window to a count."""

    def process(
        self, key: str, context: ProcessWindowFunction.Context, elements: list[int]
    ) -> Iterator[tuple[str, int, int]]:
        for count in elements:
            yield key, context.window().start, count


def build(env: StreamExecutionEnvironment, events: AdEvents, args: argparse.Namespace, view: AdView) -> None:
    """The program: one read, three outputs."""
    campaign_of = events.campaign_of()
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(
        Duration.of_millis(args.out_of_orderness_ms)
    ).with_timestamp_assigner(lambda view, _: view[1])

    lines = env.from_generator(
        events, count=None if args.unbounded else args.events, records_per_second=args.rate or None
    ).uid("ad events")
    parsed = lines.process(Parse()).name("parse").uid("parse")
    views = (
        parsed.filter(lambda event: event["event_type"] == "view")
        .name("views only")
        .map(lambda event: (campaign_of[event["ad_id"]], event["event_time"]))
        .name("join campaign")
        .assign_timestamps_and_watermarks(strategy)
    )
    counts = (
        views.key_by(lambda view: view[0])
        .window(TumblingEventTimeWindows.of(Time.milliseconds(WINDOW_MS)))
        .side_output_late_data(LATE)
        .aggregate(Count(), WithWindow())
        .name("views per campaign and window")
        .uid("counts")
    )
    counts.sink_to(CallbackSink(view.counts)).name("live table")
    counts.get_side_output(LATE).sink_to(CallbackSink(view.late)).name("late views")
    parsed.get_side_output(MALFORMED).sink_to(CallbackSink(view.malformed)).name("malformed lines")


def explained() -> str:
    """The graph of the job as a picture, as the README shows it."""
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
    build(env, AdEvents(), arguments([]), AdView(None, WINDOW_MS))
    return env.explain("ad campaigns")._repr_svg_()


def main() -> int:
    """Run the job, watch it, check it."""
    args = arguments()
    events = AdEvents(
        campaigns=args.campaigns,
        disorder_ms=args.out_of_orderness_ms,
        late_share=args.late_share,
        malformed_share=args.malformed_share,
    )
    per_epoch = args.rate or max(1, args.events // 25)
    config = Configuration.from_dict({"pipeline.epoch.max-records": str(per_epoch)})
    env = StreamExecutionEnvironment.get_execution_environment(config)
    view = AdView(None if args.unbounded else args.events, WINDOW_MS)
    build(env, events, args, view)
    print(env.explain("ad campaigns"), "\n")
    client = env.execute_async("ad campaigns")
    client.on_progress(view.progress)
    with view:
        try:
            client.get_job_execution_result().result()
        except KeyboardInterrupt:
            client.cancel().result()
    print(view.summary())
    if args.unbounded:
        return 0
    agrees = recount(events, args.events, WINDOW_MS, view)
    return 0 if agrees else 1


def arguments(argv: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=300_000, help="how many events to make (default %(default)s)")
    parser.add_argument("--rate", type=int, default=0, help="events a second; 0 is as fast as it goes (default)")
    parser.add_argument("--campaigns", type=int, default=20)
    parser.add_argument("--out-of-orderness-ms", type=int, default=2000, help="how far events may come out of order")
    parser.add_argument("--late-share", type=float, default=0.01, help="share of events that come much too late")
    parser.add_argument("--malformed-share", type=float, default=0.005, help="share of lines that are no JSON")
    parser.add_argument("--unbounded", action="store_true", help="run until Ctrl-C")
    args = parser.parse_args(argv)
    if args.unbounded and not args.rate:
        args.rate = 20_000
    return args


if __name__ == "__main__":
    sys.exit(main())
