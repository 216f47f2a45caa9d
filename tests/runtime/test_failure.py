"""How a user's exception travels."""

from __future__ import annotations

import traceback

import pytest

from millrace.connectors.callback import CallbackSink
from millrace.datastream import StreamExecutionEnvironment
from millrace.errors import UserCodeError
from millrace.runtime.failure import describe_failure
from millrace.testing import LocalRun


class Plain(Exception):
    pass


class OtherArguments(Exception):
    """Hands one text to Exception but wants two arguments itself: such a one does not unpickle by itself."""

    def __init__(self, left: int, right: int) -> None:
        super().__init__(f"{left}-{right}")
        self.left = left


class Stubborn(Exception):
    def __new__(cls, *arguments: object) -> Stubborn:
        if arguments == ("broken",):
            raise TypeError("not again")
        return super().__new__(cls, *arguments)


def raised(error: Exception) -> BaseException:
    try:
        raise error
    except Exception as caught:
        return describe_failure(caught).rebuild()


def test_an_exception_comes_back_as_what_it_is() -> None:
    error = raised(Plain("text", 7))
    assert type(error) is Plain
    assert error.args == ("text", 7)
    assert "in raised" in str(error.__cause__)


def test_even_if_its_constructor_takes_other_arguments() -> None:
    error = raised(OtherArguments(1, 2))
    assert isinstance(error, OtherArguments)
    assert (str(error), error.left) == ("1-2", 1)


def test_one_that_cannot_be_made_again_is_described() -> None:
    broken = Stubborn()
    broken.args = ("broken",)
    error = raised(broken)
    assert isinstance(error, UserCodeError)
    assert "Stubborn" in str(error)


def test_the_users_traceback_comes_first_and_the_record_is_named() -> None:
    def divide(value: int) -> float:
        return 1 / value

    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    env.from_collection([1, 0]).map(divide).name("divide").uid("d").sink_to(CallbackSink(print))
    with pytest.raises(ZeroDivisionError) as caught:
        LocalRun(env).run()
    text = "".join(traceback.format_exception(caught.value))
    assert text.index("in divide") < text.index("direct cause")
    assert caught.value.__notes__ == ["in operator 'divide' (uid d), subtask 0, map()", "record: 0"]


def test_a_key_that_cannot_be_hashed_names_the_record() -> None:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
    stream = env.from_collection([("a", [1])]).key_by(lambda record: record[1])
    stream.reduce(lambda a, b: a).sink_to(CallbackSink(print))
    with pytest.raises(TypeError, match="tuple") as caught:
        LocalRun(env).run()
    assert "record: ('a', [1])" in caught.value.__notes__
