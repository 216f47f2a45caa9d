"""What users see when something goes wrong, and that nothing is lost or repeated."""

from __future__ import annotations

import os
import signal
import threading
import traceback
from pathlib import Path
from typing import Any

import pytest

from millrace.common import Configuration, JobStatus, WatermarkStrategy
from millrace.connectors.callback import CallbackSink
from millrace.datastream import KeyedProcessFunction, MapFunction, ProcessFunction, RuntimeContext
from millrace.datastream import StreamExecutionEnvironment as Environment
from millrace.datastream.state import ValueStateDescriptor
from millrace.errors import GraphError, JobError, StateError

pytestmark = pytest.mark.usefixtures("spark")


class OrderError(Exception):
    def __init__(self, order: int, reason: str) -> None:
        super().__init__(order, reason)
        self.order = order


def check_order(order: int) -> int:
    if order == 7:
        raise OrderError(order, "no such article")
    return order


def environment(**config: Any) -> Environment:
    settings = Configuration.from_dict({key.replace("__", "-").replace("_", "."): str(v) for key, v in config.items()})
    return Environment.get_execution_environment(settings).set_parallelism(2)


@pytest.mark.parametrize("config", [{}, {"pipeline_epoch_max__records": 2}], ids=["once", "in epochs"])
def test_the_users_own_exception_comes_back(config: dict[str, Any]) -> None:
    env = environment(**config)
    env.from_sequence(1, 9).map(check_order).name("check").uid("check-orders").print()
    with pytest.raises(OrderError) as caught:
        env.execute()
    assert caught.value.order == 7
    notes = "\n".join(caught.value.__notes__)
    assert "operator 'check' (uid check-orders)" in notes
    assert "record: 7" in notes
    text = "".join(traceback.format_exception(caught.value))
    assert text.index("in check_order") < text.index("the direct cause of")
    assert "millrace/runtime" not in str(caught.value.__cause__)


def test_an_exception_that_cannot_travel_is_described() -> None:
    class Stubborn(Exception):
        def __init__(self, text: str) -> None:
            super().__init__(text)
            self.lock = threading.Lock()

    def fail(value: int) -> int:
        raise Stubborn(f"at {value}")

    env = environment()
    env.from_elements(1).map(fail).print()
    with pytest.raises(JobError, match="Stubborn: at 1"):
        env.execute()


def test_collecting_raises_the_original_exception() -> None:
    env = environment()
    with pytest.raises(ZeroDivisionError), env.from_elements(0).map(lambda n: 1 // n).execute_and_collect() as results:
        list(results)


def test_state_without_a_key_says_what_to_do() -> None:
    class Remember(MapFunction):
        # Asked for in a way that cannot be seen when the program is written.
        asks = "".join(["get_", "state"])

        def open(self, runtime_context: RuntimeContext) -> None:
            getattr(runtime_context, self.asks)(ValueStateDescriptor("seen"))

        def map(self, value: int) -> int:
            return value

    env = environment()
    env.from_elements(1).map(Remember()).name("remember").print()
    with pytest.raises(StateError, match=r"call key_by\(\.\.\.\) before"):
        env.execute()


def test_timers_without_a_key_say_what_to_do() -> None:
    class Wait(ProcessFunction):
        def process_element(self, value: int, ctx: ProcessFunction.Context) -> None:
            ctx.timer_service().register_event_time_timer(5)

    env = environment()
    with pytest.raises(GraphError, match="key_by"):
        env.from_elements(1).process(Wait())


def test_no_sink() -> None:
    env = environment()
    env.from_elements(1).map(lambda n: n)
    with pytest.raises(GraphError, match="no sink"):
        env.execute()


def test_a_timestamp_that_is_no_integer() -> None:
    env = environment()
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value: "noon")
    env.from_elements("lunch").assign_timestamps_and_watermarks(strategy).print()
    with pytest.raises(TypeError, match="whole milliseconds") as caught:
        env.execute()
    assert "record: 'lunch'" in caught.value.__notes__


class CountPerKey(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count"))

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Any:
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield ctx.get_current_key(), count


def test_a_worker_that_is_killed_costs_nothing(tmp_path: Path) -> None:
    marker = tmp_path / "killed"

    def die_once(value: int) -> int:
        if value == 500 and not marker.exists():
            marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return value

    results: list[Any] = []
    env = environment(pipeline_epoch_max__records=100)
    counts = env.from_sequence(1, 1000).map(die_once).key_by(lambda n: n % 10).process(CountPerKey())
    counts.sink_to(CallbackSink(results.extend))
    env.execute()
    assert marker.exists()
    assert sorted(results) == sorted((key, n) for key in range(10) for n in range(1, 101))


def test_a_stopped_job_goes_on_where_it_stopped(tmp_path: Path) -> None:
    results: list[Any] = []

    def program() -> Environment:
        config = {"pipeline_epoch_max__records": 50, "execution_checkpointing_dir": str(tmp_path / "ckpt")}
        env = environment(**config)
        env.enable_checkpointing(1000)
        counts = env.from_sequence(1, 2000).key_by(lambda n: n % 10).process(CountPerKey()).uid("count")
        counts.sink_to(CallbackSink(results.extend))
        return env

    runs = 0
    while len(results) < 2000:
        runs += 1
        before = len(results)
        client = program().execute_async("resumed")
        if runs < 3:
            client.on_progress(lambda progress, client=client, first=before: client._run.stop())  # type: ignore[attr-defined]
        with pytest.raises(JobError, match="cancelled") if runs < 3 else nothing():
            client.get_job_execution_result().result()
        assert client.get_job_status().result() == (JobStatus.CANCELED if runs < 3 else JobStatus.FINISHED)
        assert len(results) > before
    assert runs == 3
    assert sorted(results) == sorted((key, n) for key in range(10) for n in range(1, 201))


def nothing() -> Any:
    from contextlib import nullcontext

    return nullcontext()


def test_a_failed_job_goes_on_after_the_fix(tmp_path: Path) -> None:
    results: list[Any] = []

    def program(broken: bool) -> Environment:
        config = {"pipeline_epoch_max__records": 50, "execution_checkpointing_dir": str(tmp_path / "ckpt")}
        env = environment(**config)
        env.enable_checkpointing(1000)

        def check(n: int) -> int:
            if broken and n == 777:
                raise ValueError("777 is not supported")
            return n

        counts = env.from_sequence(1, 1000).map(check).key_by(lambda n: n % 10).process(CountPerKey())
        counts.sink_to(CallbackSink(results.extend))
        return env

    with pytest.raises(ValueError, match="777 is not supported"):
        program(broken=True).execute()
    assert 0 < len(results) < 1000
    program(broken=False).execute()
    assert sorted(results) == sorted((key, n) for key in range(10) for n in range(1, 101))
