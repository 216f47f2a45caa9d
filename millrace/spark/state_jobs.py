"""Small Spark jobs that look at stored state or write it, and answer the driver with few bytes."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Self, TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame

from millrace.common.cloudpickles import by_value
from millrace.runtime.failure import describe_failure
from millrace.spark.plan import main_classes_of_program
from millrace.spark.session import get_session
from millrace.spark.stage import install_main_classes
from millrace.state.records import aliases, register_alias

__all__ = ["ANSWER", "Program", "answering", "answers", "for_each", "indexes"]

T = TypeVar("T")

ANSWER: Final = "answer binary"
_ARROW: Final = pa.schema([("answer", pa.binary())])


@dataclass(frozen=True)
class Program:
    """What the workers have to know of the program: the classes of its main module, and aliases of classes."""

    main_classes: bytes
    aliases: bytes

    @classmethod
    def here(cls) -> Self:
        """The running program."""
        return cls(by_value(main_classes_of_program()), by_value(aliases()))

    def install(self) -> None:
        """In a worker: make it known."""
        install_main_classes(self.main_classes)
        for stored, current in pickle.loads(self.aliases).items():
            register_alias(stored, current)


def for_each(count: int, ask: Callable[[int], T]) -> list[T]:
    """The answers for 0 to count - 1, each found by a Spark task of its own; they must be small."""
    if not count:
        return []
    asked = answering(Program.here(), lambda batches: map(ask, indexes(batches)))
    return answers(get_session().range(0, count, 1, count).mapInArrow(asked, ANSWER))


def answering(program: Program, work: Callable[[Iterator[pa.RecordBatch]], Iterator[Any]]) -> Any:
    """A function for mapInArrow that gives answers; an exception is an answer, too."""

    def answer(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        try:
            program.install()
            for found in work(batches):
                yield _row((found, None))
        except Exception as error:
            # Not raised to Spark, which would run the task again and hide the message in a traceback of its own.
            yield _row((None, describe_failure(error)))
            for _ in batches:
                pass

    return answer


def answers(frame: DataFrame) -> list[Any]:
    """Run the job; its answers, or the first exception."""
    found = []
    for row in frame.collect():
        answer, failure = pickle.loads(bytes(row.answer))
        if failure is not None:
            raise failure.rebuild()
        found.append(answer)
    return found


def indexes(batches: Iterator[pa.RecordBatch]) -> Iterator[int]:
    """The numbers in the first column."""
    for batch in batches:
        yield from batch.column(0).to_pylist()


def _row(answer: Any) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([by_value(answer)], pa.binary())], schema=_ARROW)
