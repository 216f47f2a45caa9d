"""The base class of serializers that programs write for their own windows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, BinaryIO, Generic, TypeVar

__all__ = ["TypeSerializer"]

T = TypeVar("T")


class TypeSerializer(ABC, Generic[T]):
    """Writes and reads values of one type. Windows travel as Python objects here, so that none is called.

    >>> issubclass(TypeSerializer, ABC)
    True
    """

    @abstractmethod
    def serialize(self, element: T, stream: BinaryIO) -> None:
        """Write a value."""

    @abstractmethod
    def deserialize(self, stream: BinaryIO) -> T:
        """Read a value."""

    def __eq__(self, other: Any) -> bool:
        return type(self) is type(other) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash(type(self))
