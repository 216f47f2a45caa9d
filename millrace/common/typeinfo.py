"""The types a program can declare for its streams and its state.

Declaring none is fine: `Types.PICKLED_BYTE_ARRAY()` is then assumed, and values pass as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from millrace.common._type_base import TypeInformation
from millrace.common._type_basic import BasicTypeInfo, PickledBytesTypeInfo
from millrace.common._type_composite import (
    BasicArrayTypeInfo,
    ListTypeInfo,
    MapTypeInfo,
    ObjectArrayTypeInfo,
    PrimitiveArrayTypeInfo,
    RowTypeInfo,
    TupleTypeInfo,
)
from millrace.common.constants import LONG_MAX, LONG_MIN
from millrace.common.row import Row

__all__ = [
    "BasicArrayTypeInfo",
    "BasicTypeInfo",
    "ListTypeInfo",
    "MapTypeInfo",
    "ObjectArrayTypeInfo",
    "PickledBytesTypeInfo",
    "PrimitiveArrayTypeInfo",
    "RowTypeInfo",
    "TupleTypeInfo",
    "TypeInformation",
    "Types",
    "infer_type",
]


class Types:
    """Makes the types.

    >>> Types.ROW_NAMED(["word", "count"], [Types.STRING(), Types.INT()])
    Types.ROW_NAMED(['word', 'count'], [Types.STRING(), Types.INT()])
    """

    @staticmethod
    def STRING() -> TypeInformation:
        """Text."""
        return BasicTypeInfo("STRING")

    @staticmethod
    def BYTE() -> TypeInformation:
        """A whole number of 8 bits with sign."""
        return BasicTypeInfo("BYTE")

    @staticmethod
    def BOOLEAN() -> TypeInformation:
        """True or False."""
        return BasicTypeInfo("BOOLEAN")

    @staticmethod
    def SHORT() -> TypeInformation:
        """A whole number of 16 bits with sign."""
        return BasicTypeInfo("SHORT")

    @staticmethod
    def INT() -> TypeInformation:
        """A whole number of 32 bits with sign."""
        return BasicTypeInfo("INT")

    @staticmethod
    def LONG() -> TypeInformation:
        """A whole number of 64 bits with sign."""
        return BasicTypeInfo("LONG")

    @staticmethod
    def FLOAT() -> TypeInformation:
        """A floating-point number of 32 bits."""
        return BasicTypeInfo("FLOAT")

    @staticmethod
    def DOUBLE() -> TypeInformation:
        """A floating-point number of 64 bits, as Python's own."""
        return BasicTypeInfo("DOUBLE")

    @staticmethod
    def CHAR() -> TypeInformation:
        """A text of one character."""
        return BasicTypeInfo("CHAR")

    @staticmethod
    def BIG_INT() -> TypeInformation:
        """A whole number of any size."""
        return BasicTypeInfo("BIG_INT")

    @staticmethod
    def BIG_DEC() -> TypeInformation:
        """A `decimal.Decimal`."""
        return BasicTypeInfo("BIG_DEC")

    @staticmethod
    def INSTANT() -> TypeInformation:
        """A `millrace.common.Instant`."""
        return BasicTypeInfo("INSTANT")

    @staticmethod
    def SQL_DATE() -> TypeInformation:
        """A `datetime.date`; of a datetime, the date."""
        return BasicTypeInfo("SQL_DATE")

    @staticmethod
    def SQL_TIME() -> TypeInformation:
        """A `datetime.time` in whole milliseconds."""
        return BasicTypeInfo("SQL_TIME")

    @staticmethod
    def SQL_TIMESTAMP() -> TypeInformation:
        """A `datetime.datetime`."""
        return BasicTypeInfo("SQL_TIMESTAMP")

    @staticmethod
    def PICKLED_BYTE_ARRAY() -> TypeInformation:
        """Any Python object that can be pickled."""
        return PickledBytesTypeInfo()

    @staticmethod
    def ROW(field_types: Sequence[TypeInformation]) -> RowTypeInfo:
        """A `Row` whose fields have no names."""
        return RowTypeInfo(field_types)

    @staticmethod
    def ROW_NAMED(field_names: Sequence[str], field_types: Sequence[TypeInformation]) -> RowTypeInfo:
        """A `Row` whose fields have these names."""
        return RowTypeInfo(field_types, field_names)

    @staticmethod
    def TUPLE(field_types: Sequence[TypeInformation]) -> TupleTypeInfo:
        """A tuple of fixed length."""
        return TupleTypeInfo(field_types)

    @staticmethod
    def PRIMITIVE_ARRAY(element_type: TypeInformation) -> PrimitiveArrayTypeInfo:
        """A list of numbers without None; of `BYTE`, a `bytes`."""
        return PrimitiveArrayTypeInfo(element_type)

    @staticmethod
    def BASIC_ARRAY(element_type: TypeInformation) -> BasicArrayTypeInfo:
        """A list of basic values, any of which may be None."""
        return BasicArrayTypeInfo(element_type)

    @staticmethod
    def OBJECT_ARRAY(element_type: TypeInformation) -> ObjectArrayTypeInfo:
        """A list of values of any one type."""
        return ObjectArrayTypeInfo(element_type)

    @staticmethod
    def MAP(key_type_info: TypeInformation, value_type_info: TypeInformation) -> MapTypeInfo:
        """A dict."""
        return MapTypeInfo(key_type_info, value_type_info)

    @staticmethod
    def LIST(element_type_info: TypeInformation) -> ListTypeInfo:
        """A list."""
        return ListTypeInfo(element_type_info)


def infer_type(value: Any) -> TypeInformation:
    """The narrowest type that holds this value as it is.

    >>> infer_type(("a", 1, [2.0]))
    Types.TUPLE([Types.STRING(), Types.LONG(), Types.LIST(Types.DOUBLE())])
    """
    # Exact classes only: a subclass, such as a named tuple, would come back as its base.
    kind = type(value)
    if kind is int:
        return Types.LONG() if LONG_MIN <= value <= LONG_MAX else Types.BIG_INT()
    if kind in _SINGLE_VALUES:
        return _SINGLE_VALUES[kind]
    if kind is tuple:
        return Types.TUPLE([infer_type(item) for item in value])
    if kind is list:
        return Types.LIST(_common_type(value))
    if kind is dict:
        return Types.MAP(_common_type(value.keys()), _common_type(value.values()))
    if kind is Row:
        return RowTypeInfo([infer_type(item) for item in value], value._fields)
    return Types.PICKLED_BYTE_ARRAY()


_SINGLE_VALUES: dict[type, TypeInformation] = {
    bool: Types.BOOLEAN(),
    float: Types.DOUBLE(),
    str: Types.STRING(),
    bytes: Types.PRIMITIVE_ARRAY(Types.BYTE()),
}


def _common_type(values: Iterable[Any]) -> TypeInformation:
    found = {infer_type(value) for value in values if value is not None}
    return found.pop() if len(found) == 1 else Types.PICKLED_BYTE_ARRAY()
