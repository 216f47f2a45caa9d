from __future__ import annotations

import json

import click
import pytest

from millrace.traceback_view import format_exception, is_engine_file


def user_function() -> None:
    raise ValueError("bad record")


def call_through_engine(function: object) -> None:
    # click stands for the engine here: it calls back, two frames deep.
    click.Context(click.Command("engine")).invoke(function)  # type: ignore[call-overload]


def fail_with_cause() -> None:
    try:
        user_function()
    except ValueError as error:
        raise RuntimeError("job failed") from error


def caught(function: object) -> BaseException:
    with pytest.raises(Exception) as raised:
        call_through_engine(function)
    return raised.value


def shape(text: str) -> list[str]:
    """The lines of a traceback that do not depend on where it was taken."""
    return [line.split(", in ")[-1] if line.startswith("  File") else line for line in text.splitlines()]


def test_runs_of_engine_frames_become_one_line() -> None:
    lines = shape(format_exception(caught(user_function)))
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[-4:] == [
        "  ... 1 engine frame ...",
        "user_function",
        '    raise ValueError("bad record")',
        "ValueError: bad record",
    ]


def test_full_leaves_them_in() -> None:
    text = format_exception(caught(user_function), full=True)
    assert "engine frame" not in text
    assert f'File "{click.core.__file__}"' in text


def test_causes_come_first_and_keep_their_sentence() -> None:
    text = format_exception(caught(fail_with_cause))
    first, second = text.split("\nThe above exception was the direct cause of the following exception:\n")
    assert shape(first)[-1] == "ValueError: bad record"
    assert shape(second)[-1] == "RuntimeError: job failed"


def test_notes_and_groups_are_kept() -> None:
    error = caught(user_function)
    error.add_note("in operator parse, uid parse-1")
    text = format_exception(ExceptionGroup("two tasks failed", [error]))  # type: ignore[list-item]
    assert "in operator parse, uid parse-1" in text
    assert "engine frame" in text


def test_a_long_recursion_is_still_shortened() -> None:
    def descend() -> None:
        descend()

    text = format_exception(caught(descend))
    assert "[Previous line repeated" in text
    assert len(text.splitlines()) < 40


@pytest.mark.parametrize(
    ("filename", "is_engine"),
    [
        (click.core.__file__, True),
        ("<frozen runpy>", True),
        (json.__file__, False),
        ("/home/me/millrace/examples/app.py", False),
        (__file__, False),
    ],
)
def test_the_engine_is_known_by_its_directories(filename: str, is_engine: bool) -> None:
    assert is_engine_file(filename) is is_engine
