"""Measuring: wall time, events a second, and the memory of the whole process tree."""

from __future__ import annotations

import json
import os
import platform
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

__all__ = ["Figure", "PeakMemory", "Report", "timed"]

RESULTS = Path(__file__).parent / "results"
_PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass
class Figure:
    """One line of a table."""

    name: str
    events: int
    seconds: float
    peak_mb: int = 0
    note: str = ""

    @property
    def rate(self) -> float:
        return self.events / self.seconds


@dataclass
class Report:
    """A table of figures; the first peer is what the others are compared with."""

    title: str
    peer: str
    figures: list[Figure] = field(default_factory=list)

    def add(self, figure: Figure) -> None:
        self.figures.append(figure)

    def show(self) -> None:
        base = next((figure.rate for figure in self.figures if figure.name == self.peer), None)
        table = Table(title=self.title, title_justify="left")
        for column in ("", "events", "seconds", "events/s", f"ratio to {self.peer}", "peak memory", "note"):
            table.add_column(column, justify="left" if column in ("", "note") else "right")
        for figure in self.figures:
            table.add_row(
                figure.name,
                f"{figure.events:,}",
                f"{figure.seconds:.2f}",
                f"{figure.rate:,.0f}",
                "-" if base is None else f"{figure.rate / base:.2f}",
                f"{figure.peak_mb:,} MB" if figure.peak_mb else "",
                figure.note,
            )
        Console(width=140).print(table)

    def save(self, name: str) -> None:
        RESULTS.mkdir(exist_ok=True)
        content: dict[str, Any] = {
            "title": self.title,
            "machine": {"cores": os.cpu_count(), "python": platform.python_version()},
            "figures": [{**asdict(figure), "rate": round(figure.rate)} for figure in self.figures],
        }
        (RESULTS / f"{name}.json").write_text(json.dumps(content, indent=1) + "\n")


class PeakMemory:
    """The greatest resident memory of this process and all its children, sampled while the block runs."""

    def __init__(self, interval: float = 0.1) -> None:
        self.interval = interval
        self.megabytes = 0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> PeakMemory:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._done.wait(self.interval):
            self.megabytes = max(self.megabytes, tree_memory(os.getpid()) // 2**20)


def tree_memory(root: int) -> int:
    """Resident bytes of a process and everything below it."""
    children: dict[int, list[int]] = {}
    resident: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            resident[int(entry.name)] = int((entry / "statm").read_text().split()[1]) * _PAGE
        except (OSError, IndexError):
            continue
        children.setdefault(parent, []).append(int(entry.name))
    total, todo = 0, [root]
    while todo:
        process = todo.pop()
        total += resident.get(process, 0)
        todo += children.get(process, [])
    return total


def timed(name: str, events: int, work: Callable[[], object], note: str = "") -> Figure:
    """Run something once, with the clock and the memory watch on."""
    with PeakMemory() as memory:
        begun = time.perf_counter()
        work()
        seconds = time.perf_counter() - begun
    return Figure(name, events, seconds, memory.megabytes, note)
