"""Functions whose results are narrowed to a declared type."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from typing import Any

from millrace.common._type_base import Coercer
from millrace.common.output_tag import OutputTag
from millrace.common.typeinfo import TypeInformation
from millrace.errors import GraphError

__all__ = ["Results", "Typed", "TypedAggregate", "check_type", "typed"]


class Results(Enum):
    """What a function gives for a record."""

    ONE = "one"
    MANY = "many"
    AWAITED = "awaited"


class Typed:
    """Stands for a user function and narrows what the given methods return; all else is the function's own.

    >>> from millrace.common.typeinfo import Types
    >>> Typed(lambda value: value * 2, Types.BYTE(), Results.ONE, ("map",)).map(100)
    -56
    """

    def __init__(self, function: Any, type_info: TypeInformation, results: Results, methods: tuple[str, ...]) -> None:
        self.function = function
        self.type_info = type_info
        self.results = results
        self.methods = methods

    def __getattr__(self, name: str) -> Any:
        # Pickle asks for dunder names before there is a function to ask.
        if name.startswith("__"):
            raise AttributeError(name)
        if name not in self.methods:
            return getattr(self.function, name)
        call = getattr(self.function, name, None)
        if call is None:
            if name != self.methods[0] or not callable(self.function):
                raise AttributeError(name)
            call = self.function
        coerce = self.type_info.coercer()
        assert coerce is not None
        return _NARROWING[self.results](call, coerce)


def _narrow_one(call: Callable[..., Any], coerce: Coercer) -> Callable[..., Any]:
    def narrowed(*args: Any) -> Any:
        return coerce(call(*args))

    return narrowed


def _narrow_many(call: Callable[..., Any], coerce: Coercer) -> Callable[..., Any]:
    def narrowed(*args: Any) -> Iterable[Any] | None:
        results = call(*args)
        return None if results is None else _coerced(results, coerce)

    return narrowed


def _coerced(results: Iterable[Any], coerce: Coercer) -> Iterator[Any]:
    for item in results:
        if type(item) is tuple and len(item) == 2 and isinstance(item[0], OutputTag):
            yield item
        else:
            yield coerce(item)


def _narrow_awaited(call: Callable[..., Any], coerce: Coercer) -> Callable[..., Any]:
    async def narrowed(*args: Any) -> Any:
        results = await call(*args)
        return [coerce(item) for item in results] if isinstance(results, list) else results

    return narrowed


_NARROWING = {Results.ONE: _narrow_one, Results.MANY: _narrow_many, Results.AWAITED: _narrow_awaited}


class TypedAggregate:
    """Stands for an AggregateFunction and narrows its accumulators and its results.

    >>> from millrace.common.typeinfo import Types
    >>> class Total:
    ...     def create_accumulator(self): return 0
    ...     def add(self, value, accumulator): return accumulator + value
    ...     def get_result(self, accumulator): return accumulator / 2
    >>> total = TypedAggregate(Total(), Types.BYTE(), Types.FLOAT())
    >>> total.get_result(total.add(200, total.create_accumulator()))
    -28.0
    """

    def __init__(
        self, function: Any, accumulator_type: TypeInformation | None, result_type: TypeInformation | None
    ) -> None:
        self.function = function
        self.accumulator_type = accumulator_type
        self.result_type = result_type

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        method = getattr(self.function, name)
        of_accumulator = name in ("create_accumulator", "add", "merge")
        type_info = self.accumulator_type if of_accumulator else self.result_type if name == "get_result" else None
        coerce = None if type_info is None else type_info.coercer()
        return method if coerce is None else _narrow_one(method, coerce)


def check_type(type_info: Any, where: str) -> TypeInformation | None:
    """The declared type, or a GraphError if it is none."""
    if type_info is None or isinstance(type_info, TypeInformation):
        return type_info
    hint = f"; call it: Types.{type_info.__name__}()" if callable(type_info) and hasattr(type_info, "__name__") else ""
    message = f"{where}: {type_info!r} is no type made by Types{hint}"
    raise GraphError(message)


def typed(function: Any, type_info: TypeInformation | None, results: Results, *methods: str) -> Any:
    """The function, narrowed if the type asks for it; the first of ``methods`` is what a plain callable stands for."""
    if type_info is None or type_info.coercer() is None:
        return function
    return Typed(function, type_info, results, methods)
