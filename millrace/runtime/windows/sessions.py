"""The fast way for sessions in event time that fire at the watermark."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from heapq import heappop, heappush
from operator import itemgetter
from typing import Any, Final

from millrace.common.constants import LONG_MAX
from millrace.common.output_tag import OutputTag
from millrace.errors import TimeError
from millrace.runtime.operator import Batch, RecordFailure, last_taken
from millrace.runtime.windows.adoption import SESSIONS, adopt_for_sessions
from millrace.runtime.windows.assigners import DynamicEventTimeSessionWindows, EventTimeSessionWindows
from millrace.runtime.windows.base import WindowingOperator
from millrace.runtime.windows.contents import Contents
from millrace.runtime.windows.functions import WindowFunctionCall
from millrace.runtime.windows.windows import TimeWindow
from millrace.state.backend import NO_KEY
from millrace.state.table import VOID

__all__ = ["SessionWindowOperator"]

Session = list[Any]
# A session is a list, because nothing in Python is faster to read and to change. Its items:
_START: Final = 0
_END: Final = 1
_HELD: Final = 2  # the contents
_FIRED: Final = 3  # whether the watermark has passed its end, so that its last result has been given
_NUMBER: Final = 4  # order of birth within the task; decides between sessions that end at the same time
_PLANNED: Final = 5  # time of its entry in the agenda; any other entry of it is void. None: it is over

_start_of: Final = itemgetter(_START)


class SessionWindowOperator(WindowingOperator):
    """Keeps the sessions of a key side by side, in order of time; most records fall into the last or begin the next.

    A session has one entry in a heap, the agenda. When its turn comes and the session has grown meanwhile, the entry
    goes back with the new time: a record that makes a session longer touches no heap and no timer.

    State: for each key the list of its sessions.

    >>> from millrace.runtime.operator import Batch, Collected, OperatorContext
    >>> from millrace.runtime.windows.contents import ReduceContents
    >>> from millrace.state.store import OperatorStore
    >>> operator, out = SessionWindowOperator(
    ...     EventTimeSessionWindows.with_gap(500), ReduceContents(max), WindowFunctionCall()
    ... ), Collected()
    >>> operator.setup(OperatorContext("max", "max-1", OperatorStore(), lambda: 0, keyed=True), out)
    >>> operator.open()
    >>> operator.process(Batch([1, 3, 2], [10, 20, 30], ["a", "a", "a"]))
    >>> operator.on_watermark(999)
    >>> out.events
    [('record', 3, 529), ('watermark', 999)]
    """

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
        name = self._contents.state_name
        adopt_for_sessions(self.context.store, name)
        self._table = self._keyed.table(f"{name}-{SESSIONS}")
        self._pane = self._table.pane(VOID)
        self._born = self.context.store.operator.per_task("sessions born", lambda: 0)
        self.refresh()

    def refresh(self) -> None:
        # (time, number of the session, key, session), rebuilt from the table.
        self._agenda: list[tuple[int, int, Any, Session]] = []
        restored = [(session[_NUMBER], key, session) for key, sessions in self._pane.items() for session in sessions]
        restored.sort(key=itemgetter(0))
        for number, key, session in restored:
            # Tasks of another parallelism have numbered their sessions alike: make the numbers unique again.
            session[_NUMBER] = self._born.value = max(number, self._born.value + 1)
            self._plan(key, session)

    def _plan(self, key: Any, session: Session) -> None:
        """Put a session on the agenda for its end or, once it has fired, for the time when it is forgotten."""
        time = session[_END] - 1
        if session[_FIRED]:
            time = min(time + self._lateness, LONG_MAX)
        session[_PLANNED] = time
        if time != LONG_MAX:
            heappush(self._agenda, (time, session[_NUMBER], key, session))

    def process(self, batch: Batch, side: int = 0) -> None:
        values = batch.values
        if not values:
            return
        times = self._require_timestamps(batch)
        keys = [None] * len(times) if batch.keys is None else batch.keys
        self._keyed.current_key = NO_KEY
        pane, agenda = self._pane, self._agenda
        get, start, add = pane.get, self._contents.start, self._contents.adder
        open_from, born = self._watermark.value + 1, self._born.value
        records = iter(values)
        try:
            gap = self._gap
            ends = [time + gap for time in times] if gap is not None else self._ends(records, times)
            records = iter(values)
            # The two cases that nearly all records are, as short as they can be: a key's first session, and one more
            # record for its last. Indices are literals, because a look-up of their names would cost more than the work.
            for key, value, time, end in zip(keys, records, times, ends, strict=True):
                sessions = get(key)
                if sessions is None:
                    if end > open_from:
                        born += 1
                        session = [time, end, start(value), False, born, end - 1]
                        pane[key] = [session]
                        heappush(agenda, (end - 1, born, key, session))
                        continue
                else:
                    session = sessions[-1]
                    if session[0] <= time <= session[1] and not session[3]:
                        session[2] = add(session[2], value)
                        if end > session[1]:  # noqa: PLR1730 - max() would be a call for every record
                            session[1] = end
                        continue
                self._born.value = born
                self._take(key, value, time, end, sessions or [])
                born = self._born.value
        except (RecordFailure, TimeError):
            raise
        except Exception as error:
            raise self._failure(error, self._contents.method, last_taken(records, values)) from error
        self._born.value = born
        self._table.touched(VOID).update(keys)
        self._emitter.flush(self.output)

    def _ends(self, records: Iterator[Any], times: list[int]) -> list[int]:
        return [time + gap for time, gap in zip(times, map(self._gap_of, records), strict=True)]

    def _take(self, key: Any, value: Any, time: int, end: int, sessions: list[Session]) -> None:
        """A record that is late, or comes between sessions or before them, or after the last one."""
        stop = first = bisect_right(sessions, end, key=_start_of)
        while first > 0 and sessions[first - 1][_END] >= time:
            first -= 1
        watermark = self._watermark.value
        if first == stop:
            if end - 1 + self._lateness <= watermark:
                self._late(value, time)
                return
            self._born.value += 1
            session: Session = [time, end, self._contents.start(value), False, self._born.value, None]
            sessions.insert(first, session)
            self._pane[key] = sessions
        else:
            session = self._merge(sessions, first, stop)
            session[_START] = min(session[_START], time)
            session[_END] = max(session[_END], end)
            session[_HELD] = self._contents.add(session[_HELD], value)
        if session[_END] - 1 <= watermark:
            was_fired = session[_FIRED]
            session[_FIRED] = True
            self._fire(key, session)
            if not was_fired:
                self._plan(key, session)
        elif session[_FIRED] or session[_PLANNED] is None:
            session[_FIRED] = False
            self._plan(key, session)

    def _merge(self, sessions: list[Session], first: int, stop: int) -> Session:
        """Make one session, the first, of those that a record has brought together."""
        session = sessions[first]
        for other in sessions[first + 1 : stop]:
            session[_HELD] = self._contents.merge(session[_HELD], other[_HELD])
            other[_PLANNED] = None
        session[_END] = sessions[stop - 1][_END]
        del sessions[first + 1 : stop]
        return session

    def on_watermark(self, watermark: int) -> None:
        self._watermark.value = watermark
        agenda, pane, lateness = self._agenda, self._pane, self._lateness
        clears = self._function.clears
        gather = self._function.passes and self._contents.incremental
        held: list[Any] = []
        times: list[int] = []
        changed: list[Any] = []
        thinned: dict[Any, None] = {}
        while agenda and agenda[0][0] <= watermark:
            time, _, key, session = heappop(agenda)
            if session[_PLANNED] != time:
                continue
            last = session[_END] - 1
            if (last + lateness if session[_FIRED] else last) > time:
                self._plan(key, session)  # it has grown
                continue
            changed.append(key)
            if not session[_FIRED]:
                if gather:
                    held.append(session[_HELD])
                    times.append(time)
                else:
                    self._fire(key, session)
                if lateness:
                    session[_FIRED] = True
                    self._plan(key, session)
                    continue
            if clears:
                self._clear_function(key, TimeWindow(session[_START], session[_END]))
            session[_PLANNED] = None
            if len(pane[key]) == 1:
                del pane[key]
            else:
                thinned[key] = None
        self._keyed.current_key = NO_KEY
        # Sessions that are over leave a list of several only here: once for each key, however many of it are over.
        for key in thinned:
            left = [session for session in pane[key] if session[_PLANNED] is not None]
            if left:
                pane[key] = left
            else:
                del pane[key]
        self._table.touched(VOID).update(changed)
        if held:
            try:
                results = self._contents.results(held)
            except Exception as error:
                raise self._failure(error, "get_result()", f"sessions up to {watermark}") from error
            self.output.emit(Batch(results, times))
        self._emitter.flush(self.output)
        self.output.emit_watermark(watermark)

    def _fire(self, key: Any, session: Session) -> None:
        window = TimeWindow(session[_START], session[_END])
        try:
            elements = self._contents.elements(session[_HELD])
        except Exception as error:
            raise self._failure(error, "get_result()", f"{window!r} of key {key!r}") from error
        if self._function.passes:
            self._emitter.add_all(elements, window.end - 1)
            return
        self._keyed.current_key = key
        self._results(key, window, elements)
        self._keyed.current_key = NO_KEY
