"""Runs the corpus on PyFlink and on Millrace, and compares what the programs print and how long they take.

``python compat/run.py --flink PYTHON [--examples DIRECTORY] [NAME ...]``: PYTHON is an interpreter of an environment
with apache-flink; DIRECTORY holds the examples that come with it, which are compared as well.
"""

from __future__ import annotations

import argparse
import difflib
import os
import re
import subprocess
import sys
import time
from itertools import islice
from pathlib import Path

HERE = Path(__file__).resolve().parent
PREFIX = re.compile(r"^((?:[\w -]+:)?)\d+> ")
EXAMPLES = [
    "word_count.py",
    "state_access.py",
    "event_time_timer.py",
    "process_json_data.py",
    "basic_operations.py",
    "windowing/tumbling_count_window.py",
    "windowing/tumbling_time_window.py",
    "windowing/sliding_time_window.py",
    "windowing/session_with_gap_window.py",
    "windowing/session_with_dynamic_gap_window.py",
]
LOGGED = (
    "Executing ",
    "Use --",
    "Printing ",
    "No module named google",
    "PYFLINK_CYTHON_ENABLED",
    "Using Any for unsupported type",
)
"""What PyFlink's libraries and the examples say about themselves."""
MILLRACE = "import sys; from millrace.pyflink import run_program; run_program(sys.argv[1])"


def run(command: list[str], python: str) -> tuple[list[str], float, str]:
    """The lines a program prints, in no order, without the numbers of the tasks that printed them."""
    search = f"{Path(python).parent}{os.pathsep}{os.environ['PATH']}"
    variables = {**os.environ, "PATH": search, "PYTHONPATH": str(HERE.parent) if python == sys.executable else ""}
    start = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, env=variables, check=False)
    seconds = time.perf_counter() - start
    lines = [PREFIX.sub(_without_task, line) for line in done.stdout.splitlines()]
    kept = [line for line in lines if line.strip() and not line.startswith(LOGGED)]
    return sorted(kept), seconds, "" if done.returncode == 0 else done.stderr[-2000:]


def _without_task(prefix: re.Match[str]) -> str:
    return f"{prefix[1].rstrip(':')}> " if prefix[1] else ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--flink", required=True, help="Python of an environment with apache-flink")
    parser.add_argument("--examples", type=Path, help="the directory examples/datastream of apache-flink")
    parser.add_argument("names", nargs="*", help="only these programs")
    options = parser.parse_args()
    programs = sorted((HERE / "programs").glob("*.py"))
    programs += [options.examples / name for name in EXAMPLES] if options.examples else []
    failed = 0
    print(f"{'program':<36} {'result':<10} {'lines':>6} {'PyFlink':>9} {'Millrace':>9}")
    for program in programs:
        if options.names and program.stem not in options.names:
            continue
        theirs, flink_seconds, flink_error = run([options.flink, str(program)], options.flink)
        ours, our_seconds, our_error = run([sys.executable, "-c", MILLRACE, str(program)], sys.executable)
        same = theirs == ours and not flink_error and not our_error
        failed += not same
        result = "same" if same else "differs"
        print(f"{program.stem:<36} {result:<10} {len(ours):>6} {flink_seconds:>8.1f}s {our_seconds:>8.1f}s", flush=True)
        if not same:
            diff = difflib.unified_diff(theirs, ours, "PyFlink", "Millrace", lineterm="", n=0)
            print("\n".join(islice(diff, 20)))
            print(flink_error, our_error, sep="\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
