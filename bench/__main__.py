"""``make bench``: all benchmarks, or those named: ``python -m bench reduce windows start``."""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

from bench.measure import Figure, Report, timed
from bench.pipelines import (
    CheckedTotal,
    expected_total,
    reduce_by_key,
    reduce_with_rdd,
    reduce_with_sql,
    windowed,
)
from millrace.spark.session import get_session

KEYS = 1000


def check(what: str, got: object, expected: object) -> None:
    """A figure counts only if the answer is right."""
    if got != expected:
        raise SystemExit(f"{what}: wrong answer, {got} instead of {expected}")


def bench_reduce(events: int) -> None:
    """map, filter, key_by and rolling reduce, against PySpark's RDDs with the same functions and against Spark SQL."""
    report = Report(f"map, filter, key_by, reduce over {events:,} events, {KEYS:,} keys", "PySpark RDD")
    reduce_by_key(10_000, KEYS, CheckedTotal()).execute()
    sink = CheckedTotal()
    env = reduce_by_key(events, KEYS, sink)
    report.add(timed("Millrace, end to end", events, env.execute, "one result an event"))
    check("Millrace", (sink.records, sink.total), expected_total(events))
    result = reduce_by_key(events, KEYS, CheckedTotal()).execute()
    report.add(Figure("Millrace, the plan alone", events, result.get_net_runtime() / 1000))
    reduce_with_rdd(10_000, KEYS)
    report.add(timed("PySpark RDD", events, lambda: reduce_with_rdd(events, KEYS), "one result a key"))
    reduce_with_sql(10_000, KEYS)
    report.add(timed("Spark SQL", events, lambda: reduce_with_sql(events, KEYS), "JVM only, one result a key"))
    report.show()
    report.save("reduce")


def bench_windows(events: int) -> None:
    """Windows with a Python reduce, few and many keys."""
    report = Report(f"event-time windows with a Python reduce over {events:,} events", "tumbling, 1,000 keys")
    copies = {"tumbling": 1, "sliding": 6, "session": 1}
    windowed("tumbling", 10_000, KEYS, CheckedTotal()).execute()
    for kind, factor in copies.items():
        for keys in (1_000, 100_000):
            sink = CheckedTotal()
            env = windowed(kind, events, keys, sink)
            report.add(timed(f"{kind}, {keys:,} keys", events, env.execute))
            check(f"{kind} windows", sink.total, events * factor)
    report.show()
    report.save("windows")


def bench_scale(events: int) -> None:
    """Cost per event from 1 to 10 million events."""
    report = Report("tumbling windows, cost per event as the input grows", "1,000,000 events")
    windowed("tumbling", 10_000, KEYS, CheckedTotal()).execute()
    for size in (events // 2, events, events * 5):
        sink = CheckedTotal()
        env = windowed("tumbling", size, KEYS, sink)
        report.add(timed(f"{size:,} events", size, env.execute))
        check("tumbling windows", sink.total, size)
    report.peer = report.figures[0].name
    report.show()
    report.save("scale")


def bench_start(_: int) -> None:
    """From ``python quickstart.py`` to the first result, a new process each time."""
    script = Path(__file__).parent.parent / "examples" / "quickstart.py"
    for attempt in (1, 2):
        begun = time.perf_counter()
        process = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        first = process.stdout.readline().strip()
        seconds = time.perf_counter() - begun
        process.wait()
        check("quickstart", first[3:], "('garden', 12.5, 58000)")
        print(f"python quickstart.py, run {attempt}: first result after {seconds:.1f} s")


BENCHMARKS = {"reduce": bench_reduce, "windows": bench_windows, "scale": bench_scale, "start": bench_start}


def main() -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(prog="bench")
    parser.add_argument("names", nargs="*", help=f"any of {', '.join(BENCHMARKS)}; all by default")
    parser.add_argument("--events", type=int, default=2_000_000)
    args = parser.parse_args()
    unknown = set(args.names) - set(BENCHMARKS)
    if unknown:
        parser.error(f"no benchmark {', '.join(sorted(unknown))}: there are {', '.join(BENCHMARKS)}")
    get_session()
    for name in args.names or BENCHMARKS:
        BENCHMARKS[name](args.events)


if __name__ == "__main__":
    main()
