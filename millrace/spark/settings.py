"""The Spark settings Millrace starts a session with, as plain data: nothing here starts anything."""

from __future__ import annotations

import os
import re
import site
import sys
import sysconfig
from pathlib import Path
from typing import Final

from millrace.errors import ConfigurationError

__all__ = [
    "LAUNCH_DIRECTORY",
    "default_driver_memory",
    "default_settings",
    "is_local",
    "local_cores",
    "log_level",
    "machine_memory",
    "read_spark_defaults",
    "worker_python_path",
]

LAUNCH_DIRECTORY: Final = Path(__file__).resolve().parent / "launch"
"""Holds what the JVM needs at its start: the log settings and the stand-in for `java`."""

_GIB: Final = 1024**3
_LOG_LEVELS: Final = ("off", "fatal", "error", "warn", "info", "debug", "trace", "all")
_LOCAL_MASTER = re.compile(r"local(?:\[(?P<threads>\*|\d+)(?:\s*,\s*\d+)?\])?")
_DEFAULTS_LINE = re.compile(r"\s*(?P<key>spark\.[^\s=:]+)\s*[=:\s]\s*(?P<value>.*?)\s*")

_ALWAYS: Final = {
    "spark.app.name": "millrace",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # A stage's tasks are fixed by the program's parallelism, and planning again at run time costs every epoch.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.adaptive.streaming.stateless.enabled": "false",
    # TCP between the JVM and its Python workers stalls 40 ms a stage.
    "spark.python.unix.domain.socket.enabled": "true",
    # Our rows are chunks of thousands of records: batches are cut by size, long before the usual 10,000 rows.
    "spark.sql.execution.arrow.maxBytesPerBatch": "16m",
    # Results come back through collect(), and the driver's memory is the only limit that means something.
    "spark.driver.maxResultSize": "0",
    # Writes the offset and commit logs of an epoch in a third of the time the default takes.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    "spark.sql.streaming.metricsEnabled": "false",
}


def default_settings(master: str, parallelism: int | None = None) -> dict[str, str]:
    """What a new session on `master` is started with, where nobody has said otherwise.

    >>> settings = default_settings("local[4]")
    >>> settings["spark.sql.shuffle.partitions"], settings["spark.driver.host"]
    ('4', '127.0.0.1')
    >>> "spark.driver.host" in default_settings("yarn")
    False
    """
    settings = {**_ALWAYS, "spark.master": master}
    settings["spark.driver.extraJavaOptions"] = (
        f"-Dlog4j2.configurationFile={(LAUNCH_DIRECTORY / 'log4j2.properties').as_uri()}"
        f" -Dmillrace.log.level={log_level()}"
        # To tell a stopped query from a failed one, Spark runs a deeply recursive pattern over the error's whole text.
        " -Xss32m"
    )
    partitions = parallelism
    if is_local(master):
        partitions = parallelism or local_cores(master)
        settings["spark.driver.host"] = settings["spark.driver.bindAddress"] = "127.0.0.1"
        settings["spark.executorEnv.PYTHONPATH"] = worker_python_path()
        settings["spark.python.daemon.module"] = "millrace.spark.daemon"
        if "SPARK_DRIVER_MEMORY" not in os.environ:
            settings["spark.driver.memory"] = default_driver_memory(machine_memory())
    if partitions is not None:
        settings["spark.sql.shuffle.partitions"] = settings["spark.default.parallelism"] = str(partitions)
    return settings


def is_local(master: str) -> bool:
    """Whether driver and workers share this machine.

    >>> [is_local(master) for master in ("local", "local[*]", "local[2]", "local[2,3]", "yarn", "spark://local:7077")]
    [True, True, True, True, False, False]
    """
    return _LOCAL_MASTER.fullmatch(master) is not None


def local_cores(master: str) -> int:
    """How many tasks run at once on a local master.

    >>> local_cores("local[3]"), local_cores("local")
    (3, 1)
    """
    match = _LOCAL_MASTER.fullmatch(master)
    threads = match["threads"] if match else None
    if threads == "*":
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return int(threads) if threads else 1


def default_driver_memory(machine_bytes: int) -> str:
    """A quarter of the machine, at least one gigabyte and at most four.

    >>> [default_driver_memory(gib * 1024**3) for gib in (2, 8, 64)]
    ['1024m', '2048m', '4096m']
    """
    return f"{min(max(machine_bytes // 4, _GIB), 4 * _GIB) // 1024**2}m"


def machine_memory() -> int:
    """The bytes of memory this process may use: the machine's, or its container's if that is less."""
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")] if hasattr(os, "sysconf") else [4 * _GIB]
    for limit_file in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            limits.append(int(Path(limit_file).read_text()))
        except (OSError, ValueError):  # no such control group, or the word "max"
            continue
    return min(limits)


def log_level() -> str:
    """The level of Spark's own log, from the MILLRACE_LOG environment variable; `off` if it is not set."""
    level = os.environ.get("MILLRACE_LOG", "").strip().lower() or "off"
    if level not in _LOG_LEVELS:
        raise ConfigurationError(f"MILLRACE_LOG={level!r} is no log level; use one of {', '.join(_LOG_LEVELS)}")
    return level


def worker_python_path() -> str:
    """PYTHONPATH for workers on this machine: whatever the driver can import, they can too.

    That is the checkout Millrace runs from if it is not installed, the directory of the user's program, and anything
    else on `sys.path` that a fresh interpreter would not have by itself.
    """
    standard = [sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")]
    own = {Path(path).resolve() for path in [*standard, *site.getsitepackages(), site.getusersitepackages()]}
    paths: list[str] = []
    for entry in [*sys.path, str(Path(__file__).resolve().parents[2])]:
        path = Path(entry or os.getcwd()).resolve()
        is_own = path in own or path.name == "lib-dynload"
        if path.exists() and not is_own and str(path) not in paths:
            paths.append(str(path))
    return os.pathsep.join(paths)


def read_spark_defaults(spark_home: str) -> dict[str, str]:
    """The settings of the installation's `spark-defaults.conf`; empty if it has none.

    Whoever set up this Spark said so on purpose, so these win over Millrace's defaults.
    """
    directory = os.environ.get("SPARK_CONF_DIR") or os.path.join(spark_home, "conf")
    try:
        lines = (Path(directory) / "spark-defaults.conf").read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return {}
    return {match["key"]: match["value"] for line in lines if (match := _DEFAULTS_LINE.fullmatch(line))}
