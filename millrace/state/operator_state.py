"""State of a task that belongs to no key: lists, broadcast maps, and cells for the operator's own bookkeeping."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Generic, TypeAlias, TypeVar

from millrace.errors import RestoreError, StateError
from millrace.state.descriptors import ListStateDescriptor, MapStateDescriptor, StateDescriptor
from millrace.state.evolution import convert_stored, form_of, upgrade
from millrace.state.handles import BroadcastState, ListState, ReadOnlyBroadcastState

__all__ = ["BroadcastView", "Cell", "OperatorParts", "OperatorState"]

T = TypeVar("T")

OperatorParts: TypeAlias = dict[tuple[str, str], Any]
"""(kind, name) -> content, of those parts of the operator state that are to be written down."""

_LIST: Final = "list"
_UNION: Final = "union list"
_BROADCAST: Final = "broadcast"
_TASK: Final = "per task"
_FORM: Final = "form"
"""Beside a list or map of a declared type or version: its form. Without one, it is of version 1 and any type."""
_EMPTY: Final[dict[str, Callable[[], Any]]] = {_LIST: list, _UNION: list, _BROADCAST: dict}


class _Part:
    """One named piece of operator state; written whole whenever it changed."""

    __slots__ = ("content", "dirty")

    def __init__(self, content: Any) -> None:
        self.content = content
        self.dirty = False


class Cell(Generic[T]):
    """One value of one task, for watermarks and counters. Assign to `value`; what is changed inside it goes unseen.

    >>> watermark = OperatorState().per_task("watermark", lambda: 0)
    >>> watermark.value += 5
    >>> watermark.value
    5
    """

    __slots__ = ("_initial", "_written", "value")

    def __init__(self, initial: Callable[[], T]) -> None:
        self._initial = initial
        self.value: T = initial()
        self._written: Any = None

    # A plain attribute costs nothing per record; whether it changed is found out when the delta is made.
    def _changed(self) -> bool:
        value, written = self.value, self._written
        if value is written:
            return False
        return not (type(value) is type(written) and type(value) in (int, float, str, bool) and value == written)

    def _take(self) -> T:
        self._written = self.value
        return self.value

    def _set(self, value: T) -> None:
        self.value = self._written = value

    def _reset(self) -> None:
        self.value = self._initial()
        self._written = None


class _OperatorListState(ListState[Any]):
    __slots__ = ("_coerce", "_part")

    def __init__(self, part: _Part, coerce: Callable[[Any], Any] | None) -> None:
        self._part = part
        self._coerce = coerce

    def get(self) -> Iterable[Any]:
        return list(self._part.content)

    def add(self, value: Any) -> None:
        self._part.content.append(value if self._coerce is None else self._coerce(value))
        self._part.dirty = True

    def update(self, values: Iterable[Any]) -> None:
        self._part.content = list(values) if self._coerce is None else list(map(self._coerce, values))
        self._part.dirty = True

    def add_all(self, values: Iterable[Any]) -> None:
        self._part.content.extend(values if self._coerce is None else map(self._coerce, values))
        self._part.dirty = True

    def clear(self) -> None:
        self.update(())


class BroadcastView(ReadOnlyBroadcastState[Any, Any]):
    """Broadcast state as the keyed side sees it: every attempt to write says where writing is possible.

    >>> rules = OperatorState().broadcast_state(MapStateDescriptor("rules"))
    >>> rules.put("limit", 3)
    >>> BroadcastView(rules).get("limit")
    3
    """

    __slots__ = ("_state",)

    def __init__(self, state: ReadOnlyBroadcastState[Any, Any]) -> None:
        self._state = state

    def get(self, key: Any) -> Any:
        """The value of a key, or None."""
        return self._state.get(key)

    def contains(self, key: Any) -> bool:
        """Whether there is a value for the key."""
        return self._state.contains(key)

    def items(self) -> Iterable[tuple[Any, Any]]:
        """All entries."""
        return self._state.items()

    def keys(self) -> Iterable[Any]:
        """All keys."""
        return self._state.keys()

    def values(self) -> Iterable[Any]:
        """All values."""
        return self._state.values()

    def is_empty(self) -> bool:
        """Whether there is no entry."""
        return self._state.is_empty()

    def _refuse(self, *_: Any) -> None:
        raise StateError("broadcast state is read-only here: write to it in process_broadcast_element() instead")

    put = put_all = remove = clear = __setitem__ = __delitem__ = _refuse


class _HeapBroadcastState(BroadcastState[Any, Any]):
    __slots__ = ("_coerce", "_coerce_key", "_part")

    def __init__(
        self, part: _Part, coerce_key: Callable[[Any], Any] | None, coerce: Callable[[Any], Any] | None
    ) -> None:
        self._part = part
        self._coerce_key = coerce_key
        self._coerce = coerce

    def _key(self, key: Any) -> Any:
        return key if self._coerce_key is None else self._coerce_key(key)

    def get(self, key: Any) -> Any:
        return self._part.content.get(self._key(key))

    def contains(self, key: Any) -> bool:
        return self._key(key) in self._part.content

    def items(self) -> Iterable[tuple[Any, Any]]:
        return list(self._part.content.items())

    def keys(self) -> Iterable[Any]:
        return list(self._part.content)

    def values(self) -> Iterable[Any]:
        return list(self._part.content.values())

    def is_empty(self) -> bool:
        return not self._part.content

    def put(self, key: Any, value: Any) -> None:
        self._part.content[self._key(key)] = value if self._coerce is None else self._coerce(value)
        self._part.dirty = True

    def put_all(self, dict_value: Mapping[Any, Any]) -> None:
        for key, value in dict_value.items():
            self.put(key, value)

    def remove(self, key: Any) -> None:
        self._part.content.pop(self._key(key), None)
        self._part.dirty = True

    def clear(self) -> None:
        self._part.content.clear()
        self._part.dirty = True


class OperatorState:
    """The state of one task that is not keyed.

    >>> state = OperatorState()
    >>> state.list_state(ListStateDescriptor("buffer")).add_all([1, 2, 3])
    >>> OperatorState.redistribute([state.full()], 2)
    [{('list', 'buffer'): [1, 3]}, {('list', 'buffer'): [2]}]
    """

    __slots__ = ("_cells", "_parts")

    def __init__(self) -> None:
        self._parts: dict[tuple[str, str], _Part] = {}
        self._cells: dict[str, Cell[Any]] = {}

    def list_state(self, descriptor: ListStateDescriptor) -> ListState[Any]:
        """A list whose elements are dealt out one by one when the parallelism changes."""
        return _OperatorListState(self._part(_LIST, descriptor), descriptor.coerce)

    def union_list_state(self, descriptor: ListStateDescriptor) -> ListState[Any]:
        """A list of which every task gets the elements of all tasks when the job is restored from a savepoint."""
        return _OperatorListState(self._part(_UNION, descriptor), descriptor.coerce)

    def broadcast_state(self, descriptor: MapStateDescriptor) -> BroadcastState[Any, Any]:
        """A map of which every task holds a copy."""
        return _HeapBroadcastState(self._part(_BROADCAST, descriptor), descriptor.coerce_key, descriptor.coerce)

    def per_task(self, name: str, initial: Callable[[], T]) -> Cell[T]:
        """A value of this very task, lost when the parallelism changes. Its name is no user's business."""
        cell = self._cells.get(name)
        if cell is None:
            cell = self._cells[name] = Cell(initial)
            restored = self._parts.pop((_TASK, name), None)
            if restored is not None:
                cell._set(restored.content)
        return cell

    def delta(self) -> OperatorParts:
        """The parts that changed since the last delta, each of them whole."""
        changed: OperatorParts = {(_TASK, name): cell._take() for name, cell in self._cells.items() if cell._changed()}
        for address, part in self._parts.items():
            if part.dirty:
                part.dirty = False
                changed[address] = part.content
        return changed

    def full(self) -> OperatorParts:
        """Every part that holds something, in the shape of a delta; does not touch change tracking."""
        everything: OperatorParts = {(_TASK, name): cell.value for name, cell in self._cells.items()}
        for address, part in self._parts.items():
            # An empty union list says that there may be elements in other tasks.
            if part.content or address[0] in (_TASK, _UNION):
                everything[address] = part.content
        return everything

    def apply(self, delta: OperatorParts) -> None:
        """Take over the parts of a delta or a full; they do not count as changed. Handles stay valid."""
        for address, content in delta.items():
            kind, name = address
            if kind == _TASK and name in self._cells:
                self._cells[name]._set(content)
                continue
            part = self._parts.get(address)
            if part is None:
                self._check_kind(kind, name, RestoreError)
                part = self._parts[address] = _Part(None)
            part.content = content
            part.dirty = False

    def reset(self) -> None:
        """Back to the beginning: everything empty, cells at their initial values. Handles stay valid."""
        for cell in self._cells.values():
            cell._reset()
        for address in list(self._parts):
            if address[0] in (_TASK, _FORM):
                del self._parts[address]
            else:
                part = self._parts[address]
                part.content = _EMPTY[address[0]]()
                part.dirty = False

    @staticmethod
    def redistribute(fulls: list[OperatorParts], parallelism: int) -> list[OperatorParts]:
        """The fulls of `parallelism` tasks, made of those of other tasks.

        Elements and broadcast values may then be shared by several results: pickle them before they meet user code.
        """
        result: list[OperatorParts] = [{} for _ in range(parallelism)]
        for address in dict.fromkeys(address for full in fulls for address in full):
            contents = [full.get(address) for full in fulls]
            for subtask, content in enumerate(_dealt(address[0], contents, parallelism)):
                if content is not None:
                    result[subtask][address] = content
        return result

    def _part(self, kind: str, descriptor: StateDescriptor) -> _Part:
        part = self._parts.get((kind, descriptor.name))
        if part is None:
            self._check_kind(kind, descriptor.name, StateError)
            part = self._parts[kind, descriptor.name] = _Part(_EMPTY[kind]())
        self._evolve(part, descriptor)
        return part

    def _evolve(self, part: _Part, descriptor: StateDescriptor) -> None:
        """Bring restored content to the type and version that the program has now."""
        wanted = form_of(descriptor, timed=False)
        stored = self._parts.get((_FORM, descriptor.name))
        held = (descriptor.kind, "any", False) if stored is None else stored.content
        if wanted == held or (stored is None and len(wanted) == len(held)):
            return
        turn = upgrade(held, descriptor) if part.content else None
        if turn is not None:
            part.content = convert_stored(descriptor.kind, False, part.content, turn)
            part.dirty = True
        form = self._parts[_FORM, descriptor.name] = _Part(wanted)
        form.dirty = True

    def union_names(self) -> list[str]:
        """The names of the union lists: on a restore, their elements have to be gathered from all tasks."""
        return [name for kind, name in self._parts if kind == _UNION]

    def _check_kind(self, kind: str, name: str, error: type[StateError]) -> None:
        for other in _EMPTY:
            if kind in _EMPTY and other != kind and (other, name) in self._parts:
                message = f"operator state {name!r} is {other} state and cannot be {kind} state too: use another name"
                raise error(message)


def _dealt(kind: str, contents: list[Any], parallelism: int) -> list[Any]:
    """What each of the new tasks gets of one part."""
    before = len(contents)
    if kind == _BROADCAST:
        return [dict(contents[task % before]) if contents[task % before] else None for task in range(parallelism)]
    if kind == _FORM:
        return [next(content for content in contents if content is not None)] * parallelism
    if kind == _UNION:
        union = [element for content in contents for element in content or ()]
        return [list(union) or None for _ in range(parallelism)]
    if before == parallelism:
        return contents
    if kind == _TASK:
        return [None] * parallelism
    elements = [element for content in contents for element in content or ()]
    return [elements[task::parallelism] or None for task in range(parallelism)]
