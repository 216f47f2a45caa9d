"""State that outlives the program that wrote it: what may change between two versions of a program, and what not.

- Dataclasses gain fields with defaults and lose fields (`millrace.state.records`); `register_alias` follows a class
  that was renamed or moved.
- Rows and `RecordTypeInfo` dicts gain and lose fields by their declared types. Any other change of a declared type is
  refused, with both types named.
- For all else there are migrations: raise the ``version`` of a descriptor and say how to get there, step by step.
- Keys do not change.

A backend keeps the form of each state with its values: ``form_of`` makes it, ``upgrade`` compares.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any, Final, TypeAlias

from millrace.common._type_base import Coercer, TypeInformation, wrong_kind
from millrace.common.row import Row, make_row
from millrace.common.typeinfo import ListTypeInfo, MapTypeInfo, PickledBytesTypeInfo, RowTypeInfo, TupleTypeInfo
from millrace.errors import RestoreError
from millrace.state.descriptors import StateDescriptor
from millrace.state.records import register_alias

__all__ = [
    "Form",
    "RecordTypeInfo",
    "convert_stored",
    "form_of",
    "form_version",
    "refuse_changed_keys",
    "register_alias",
    "upgrade",
]

Form: TypeAlias = tuple[Any, ...]
"""Stored with the values of a state: its kind, its type in words, whether the values carry a last access, and, where
they are not 1 and none, the version and the description of its types as JSON text."""

Converter: TypeAlias = Callable[[Any], Any] | None
_ANY: Final = frozenset({"any", "any -> any", str(PickledBytesTypeInfo())})
_PREVIEW: Final = 120


class RecordTypeInfo(TypeInformation):
    """The type of dicts with named fields, as Avro has them: a field that records of old lack takes its default.

    >>> from millrace.common.typeinfo import Types
    >>> visit = RecordTypeInfo({"page": Types.STRING(), "clicks": Types.INT()}, defaults={"clicks": 0})
    >>> visit.coerce({"page": "/"})
    {'page': '/', 'clicks': 0}
    """

    type_codes = ("RECORD",)

    def __init__(self, fields: Mapping[str, TypeInformation], defaults: Mapping[str, Any] | None = None) -> None:
        self.fields = dict(fields)
        self.defaults = dict(defaults or {})
        unknown = sorted(self.defaults.keys() - self.fields.keys())
        if unknown:
            message = f"RecordTypeInfo: defaults for {', '.join(unknown)}, which are no fields; add them to the fields"
            raise ValueError(message)

    def default(self, name: str) -> Any:
        """The default of a field, each time a new one; KeyError if it has none."""
        return deepcopy(self.defaults[name])

    def coercer(self) -> Coercer:
        """A function that does what `coerce` does."""
        coercers = {name: field_type.coercer() for name, field_type in self.fields.items()}

        def coerce(value: Any) -> dict[str, Any] | None:
            if value is None:
                return None
            if not isinstance(value, Mapping) or value.keys() - coercers.keys():
                raise wrong_kind(self, value, f"dicts with the fields {', '.join(coercers)}")
            record = {}
            for name, narrow in coercers.items():
                if name in value:
                    record[name] = value[name] if narrow is None else narrow(value[name])
                elif name in self.defaults:
                    record[name] = self.default(name)
                else:
                    raise wrong_kind(self, value, f"dicts with the field {name!r}, which has no default")
            return record

        return coerce

    def to_json(self) -> dict[str, Any]:
        """A description of this type that can be stored as JSON; without the defaults, which only readers need."""
        return {"type": "RECORD", "fields": {name: kind.to_json() for name, kind in self.fields.items()}}

    @classmethod
    def _from_description(cls, description: Mapping[str, Any]) -> RecordTypeInfo:
        return cls({name: TypeInformation.from_json(kind) for name, kind in description["fields"].items()})

    def _constructor_arguments(self) -> tuple[Any, ...]:
        return tuple(self.fields.items()), repr(self.defaults)

    def __reduce__(self) -> tuple[Any, ...]:
        return RecordTypeInfo, (self.fields, self.defaults)

    def __repr__(self) -> str:
        return f"RecordTypeInfo({self.fields!r})"

    def __str__(self) -> str:
        return f"RecordTypeInfo({', '.join(f'{name}: {kind!s}' for name, kind in self.fields.items())})"


def form_of(descriptor: StateDescriptor, timed: bool) -> Form:
    """What is stored with the values of a state.

    >>> from millrace.state.descriptors import ValueStateDescriptor
    >>> form_of(ValueStateDescriptor("last"), timed=False)
    ('value', 'any', False)
    """
    form = (descriptor.kind, descriptor.type_text, timed)
    types = {
        role: kind.to_json()
        for role, kind in _types(descriptor).items()
        if isinstance(kind, TypeInformation) and not isinstance(kind, PickledBytesTypeInfo)
    }
    if descriptor.version == 1 and not types:
        return form
    return (*form, descriptor.version, json.dumps(types, separators=(",", ":")))


def form_version(form: Form) -> int:
    """The version of the values stored in this form."""
    return form[3] if len(form) > 3 else 1


def upgrade(stored: Form, descriptor: StateDescriptor) -> Converter:
    """What turns a stored value into one of the descriptor's type and version; None if it can stay as it is.

    For lists it turns an element, for maps a value. What cannot be turned is a RestoreError.

    >>> from millrace.common.typeinfo import Types
    >>> from millrace.state.descriptors import ValueStateDescriptor
    >>> seconds = ValueStateDescriptor("wait", Types.LONG())
    >>> millis = ValueStateDescriptor("wait", Types.LONG(), version=2, migrations={1: lambda wait: wait * 1000})
    >>> upgrade(form_of(seconds, timed=False), millis)(3)
    3000
    """
    before = form_version(stored)
    if before != descriptor.version:
        return _guarded(descriptor, _migration(before, descriptor))
    if stored[1] == descriptor.type_text and stored[3:] == form_of(descriptor, timed=False)[3:]:
        return None
    if stored[1] in _ANY:
        return _guarded(descriptor, descriptor.coerce)
    if descriptor.type_text in _ANY:
        return None
    if len(stored) < 5:
        # Written before types were described: there are only the words to compare.
        if stored[1] == descriptor.type_text:
            return None
        raise _other_type(stored, descriptor, "")
    old = {role: TypeInformation.from_json(text) for role, text in json.loads(stored[4]).items()}
    new = _types(descriptor)
    try:
        if "key" in old and new.get("key") is not None and old["key"] != new["key"]:
            raise _Incompatible("keys cannot change")
        return _guarded(descriptor, _between(old.get("value"), new["value"]))
    except _Incompatible as reason:
        raise _other_type(stored, descriptor, f" ({reason})") from None


def convert_stored(kind: str, timed: bool, stored: Any, convert: Callable[[Any], Any]) -> Any:
    """What a heap keeps for one key, with each value in it turned by ``convert``.

    >>> convert_stored("list", False, [1, 2], str)
    ['1', '2']
    >>> convert_stored("map", True, {"a": (1, 99)}, str)
    {'a': ('1', 99)}
    """
    if timed:
        inner = convert
        convert = lambda stamped: (inner(stamped[0]), stamped[1])  # noqa: E731
    if kind == "list":
        return [convert(element) for element in stored]
    if kind == "map":
        return {key: convert(value) for key, value in stored.items()}
    return convert(stored)


def refuse_changed_keys(content: Any, changed: set[type]) -> None:
    """Raise a RestoreError if an instance of a changed class is a key: of state, of a timer, or in a map.

    >>> try:
    ...     refuse_changed_keys({("a", 1.5): "value"}, {float})
    ... except RestoreError as error:
    ...     print(str(error)[:67])
    builtins.float is a key in stored state, 1.5, and has changed since
    """
    waiting = [content]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            for key in part:
                _refuse_changed_key(key, changed)
            for timers in ("event_timers", "processing_timers"):
                if isinstance(part.get(timers), tuple):
                    for timer in part[timers][1]:
                        _refuse_changed_key(timer[1], changed)
            waiting.extend(part.values())
        elif isinstance(part, list | tuple):
            waiting.extend(part)


def _refuse_changed_key(key: Any, changed: set[type]) -> None:
    if type(key) in changed:
        kind = type(key)
        message = (
            f"{kind.__module__}.{kind.__qualname__} is a key in stored state, {key!r:.80}, and has changed since: "
            "keys cannot change, because the task that has a key follows from its fields. Put the class back as it "
            "was, or give the operator a new uid and start it without state"
        )
        raise RestoreError(message)
    if isinstance(key, tuple | frozenset):
        for inner in key:
            _refuse_changed_key(inner, changed)


class _Incompatible(Exception):
    """Two types of which the first cannot become the second."""


def _types(descriptor: StateDescriptor) -> dict[str, Any]:
    types = {"value": descriptor.type_info}
    if descriptor.kind == "map":
        types["key"] = getattr(descriptor, "key_type_info", None)
    return types


def _other_type(stored: Form, descriptor: StateDescriptor, reason: str) -> RestoreError:
    return RestoreError(
        f"state {descriptor.name!r} was stored as {stored[1]} and is now declared as {descriptor.type_text}{reason}: "
        f"declare the old type, or use version={descriptor.version + 1} with "
        f"migrations={{{descriptor.version}: lambda old: ...}}, or another name to start empty"
    )


def _migration(before: int, descriptor: StateDescriptor) -> Callable[[Any], Any]:
    if before > descriptor.version:
        message = (
            f"state {descriptor.name!r} was stored in version {before}, and the program has version "
            f"{descriptor.version} of it: start the newer program, or go back to a savepoint of the older one"
        )
        raise RestoreError(message)
    steps = []
    for version in range(before, descriptor.version):
        step = descriptor.migrations.get(version)
        if step is None:
            message = (
                f"state {descriptor.name!r} was stored in version {before} and is now in version {descriptor.version}, "
                f"but nothing leads from {version} to {version + 1}: add {version}: lambda old: ... to its migrations"
            )
            raise RestoreError(message)
        steps.append(step)
    if descriptor.coerce is not None:
        steps.append(descriptor.coerce)

    def migrate(value: Any) -> Any:
        for step in steps:
            value = step(value)
        return value

    return migrate


def _guarded(descriptor: StateDescriptor, convert: Converter) -> Converter:
    if convert is None:
        return None

    def guarded(value: Any) -> Any:
        try:
            return convert(value)
        except Exception as error:
            shown = repr(value)[:_PREVIEW]
            message = (
                f"state {descriptor.name!r}: the stored value {shown} does not become "
                f"{descriptor.type_text} of version {descriptor.version}: {type(error).__name__}: {error}"
            )
            raise RestoreError(message) from error

    return guarded


def _between(old: TypeInformation | None, new: TypeInformation | None) -> Converter:
    """What turns a value of one type into one of the other."""
    if new is None or isinstance(new, PickledBytesTypeInfo):
        return None
    if old is None or isinstance(old, PickledBytesTypeInfo):
        return new.coercer()
    if type(old) is type(new):
        if isinstance(old, RowTypeInfo) and isinstance(new, RowTypeInfo):
            return _between_rows(old, new)
        if isinstance(old, RecordTypeInfo) and isinstance(new, RecordTypeInfo):
            return _between_records(old, new)
        if isinstance(old, ListTypeInfo) and isinstance(new, ListTypeInfo):
            return _each(_between(old.element_type, new.element_type))
        if isinstance(old, MapTypeInfo) and isinstance(new, MapTypeInfo) and old.key_type == new.key_type:
            return _each_value(_between(old.value_type, new.value_type))
        if isinstance(old, TupleTypeInfo) and isinstance(new, TupleTypeInfo):
            return _between_tuples(old, new)
    if old == new:
        return None
    raise _Incompatible(f"{old!s} cannot become {new!s}")


def _field(name: str, old: TypeInformation, new: TypeInformation) -> Converter:
    try:
        return _between(old, new)
    except _Incompatible as reason:
        raise _Incompatible(f"field {name!r}: {reason}") from None


def _between_rows(old: RowTypeInfo, new: RowTypeInfo) -> Converter:
    if old == new:
        return None
    names = new.field_names if new.is_named else None
    places: list[tuple[int, Converter]] = []
    for name, kind in zip(new.field_names, new.field_types, strict=True):
        index = old.get_field_index(name)
        places.append((index, None if index < 0 else _field(name, old.field_types[index], kind)))

    def convert(row: Row | None) -> Row | None:
        if row is None:
            return None
        values = [None if i < 0 else row[i] if turn is None else turn(row[i]) for i, turn in places]
        return make_row(values, names, row.get_row_kind())

    return convert


def _between_records(old: RecordTypeInfo, new: RecordTypeInfo) -> Converter:
    if old.fields == new.fields:
        return None
    kept = {name: _field(name, old.fields[name], kind) for name, kind in new.fields.items() if name in old.fields}
    for name in new.fields.keys() - old.fields.keys() - new.defaults.keys():
        raise _Incompatible(f"the new field {name!r} has no default: give it one in RecordTypeInfo(..., defaults=...)")

    def convert(record: dict[str, Any] | None) -> dict[str, Any] | None:
        if record is None:
            return None
        fitted = {}
        for name in new.fields:
            if name in kept:
                turn = kept[name]
                fitted[name] = record[name] if turn is None else turn(record[name])
            else:
                fitted[name] = new.default(name)
        return fitted

    return convert


def _between_tuples(old: TupleTypeInfo, new: TupleTypeInfo) -> Converter:
    if len(old.field_types) != len(new.field_types):
        raise _Incompatible("a tuple has no names for its fields, so none can be added or removed")
    turns = [_field(str(i), *pair) for i, pair in enumerate(zip(old.field_types, new.field_types, strict=True))]
    if not any(turns):
        return None

    def convert(value: tuple[Any, ...] | None) -> tuple[Any, ...] | None:
        if value is None:
            return None
        return tuple([item if turn is None else turn(item) for item, turn in zip(value, turns, strict=True)])

    return convert


def _each(turn: Converter) -> Converter:
    return None if turn is None else lambda values: None if values is None else [turn(value) for value in values]


def _each_value(turn: Converter) -> Converter:
    if turn is None:
        return None
    return lambda entries: None if entries is None else {key: turn(value) for key, value in entries.items()}
