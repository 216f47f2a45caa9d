"""Which key the running code belongs to, and what time it is for the state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NoReturn

from millrace.errors import StateError

__all__ = ["NO_KEY", "KeyContext"]


class _NoKey:
    """Stands for the key where there is none.

    Not being hashable, it makes every access to keyed state fail by itself: handles need no check per record.
    """

    __slots__ = ()

    def __hash__(self) -> NoReturn:
        raise StateError(
            "keyed state needs a key: call key_by() before the function that uses it, "
            "and use the state only while a record or timer is processed, not in open() or close()"
        )

    def __eq__(self, other: object) -> bool:
        return self is other

    def __repr__(self) -> str:
        return "NO_KEY"

    def __reduce__(self) -> str:
        return "NO_KEY"


NO_KEY: Final = _NoKey()
"""The current key while no record and no timer of a keyed stream is processed."""


class KeyContext:
    """The current key and the clock, shared by all handles of one operator.

    >>> KeyContext(clock=lambda: 7).clock()
    7
    """

    __slots__ = ("clock", "current_key")

    def __init__(self, clock: Callable[[], int]) -> None:
        self.clock = clock
        self.current_key: Any = NO_KEY
