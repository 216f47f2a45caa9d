"""Some fields of each record."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from millrace.common.row import Row, make_row
from millrace.common.typeinfo import RowTypeInfo, TupleTypeInfo, TypeInformation
from millrace.datastream._keys import check_position
from millrace.errors import GraphError
from millrace.runtime.fields import Position, field_getter

__all__ = ["project"]


def project(
    positions: Sequence[Any], known: TypeInformation | None
) -> tuple[Callable[[Any], Any], TypeInformation | None]:
    """The function that keeps these fields, and the type of what it gives, if it is known.

    >>> project((1, 0), None)[0](("a", 1))
    (1, 'a')
    """
    if not positions:
        raise GraphError("project needs at least one field: project(0, 2), for example")
    chosen = tuple(check_position(position, known, "project") for position in positions)
    projected = _projected_type(chosen, known)
    if known is not None and projected is not None:
        projected.guessed = known.guessed
    return _Projection(chosen), projected


class _Projection:
    def __init__(self, positions: tuple[Position, ...]) -> None:
        self.positions = positions
        self.getters = tuple(field_getter(position) for position in positions)

    def __call__(self, value: Any) -> Any:
        fields = [get(value) for get in self.getters]
        if isinstance(value, Row):
            return make_row(fields, self._names(value), value.get_row_kind())
        if isinstance(value, dict):
            return dict(zip(self.positions, fields, strict=True))
        return tuple(fields)

    def _names(self, row: Row) -> tuple[str, ...] | None:
        if row._fields is None:
            return None
        return tuple(p if isinstance(p, str) else row._fields[p] for p in self.positions)


def _projected_type(positions: tuple[Position, ...], known: TypeInformation | None) -> TypeInformation | None:
    if isinstance(known, TupleTypeInfo):
        types = known.get_field_types()
        return TupleTypeInfo([types[p] for p in positions if isinstance(p, int)])
    if isinstance(known, RowTypeInfo):
        names, types = known.get_field_names(), known.get_field_types()
        indexes = [known.get_field_index(p) if isinstance(p, str) else p for p in positions]
        chosen = [names[index] for index in indexes] if known.is_named and len(set(indexes)) == len(indexes) else None
        return RowTypeInfo([types[index] for index in indexes], chosen)
    return None
