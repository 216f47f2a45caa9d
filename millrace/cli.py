"""The `millrace` command."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import click

from millrace import __version__
from millrace.jobs.program import run_as_main
from millrace.jobs.savepoint_commands import savepoint
from millrace.traceback_view import format_exception, is_engine_file

__all__ = ["CONFIG_VARIABLE", "main"]

CONFIG_VARIABLE = "MILLRACE_CONFIG"
"""The environment variable that carries `-D` settings, as a JSON object, to the program's default configuration."""

_INTERRUPTED = 130


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="millrace")
def main() -> None:
    """Run Millrace programs, and look after their savepoints."""


main.add_command(savepoint)


@main.command(context_settings={"allow_interspersed_args": False})
@click.option("-p", "--parallelism", type=click.IntRange(min=1), help="Parallel tasks per operator.")
@click.option("--master", help="Spark master: local[4], yarn, spark://host:7077, ...")
@click.option("-D", "settings", multiple=True, metavar="KEY=VALUE", help="A configuration setting; may be repeated.")
@click.option(
    "-s",
    "--from-savepoint",
    metavar="PATH",
    help="Start from this savepoint, or from the newest whole epoch of this checkpoint folder.",
)
@click.option("--allow-non-restored-state", is_flag=True, help="Drop state that no operator of the program takes.")
@click.option(
    "--log-level",
    type=click.Choice(["off", "error", "warn", "info", "debug"], case_sensitive=False),
    help="How much of Spark's own log to show; off by default.",
)
@click.option("--pyflink", is_flag=True, help="APP imports pyflink: let Millrace take its place.")
@click.option("--full-traceback", is_flag=True, help="Show the engine's own frames in a traceback too.")
@click.argument("app", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
def run(
    parallelism: int | None,
    master: str | None,
    settings: tuple[str, ...],
    from_savepoint: str | None,
    allow_non_restored_state: bool,
    log_level: str | None,
    pyflink: bool,
    full_traceback: bool,
    app: Path,
    args: tuple[str, ...],
) -> None:
    """Run the program APP with ARGS, as `python APP ARGS` would.

    Options of Millrace come before APP; whatever follows APP is the program's own.
    """
    configuration = _configuration_of_the_environment()
    configuration.update(_parse_setting(setting) for setting in settings)
    if parallelism is not None:
        configuration["parallelism.default"] = str(parallelism)
    if from_savepoint is not None:
        configuration["execution.state-recovery.path"] = from_savepoint
    if allow_non_restored_state:
        configuration["execution.state-recovery.ignore-unclaimed-state"] = "true"
    if configuration:
        os.environ[CONFIG_VARIABLE] = json.dumps(configuration)
    if master is not None:
        os.environ["MILLRACE_MASTER"] = master
    if log_level is not None:
        os.environ["MILLRACE_LOG"] = log_level
    try:
        if pyflink:
            from millrace.pyflink import install

            install()
        run_as_main(app, args)
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)
    except Exception as error:
        sys.stdout.flush()
        sys.stderr.write(format_exception(_without_our_start(error), full=full_traceback))
        sys.exit(1)


def _without_our_start(error: Exception) -> Exception:
    """Takes the frames that led from the command to the program off the traceback: `python APP` would not have them."""
    first = error.__traceback__
    while first is not None and is_engine_file(first.tb_frame.f_code.co_filename):
        first = first.tb_next
    return error.with_traceback(first)


def _configuration_of_the_environment() -> dict[str, str]:
    text = os.environ.get(CONFIG_VARIABLE)
    if not text:
        return {}
    try:
        configuration = json.loads(text)
    except json.JSONDecodeError as error:
        raise click.UsageError(f"{CONFIG_VARIABLE} in the environment is not JSON: {error}") from error
    if not isinstance(configuration, dict):
        raise click.UsageError(f"{CONFIG_VARIABLE} in the environment must be a JSON object, for example {{}}")
    return configuration


def _parse_setting(setting: str) -> tuple[str, str]:
    key, equals, value = setting.partition("=")
    if not key.strip() or not equals:
        raise click.BadParameter(f"{setting!r} is not KEY=VALUE", param_hint="-D")
    return key.strip(), value
