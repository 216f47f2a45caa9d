"""The name of a side output."""

from __future__ import annotations

from typing import Any

__all__ = ["OutputTag"]


class OutputTag:
    """Names a side output and, optionally, the type of what goes there.

    A function sends to it with ``yield tag, value`` or ``ctx.output(tag, value)``; ``stream.get_side_output(tag)``
    reads it.

    >>> late = OutputTag("late")
    >>> late.tag_id
    'late'
    >>> OutputTag("")
    Traceback (most recent call last):
    ...
    ValueError: an OutputTag needs a name: OutputTag("late"), for example
    """

    __slots__ = ("tag_id", "type_info")

    def __init__(self, tag_id: str, type_info: Any = None) -> None:
        if not tag_id:
            message = 'an OutputTag needs a name: OutputTag("late"), for example'
            raise ValueError(message)
        if isinstance(type_info, list):
            from millrace.common.typeinfo import Types

            type_info = Types.ROW(type_info)
        self.tag_id = tag_id
        self.type_info = type_info

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OutputTag) and other.tag_id == self.tag_id

    def __hash__(self) -> int:
        return hash(self.tag_id)

    def __repr__(self) -> str:
        return f"OutputTag({self.tag_id!r})"
