"""All the state of one operator in one task, as one thing to write down and take back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from millrace.state.backend import KeyedState
from millrace.state.key_groups import KeyRouter
from millrace.state.operator_state import OperatorState
from millrace.state.table import TableSource
from millrace.state.timers import TimerQueue

__all__ = ["OperatorStore"]


class OperatorStore:
    """Keyed state, operator state and timers of one operator in one task.

    Deltas and fulls are plain dicts around the live values: turn them into bytes before the next record, and apply one
    to one store only.

    >>> store, copy = OperatorStore(), OperatorStore()
    >>> store.event_timers.register(10, "a")
    >>> copy.apply(store.delta())
    >>> list(copy.event_timers)
    [(10, 'a', '')]
    >>> print(store.delta())
    None
    """

    __slots__ = ("event_timers", "keyed", "operator", "processing_timers")

    def __init__(self, clock: Callable[[], int] = lambda: 0, tables: TableSource | None = None) -> None:
        self.keyed = KeyedState(clock, tables)
        self.operator = OperatorState()
        self.event_timers = TimerQueue()
        self.processing_timers = TimerQueue()

    def delta(self) -> dict[str, Any] | None:
        """What changed since the last delta, or None; the next one starts from here."""
        parts: dict[str, Any] = {}
        if keyed := self.keyed.delta():
            parts["keyed"] = keyed
        if operator := self.operator.delta():
            parts["operator"] = operator
        for name, timers in self._timers():
            removed, added = timers.delta()
            if removed or added:
                parts[name] = (removed, added)
        return parts or None

    def full(self) -> dict[str, Any]:
        """Everything. A later delta may be applied on top of this, or on top of the delta before it."""
        return {
            "full": True,
            "keyed": self.keyed.full(),
            "operator": self.operator.full(),
            **{name: timers.full() for name, timers in self._timers()},
        }

    def apply(self, parts: dict[str, Any] | None) -> None:
        """Take over a delta, or a full in place of all there is; it does not count as changed. Handles stay valid."""
        if parts is None:
            return
        if parts.get("full"):
            self.keyed.reset()
            self.operator.reset()
        if "keyed" in parts:
            self.keyed.apply(parts["keyed"])
        if "operator" in parts:
            self.operator.apply(parts["operator"])
        for name, timers in self._timers():
            if name in parts:
                timers.apply(parts[name])

    @staticmethod
    def rescale(
        fulls: list[dict[str, Any]], subtask: int, parallelism: int, max_parallelism: int, long: bool = False
    ) -> dict[str, Any]:
        """The full of one task, made of the fulls of all tasks of another parallelism, given in their order.

        `long` says that keys are hashed as 64-bit integers; it must be what the exchange uses.
        """
        router = KeyRouter(parallelism, max_parallelism, long)

        def keep(key: Any) -> bool:
            return router.route([key])[0] == subtask

        result = OperatorStore()
        result.keyed.merge([full["keyed"] for full in fulls])
        result.keyed.retain(keep)
        for name, timers in result._timers():
            # In the order of the old tasks; ties between them had no order before.
            timers.apply((None, [timer for full in fulls for timer in full[name][1]]))
            timers.retain(keep)
        result.operator.apply(OperatorState.redistribute([full["operator"] for full in fulls], parallelism)[subtask])
        return result.full()

    def _timers(self) -> tuple[tuple[str, TimerQueue], tuple[str, TimerQueue]]:
        return (("event_timers", self.event_timers), ("processing_timers", self.processing_timers))
