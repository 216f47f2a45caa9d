"""How far a job has come, as its epochs tell."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from millrace.metrics import merge_snapshots, plain_values
from millrace.runtime.ledger import EpochResult

__all__ = ["Progress", "ProgressKeeper"]


@dataclass(frozen=True)
class Progress:
    """A job after an epoch. Counts are since the job's start; watermarks are the minimum over an operator's tasks."""

    epoch: int = 0
    records_out: dict[str, int] = field(default_factory=dict)
    watermarks: dict[str, int] = field(default_factory=dict)
    splits: dict[str, int] = field(default_factory=dict)
    metrics: dict[str, Any] = field(default_factory=dict)

    def holding_back(self) -> str | None:
        """The source split whose watermark is the lowest, and so holds the job's event time back."""
        return min(self.splits, key=lambda split: self.splits[split], default=None)


class ProgressKeeper:
    """Adds up what the epochs report, and tells whoever listens."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._latest = Progress()
        self._listeners: list[Callable[[Progress], None]] = []
        self._metrics: dict[str, dict[str, Any]] = {}

    @property
    def latest(self) -> Progress:
        """The job as of its last epoch."""
        return self._latest

    def listen(self, listener: Callable[[Progress], None]) -> None:
        """Call ``listener`` after every epoch."""
        self._listeners.append(listener)

    def take(self, epoch: int, result: EpochResult) -> None:
        """An epoch is committed."""
        with self._lock:
            records = dict(self._latest.records_out)
            watermarks: dict[str, int] = {}
            splits: dict[str, int] = {}
            for report in result.reports:
                for uid, count in report.records_out.items():
                    records[uid] = records.get(uid, 0) + count
                for uid, watermark in report.watermarks.items():
                    watermarks[uid] = min(watermark, watermarks.get(uid, watermark))
                splits.update(report.splits)
                if report.metrics:
                    self._metrics[f"{report.stage}/{report.task}"] = report.metrics
            self._latest = Progress(epoch, records, watermarks, splits, self._merged())
        for listener in self._listeners:
            listener(self._latest)

    def _merged(self) -> dict[str, Any]:
        by_operator: dict[str, list[Any]] = {}
        for operators in self._metrics.values():
            for uid, snapshot in operators.items():
                by_operator.setdefault(uid, []).append(snapshot)
        return {uid: plain_values(merge_snapshots(snapshots)) for uid, snapshots in by_operator.items()}
