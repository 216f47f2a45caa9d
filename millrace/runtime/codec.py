"""Bytes of records on their way to another task of the same program; state has `millrace.state.codec`."""

from __future__ import annotations

import pickle
from typing import Any

from millrace.common.cloudpickles import by_value

__all__ = ["dump_records", "load_records"]


def dump_records(value: Any) -> bytes:
    """Bytes for another task of the same program.

    >>> load_records(dump_records([("a", 1)]))
    [('a', 1)]
    """
    try:
        return pickle.dumps(value, protocol=5)
    except (pickle.PicklingError, AttributeError, TypeError):
        # Not importable by name: a class made inside a function, a lambda held in a record.
        return by_value(value)


def load_records(data: bytes | memoryview) -> Any:
    """What ``dump_records`` wrote."""
    return pickle.loads(data)
