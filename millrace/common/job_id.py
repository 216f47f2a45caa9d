"""The name of one run of a program."""

from __future__ import annotations

import re
import uuid

__all__ = ["JobID"]


class JobID:
    """128 bits that name a job, written as 32 hexadecimal digits; a new one unless given.

    >>> str(JobID("0123456789abcdef0123456789abcdef"))
    '0123456789abcdef0123456789abcdef'
    >>> JobID() == JobID()
    False
    """

    __slots__ = ("_hex",)

    def __init__(self, hex_digits: str | None = None) -> None:
        self._hex = uuid.uuid4().hex if hex_digits is None else hex_digits.lower()
        if not re.fullmatch(r"[0-9a-f]{32}", self._hex):
            raise ValueError(f"{hex_digits!r} is no job id; it must be 32 hexadecimal digits")

    def to_hex_string(self) -> str:
        """The 32 digits."""
        return self._hex

    def __eq__(self, other: object) -> bool:
        return self._hex == other._hex if isinstance(other, JobID) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._hex)

    def __str__(self) -> str:
        return self._hex

    def __repr__(self) -> str:
        return f"JobID({self._hex!r})"
