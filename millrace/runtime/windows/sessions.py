"""The fast way for sessions in event time that fire at the watermark."""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import Any, Final

from millrace.common.constants import LONG_MAX, LONG_MIN
from millrace.common.output_tag import OutputTag
from millrace.runtime.operator import Batch, last_taken
from millrace.runtime.windows.assigners import DynamicEventTimeSessionWindows, EventTimeSessionWindows
from millrace.runtime.windows.base import WindowingOperator
from millrace.runtime.windows.contents import Contents
from millrace.runtime.windows.functions import WindowFunctionCall
from millrace.runtime.windows.windows import TimeWindow
from millrace.state.backend import NO_KEY
from millrace.state.table import VOID

__all__ = ["SessionWindowOperator"]

# A session is a list, because nothing in Python is faster to read and change:
_START: Final = 0
_END: Final = 1
_HELD: Final = 2
_NUMBER: Final = 3  # order of birth within the task, decides between sessions that end at the same time
_FIRED: Final = 4  # whether a result has been given for what it is now
_DEAD: Final = LONG_MIN  # as _END: merged into another session

Session = list[Any]


class SessionWindowOperator(WindowingOperator):
    """Keeps the sessions of a key side by side, in order of time; most records fall into the last one or begin the next.

    A session has one entry in a heap. When its turn comes and the session has grown meanwhile, the entry goes back with
    the new time: a record that makes a session longer touches no heap and no timer.

    State: for each key the list of its sessions.
    """

    SESSIONS: Final = "sessions"

    def __init__(
        self,
        assigner: EventTimeSessionWindows | DynamicEventTimeSessionWindows,
        contents: Contents,
        function: WindowFunctionCall,
        *,
        lateness: int = 0,
        late_tag: OutputTag | None = None,
    ) -> None:
        super().__init__(contents, function, lateness, late_tag, merging=True)
        self._gap = assigner.gap
        self._gap_of = assigner.gap_of

    def open(self) -> None:
        super().open()
        self._table = self._keyed.table(self.SESSIONS)
        self._number = self.context.store.operator.per_task("session number", lambda: 0)
        # (time, number of the session, number of the entry, key, session), rebuilt from the table.
        self._agenda: list[tuple[int, int, int, Any, Session]] = []
        self._entries = 0
        for key, sessions in self._table.pane(VOID).items():
            for session in sessions:
                self._number.value = max(self._number.value, session[_NUMBER])
                self._plan(session[_END] - 1, key, session)
        heapify(self._agenda)

    def _plan(self, time: int, key: Any, session: Session) -> None:
        self._entries += 1
        heappush(self._agenda, (time, session[_NUMBER], self._entries, key, session))

    def process(self, batch: Batch, side: int = 0) -> None:
        values = batch.values
        if not values:
            return
        times = self._require_timestamps(batch)
        keys = [None] * len(times) if batch.keys is None else batch.keys
        gap = self._gap
        ends = [time + gap for time in times] if gap is not None else self._ends(values, times)
        self._keyed.current_key = NO_KEY
        get = self._table.pane(VOID).get
        add, fire_limit = self._contents.add, self._watermark.value + 1
        records = iter(values)
        try:
            for key, value, time, end in zip(keys, records, times, ends, strict=True):
                sessions = get(key)
                if sessions is not None:
                    session = sessions[-1]
                    if session[0] <= time <= session[1] and not session[4]:
                        session[2] = add(session[2], value)
                        if end > session[1]:
                            session[1] = end
                        continue
                self._take(key, value, time, end, sessions, fire_limit)
        except Exception as error:
            self._reraise(error, last_taken(records, values))
        self._table.touched(VOID).update(keys)
        self._emitter.flush(self.output)
