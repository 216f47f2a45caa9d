"""Running a file that was written for PyFlink."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from millrace.jobs.program import run_as_main
from millrace.pyflink.finder import install

__all__ = ["run_program"]


def run_program(path: str | Path, args: Sequence[str] = ()) -> None:
    """Run a PyFlink program as `python path args...` would, with Millrace in the place of PyFlink."""
    install()
    run_as_main(Path(path), args)
