"""Dataclasses in stored state: written by the names of their fields, so that a class may gain and lose fields.

What Python's own pickle writes of a dataclass is taken as it is when it is read: a new field is simply absent, a field
that is gone stays on as an attribute, and a frozen class with slots is written by position. Here each instance carries
its field names, and they are compared with the class when it is read.
"""

from __future__ import annotations

import copyreg
import dataclasses
import pickle
from collections.abc import Callable, Mapping
from io import BytesIO
from typing import Any, Final, NamedTuple

from millrace.errors import ConfigurationError, RestoreError

__all__ = ["RecordUnpickler", "aliases", "reduce_record", "register_alias", "restore_fields"]

_UNSET: Final = object()
_HEAP_TYPE: Final = 1 << 9
"""Set in `__flags__` of every class that is written in Python."""


class _Plan(NamedTuple):
    """How the instances of a class are written and read."""

    names: frozenset[str]
    in_order: tuple[str, ...]
    in_dict: bool
    defaults: Mapping[str, Callable[[], Any]]


_plans: dict[type, _Plan | None] = {}
_aliases: dict[str, type] = {}


def register_alias(stored: str, current: type) -> None:
    """Read instances of a class that was renamed or moved since, ``"module:Class"``, as instances of ``current``.

    Call it where the class is defined, so that it happens wherever the class is imported; a program's own call reaches
    its tasks as well. With ``dict`` in place of a class, old instances are read as plain dicts of their fields, for a
    migration to go on from.

    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Purchase:
    ...     amount: int
    >>> register_alias("shop.orders:Order", Purchase)
    >>> aliases()["shop.orders:Order"] is Purchase
    True
    >>> del _aliases["shop.orders:Order"]
    """
    module, colon, name = stored.partition(":")
    if not (module and colon and name):
        message = f"register_alias: {stored!r} names no class; write it as 'package.module:Class'"
        raise ConfigurationError(message)
    if not isinstance(current, type):
        message = f"register_alias({stored!r}): {current!r} is no class; pass the class that takes its place"
        raise ConfigurationError(message)
    _aliases[stored] = current


def aliases() -> dict[str, type]:
    """All aliases there are."""
    return dict(_aliases)


def reduce_record(value: Any) -> Any:
    """For a pickler's ``reducer_override``: dataclasses by field name, all else as always.

    Classes that say themselves how they are pickled keep to that.
    """
    kind = type(value)
    try:
        plan = _plans[kind]
    except KeyError:
        plan = _plans[kind] = _plan(kind)
    if plan is None:
        return NotImplemented
    if plan.in_dict:
        state = value.__dict__
        if state.keys() == plan.names:
            return copyreg.__newobj__, (kind,), state, None, None, restore_fields  # type: ignore[attr-defined]
        # Not getattr: a default on the class must not pass for a value of the instance.
        found = {name: state.get(name, _UNSET) for name in plan.in_order}
    else:
        found = {name: getattr(value, name, _UNSET) for name in plan.in_order}
    fields = {name: held for name, held in found.items() if held is not _UNSET}
    others = {name: held for name, held in getattr(value, "__dict__", {}).items() if name not in plan.names}
    unset = [name for name, held in found.items() if held is _UNSET]
    state = (fields, others, unset) if others or unset else fields
    return copyreg.__newobj__, (kind,), state, None, None, restore_fields  # type: ignore[attr-defined]


def restore_fields(record: Any, state: Any) -> bool:
    """Give a fresh instance its stored fields: new ones take their defaults, those that are gone are left out.

    Says whether the fields are others than before. Stored pickles name this function: it stays where it is.
    """
    fields, others, unset = state if type(state) is tuple else (state, None, ())
    kind = type(record)
    if kind is dict:
        record.update(fields)
        return True
    try:
        plan = _plans[kind]
    except KeyError:
        plan = _plans[kind] = _plan(kind)
    changed = False
    if plan is not None and fields.keys() != plan.names:
        changed = fields.keys() | set(unset) != plan.names
        fields = _fitted(kind, plan, fields, unset)
    if plan is not None and not plan.in_dict:
        for name, held in fields.items():
            object.__setattr__(record, name, held)
    else:
        record.__dict__.update(fields)
    if others:
        for name, held in others.items():
            object.__setattr__(record, name, held)
    return changed


