"""Bytes of state: pickle, and cloudpickle for instances of classes that exist only in the running program.

A later program may read them: dataclasses are written by the names of their fields, and may have gained and lost some
when they are read.
"""

from __future__ import annotations

import pickle
from functools import cache
from io import BytesIO
from typing import Any

from millrace.common.cloudpickles import pickler_class
from millrace.state.evolution import refuse_changed_keys
from millrace.state.records import RecordUnpickler, reduce_record

__all__ = ["dump", "load"]


class _StatePickler(pickle.Pickler):
    reducer_override = staticmethod(reduce_record)


def dump(value: Any) -> bytes:
    """Bytes that ``load`` reads on any Python that has the classes, be they of a later version.

    >>> load(dump([("a", 1)]))
    [('a', 1)]
    """
    buffer = BytesIO()
    try:
        _StatePickler(buffer, 5).dump(value)
    except (pickle.PicklingError, AttributeError, TypeError):
        # Not importable by name: a class made inside a function, a lambda held in a record.
        buffer = BytesIO()
        _by_value_pickler()(buffer, 5).dump(value)
    return buffer.getvalue()


def load(data: bytes | memoryview) -> Any:
    """What ``dump`` wrote, or plain pickle; dataclasses are fitted to what their classes are now.

    Keys must not change, because the task that has a key follows from its fields: that is a RestoreError.
    """
    unpickler = RecordUnpickler(data)
    content = unpickler.load()
    if unpickler.changed:
        refuse_changed_keys(content, unpickler.changed)
    return content


@cache
def _by_value_pickler() -> Any:
    base = pickler_class()

    class ByValue(base):  # type: ignore[misc, valid-type]
        def reducer_override(self, value: Any) -> Any:
            reduced = reduce_record(value)
            return super().reducer_override(value) if reduced is NotImplemented else reduced

    return ByValue
