"""PyFlink's marks of stability, for programs that put them on their own classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["Deprecated", "Experimental", "Internal", "Public", "PublicEvolving"]

T = TypeVar("T")


class _Mark:
    """A decorator that changes nothing.

    >>> @_Mark()
    ... def twice(value): return 2 * value
    >>> twice(2)
    4
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def __call__(self, marked: T) -> T:
        return marked


Deprecated: Callable[..., Callable[[T], T]] = _Mark
Experimental: Callable[..., Callable[[T], T]] = _Mark
Internal: Callable[..., Callable[[T], T]] = _Mark
Public: Callable[..., Callable[[T], T]] = _Mark
PublicEvolving: Callable[..., Callable[[T], T]] = _Mark
