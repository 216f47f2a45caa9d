"""What can be wrong with a user function, found when the program is written rather than when it runs."""

from __future__ import annotations

import dis
import functools
from collections.abc import Iterator
from types import CodeType, FunctionType, MethodType
from typing import Any, Final

from millrace.common.cloudpickles import by_value
from millrace.datastream import functions as f
from millrace.errors import GraphError

__all__ = ["check_function", "check_travels", "name_of", "refuse_keyed_features"]

_USED_BY: Final[dict[type, str]] = {
    f.MapFunction: "map(...)",
    f.FlatMapFunction: "flat_map(...)",
    f.FilterFunction: "filter(...)",
    f.ReduceFunction: "key_by(...).reduce(...)",
    f.AggregateFunction: "window(...).aggregate(...)",
    f.KeySelector: "key_by(...)",
    f.Partitioner: "partition_custom(...)",
    f.CoMapFunction: "connect(...).map(...)",
    f.CoFlatMapFunction: "connect(...).flat_map(...)",
    f.ProcessFunction: "process(...) on a stream without keys",
    f.KeyedProcessFunction: "key_by(...).process(...)",
    f.CoProcessFunction: "connect(...).process(...)",
    f.KeyedCoProcessFunction: "connect(...).key_by(...).process(...)",
    f.WindowFunction: "key_by(...).window(...).apply(...)",
    f.AllWindowFunction: "window_all(...).apply(...)",
    f.ProcessWindowFunction: "key_by(...).window(...).process(...)",
    f.ProcessAllWindowFunction: "window_all(...).process(...)",
    f.BroadcastProcessFunction: "connect(broadcast_stream).process(...)",
    f.KeyedBroadcastProcessFunction: "key_by(...).connect(broadcast_stream).process(...)",
    f.JoinFunction: "join(...).where(...).equal_to(...).window(...).apply(...)",
    f.FlatJoinFunction: "join(...).where(...).equal_to(...).window(...).apply(...)",
    f.CoGroupFunction: "co_group(...).where(...).equal_to(...).window(...).apply(...)",
    f.ProcessJoinFunction: "interval_join(...).between(...).process(...)",
    f.AsyncFunction: "AsyncDataStream.unordered_wait(...)",
    f.SinkFunction: "add_sink(...)",
    f.SourceFunction: "env.add_source(...)",
}

_STATE_METHODS: Final = frozenset(
    ("get_state", "get_list_state", "get_map_state", "get_reducing_state", "get_aggregating_state")
)
_TIMER_METHODS: Final = frozenset(("register_event_time_timer", "register_processing_time_timer"))


def name_of(function: Any) -> str:
    """A function as messages name it."""
    return getattr(function, "__qualname__", None) or type(function).__name__


def check_function(
    function: Any,
    where: str,
    kinds: tuple[type, ...],
    methods: tuple[str, ...],
    *,
    plain: bool = True,
    travels: bool = True,
) -> None:
    """A GraphError unless ``function`` can be used: one of the classes, an object with the methods, or a callable."""
    wanted = " or ".join([*(f"a {kind.__name__}" for kind in kinds), *(["a function"] if plain else [])])
    if isinstance(function, type) and issubclass(function, f.Function):
        message = f"{where} takes {wanted}, not a class: pass an instance, {function.__name__}()"
        raise GraphError(message)
    if not isinstance(function, kinds):
        if isinstance(function, f.Function):
            usage = next((use for kind, use in _USED_BY.items() if isinstance(function, kind)), None)
            hint = f"; {type(function).__name__} is used with {usage}" if usage else ""
            message = f"{where} takes {wanted}, not {type(function).__name__}{hint}"
            raise GraphError(message)
        usable = all(callable(getattr(function, method, None)) for method in methods)
        if not usable and not (plain and callable(function)):
            message = f"{where} takes {wanted}, not {function!r}"
            raise GraphError(message)
    if travels:
        check_travels(function, where)


def check_travels(value: Any, where: str) -> None:
    """A GraphError that names the culprit unless ``value`` can be pickled and sent to the workers."""
    try:
        by_value(value)
    except Exception as error:
        culprit = _culprit(value)
        what = f"{culprit} cannot be pickled" if culprit else f"it cannot be pickled ({error})"
        message = (
            f"{where}: {name_of(value)} has to travel to the workers, but {what}. Make such things in "
            "open() of a function "
            "class, or inside of the function, instead of capturing them"
        )
        raise GraphError(message) from error


def refuse_keyed_features(function: Any, where: str) -> None:
    """A GraphError if a function that is about to run without keys is seen to need them: timers or keyed state."""
    use = _keyed_use(function)
    if use is not None:
        message = (
            f"{where}: {name_of(function)} uses {use} on a stream without keys. Keyed state and timers "
            "belong to a key: "
            "call key_by(...) first"
        )
        raise GraphError(message)


def _keyed_use(function: Any) -> str | None:
    if isinstance(function, f.Function) and callable(getattr(function, "on_timer", None)):
        return "on_timer()"
    for method in ("process_element", "process_element1", "process_element2"):
        code = _code(getattr(function, method, function))
        timers = _TIMER_METHODS.intersection(code.co_names) if code is not None else ()
        if timers:
            return f"timers ({min(timers)})"
    state = _state_from_context(_code(getattr(function, "open", None)))
    return None if state is None else f"keyed state ({state})"


def _state_from_context(code: CodeType | None) -> str | None:
    """The first call of ``open`` that asks its own argument for keyed state."""
    if code is None or code.co_argcount < 2:
        return None
    context = code.co_varnames[1]
    instructions = list(dis.get_instructions(code))
    for before, after in zip(instructions, instructions[1:], strict=False):
        loaded = before.argval[-1] if isinstance(before.argval, tuple) else before.argval
        if before.opname.startswith("LOAD_FAST") and loaded == context and after.argval in _STATE_METHODS:
            return str(after.argval)
    return None


def _code(function: Any) -> CodeType | None:
    if isinstance(function, MethodType):
        function = function.__func__
    return function.__code__ if isinstance(function, FunctionType) else None


def _culprit(value: Any, seen: frozenset[int] = frozenset()) -> str | None:
    """The innermost captured thing that cannot be pickled, in words."""
    for description, part in _parts(value):
        if id(part) not in seen and not _can_travel(part):
            inner = _culprit(part, seen | {id(part)})
            return inner or f"{description}, a {type(part).__name__},"
    return None


def _can_travel(value: Any) -> bool:
    try:
        by_value(value)
    except Exception:
        return False
    return True


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, functools.partial):
        yield "the function of the partial", value.func
        yield from (("an argument of the partial", part) for part in (*value.args, *value.keywords.values()))
        return
    if isinstance(value, MethodType):
        yield f"the object of the method {value.__name__}", value.__self__
        return
    if isinstance(value, FunctionType):
        yield from _captured(value)
        return
    if isinstance(value, dict):
        yield from ((f"the entry {key!r}", part) for key, part in value.items())
    elif isinstance(value, list | tuple | set | frozenset):
        yield from (("an element", part) for part in value)
    for name, part in getattr(value, "__dict__", {}).items():
        yield f"the attribute {name!r}", part


def _captured(function: FunctionType) -> Iterator[tuple[str, Any]]:
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield f"the variable {name!r}", cell.cell_contents
        except ValueError:
            continue  # Not assigned yet.
    for part in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
        yield "a default value", part
    for name in function.__code__.co_names:
        if name in function.__globals__:
            yield f"the global {name!r}", function.__globals__[name]
