"""The live view of the ad campaign job: a progress bar and a table in the terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections import Counter
from datetime import UTC, datetime
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

__all__ = ["AdView"]

_SOURCE = "parse"
_WINDOWS = "counts"
_ROWS = 8


class AdView:
    """Gathers what the job sends back, and shows it."""

    def __init__(self, total: int | None, window_ms: int) -> None:
        self.window_ms = window_ms
        self.by_window: Counter[tuple[str, int]] = Counter()
        self.late_by_window: Counter[tuple[str, int]] = Counter()
        self.malformed_count = 0
        self._total = total
        self._begun = time.monotonic()
        self._events = 0
        self._epoch = 0
        self._watermark: int | None = None
        self._console = Console()
        self._bar = Progress(
            TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f}%"), TimeElapsedColumn()
        )
        self._task = self._bar.add_task("events", total=total)
        self._live = Live(self._render(), console=self._console, refresh_per_second=4)

    def __enter__(self) -> AdView:
        self._begun = time.monotonic()
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._console.is_terminal:
            self._live.update(self._render())
            self._live.stop()

    def counts(self, results: list[tuple[str, int, int]]) -> None:
        """Windows that were counted."""
        for campaign, start, count in results:
            self.by_window[campaign, start] += count

    def late(self, views: list[tuple[str, int]]) -> None:
        """Views that came after their window was over."""
        for campaign, at in views:
            self.late_by_window[campaign, at - at % self.window_ms] += 1

    def malformed(self, lines: list[str]) -> None:
        """Lines that were no JSON."""
        self.malformed_count += len(lines)

    def progress(self, progress: Any) -> None:
        """An epoch is committed."""
        self._epoch = progress.epoch
        self._events = progress.records_out.get(_SOURCE, 0) + self.malformed_count
        watermark = progress.watermarks.get(_WINDOWS)
        if watermark is not None and abs(watermark) < 2**62:
            self._watermark = watermark
        self._bar.update(self._task, completed=self._events)
        if self._console.is_terminal:
            self._live.update(self._render())
        elif self._epoch % 5 == 0:
            self._console.print(self._line())

    def summary(self) -> str:
        """The outcome in a few lines."""
        seconds = max(time.monotonic() - self._begun, 0.001)
        return (
            f"{self._events:,} events in {seconds:.1f} s ({self._events / seconds:,.0f} a second), "
            f"{self._epoch} epochs, "
            f"{len(self.by_window):,} windows, {sum(self.by_window.values()):,} views counted, "
            f"{sum(self.late_by_window.values()):,} late, {self.malformed_count:,} malformed"
        )

    def _line(self) -> str:
        seconds = max(time.monotonic() - self._begun, 0.001)
        return (
            f"epoch {self._epoch}: {self._events:,} events, {self._events / seconds:,.0f} a second, "
            f"watermark {self._time(self._watermark)}, {len(self.by_window):,} windows"
        )

    def _render(self) -> Group:
        table = Table(title=self._line(), title_justify="left")
        for column in ("window", "campaign", "views", "late"):
            table.add_column(column, justify="left" if column in ("window", "campaign") else "right")
        newest = sorted(self.by_window, key=lambda entry: (-entry[1], entry[0]))[:_ROWS]
        for campaign, start in newest:
            late = self.late_by_window.get((campaign, start), 0)
            table.add_row(
                self._time(start), campaign, f"{self.by_window[campaign, start]:,}", f"{late:,}" if late else ""
            )
        return Group(self._bar, table) if self._total else Group(table)

    @staticmethod
    def _time(millis: int | None) -> str:
        return "-" if millis is None else datetime.fromtimestamp(millis / 1000, UTC).strftime("%H:%M:%S")
