"""From the rows of a DataFrame to the items of a state."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as T

from millrace.common.cloudpickles import by_value
from millrace.common.row import Row, make_row
from millrace.common.typeinfo import RowTypeInfo, TupleTypeInfo, TypeInformation
from millrace.errors import StateError
from millrace.runtime.failure import describe_failure
from millrace.spark.state_columns import PICKLED
from millrace.state.codec import dump, load
from millrace.state.evolution import RecordTypeInfo
from millrace.state.writer import Rewriting

__all__ = ["BATCH_SCHEMA", "FAILED", "TICK", "Columns", "Recipe", "encode", "encode_safely"]

BATCH_SCHEMA: Final = "target int, change int, blob binary"
"""Some items for one part of one change, by its number. Other numbers are:"""
TICK: Final = -1
"""Says that there is a part to write, be it without items."""
FAILED: Final = -2
"""The items cannot be made: the blob says why."""
_ARROW: Final = pa.schema([("target", pa.int32()), ("change", pa.int32()), ("blob", pa.binary())])


@dataclass(frozen=True)
class Columns:
    """Some columns that make one value: a key, a window or a value.

    ``kind`` is what is made of several columns, or of one that is a struct. What is ``optional`` is None where all of
    the columns are null.
    """

    names: tuple[str, ...]
    fields: tuple[str, ...]
    types: tuple[T.DataType, ...]
    kind: Any
    optional: bool = False

    @classmethod
    def of(cls, frame: DataFrame, columns: str | Sequence[str], kind: Any, optional: bool = False) -> Self:
        """Find the columns in a DataFrame, and see whether a value can be made of them.

        ``kind`` is a class, or a TypeInformation.
        """
        names = (columns,) if isinstance(columns, str) else tuple(columns)
        missing = [name for name in names if name not in frame.columns]
        if missing or not names:
            message = f"the DataFrame has no column {', '.join(missing)}; it has: {', '.join(frame.columns)}"
            raise StateError(message)
        types = tuple(frame.schema[name].dataType for name in names)
        fields = tuple(name.removesuffix(PICKLED) for name in names)
        made = cls(names, fields, types, _class_of(kind), optional)
        made._check()
        return made

    def maker(self) -> Callable[[Sequence[Any]], Any]:
        """What makes the value of the cells of a row."""
        converters = [
            load if name.endswith(PICKLED) and isinstance(kind, T.BinaryType) else _converter(kind)
            for name, kind in zip(self.names, self.types, strict=True)
        ]
        record = _record_maker(self.kind, self.record_fields)
        if len(self.names) > 1:

            def several(cells: Sequence[Any]) -> Any:
                if self.optional and not any(cell is not None for cell in cells):
                    return None
                pairs = zip(converters, cells, strict=True)
                return record([None if cell is None else convert(cell) for convert, cell in pairs])

            return several
        (convert,) = converters
        if isinstance(self.types[0], T.StructType):
            inner = [(field.name, _converter(field.dataType)) for field in self.types[0]]

            def struct(cells: Sequence[Any]) -> Any:
                (cell,) = cells
                if cell is None:
                    return None
                return record([None if cell[name] is None else turn(cell[name]) for name, turn in inner])

            return struct
        if self._wraps_one:
            return lambda cells: None if cells[0] is None else record([convert(cells[0])])
        return lambda cells: None if cells[0] is None else convert(cells[0])

    @property
    def record_fields(self) -> tuple[str, ...]:
        """The fields of the record that is made, if one is."""
        if len(self.names) == 1 and isinstance(self.types[0], T.StructType):
            return tuple(self.types[0].names)
        return self.fields

    @property
    def _wraps_one(self) -> bool:
        """Whether a single plain column becomes a record of one field: only a class of the user's asks for that."""
        return self.kind is not None and self.kind not in (tuple, dict, Row) and not self.names[0].endswith(PICKLED)

    def _check(self) -> None:
        several = len(self.names) > 1
        if several and self.kind is None:
            message = (
                f"what is to be made of the columns {', '.join(self.names)}? Say value_type=tuple, dict, Row or a "
                "class of yours, or give a descriptor with a row or tuple type"
            )
            raise StateError(message)
        if dataclasses.is_dataclass(self.kind) and isinstance(self.kind, type):
            known = {field.name for field in dataclasses.fields(self.kind) if field.init}
            unknown = [name for name in self.record_fields if name not in known]
            if unknown:
                message = (
                    f"{self.kind.__name__} has no field {', '.join(unknown)}; it has {', '.join(sorted(known))}: "
                    "rename the columns with withColumnRenamed"
                )
                raise StateError(message)


