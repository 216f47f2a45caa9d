"""How key_by, partition_custom and the aggregations by field find their fields."""

from __future__ import annotations

from typing import Any

from millrace.common.typeinfo import RowTypeInfo, TupleTypeInfo, TypeInformation
from millrace.datastream._checks import check_function, name_of
from millrace.datastream._typed import check_type
from millrace.datastream.functions import KeySelector
from millrace.errors import GraphError
from millrace.graph.partitioners import KeyBy
from millrace.runtime.fields import Position, key_of_fields

__all__ = ["check_position", "key_partitioner"]


def key_partitioner(
    selectors: tuple[Any, ...], key_type: TypeInformation | None, known: TypeInformation | None, where: str = "key_by"
) -> KeyBy:
    """The partitioner for a key: by a function, a KeySelector, a field, or several fields."""
    *first, last = selectors or (None,)
    if isinstance(last, TypeInformation) and first:
        selectors, key_type = tuple(first), last
    check_type(key_type, where)
    if len(selectors) == 1 and isinstance(selectors[0], list | tuple):
        selectors = tuple(selectors[0])
    if not selectors:
        message = f"{where} needs a key: pass a function, a KeySelector, or the names or positions of fields"
        raise GraphError(message)
    if all(_is_position(selector) for selector in selectors):
        for position in selectors:
            check_position(position, known, where)
        select: Any = key_of_fields(selectors)
        function = None
        label = ", ".join(map(str, selectors))
    elif len(selectors) > 1:
        message = f"{where} takes one function, or several names or positions of fields, not {selectors!r}"
        raise GraphError(message)
    else:
        (function,) = selectors
        check_function(function, where, (KeySelector,), ("get_key",))
        select = getattr(function, "get_key", function)
        name = name_of(function).rsplit(".", 1)[-1]
        label = "a function" if name == "<lambda>" else name
    if key_type is not None and key_type.coercer() is not None:
        select = _TypedKey(select, key_type)
    return KeyBy(select, function, key_type, label)


class _TypedKey:
    """A key selector whose keys are narrowed to a declared type."""

    def __init__(self, select: Any, key_type: TypeInformation) -> None:
        self.select = select
        self.key_type = key_type
        self._coerce = key_type.coercer()

    def __call__(self, value: Any) -> Any:
        assert self._coerce is not None
        return self._coerce(self.select(value))

    def __reduce__(self) -> tuple[Any, ...]:
        return _TypedKey, (self.select, self.key_type)


def check_position(position: Any, known: TypeInformation | None, where: str) -> Position:
    """A field's name or position, or a GraphError if the type of the stream is known and has no such field."""
    if not _is_position(position):
        message = f"{where} takes the name or the position of a field, not {position!r}"
        raise GraphError(message)
    if isinstance(known, RowTypeInfo):
        names = known.get_field_names()
        missing = position not in names if isinstance(position, str) else not -len(names) <= position < len(names)
        if missing:
            message = f"{where}: the records have no field {position!r}; their fields are {', '.join(names)}"
            raise GraphError(message)
    elif isinstance(known, TupleTypeInfo):
        count = len(known.get_field_types())
        if isinstance(position, str) or not -count <= position < count:
            message = (
                f"{where}: the records have no field {position!r}; they are tuples with positions 0 to {count - 1}"
            )
            raise GraphError(message)
    result: Position = position
    return result


def _is_position(value: Any) -> bool:
    return isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool))
