"""PyFlink's helpers around Java objects, as far as programs without Java of their own use them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, NoReturn

from millrace.common.time import Duration
from millrace.pyflink.java_environment import JavaConfiguration, JavaEnvironment
from millrace.pyflink.unavailable import UnavailableError

__all__ = [
    "add_jars_to_context_class_loader",
    "get_field_value",
    "get_j_env_configuration",
    "invoke_method",
    "is_local_deployment",
    "load_java_class",
    "on_windows",
    "to_j_duration",
    "to_jarray",
]


def get_j_env_configuration(j_env: JavaEnvironment) -> JavaConfiguration:
    """The settings of an environment; what is set on them is set on the environment."""
    return j_env.getConfiguration()


def to_jarray(j_type: Any, arr: Sequence[Any]) -> list[Any]:
    """The elements as a list."""
    return list(arr)


def to_j_duration(time_delta: timedelta | int) -> Duration:
    """A length of time, or a number of milliseconds, as a Duration."""
    whole = round(time_delta.total_seconds() * 1_000) if isinstance(time_delta, timedelta) else time_delta
    return Duration.of_millis(whole)


def is_local_deployment(j_configuration: JavaConfiguration) -> bool:
    """Whether the program runs on this machine; where it runs is the choice of Spark's master."""
    return j_configuration.getString("execution.target", "local") in ("local", "minicluster")


def load_java_class(class_name: str) -> NoReturn:
    """There are no Java classes to load: an error that says so."""
    message = f"{class_name}: Millrace loads no Java classes. Write the class in Python and pass an instance of it"
    raise UnavailableError(message)


def add_jars_to_context_class_loader(jar_urls: Sequence[str]) -> NoReturn:
    """There is no class loader to add jars to: an error that says where jars go."""
    message = f"{list(jar_urls)}: jars are for Spark; name them with env.add_jars(...) or spark.jars"
    raise UnavailableError(message)


def get_field_value(java_obj: Any, field_name: str) -> NoReturn:
    """There are no Java objects to look into: an error that says so."""
    message = f"{field_name}: {java_obj!r} is no Java object, so that its fields cannot be read; use its Python methods"
    raise UnavailableError(message)


def invoke_method(obj: Any, object_type: str, method_name: str, args: Any = None, arg_types: Any = None) -> NoReturn:
    """There are no Java objects to call: an error that says so."""
    message = f"{object_type}.{method_name}: {obj!r} is no Java object; call the Python method of that meaning"
    raise UnavailableError(message)


def on_windows() -> bool:
    """Whether this is Windows."""
    return sys.platform.startswith("win")


def _find_flink_home() -> NoReturn:
    raise UnavailableError("there is no Flink here, and so no FLINK_HOME; Spark comes with the pyspark package")


def _find_flink_source_root() -> NoReturn:
    raise UnavailableError("there are no sources of Flink here; the jars of its connectors cannot be used")
