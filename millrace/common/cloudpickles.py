"""cloudpickle, from wherever it is installed.

Functions, and instances of classes that exist only in the running program, travel by value. PySpark carries a copy of
cloudpickle and workers always have it, so that one is preferred; outside Spark the plain package serves.
"""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["by_value", "pickler_class"]


def by_value(value: Any) -> bytes:
    """Pickle including the code of functions and classes of the running program; ``pickle.loads`` reads it."""
    data: bytes = _cloudpickle().dumps(value, protocol=5)
    return data


def pickler_class() -> Any:
    """The class of picklers that write by value."""
    return _cloudpickle().CloudPickler


def _cloudpickle() -> Any:
    try:
        return importlib.import_module("pyspark.cloudpickle")
    except ImportError:
        return importlib.import_module("cloudpickle")
