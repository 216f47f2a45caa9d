"""The record with fields: by position, by name, or both, and the kind of change it stands for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum
from functools import cache
from typing import Any, Final

__all__ = ["Row", "RowKind"]


class RowKind(Enum):
    """What a row of a changelog says about an earlier row with the same key.

    >>> RowKind(3)
    <RowKind.DELETE: 3>
    """

    INSERT = 0
    UPDATE_BEFORE = 1
    UPDATE_AFTER = 2
    DELETE = 3

    def __str__(self) -> str:
        """As the lines that show rows begin: +I, -U, +U or -D."""
        return ("+I", "-U", "+U", "-D")[self.value]


# Reading a member off its enum costs more than making the rest of a row.
_INSERT: Final = RowKind.INSERT


class NoSuchField(KeyError, ValueError):
    """A row was asked for a field it does not have."""


class Row:
    """A record whose fields are reached by index, by name or, unless the name begins with _, as attributes.

    A row without names calls its fields f0, f1 and so on. Rows are equal if fields of the same names are.

    >>> row = Row(name="Alice", age=11)
    >>> row
    Row(name='Alice', age=11)
    >>> row.name, row["age"], row[0], "age" in row
    ('Alice', 11, 'Alice', True)
    >>> Row(1, "a"), Row(1, "a").f1
    (<Row(1, 'a')>, 'a')

    A row of names makes rows with these names, in this order:

    >>> Person = Row("name", "age")
    >>> Person("Alice", 11)
    Row(name='Alice', age=11)
    """

    __slots__ = ("_fields", "_row_kind", "_values")

    def __init__(self, /, *args: Any, **kwargs: Any) -> None:
        self._fields: tuple[str, ...] | None = None
        self._row_kind = _INSERT
        if not kwargs:
            self._values: list[Any] = list(args)
        elif args:
            raise ValueError("Row: fields are given either by position or by name; pass all of them in one of the ways")
        else:
            self._fields = tuple(kwargs)
            self._values = list(kwargs.values())

    @staticmethod
    def of_kind(row_kind: RowKind, *args: Any, **kwargs: Any) -> Row:
        """A row of the given kind.

        >>> Row.of_kind(RowKind.DELETE, 1).get_row_kind().name
        'DELETE'
        """
        row = Row(*args, **kwargs)
        row._row_kind = row_kind
        return row

    def get_row_kind(self) -> RowKind:
        """What kind of change the row stands for; `INSERT` unless set."""
        return self._row_kind

    def set_row_kind(self, row_kind: RowKind) -> None:
        """Set what kind of change the row stands for."""
        self._row_kind = row_kind

    def set_field_names(self, field_names: Sequence[str]) -> None:
        """Name the fields, in their order."""
        names = tuple(field_names)
        if len(names) != len(self._values):
            raise ValueError(
                f"set_field_names: {len(names)} names {list(names)} for {len(self._values)} fields of {self!r}"
            )
        self._fields = names

    def get_fields_by_names(self, names: Sequence[str]) -> list[Any]:
        """The values of these fields; a row without names gives all its values.

        >>> Row(a=1, b=2, c=3).get_fields_by_names(["c", "a"])
        [3, 1]
        """
        if self._fields is None or self._fields == tuple(names):
            return self._values
        return [self[name] for name in names]

    def as_dict(self, recursive: bool = False) -> dict[str, Any]:
        """The fields by name; with `recursive`, rows inside of them become dicts as well.

        >>> Row(key=1, value=Row(a=2)).as_dict(recursive=True)
        {'key': 1, 'value': {'a': 2}}
        """
        values = map(_without_rows, self._values) if recursive else self._values
        return dict(zip(self._names(), values, strict=True))

    def __call__(self, *args: Any) -> Row:
        """A row with these values, named by the values of this row."""
        names = tuple(self._values)
        if len(args) != len(names):
            message = f"Row with the fields {', '.join(map(str, names))}: {len(names)} values are needed, got {args!r}"
            raise ValueError(message)
        return make_row(list(args), names, self._row_kind)

    def __getitem__(self, item: Any) -> Any:
        if item.__class__ is str:
            return self._values[self._position(item)]
        return self._values[item]

    def __setitem__(self, key: Any, value: Any) -> None:
        if key.__class__ is str:
            key = self._position(key)
        self._values[key] = value

    def __getattr__(self, name: str) -> Any:
        # The slots themselves end up here while a row is being built; looking them up by name would not end.
        if name[0] == "_":
            raise AttributeError(name, name=name, obj=self)
        fields = self._fields
        try:
            return self._values[(fields or self._names()).index(name)]
        except ValueError:
            raise AttributeError(self._no_such_field(name), name=name, obj=self) from None

    def __contains__(self, item: object) -> bool:
        return item in (self._values if self._fields is None else self._fields)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __eq__(self, other: Any) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        if self._fields != other._fields and self._names() != other._names():
            return self._row_kind is other._row_kind and self._by_name() == other._by_name()
        return self._values == other._values and self._row_kind is other._row_kind

    def __lt__(self, other: Row) -> bool:
        return self._values < other._values if isinstance(other, Row) else NotImplemented

    def __le__(self, other: Row) -> bool:
        return self._values <= other._values if isinstance(other, Row) else NotImplemented

    def __gt__(self, other: Row) -> bool:
        return self._values > other._values if isinstance(other, Row) else NotImplemented

    def __ge__(self, other: Row) -> bool:
        return self._values >= other._values if isinstance(other, Row) else NotImplemented

    def __hash__(self) -> int:
        # Rows that differ in the order of their fields only are equal, so they have the same hash as well.
        if self._fields is None or self._fields == default_field_names(len(self._values)):
            return hash(tuple(self._values))
        return hash(frozenset(self._by_name().items()))

    def __repr__(self) -> str:
        if self._fields is None:
            return f"<Row({', '.join(map(repr, self._values))})>"
        return f"Row({', '.join(f'{n}={v!r}' for n, v in zip(self._fields, self._values, strict=True))})"

    def __copy__(self) -> Row:
        return make_row(list(self._values), self._fields, self._row_kind)

    def __reduce__(self) -> tuple[Any, ...]:
        # Rows cross every exchange; leaving out what is the default keeps their pickles short.
        if self._row_kind is not _INSERT:
            return _unpickled_row, (self._values, self._fields, self._row_kind.value)
        if self._fields is not None:
            return _unpickled_row, (self._values, self._fields)
        return _unpickled_row, (self._values,)

    def _by_name(self) -> dict[str, Any]:
        return dict(zip(self._names(), self._values, strict=True))

    def _names(self) -> tuple[str, ...]:
        return self._fields if self._fields is not None else default_field_names(len(self._values))

    def _position(self, name: str) -> int:
        try:
            return self._names().index(name)
        except ValueError:
            raise NoSuchField(self._no_such_field(name)) from None

    def _no_such_field(self, name: str) -> str:
        return f"Row has no field {name!r}; its fields are {', '.join(self._names())}"


@cache
def default_field_names(count: int) -> tuple[str, ...]:
    """What the fields of a row without names answer to."""
    return tuple([f"f{i}" for i in range(count)])


def make_row(values: list[Any], fields: tuple[str, ...] | None, row_kind: RowKind = _INSERT) -> Row:
    """A row that takes over `values` as they are, without copying or checking them."""
    row = Row.__new__(Row)
    row._values = values
    row._fields = fields
    row._row_kind = row_kind
    return row


def _unpickled_row(values: list[Any], fields: tuple[str, ...] | None = None, row_kind: int = 0) -> Row:
    row = Row.__new__(Row)
    row._values = values
    row._fields = fields
    row._row_kind = _INSERT if row_kind == 0 else RowKind(row_kind)
    return row


def _without_rows(value: Any) -> Any:
    if isinstance(value, Row):
        return value.as_dict(recursive=True)
    if isinstance(value, list):
        return [_without_rows(item) for item in value]
    if isinstance(value, dict):
        return {key: _without_rows(item) for key, item in value.items()}
    return value
