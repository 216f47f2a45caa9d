"""Names that PyFlink has and Millrace does not offer: they can be imported, and say what to use when they are used."""

from __future__ import annotations

from typing import Any

from millrace.errors import MillraceError

__all__ = ["UnavailableError", "placeholder"]


class UnavailableError(MillraceError, NotImplementedError):
    """Something of PyFlink's was used that Millrace does not offer; the message names what it offers instead.

    >>> Table = placeholder("pyflink.table.Table", "use Spark SQL")
    >>> Table.select()
    Traceback (most recent call last):
        ...
    millrace.pyflink.unavailable.UnavailableError: pyflink.table.Table is not offered by Millrace: use Spark SQL
    """


class _Placeholder(type):
    """The class of classes that can be named, also as a base or in an annotation, but not used."""

    _hint: str

    def _refuse(cls) -> UnavailableError:
        return UnavailableError(f"{cls.__module__}.{cls.__name__} is not offered by Millrace: {cls._hint}")

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        raise cls._refuse()

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise cls._refuse()


def placeholder(name: str, hint: str) -> Any:
    """What stands for a name that is not offered."""
    module, _, own = name.rpartition(".")
    return _Placeholder(own, (), {"_hint": hint, "__module__": module})
