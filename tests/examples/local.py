"""Runs a program of the examples here and now, cut into epochs as told."""

from __future__ import annotations

from typing import Any

import pytest
from taxi_program import environment, events_in
from taxi_rides import TaxiData, TaxiFare, TaxiRide

from millrace.connectors.callback import CallbackSink
from millrace.datastream import DataStream, OutputTag, RuntimeExecutionMode, StreamExecutionEnvironment
from millrace.testing import LocalRun

CUTS = pytest.mark.parametrize(("parallelism", "per_epoch"), [(1, None), (2, None), (2, 50), (3, 7)], ids=str)
"""Ways to run a program, none of which may change its results."""


def run_here(
    env: StreamExecutionEnvironment, per_epoch: int | None = None, *, batch: bool = False, crashes: bool = False
) -> None:
    """Run to the end, with a crash after each epoch if you like."""
    if batch:
        env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    local = LocalRun(env)
    while not local.done:
        local.run_epoch(per_epoch)
        if crashes:
            local.crash()


class Program:
    """A program under construction; ``run`` gives what it sent to each output, by the name of its tag."""

    def __init__(self, data: TaxiData, parallelism: int = 1) -> None:
        self.data = data
        self.env: StreamExecutionEnvironment = environment().set_parallelism(parallelism)
        self._results: dict[str, list[Any]] = {}

    def rides(self, events: list[TaxiRide] | None = None) -> DataStream:
        return events_in(self.env, self.data, self.data.ride_events() if events is None else events, "rides")

    def fares(self, events: list[TaxiFare] | None = None) -> DataStream:
        return events_in(self.env, self.data, self.data.fares() if events is None else events, "fares")

    def keep(self, name: str, stream: DataStream, *tags: OutputTag) -> None:
        stream.sink_to(CallbackSink(self._results.setdefault(name, []).extend))
        for tag in tags:
            held = self._results.setdefault(f"{name}: {tag.tag_id}", [])
            stream.get_side_output(tag).sink_to(CallbackSink(held.extend))

    def run(self, per_epoch: int | None = None, *, batch: bool = False, crashes: bool = False) -> dict[str, list[Any]]:
        run_here(self.env, per_epoch, batch=batch, crashes=crashes)
        return self._results
