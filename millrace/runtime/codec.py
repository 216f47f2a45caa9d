"""Bytes of records and of state: pickle, and cloudpickle for instances of classes that exist only in the running
program."""

from __future__ import annotations

import pickle
from typing import Any

from millrace.common.cloudpickles import by_value

__all__ = ["dump", "load"]


def dump(value: Any) -> bytes:
    """Bytes that ``load`` reads on any Python that has the classes.

    >>> load(dump([("a", 1)]))
    [('a', 1)]
    """
    try:
        return pickle.dumps(value, protocol=5)
    except (pickle.PicklingError, AttributeError, TypeError):
        # Not importable by name: a class made inside a function, a lambda held in a record.
        return by_value(value)


def load(data: bytes | memoryview) -> Any:
    """What ``dump`` wrote."""
    return pickle.loads(data)
