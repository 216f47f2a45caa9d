"""Ready-made tests for outcomes of an async attempt that are worth another one."""

from __future__ import annotations

from typing import Any

__all__ = ["empty_result_predicate", "exception_type_predicate", "has_exception_predicate"]


def empty_result_predicate(result: list[Any]) -> bool:
    """Try again when the attempt gave no records.

    >>> empty_result_predicate([])
    True
    """
    return not result


def has_exception_predicate(error: Exception | None) -> bool:
    """Try again after any exception.

    >>> has_exception_predicate(OSError())
    True
    """
    return error is not None


def exception_type_predicate(error: Exception | None, expected_error_type: type[Exception]) -> bool:
    """Try again after an exception of the given type; bind the type with functools.partial.

    >>> exception_type_predicate(ConnectionError(), OSError)
    True
    """
    return isinstance(error, expected_error_type)