@dataclass(frozen=True)
class Recipe:
    """How the rows of a DataFrame become items of a change."""

    place: str
    key: Columns | None = None
    value: Columns | None = None
    window: Columns | None = None
    map_key: Columns | None = None
    position: str | None = None
    time: str | None = None

    @property
    def columns(self) -> list[str]:
        """The columns that are needed, each once."""
        groups = [part.names for part in (self.key, self.value, self.window, self.map_key) if part is not None]
        plain = [name for name in (self.position, self.time) if name is not None]
        return list(dict.fromkeys([*(name for names in groups for name in names), *plain]))

    def items(self, batches: Iterable[pa.RecordBatch]) -> Iterator[list[Any]]:
        """The items of each batch."""
        for batch in batches:
            # Arrow's own dicts for structs would lose what a map is; both are told apart by the Spark types.
            cells = {name: batch.column(name).to_pylist() for name in self.columns}
            count = batch.num_rows
            key, value, window, map_key = (
                _made(part, cells, count) for part in (self.key, self.value, self.window, self.map_key)
            )
            position, time = (cells[name] if name else [None] * count for name in (self.position, self.time))
            if self.place == "keyed":
                yield list(zip(key, window, position, map_key, value, time, strict=True))
            elif self.place == "timers":
                yield list(zip(time, key, window, strict=True))
            elif self.place == "broadcast":
                yield list(zip(map_key, value, strict=True))
            else:
                yield value


def encode(plan: Rewriting, uid: str, number: int, batches: Iterable[list[Any]]) -> Iterator[pa.RecordBatch]:
    """Items, by the part they go to, as rows of BATCH_SCHEMA."""
    change = plan.changes[uid][number]
    narrow = change.narrower()
    count = 0
    for items in batches:
        shares: dict[int, list[Any]] = {}
        for item in items:
            for target in plan.targets(uid, change, item, count):
                shares.setdefault(target, []).append(narrow(item))
            count += 1
        if shares:
            yield _to_arrow([(target, number, dump(share)) for target, share in shares.items()])


def encode_safely(
    plan: Rewriting, uid: str, number: int, recipe: Recipe, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The same for the batches of a DataFrame, with an exception as the last row."""
    try:
        yield from encode(plan, uid, number, recipe.items(batches))
    except Exception as error:
        error.add_note(f"in the DataFrame for state {plan.changes[uid][number].name!r} of operator {uid!r}")
        yield _to_arrow([(0, FAILED, by_value(describe_failure(error)))])
        for _ in batches:
            pass


def _to_arrow(rows: list[tuple[int, int, bytes]]) -> pa.RecordBatch:
    columns = zip(*rows, strict=True)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, _ARROW, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=_ARROW)


def _made(part: Columns | None, cells: Mapping[str, list[Any]], count: int) -> list[Any]:
    if part is None:
        return [None] * count
    return list(map(part.maker(), zip(*(cells[name] for name in part.names), strict=True)))


def _class_of(kind: Any) -> Any:
    """The class that a type stands for, if it stands for records."""
    if isinstance(kind, RowTypeInfo):
        return Row
    if isinstance(kind, TupleTypeInfo):
        return tuple
    if isinstance(kind, RecordTypeInfo):
        return dict
    return None if isinstance(kind, TypeInformation) else kind


def _record_maker(kind: Any, fields: tuple[str, ...]) -> Callable[[list[Any]], Any]:
    if kind is tuple:
        return tuple
    if kind is dict:
        return lambda values: dict(zip(fields, values, strict=True))
    if kind is Row or kind is None:
        return lambda values: make_row(values, fields)
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        return lambda values: kind(**dict(zip(fields, values, strict=True)))
    return lambda values: kind(*values)


def _converter(kind: T.DataType) -> Callable[[Any], Any]:
    """What turns Arrow's Python values into plain ones: structs into rows, maps into dicts."""
    if isinstance(kind, T.ArrayType):
        element = _optional(kind.elementType)
        return lambda value: [element(held) for held in value]
    if isinstance(kind, T.MapType):
        key, inner = _optional(kind.keyType), _optional(kind.valueType)
        return lambda value: {key(name): inner(held) for name, held in value}
    if isinstance(kind, T.StructType):
        fields = [(field.name, _optional(field.dataType)) for field in kind]
        names = tuple(kind.names)
        return lambda value: make_row([convert(value[name]) for name, convert in fields], names)
    return lambda value: value


def _optional(kind: T.DataType) -> Callable[[Any], Any]:
    convert = _converter(kind)
    return lambda value: None if value is None else convert(value)
