"""Whole jobs that go on with another version of their program."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import make_dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from millrace.common.typeinfo import TypeInformation, Types
from millrace.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from millrace.datastream.state import ValueStateDescriptor
from millrace.errors import RestoreError
from millrace.state import records
from millrace.state.evolution import register_alias
from millrace.testing import LocalRun

pytestmark = pytest.mark.usefixtures("each_backend")

HOME = "stored_job"


@pytest.fixture(autouse=True)
def program() -> Iterator[ModuleType]:
    module = sys.modules[HOME] = ModuleType(HOME)
    yield module
    del sys.modules[HOME]
    records._aliases.clear()


def define(name: str, fields: list[Any]) -> None:
    made = make_dataclass(name, fields)
    made.__module__ = HOME
    setattr(sys.modules[HOME], name, made)


class KeepVisits(KeyedProcessFunction):
    def __init__(self, descriptor: ValueStateDescriptor, kind: str) -> None:
        self.descriptor = descriptor
        self.kind = kind

    def open(self, runtime_context: Any) -> None:
        self.visit = runtime_context.get_state(self.descriptor)

    def process_element(self, value: int, ctx: Any) -> Any:
        before = self.visit.value()
        self.visit.update(getattr(sys.modules[HOME], self.kind)(value))
        yield before


class Keep(KeyedProcessFunction):
    def __init__(self, type_info: TypeInformation, **options: Any) -> None:
        self.descriptor = ValueStateDescriptor("sum", type_info, **options)

    def open(self, runtime_context: Any) -> None:
        self.sum = runtime_context.get_state(self.descriptor)

    def process_element(self, value: int, ctx: Any) -> Any:
        total = (self.sum.value() or 0) + value
        self.sum.update(total)
        yield total


def job(function: KeyedProcessFunction, storage: Path, parallelism: int = 1) -> LocalRun:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)
    numbers = env.from_sequence(1, 4).uid("numbers").set_parallelism(1)
    numbers.key_by(lambda value: "all").process(function).uid("keep").print()
    return LocalRun(env, storage=str(storage))


def test_a_dataclass_in_keyed_state_evolves(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    define("Visit", [("n", int)])
    run = job(KeepVisits(ValueStateDescriptor("visit"), "Visit"), tmp_path)
    run.run_epoch(2)
    define("Visit", [("n", int), ("page", str, "/")])
    run.crash()
    run.run_epoch(1)
    assert capsys.readouterr().out.split() == ["None", "Visit(n=1)", "Visit(n=2,", "page='/')"]


def test_an_alias_of_the_program_reaches_its_tasks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    define("Visit", [("n", int)])
    job(KeepVisits(ValueStateDescriptor("visit"), "Visit"), tmp_path).run_epoch(2)
    define("Call", [("n", int)])
    register_alias(f"{HOME}:Visit", sys.modules[HOME].Call)
    run = job(KeepVisits(ValueStateDescriptor("visit"), "Call"), tmp_path)
    del sys.modules[HOME].Visit  # type: ignore[attr-defined]
    records._aliases.clear()
    run.run_epoch(1)
    assert capsys.readouterr().out.split()[-1] == "Call(n=2)"


@pytest.mark.parametrize("parallelism", [1, 2])
def test_a_changed_type_is_refused_before_the_first_record(
    tmp_path: Path, parallelism: int, capsys: pytest.CaptureFixture[str]
) -> None:
    job(Keep(Types.INT()), tmp_path).run_epoch(2)
    assert capsys.readouterr().out.split() == ["1", "3"]
    with pytest.raises(RestoreError, match="'sum' was stored as Integer and is now declared as Long"):
        job(Keep(Types.LONG()), tmp_path, parallelism).run_epoch(1)
    assert capsys.readouterr().out == ""
    job(Keep(Types.LONG(), version=2, migrations={1: lambda old: old * 100}), tmp_path, parallelism).run_epoch(1)
    assert capsys.readouterr().out.split()[-1] == "303"
