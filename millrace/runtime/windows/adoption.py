"""Taking over the state of another window operator.

Which operator runs a window depends on the program: add a trigger, and the general one follows a fast one. A job
restored from a snapshot of the old program must find its windows all the same, so each operator, when it opens, turns
what the others have left into its own form. What cannot be turned, because the window keeps something else now, is an
error.
"""

from __future__ import annotations

from typing import Any, Final

from millrace.common.constants import LONG_MAX
from millrace.errors import RestoreError
from millrace.runtime.operator import OperatorContext
from millrace.runtime.windows.contents import STATE_NAMES
from millrace.runtime.windows.windows import TimeWindow, cleanup_time
from millrace.state.store import OperatorStore
from millrace.state.table import VOID, StateTable

__all__ = [
    "FIRED_SUFFIX",
    "SESSIONS",
    "WINDOWS_IN_FLIGHT",
    "adopt_for_aligned",
    "adopt_for_general",
    "adopt_for_sessions",
    "check_contents",
    "windows_in",
]

FIRED_SUFFIX: Final = "-fired"
"""Added to the name of the contents: those of windows that have fired and wait for late records (aligned windows)."""
WINDOWS_IN_FLIGHT: Final = "windows-in-flight"
"""Key -> {window: state window}, of windows that merge (general operator)."""
SESSIONS: Final = "sessions"
"""Added to the name of the contents: key -> sessions (session operator)."""


def check_contents(context: OperatorContext, name: str) -> None:
    """Refuse state of windows that kept something else than ``name`` says."""
    for other, table in context.store.keyed.tables().items():
        kind = next((known for known in STATE_NAMES if other.startswith(known)), None)
        if kind is not None and kind != name and len(table):
            message = (
                f"{context.name} (uid {context.uid}): the restored windows hold {STATE_NAMES[kind]}, but the program "
                f"now keeps {STATE_NAMES[name]}. Go on with the old function until the windows are over, or give the "
                "operator a new uid to begin without them"
            )
            raise RestoreError(message)


def windows_in(table: StateTable) -> list[Any]:
    """The windows that a table has contents of."""
    return [window for window in table.panes if window != VOID]


def _clear(table: StateTable) -> None:
    for namespace in list(table.panes):
        table.drop(namespace)


def _clear_timers(store: OperatorStore) -> None:
    while store.event_timers.pop_due(LONG_MAX) is not None:
        pass


def adopt_for_general(store: OperatorStore, name: str, lateness: int) -> None:
    """Give windows of the fast operators the timers, and sessions the place, that the general one expects."""
    contents, existing = store.keyed.table(name), store.keyed.tables()

    def register(key: Any, window: Any, waits: bool) -> None:
        for time in (window.max_timestamp(),) * waits + (cleanup_time(window, lateness, True),):
            if time != LONG_MAX:
                store.event_timers.register(time, key, window)

    def take(key: Any, window: Any, held: Any, waits: bool) -> None:
        contents.pane(window)[key] = held
        contents.touched(window).add(key)
        register(key, window, waits)

    if not store.event_timers:
        for window in windows_in(contents):
            for key in contents.panes[window]:
                register(key, window, waits=True)
    if (fired := existing.get(name + FIRED_SUFFIX)) is not None:
        for window in windows_in(fired):
            for key, held in fired.panes[window].items():
                take(key, window, held, waits=False)
        _clear(fired)
    if (sessions := existing.get(f"{name}-{SESSIONS}")) is not None:
        in_flight = store.keyed.table(WINDOWS_IN_FLIGHT)
        for key, of_key in sessions.pane(VOID).items():
            mapping = in_flight.pane(VOID)[key] = {}
            in_flight.touched(VOID).add(key)
            for start, end, held, has_fired, *_ in of_key:
                window = TimeWindow(start, end)
                mapping[window] = window
                take(key, window, held, waits=not has_fired)
        _clear(sessions)


def adopt_for_aligned(store: OperatorStore, name: str) -> None:
    """Tell windows of the general operator that have fired from those that wait; timers are not needed any more."""
    if not store.event_timers:
        return
    contents, fired = store.keyed.table(name), store.keyed.table(name + FIRED_SUFFIX)
    waiting = {(key, window) for time, key, window in store.event_timers if time == _end(window)}
    for window in windows_in(contents):
        pane = contents.panes[window]
        for key in [key for key in pane if (key, window) not in waiting]:
            fired.pane(window)[key] = pane.pop(key)
            fired.touched(window).add(key)
            contents.touched(window).add(key)
        if not pane:
            contents.drop(window)
    _clear_timers(store)


def adopt_for_sessions(store: OperatorStore, name: str) -> None:
    """Make sessions of the general operator's windows in flight."""
    in_flight = store.keyed.tables().get(WINDOWS_IN_FLIGHT)
    if in_flight is None or not in_flight.pane(VOID):
        return
    contents, sessions = store.keyed.table(name), store.keyed.table(f"{name}-{SESSIONS}")
    waiting = {(key, window) for time, key, window in store.event_timers if time == _end(window)}
    for key, mapping in in_flight.pane(VOID).items():
        of_key = [
            [window.start, window.end, contents.panes[state_window][key], (key, window) not in waiting, 0, None]
            for window, state_window in sorted(mapping.items())
            if key in contents.panes.get(state_window, ())
        ]
        if of_key:
            sessions.pane(VOID)[key] = of_key
            sessions.touched(VOID).add(key)
    _clear(in_flight)
    _clear(contents)
    _clear_timers(store)


def _end(window: Any) -> int:
    return window.max_timestamp()  # type: ignore[no-any-return]
