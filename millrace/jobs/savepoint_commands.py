"""`millrace savepoint ...`: look into savepoints, compare them with a program, ask a running job for one."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["savepoint"]


@click.group()
def savepoint() -> None:
    """Look after savepoints."""


@savepoint.command()
@click.option("--json", "as_json", is_flag=True, help="JSON instead of a table.")
@click.argument("path")
def inspect(path: str, as_json: bool) -> None:
    """Show what is in the savepoint or checkpoint folder PATH."""
    from millrace.errors import MillraceError
    from millrace.jobs.savepoint_view import inspection, show_inspection
    from millrace.state.savepoint import open_snapshot

    try:
        content = inspection(open_snapshot(path))
    except MillraceError as error:
        raise click.ClickException(str(error)) from error
    if as_json:
        click.echo(json.dumps(content, indent=1))
    else:
        show_inspection(content, _console())


@savepoint.command(context_settings={"allow_interspersed_args": False})
@click.option("--json", "as_json", is_flag=True, help="JSON instead of a table.")
@click.argument("path")
@click.argument("app", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
def diff(path: str, app: Path, args: tuple[str, ...], as_json: bool) -> None:
    """Show what becomes of the savepoint PATH in the program APP, without running a job.

    The program runs up to its first execute(). Ends with code 1 if state would be dropped.
    """
    from millrace.errors import MillraceError
    from millrace.jobs.program import captured_job
    from millrace.jobs.savepoint_view import diff_content, show_diff
    from millrace.runtime.mapping import adopt_max_parallelism, compare
    from millrace.state.savepoint import open_snapshot

    try:
        snapshot = open_snapshot(path)
        captured = captured_job(app, args)
        if captured is None:
            raise click.ClickException(f"{app} starts no job: it never calls execute()")
        adopt_max_parallelism(snapshot, captured.job, captured.settings.config)
        content = diff_content(snapshot, captured.job, compare(snapshot, captured.job))
    except MillraceError as error:
        raise click.ClickException(str(error)) from error
    if as_json:
        click.echo(json.dumps(content, indent=1))
    else:
        show_diff(content, _console())
    sys.exit(1 if content["would_drop"] else 0)


@savepoint.command()
@click.option("--stop", is_flag=True, help="End the job after the savepoint.")
@click.option("--drain", is_flag=True, help="With --stop: end event time first, so that all event-time timers fire.")
@click.option("--timeout", type=float, default=60.0, show_default=True, help="Seconds to wait for the answer.")
@click.argument("checkpoint_dir")
@click.argument("target")
def trigger(checkpoint_dir: str, target: str, stop: bool, drain: bool, timeout: float) -> None:
    """Ask the job that runs on CHECKPOINT_DIR for a savepoint in the directory TARGET; prints its path."""
    from millrace.errors import MillraceError
    from millrace.runtime.control import ask_through_files
    from millrace.state.storage import Storage

    if drain and not stop:
        raise click.UsageError("--drain ends event time, so the job cannot go on: add --stop")
    # The job may have been started in another directory.
    directory = target if "://" in target else os.path.abspath(target)
    try:
        path = ask_through_files(Storage(checkpoint_dir), directory, stop=stop, drain=drain, timeout_s=timeout)
    except MillraceError as error:
        raise click.ClickException(str(error)) from error
    click.echo(path)


def _console() -> Console:
    from rich.console import Console

    wide = None if sys.stdout.isatty() else 200
    return Console(width=wide, soft_wrap=False, highlight=False)
