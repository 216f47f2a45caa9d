"""Reading and replacing one field of a record, whatever its shape: tuple, list, Row, dict, dataclass or a plain
value."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable
from operator import itemgetter
from typing import Any

from millrace.common.row import Row
from millrace.errors import GraphError

__all__ = ["Position", "field_getter", "field_replacer", "key_of_fields"]

Position = int | str


def field_getter(position: Position) -> Callable[[Any], Any]:
    """A function that reads the field.

    >>> field_getter(1)(("a", 7))
    7
    >>> field_getter("n")({"n": 7})
    7
    >>> field_getter(0)(7)
    7
    """
    if isinstance(position, int):
        return _Index(position)
    return _Name(position)


class _Index:
    def __init__(self, position: int) -> None:
        self.position = position

    def __call__(self, value: Any) -> Any:
        if isinstance(value, (tuple, list, Row)):
            try:
                return value[self.position]
            except IndexError:
                message = f"no field {self.position} in {value!r}, which has {len(value)} fields (they count from 0)"
                raise GraphError(message) from None
        if dataclasses.is_dataclass(value):
            return getattr(value, dataclasses.fields(value)[self.position].name)
        if self.position == 0:
            return value
        message = (
            f"no field {self.position} in {value!r}: only tuples, lists, Rows and dataclasses have fields by position"
        )
        raise GraphError(message)


class _Name:
    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, value: Any) -> Any:
        if isinstance(value, dict):
            try:
                return value[self.name]
            except KeyError:
                raise unknown_field(self.name, list(value), value) from None
        try:
            return getattr(value, self.name)
        except AttributeError:
            raise unknown_field(self.name, field_names(value), value) from None


def field_names(value: Any) -> list[str]:
    """The names of the fields of a record, as far as it has named ones."""
    if isinstance(value, dict):
        return [str(name) for name in value]
    if isinstance(value, Row):
        return list(getattr(value, "_fields", None) or ())
    if dataclasses.is_dataclass(value):
        return [field.name for field in dataclasses.fields(value)]
    return list(getattr(value, "_fields", ()))


def unknown_field(name: str, known: list[str], value: Any) -> GraphError:
    """The error for a field that is not there, with the ones that are."""
    fields = f"its fields are {', '.join(known)}" if known else f"a {type(value).__name__} has no named fields"
    return GraphError(f"no field {name!r} in {value!r}: {fields}")


def key_of_fields(positions: tuple[Position, ...]) -> Callable[[Any], Any]:
    """The key selector of key_by("a"), key_by(0) or key_by("a", "b"): one field's value, or a tuple of several."""
    if len(positions) == 1:
        return field_getter(positions[0])
    if all(isinstance(position, int) for position in positions):
        return _TupleKey(tuple(field_getter(position) for position in positions), itemgetter(*positions))
    return _TupleKey(tuple(field_getter(position) for position in positions), None)


class _TupleKey:
    def __init__(self, getters: tuple[Callable[[Any], Any], ...], quick: Callable[[Any], Any] | None) -> None:
        self.getters = getters
        self.quick = quick

    def __call__(self, value: Any) -> Any:
        if self.quick is not None and type(value) is tuple and len(value) > 0:
            try:
                return self.quick(value)
            except IndexError:
                pass
        return tuple(getter(value) for getter in self.getters)


def field_replacer(position: Position) -> Callable[[Any, Any], Any]:
    """A function that gives a copy of a record with one field replaced.

    >>> field_replacer(1)(("a", 7), 8)
    ('a', 8)
    >>> field_replacer("n")({"n": 7, "m": 1}, 8)
    {'n': 8, 'm': 1}
    """
    return _Replacer(position)


class _Replacer:
    def __init__(self, position: Position) -> None:
        self.position = position

    def __call__(self, value: Any, new: Any) -> Any:
        position = self.position
        if isinstance(value, dict):
            return {**value, position: new}
        if type(value) is tuple and isinstance(position, int):
            index = position if position >= 0 else len(value) + position
            return (*value[:index], new, *value[index + 1 :])
        if isinstance(value, (list, Row)):
            changed = copy.copy(value)
            changed[position] = new  # type: ignore[index]
            return changed
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            name = dataclasses.fields(value)[position].name if isinstance(position, int) else position
            return dataclasses.replace(value, **{name: new})
        if isinstance(value, tuple):
            name = value._fields[position] if isinstance(position, int) else position  # type: ignore[attr-defined]
            return value._replace(**{name: new})  # type: ignore[attr-defined]
        return new
