"""What every type of a record has in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final

from millrace.errors import RestoreError

__all__ = ["Coercer", "TypeInformation", "wrong_kind"]

Coercer = Callable[[Any], Any]
"""Turns a value into what a field of the type holds; gives None for None."""

_JSON_READERS: Final[dict[str, Callable[[Mapping[str, Any]], TypeInformation]]] = {}


class TypeInformation(ABC):
    """The type of the records of a stream, or of a piece of state; made by `Types`.

    A type narrows what passes through it to what a field of that type can hold, as a typed stream does in Flink.

    >>> from millrace.common.typeinfo import Types
    >>> Types.SHORT().coerce(43_878)
    -21658
    >>> TypeInformation.from_json(Types.LIST(Types.INT()).to_json())
    Types.LIST(Types.INT())
    """

    type_codes: ClassVar[tuple[str, ...]] = ()
    """The names under which descriptions of this class's types are stored."""

    guessed: bool = False
    """Whether it was found by looking at records, not declared. Such a type helps to find fields and does no more."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for code in cls.type_codes:
            _JSON_READERS[code] = cls._from_description

    @property
    def name(self) -> str:
        """The expression that makes this type."""
        return repr(self)

    @abstractmethod
    def coercer(self) -> Coercer | None:
        """A function that does what `coerce` does, for loops; None if every value stays as it is."""

    def coerce(self, value: Any) -> Any:
        """The value as a field of this type holds it; a value of another kind is a `TypeError`."""
        coercer = self.coercer()
        return value if coercer is None else coercer(value)

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """A description of this type that can be stored as JSON."""

    @staticmethod
    def from_json(description: Mapping[str, Any]) -> TypeInformation:
        """The type that `to_json` described."""
        reader = _JSON_READERS.get(description.get("type", ""))
        if reader is None:
            message = (
                f"{dict(description)!r} describes no known type; known are {', '.join(sorted(_JSON_READERS))}. "
                "Was it stored by a newer version?"
            )
            raise RestoreError(message)
        return reader(description)

    @classmethod
    @abstractmethod
    def _from_description(cls, description: Mapping[str, Any]) -> TypeInformation:
        """Undo `to_json`."""

    @abstractmethod
    def _constructor_arguments(self) -> tuple[Any, ...]:
        """What makes this type differ from others of its class; hashable."""

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TypeInformation):
            return NotImplemented
        return type(self) is type(other) and self._constructor_arguments() == other._constructor_arguments()

    def __hash__(self) -> int:
        return hash((type(self), self._constructor_arguments()))

    def __reduce__(self) -> tuple[Any, ...]:
        # Coercers are closures: they are built again on the other side rather than pickled.
        return type(self), self._constructor_arguments()


def wrong_kind(type_info: object, value: object, wanted: str) -> TypeError:
    """The error for a value that no field of the type can hold."""
    kind = type(value).__name__
    return TypeError(
        f"{type_info!r} holds {wanted}, not {value!r} of type {kind}; change the value or the declared type"
    )
