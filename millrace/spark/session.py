"""Starts and stops the Spark session that jobs run in."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pyspark.conf import SparkConf
from pyspark.core.context import SparkContext
from pyspark.find_spark_home import _find_spark_home
from pyspark.sql import SparkSession

from millrace.spark.java import find_java, java_version
from millrace.spark.settings import (
    LAUNCH_DIRECTORY,
    default_settings,
    is_local,
    log_level,
    read_spark_defaults,
    worker_python_path,
)

__all__ = ["get_session", "stop_session"]

_GATEWAY = "PYSPARK_GATEWAY_PORT"


def get_session(config: dict[str, str] | None = None, parallelism: int | None = None) -> SparkSession:
    """The running Spark session, or a new one: on this machine with all cores unless told otherwise.

    `config` holds Spark settings by their Spark names and wins over everything. The master is its `spark.master`, else
    the MILLRACE_MASTER environment variable, else what the Spark installation's own defaults say, else `local[*,4]`.
    `parallelism` is the number of partitions after a shuffle; by default one per core.

    A new session is silent (MILLRACE_LOG=warn and the like bring Spark's log back), and its Python workers run this
    very interpreter unless PYSPARK_PYTHON or `spark.pyspark.python` names another.
    """
    config = config or {}
    if SparkContext._active_spark_context is not None:
        return _adopt(SparkSession.builder.getOrCreate(), config)
    chosen = _chosen_settings(config)
    # Four tries a task, as on a cluster: a worker that dies is no reason to lose the job.
    master = chosen.get("spark.master", "local[*,4]")
    defaults = default_settings(master, parallelism)
    settings = {**defaults, **chosen}
    if options := chosen.get("spark.driver.extraJavaOptions"):
        # Ours first: of a property given twice, the JVM takes the last.
        settings["spark.driver.extraJavaOptions"] = f"{defaults['spark.driver.extraJavaOptions']} {options}"
    if is_local(master) and (paths := chosen.get("spark.executorEnv.PYTHONPATH")):
        # Theirs first: of two modules of one name, Python takes the first.
        settings["spark.executorEnv.PYTHONPATH"] = os.pathsep.join([paths, worker_python_path()])
    if log_level() == "off":
        _silence_py4j()
    with _environment(_launch_environment(settings)), _own_interrupt_handler():
        builder = SparkSession.builder
        for key, value in settings.items():
            builder = builder.config(key, value)
        return builder.getOrCreate()


def stop_session() -> None:
    """Stops the running Spark session, if there is one."""
    if SparkContext._active_spark_context is not None:
        SparkSession.builder.getOrCreate().stop()


def _chosen_settings(config: Mapping[str, str]) -> dict[str, str]:
    """What somebody has said about this session, the more particular voice over the more general one."""
    chosen = read_spark_defaults(_find_spark_home())
    if _GATEWAY in os.environ:
        # Started by spark-submit: the JVM is there already and holds the settings of its command line.
        SparkContext._ensure_initialized()
        chosen.update(SparkConf().getAll())
    if master := os.environ.get("MILLRACE_MASTER"):
        chosen["spark.master"] = master
    return {**chosen, **config}


def _launch_environment(settings: Mapping[str, str]) -> dict[str, str]:
    """The environment variables that must hold while the JVM and the context start."""
    python = os.environ.get("PYSPARK_PYTHON") or settings.get("spark.pyspark.python") or sys.executable
    environment = {
        "PYSPARK_PYTHON": python,
        "PYSPARK_DRIVER_PYTHON": os.environ.get("PYSPARK_DRIVER_PYTHON") or sys.executable,
    }
    if is_local(settings["spark.master"]):
        environment["SPARK_LOCAL_IP"] = os.environ.get("SPARK_LOCAL_IP") or "127.0.0.1"
    if _GATEWAY not in os.environ and SparkContext._gateway is None:
        java = find_java()
        environment["JAVA_HOME"] = str(java.resolve().parent.parent)
        # A copy that lost the executable bit, or Windows, gets on without the stand-in if the JDK is a full one.
        if os.name != "nt" and os.access(LAUNCH_DIRECTORY / "bin" / "java", os.X_OK):
            environment["JAVA_HOME"] = str(LAUNCH_DIRECTORY)
            environment["MILLRACE_JAVA"] = str(java)
            environment["MILLRACE_JAVA_VERSION"] = str(java_version(java))
    return environment


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Sets environment variables for a while, so that later child processes of the program do not inherit them."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextmanager
def _own_interrupt_handler() -> Iterator[None]:
    """Keeps the program's handling of Ctrl-C, which a new SparkContext replaces by its own.

    Spark's handler talks to the JVM over the very connection it has interrupted, which fails with pages of tracebacks.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # a context started elsewhere leaves signals alone
        return
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if before is not None:
            signal.signal(signal.SIGINT, before)


def _silence_py4j() -> None:
    """Drops what Py4J logs when a call is interrupted: whoever made the call gets the exception anyway."""
    py4j = logging.getLogger("py4j")
    if py4j.level == logging.NOTSET:
        py4j.setLevel(logging.CRITICAL)
    # Part of it goes to the root logger, where only the place it comes from tells it apart.
    logging.getLogger().addFilter(_is_not_from_py4j)


def _is_not_from_py4j(record: logging.LogRecord) -> bool:
    return Path(record.pathname).parent.name != "py4j"


def _adopt(session: SparkSession, config: Mapping[str, str]) -> SparkSession:
    """Fits a session that somebody else may have started to our needs, as far as a running one can be changed."""
    context = session.sparkContext
    for key, value in config.items():
        if session.conf.isModifiable(key):
            session.conf.set(key, value)
        elif (current := context.getConf().get(key)) != value:
            warnings.warn(
                f"{key}={value} has no effect: Spark already runs with {current or 'its default'}, and this setting "
                f"is read at its start only; call millrace.spark.session.stop_session() first",
                RuntimeWarning,
                stacklevel=3,
            )
    if is_local(context.master or ""):
        # Both are read anew for each function that goes to the workers.
        if "PYSPARK_PYTHON" not in os.environ and not context.getConf().contains("spark.pyspark.python"):
            context.pythonExec = sys.executable
        paths = context.environment.get("PYTHONPATH", "").split(os.pathsep)
        missing = [path for path in worker_python_path().split(os.pathsep) if path not in paths]
        context.environment["PYTHONPATH"] = os.pathsep.join(path for path in [*paths, *missing] if path)
    return session
