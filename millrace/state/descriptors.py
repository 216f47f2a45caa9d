"""What a function says about the state it wants: a name, a type, and for some kinds a function."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from millrace.errors import StateError
from millrace.state.ttl import StateTtlConfig

__all__ = [
    "AggregatingStateDescriptor",
    "ListStateDescriptor",
    "MapStateDescriptor",
    "ReducingStateDescriptor",
    "StateDescriptor",
    "ValueStateDescriptor",
]

_Coercer = Callable[[Any], Any] | None
_Migrations = Mapping[int, Callable[[Any], Any]]


def _coercer(type_info: Any) -> _Coercer:
    make = getattr(type_info, "coercer", None)
    return None if make is None else make()


def _text(type_info: Any) -> str:
    return "any" if type_info is None else str(type_info)


def _checked(name: str, version: int, migrations: dict[int, Callable[[Any], Any]]) -> dict[int, Callable[[Any], Any]]:
    if not isinstance(version, int) or version < 1:
        message = f"state {name!r}: version={version!r}; versions are whole numbers from 1"
        raise StateError(message)
    for before, migrate in migrations.items():
        if before not in range(1, version) or not callable(migrate):
            message = (
                f"state {name!r} of version {version} has migrations={{{before!r}: {migrate!r}}}: give a function "
                f"for each version before {version}, which turns its values into those of the next"
            )
            raise StateError(message)
    return migrations


class StateDescriptor:
    """Base of all descriptors. The name, together with the operator's uid, finds the state again in a savepoint.

    When stored values have to become something else, raise ``version`` and say in ``migrations`` how a value of each
    earlier version becomes one of the next: an element of a list, a value of a map, an accumulator.

    >>> ValueStateDescriptor("last").get_name()
    'last'
    >>> ValueStateDescriptor("name", version=2, migrations={1: str.upper}).version
    2
    """

    kind: ClassVar[str] = ""

    def __init__(
        self, name: str, type_info: Any = None, *, version: int = 1, migrations: _Migrations | None = None
    ) -> None:
        if not isinstance(name, str) or not name:
            message = f"a state needs a name, got {name!r}: {type(self).__name__}('count', ...), for example"
            raise StateError(message)
        self.version = version
        self.migrations = _checked(name, version, dict(migrations or {}))
        self.name = name
        self.type_info = type_info
        self.ttl: StateTtlConfig | None = None

    def get_name(self) -> str:
        """The name of the state, unique within its operator."""
        return self.name

    def enable_time_to_live(self, ttl_config: StateTtlConfig) -> None:
        """Let values die when they have not been used for a while."""
        self.ttl = ttl_config

    @property
    def coerce(self) -> _Coercer:
        """Narrows a value to the state's type before it is stored; None if there is nothing to do."""
        return _coercer(self.type_info)

    @property
    def type_text(self) -> str:
        """The type in words, for inspection."""
        return _text(self.type_info)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {self.type_text})"


class ValueStateDescriptor(StateDescriptor):
    """Asks for one value per key.

    >>> ValueStateDescriptor("last")
    ValueStateDescriptor('last', any)
    """

    kind = "value"

    def __init__(
        self,
        name: str,
        value_type_info: Any = None,
        *,
        version: int = 1,
        migrations: _Migrations | None = None,
    ) -> None:
        super().__init__(name, value_type_info, version=version, migrations=migrations)


class ListStateDescriptor(StateDescriptor):
    """Asks for a list per key, or for a list per task.

    >>> ListStateDescriptor("buffer")
    ListStateDescriptor('buffer', any)
    """

    kind = "list"

    def __init__(
        self,
        name: str,
        elem_type_info: Any = None,
        *,
        version: int = 1,
        migrations: _Migrations | None = None,
    ) -> None:
        super().__init__(name, elem_type_info, version=version, migrations=migrations)


class MapStateDescriptor(StateDescriptor):
    """Asks for a map per key, or for a broadcast map.

    >>> MapStateDescriptor("rules")
    MapStateDescriptor('rules', any -> any)
    """

    kind = "map"

    def __init__(
        self,
        name: str,
        key_type_info: Any = None,
        value_type_info: Any = None,
        *,
        version: int = 1,
        migrations: _Migrations | None = None,
    ) -> None:
        super().__init__(name, value_type_info, version=version, migrations=migrations)
        self.key_type_info = key_type_info

    @property
    def coerce_key(self) -> _Coercer:
        """Narrows a map key before it is stored or looked up; None if there is nothing to do."""
        return _coercer(self.key_type_info)

    @property
    def type_text(self) -> str:
        """The types of key and value in words."""
        return f"{_text(self.key_type_info)} -> {_text(self.type_info)}"


class ReducingStateDescriptor(StateDescriptor):
    """Asks for a value per key into which each element is folded by a function or an object with `reduce(a, b)`.

    >>> ReducingStateDescriptor("total", lambda a, b: a + b).reduce(1, 2)
    3
    """

    kind = "reducing"

    def __init__(
        self,
        name: str,
        reduce_function: Any,
        type_info: Any = None,
        *,
        version: int = 1,
        migrations: _Migrations | None = None,
    ) -> None:
        super().__init__(name, type_info, version=version, migrations=migrations)
        self.reduce_function = reduce_function
        reduce = getattr(reduce_function, "reduce", reduce_function)
        if not callable(reduce):
            message = (
                f"reducing state {name!r} needs a function of two values or a ReduceFunction, got {reduce_function!r}: "
                "use lambda a, b: a + b, for example"
            )
            raise StateError(message)
        self.reduce: Callable[[Any, Any], Any] = reduce

    def get_reduce_function(self) -> Any:
        """The function, as given."""
        return self.reduce_function


class AggregatingStateDescriptor(StateDescriptor):
    """Asks for an accumulator per key that an AggregateFunction looks after.

    >>> class Count:
    ...     def create_accumulator(self): return 0
    ...     def add(self, value, accumulator): return accumulator + 1
    ...     def get_result(self, accumulator): return accumulator
    >>> AggregatingStateDescriptor("seen", Count())
    AggregatingStateDescriptor('seen', any)
    """

    kind = "aggregating"

    def __init__(
        self,
        name: str,
        agg_function: Any,
        state_type_info: Any = None,
        *,
        version: int = 1,
        migrations: _Migrations | None = None,
    ) -> None:
        super().__init__(name, state_type_info, version=version, migrations=migrations)
        self.agg_function = agg_function
        missing = [
            method
            for method in ("create_accumulator", "add", "get_result")
            if not callable(getattr(agg_function, method, None))
        ]
        if missing:
            message = (
                f"aggregating state {name!r} needs an AggregateFunction, but {agg_function!r} has no "
                f"{', '.join(missing)}(): derive it from AggregateFunction"
            )
            raise StateError(message)

    def get_agg_function(self) -> Any:
        """The aggregate function, as given."""
        return self.agg_function
