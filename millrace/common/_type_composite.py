"""Types made of types: rows, tuples, lists, maps and arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar

from millrace.common._type_base import Coercer, TypeInformation, wrong_kind
from millrace.common._type_basic import BasicTypeInfo
from millrace.common.row import Row, RowKind, default_field_names, make_row

__all__ = [
    "BasicArrayTypeInfo",
    "ListTypeInfo",
    "MapTypeInfo",
    "ObjectArrayTypeInfo",
    "PrimitiveArrayTypeInfo",
    "RowTypeInfo",
    "TupleTypeInfo",
]


class RowTypeInfo(TypeInformation):
    """The type of a `Row`; fields without given names are f0, f1 and so on.

    Tuples, lists and dicts become rows. A row with names is matched by name, one without by position.

    >>> person = RowTypeInfo([BasicTypeInfo("STRING"), BasicTypeInfo("INT")], ["name", "age"])
    >>> person.coerce(("Alice", 11))
    Row(name='Alice', age=11)
    >>> str(person)
    'RowTypeInfo(name: String, age: Integer)'
    """

    type_codes = ("ROW",)

    def __init__(self, field_types: Sequence[TypeInformation], field_names: Sequence[str] | None = None) -> None:
        self.field_types = _checked_types("Types.ROW", field_types)
        self.field_names = default_field_names(len(field_types)) if field_names is None else tuple(field_names)
        if len(self.field_names) != len(self.field_types):
            message = (
                f"Types.ROW_NAMED: {len(self.field_names)} names for {len(self.field_types)} types; give one for each"
            )
            raise ValueError(message)
        if len(set(self.field_names)) != len(self.field_names):
            raise ValueError(
                f"Types.ROW_NAMED: a name occurs twice in {list(self.field_names)}; rename one of the fields"
            )
        self.is_named = self.field_names != default_field_names(len(field_types))
        self._coercer = self._make_coercer()

    def get_field_names(self) -> list[str]:
        """The names of the fields, in order."""
        return list(self.field_names)

    def get_field_types(self) -> list[TypeInformation]:
        """The types of the fields, in order."""
        return list(self.field_types)

    def get_field_index(self, field_name: str) -> int:
        """The position of a field, -1 if there is none of this name."""
        return self.field_names.index(field_name) if field_name in self.field_names else -1

    def coercer(self) -> Coercer:
        """A function that does what `coerce` does."""
        return self._coercer

    def _make_coercer(self) -> Coercer:
        count = len(self.field_types)
        names = self.field_names
        coerce_fields = _fields_coercer(self.field_types)
        insert = RowKind.INSERT

        def coerce(value: Any) -> Row | None:
            kind = insert
            fields: Sequence[Any]
            if value.__class__ is tuple or value.__class__ is list:
                fields = value
            elif value.__class__ is Row:
                kind = value._row_kind
                fields = value._values if value._fields is None or value._fields == names else self._by_name(value)
            elif value is None:
                return None
            elif isinstance(value, tuple | list):
                fields = value
            elif isinstance(value, dict):
                fields = [value.get(name) for name in names]
            else:
                raise wrong_kind(self, value, "rows, tuples, lists or dicts")
            if len(fields) != count:
                raise wrong_kind(self, value, f"{count} fields")
            return make_row(coerce_fields(fields), names, kind)

        return coerce

    def _by_name(self, row: Row) -> list[Any]:
        # Without names of its own, the type says only how many fields there are; f0, f1, ... likewise say only where.
        if not self.is_named or row._fields == default_field_names(len(row)):
            return row._values
        missing = [name for name in self.field_names if name not in (row._fields or ())]
        if missing:
            raise wrong_kind(self, row, f"rows with the fields {', '.join(self.field_names)}")
        return row.get_fields_by_names(self.field_names)

    def to_json(self) -> dict[str, Any]:
        """A description of this type that can be stored as JSON."""
        types = [field_type.to_json() for field_type in self.field_types]
        return {"type": "ROW", "names": list(self.field_names), "fields": types}

    @classmethod
    def _from_description(cls, description: Mapping[str, Any]) -> RowTypeInfo:
        return cls([TypeInformation.from_json(field) for field in description["fields"]], description["names"])

    def _constructor_arguments(self) -> tuple[Any, ...]:
        return self.field_types, self.field_names

    def __repr__(self) -> str:
        types = list(self.field_types)
        return f"Types.ROW_NAMED({list(self.field_names)!r}, {types!r})" if self.is_named else f"Types.ROW({types!r})"

    def __str__(self) -> str:
        fields = zip(self.field_names, self.field_types, strict=True)
        return f"RowTypeInfo({', '.join(f'{name}: {field_type!s}' for name, field_type in fields)})"


class TupleTypeInfo(TypeInformation):
    """The type of a tuple of fixed length; lists and rows become tuples.

    >>> TupleTypeInfo([BasicTypeInfo("STRING"), BasicTypeInfo("BYTE")]).coerce(["a", 200])
    ('a', -56)
    """

    type_codes = ("TUPLE",)

    def __init__(self, field_types: Sequence[TypeInformation]) -> None:
        self.field_types = _checked_types("Types.TUPLE", field_types)
        self._coercer = self._make_coercer()

    def get_field_types(self) -> list[TypeInformation]:
        """The types of the fields, in order."""
        return list(self.field_types)

    def coercer(self) -> Coercer:
        """A function that does what `coerce` does."""
        return self._coercer

    def _make_coercer(self) -> Coercer:
        count = len(self.field_types)
        coerce_fields = _fields_coercer(self.field_types)

        def coerce(value: Any) -> tuple[Any, ...] | None:
            if value is None:
                return None
            if not isinstance(value, tuple | list | Row):
                raise wrong_kind(self, value, "tuples")
            if len(value) != count:
                raise wrong_kind(self, value, f"{count} fields")
            return tuple(coerce_fields(value))

        return coerce

    def to_json(self) -> dict[str, Any]:
        """A description of this type that can be stored as JSON."""
        return {"type": "TUPLE", "fields": [field_type.to_json() for field_type in self.field_types]}

    @classmethod
    def _from_description(cls, description: Mapping[str, Any]) -> TupleTypeInfo:
        return cls([TypeInformation.from_json(field) for field in description["fields"]])

    def _constructor_arguments(self) -> tuple[Any, ...]:
        return (self.field_types,)

    def __repr__(self) -> str:
        return f"Types.TUPLE({list(self.field_types)!r})"

    def __str__(self) -> str:
        return f"TupleTypeInfo({', '.join(map(str, self.field_types))})"


class MapTypeInfo(TypeInformation):
    """The type of a dict.

    >>> MapTypeInfo(BasicTypeInfo("STRING"), BasicTypeInfo("BYTE")).coerce({"a": 128})
    {'a': -128}
    """

    type_codes = ("MAP",)

    def __init__(self, key_type: TypeInformation, value_type: TypeInformation) -> None:
        self.key_type, self.value_type = _checked_types("Types.MAP", (key_type, value_type))
        self._coercer = self._make_coercer()

    def coercer(self) -> Coercer:
        """A function that does what `coerce` does."""
        return self._coercer

    def _make_coercer(self) -> Coercer:
        coerce_keys = _elements_coercer(self.key_type)
        coerce_values = _elements_coercer(self.value_type)

        def coerce(value: Any) -> dict[Any, Any] | None:
            if value is None:
                return None
            if not isinstance(value, Mapping):
                raise wrong_kind(self, value, "dicts")
            return dict(zip(coerce_keys(value.keys()), coerce_values(value.values()), strict=True))

        return coerce

    def to_json(self) -> dict[str, Any]:
        """A description of this type that can be stored as JSON."""
        return {"type": "MAP", "key": self.key_type.to_json(), "value": self.value_type.to_json()}

    @classmethod
    def _from_description(cls, description: Mapping[str, Any]) -> MapTypeInfo:
        return cls(TypeInformation.from_json(description["key"]), TypeInformation.from_json(description["value"]))

    def _constructor_arguments(self) -> tuple[Any, ...]:
        return self.key_type, self.value_type

    def __repr__(self) -> str:
        return f"Types.MAP({self.key_type!r}, {self.value_type!r})"

    def __str__(self) -> str:
        return f"MapTypeInfo<{self.key_type}, {self.value_type}>"


class _SequenceTypeInfo(TypeInformation):
    """Lists and arrays: any number of elements of one type, held in a Python list."""

    _code: ClassVar[str]

    def __init__(self, element_type: TypeInformation) -> None:
        (self.element_type,) = _checked_types(f"Types.{self._code}", (element_type,))
        self._coercer = self._make_coercer()

    def coercer(self) -> Coercer:
        """A function that does what `coerce` does."""
        return self._coercer

    def _make_coercer(self) -> Coercer:
        coerce_elements = _elements_coercer(self.element_type)

        def coerce(value: Any) -> list[Any] | None:
            return None if value is None else coerce_elements(self._elements(value))

        return coerce

    def _elements(self, value: Any) -> Sequence[Any]:
        if isinstance(value, list | tuple):
            return value
        to_list = getattr(value, "tolist", None)  # numpy's arrays and those of the array module
        if to_list is None:
            raise wrong_kind(self, value, "lists, tuples or arrays")
        elements: Sequence[Any] = to_list()
        return elements

    def to_json(self) -> dict[str, Any]:
        """A description of this type that can be stored as JSON."""
        return {"type": self._code, "element": self.element_type.to_json()}

    @classmethod
    def _from_description(cls, description: Mapping[str, Any]) -> TypeInformation:
        return cls(TypeInformation.from_json(description["element"]))

    def _constructor_arguments(self) -> tuple[Any, ...]:
        return (self.element_type,)

    def __repr__(self) -> str:
        return f"Types.{self._code}({self.element_type!r})"

    def __str__(self) -> str:
        return f"{type(self).__name__}<{self.element_type}>"


class ListTypeInfo(_SequenceTypeInfo):
    """The type of a list.

    >>> ListTypeInfo(BasicTypeInfo("BYTE")).coerce((1, 128, None))
    [1, -128, None]
    """

    type_codes = ("LIST",)
    _code = "LIST"


class BasicArrayTypeInfo(_SequenceTypeInfo):
    """The type of an array of basic values, any of which may be None.

    >>> BasicArrayTypeInfo(BasicTypeInfo("INT")).coerce([1, None])
    [1, None]
    """

    type_codes = ("BASIC_ARRAY",)
    _code = "BASIC_ARRAY"


class ObjectArrayTypeInfo(_SequenceTypeInfo):
    """The type of an array of anything.

    >>> ObjectArrayTypeInfo(RowTypeInfo([BasicTypeInfo("INT")])).coerce([(1,)])
    [Row(f0=1)]
    """

    type_codes = ("OBJECT_ARRAY",)
    _code = "OBJECT_ARRAY"


class PrimitiveArrayTypeInfo(_SequenceTypeInfo):
    """The type of an array of plain numbers, none of which may be None; an array of bytes is held as `bytes`.

    >>> PrimitiveArrayTypeInfo(BasicTypeInfo("BYTE")).coerce(bytearray(b"ab"))
    b'ab'
    """

    type_codes = ("PRIMITIVE_ARRAY",)
    _code = "PRIMITIVE_ARRAY"

    def _make_coercer(self) -> Coercer:
        coerce_elements = _elements_coercer(self.element_type)
        of_bytes = self.element_type == BasicTypeInfo("BYTE")

        def coerce(value: Any) -> bytes | list[Any] | None:
            if value is None or (of_bytes and value.__class__ is bytes):
                return value
            if of_bytes and isinstance(value, bytes | bytearray | memoryview):
                return bytes(value)
            elements = coerce_elements(self._elements(value))
            if None in elements:
                raise wrong_kind(self, value, "no None; use Types.BASIC_ARRAY for that")
            return bytes(element & 0xFF for element in elements) if of_bytes else elements

        return coerce


def _checked_types(where: str, types: Sequence[Any]) -> tuple[TypeInformation, ...]:
    for type_info in types:
        if not isinstance(type_info, TypeInformation):
            hint = f"; call it: {type_info.__qualname__}()" if callable(type_info) else ""
            raise TypeError(f"{where}: {type_info!r} is no type made by Types{hint}")
    return tuple(types)


def _fields_coercer(types: Sequence[TypeInformation]) -> Callable[[Iterable[Any]], list[Any]]:
    """Coerces each value by the type at its position."""
    coercers = [(index, type_info.coercer()) for index, type_info in enumerate(types)]
    narrowing = [(index, coercer) for index, coercer in coercers if coercer is not None]
    if not narrowing:
        return list

    def coerce_fields(values: Iterable[Any]) -> list[Any]:
        fields = list(values)
        for index, coercer in narrowing:
            fields[index] = coercer(fields[index])
        return fields

    return coerce_fields


def _elements_coercer(element_type: TypeInformation) -> Callable[[Any], list[Any]]:
    """Coerces all values by one type."""
    coercer = element_type.coercer()
    if coercer is None:
        return list
    each = coercer

    def coerce_elements(values: Any) -> list[Any]:
        return [each(value) for value in values]

    return coerce_elements
