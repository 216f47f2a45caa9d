"""A user's exception on its way from a task to the person who called execute()."""

from __future__ import annotations

import pickle
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from millrace.common.cloudpickles import by_value
from millrace.errors import UserCodeError
from millrace.runtime.operator import RecordFailure

__all__ = ["Failure", "UserTraceback", "describe_failure"]

_ENGINE: Final = str(Path(__file__).resolve().parent.parent)


class UserTraceback(Exception):
    """Shows, as the cause of the exception, where in the user's code it was raised."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        return f"\n{self.text}"


@dataclass(frozen=True)
class Failure:
    """All that a task knows about a failure, as plain data."""

    error: bytes | None
    kind: str
    message: str
    traceback: str
    operator: str = ""
    uid: str = ""
    subtask: int = 0
    what: str = ""
    record: str = ""

    def rebuild(self) -> BaseException:
        """The user's own exception again, with notes on where it happened."""
        try:
            error: BaseException = pickle.loads(self.error or b"")
        except Exception:
            error = UserCodeError(f"{self.kind}: {self.message}")
        error.__cause__ = UserTraceback(self.traceback)
        if self.operator:
            error.add_note(f"in operator {self.operator!r} (uid {self.uid}), subtask {self.subtask}, {self.what}")
        if self.record and self.record != "None":
            error.add_note(f"record: {self.record}")
        return error


def describe_failure(error: BaseException) -> Failure:
    """Turn what a task raised into plain data."""
    if isinstance(error, RecordFailure):
        inner = error.error
        return Failure(
            _pickled(inner),
            type(inner).__name__,
            str(inner),
            _user_traceback(inner),
            error.operator,
            error.uid,
            error.subtask,
            error.what,
            error.preview,
        )
    return Failure(_pickled(error), type(error).__name__, str(error), _user_traceback(error))


def _pickled(error: BaseException) -> bytes | None:
    try:
        data = by_value(error)
        pickle.loads(data)
    except Exception:
        # Its __init__ wants other arguments than it hands to Exception: carry what it is made of instead.
        try:
            data = by_value(_Remade(type(error), error.args, error.__dict__))
            pickle.loads(data)
        except Exception:
            return None
    return data


class _Remade:
    """Stands for an exception on the way, and becomes one when it is unpickled."""

    def __init__(self, kind: type[BaseException], arguments: tuple[Any, ...], attributes: dict[str, Any]) -> None:
        self.parts = (kind, arguments, attributes)

    def __reduce__(self) -> tuple[Any, ...]:
        return _remake, self.parts


def _remake(kind: type[BaseException], arguments: tuple[Any, ...], attributes: dict[str, Any]) -> BaseException:
    error = kind.__new__(kind, *arguments)
    error.args = arguments
    error.__dict__.update(attributes)
    return error


def _user_traceback(error: BaseException) -> str:
    """The traceback without the engine's frames, unless it has no others."""
    shown = traceback.TracebackException.from_exception(error)
    frames = [frame for frame in shown.stack if not frame.filename.startswith(_ENGINE)]
    if frames:
        shown.stack = traceback.StackSummary.from_list(frames)
    return "".join(shown.format()).rstrip()
