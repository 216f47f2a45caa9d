"""Failures of a job as PyFlink programs expect them: everything comes through the gateway to the JVM there."""

from __future__ import annotations

import importlib
from typing import Any

from millrace.errors import MillraceError

__all__ = ["JavaException", "TableException", "as_gateway_error"]


class JavaException(MillraceError):
    """Never raised here; programs that catch it can import it."""


class TableException(JavaException):
    """Never raised here; programs that catch it can import it."""


def as_gateway_error(error: Exception) -> Exception:
    """The same error, which is also a `Py4JJavaError`: PyFlink programs catch failed jobs by that name.

    It stays what it was. A function's own ValueError is still a ValueError, with its text, its notes and its traceback.

    >>> error = as_gateway_error(ValueError("no such word"))
    >>> isinstance(error, ValueError), str(error), [base.__name__ for base in type(error).__mro__][2]
    (True, 'no such word', 'Py4JJavaError')
    """
    kind = _gateway_kind(type(error))
    if kind is None:
        return error
    twin = kind.__new__(kind, *error.args)
    twin.args = error.args
    twin.__dict__.update(error.__dict__)
    twin.__cause__, twin.__context__ = error.__cause__, error.__context__
    twin.__suppress_context__ = error.__suppress_context__
    twin.__dict__.update(java_exception=None, errmsg=str(error), exception_cmd="")
    return twin.with_traceback(error.__traceback__)


def _gateway_kind(kind: type[Exception]) -> type[Exception] | None:
    try:
        base = importlib.import_module("py4j.protocol").Py4JJavaError
    except ImportError:
        return None
    if issubclass(kind, base):
        return None

    def text(self: Any) -> str:
        return kind.__str__(self)

    body = {"__module__": kind.__module__, "__qualname__": kind.__qualname__, "__str__": text}
    try:
        return type(kind.__name__, (kind, base), body)
    except TypeError:
        return None  # A kind whose instances are laid out in memory in a way of their own.
