"""Tracebacks for the author of a program: their own frames in full, the engine's folded into one line."""

from __future__ import annotations

import importlib.util
import os
import traceback
from collections.abc import Iterator
from functools import cache
from itertools import groupby
from typing import Any, Final

__all__ = ["format_exception", "is_engine_file"]

_ENGINE_PACKAGES: Final = ("millrace", "pyspark", "py4j", "click")
_ENGINE_FILES: Final = frozenset({"<frozen runpy>"})


def format_exception(error: BaseException, *, full: bool = False) -> str:
    """The traceback of `error` as text, as Python prints it, with runs of engine frames folded; `full` leaves them in.

    Causes, contexts, notes and exception groups keep their usual places.

    >>> try:
    ...     is_engine_file(None)
    ... except AttributeError as error:
    ...     for line in format_exception(error).splitlines()[-3:]:
    ...         print(line)
        is_engine_file(None)
      ... 1 engine frame ...
    AttributeError: 'NoneType' object has no attribute 'startswith'
    """
    view = traceback.TracebackException.from_exception(error)
    if not full:
        _fold(view)
    return "".join(view.format())


def is_engine_file(filename: str) -> bool:
    """Whether code in this file belongs to the engine and not to the user.

    >>> is_engine_file(__file__), is_engine_file("/home/me/millrace/app.py")
    (True, False)
    """
    return filename in _ENGINE_FILES or filename.startswith(_engine_directories())


class _FoldedStack(traceback.StackSummary):
    """A stack that prints a run of engine frames as one line."""

    def format(self, **options: Any) -> list[str]:
        return [line for line in self._lines(options)]

    def _lines(self, options: dict[str, Any]) -> Iterator[str]:
        for is_engine, run in groupby(self, key=lambda frame: is_engine_file(frame.filename)):
            frames = list(run)
            if is_engine:
                yield f"  ... {len(frames)} engine frame{'s' if len(frames) > 1 else ''} ...\n"
            else:
                yield from traceback.StackSummary.from_list(frames).format(**options)


def _fold(view: traceback.TracebackException) -> None:
    todo, seen = [view], set()
    while todo:
        part = todo.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        part.stack = _FoldedStack(part.stack)
        todo += [linked for linked in (part.__cause__, part.__context__) if linked is not None]
        todo += getattr(part, "exceptions", None) or []


@cache
def _engine_directories() -> tuple[str, ...]:
    directories = []
    for package in _ENGINE_PACKAGES:
        # Finding a package does not import it: reporting an error must not start anything.
        spec = importlib.util.find_spec(package)
        directories += list(spec.submodule_search_locations or ()) if spec else []
    return tuple(directory + os.sep for directory in directories)