def _fitted(kind: type, plan: _Plan, fields: Mapping[str, Any], unset: list[str]) -> dict[str, Any]:
    fitted = {name: held for name, held in fields.items() if name in plan.names}
    for name in sorted(plan.names - fitted.keys() - set(unset)):
        default = plan.defaults.get(name)
        if default is None:
            where = f"{kind.__module__}.{kind.__qualname__}"
            message = (
                f"stored instances of {where} have no field {name!r}, and the class gives it no default: "
                f"write '{name}: ... = <default>' in {kind.__qualname__}, or keep this class as it was, use a new "
                "one in the state and turn old values into new ones with a migration (version=2, migrations={1: ...})"
            )
            raise RestoreError(message)
        fitted[name] = default()
    return fitted


def _plan(kind: type) -> _Plan | None:
    if not dataclasses.is_dataclass(kind) or not _pickles_plainly(kind):
        return None
    fields = dataclasses.fields(kind)
    defaults: dict[str, Callable[[], Any]] = {}
    for entry in fields:
        if entry.default is not dataclasses.MISSING:
            defaults[entry.name] = _constant(entry.default)
        elif entry.default_factory is not dataclasses.MISSING:
            defaults[entry.name] = entry.default_factory
    slots = {name for base in kind.__mro__ for name in _slots_of(base)}
    in_order = tuple(entry.name for entry in fields)
    names = frozenset(in_order)
    return _Plan(names, in_order, not names & slots and kind.__dictoffset__ != 0, defaults)


def _constant(value: Any) -> Callable[[], Any]:
    return lambda: value


def _slots_of(kind: type) -> tuple[str, ...]:
    slots = vars(kind).get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)


def _pickles_plainly(kind: type) -> bool:
    """Whether the class leaves pickling to Python, and keeps nothing but attributes."""
    own = {name for base in kind.__mro__ if base is not object for name in vars(base)}
    by_dataclass = getattr(dataclasses, "_dataclass_getstate", None)
    custom = {"__reduce__", "__reduce_ex__", "__getnewargs__", "__getnewargs_ex__"} & own
    if not custom and {"__getstate__", "__setstate__"} & own:
        custom = set() if getattr(kind, "__getstate__", None) is by_dataclass else {"__getstate__"}
    return not custom and all(base is object or base.__flags__ & _HEAP_TYPE for base in kind.__mro__)


class RecordUnpickler(pickle.Unpickler):
    """Reads stored state: follows aliases, and notes which classes are not what they were.

    >>> RecordUnpickler(pickle.dumps(["a"])).load()
    ['a']
    """

    def __init__(self, data: bytes | memoryview) -> None:
        super().__init__(BytesIO(data))
        self.changed: set[type] = set()

    def find_class(self, module_name: str, global_name: str, /) -> Any:
        """A class or function by name, or what has taken its place."""
        if global_name == restore_fields.__name__ and module_name == restore_fields.__module__:
            return self._restore_fields
        current = _aliases.get(f"{module_name}:{global_name}")
        if current is not None:
            # The hash of a key takes the name of its class in, but not that of the module.
            if current.__qualname__ != global_name:
                self.changed.add(current)
            return current
        try:
            return super().find_class(module_name, global_name)
        except (ImportError, AttributeError) as error:
            message = (
                f"stored state has instances of {module_name}.{global_name}, which is not there any more ({error}): "
                f"call millrace.state.evolution.register_alias('{module_name}:{global_name}', NewClass) if it was "
                "renamed or moved, or put it back"
            )
            raise RestoreError(message) from error

    def _restore_fields(self, record: Any, state: Any) -> None:
        plan = _plans.get(type(record))
        if plan is not None and plan.in_dict and type(state) is dict and state.keys() == plan.names:
            # By far the most of them, and there may be millions: nothing has changed.
            record.__dict__.update(state)
        elif restore_fields(record, state):
            self.changed.add(type(record))
