from __future__ import annotations

import importlib
import json
import pickle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from millrace.common import Configuration, Time, Types
from millrace.datastream import AsyncDataStream, AsyncFunction, MapFunction
from millrace.datastream._dependencies import Dependencies, OperatorName
from millrace.errors import ConfigurationError, GraphError
from millrace.pyflink.environment import StreamExecutionEnvironment
from millrace.pyflink.failures import as_gateway_error
from millrace.pyflink.java_gateway import get_gateway
from millrace.pyflink.java_utils import get_j_env_configuration, load_java_class
from millrace.pyflink.unavailable import UnavailableError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def environment(parallelism: int = 2) -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)


def plan(env: StreamExecutionEnvironment) -> list[dict[str, Any]]:
    nodes: list[dict[str, Any]] = json.loads(env.get_execution_plan())["nodes"]
    return nodes


def test_java_settings_are_the_environments_own() -> None:
    env = environment()
    java = get_j_env_configuration(env._j_stream_execution_environment)
    java.setString("pipeline.operator-chaining.enabled", "false")
    assert not env.is_chaining_enabled()
    Configuration(j_configuration=java).set_integer("python.fn-execution.bundle.size", 1)
    assert java.getInteger("python.fn-execution.bundle.size", 0) == 1
    assert java.getString("no.such.key", "none") == "none"


def test_java_of_a_programs_own_is_refused() -> None:
    with pytest.raises(UnavailableError, match=r"com.example.Source\(\.\.\.\) is Java.* Write it in Python"):
        get_gateway().jvm.com.example.Source()
    with pytest.raises(UnavailableError, match="com.example.Sink: Millrace loads no Java classes"):
        load_java_class("com.example.Sink")


def test_the_graph_that_programs_look_at() -> None:
    env = environment()
    doubled = env.from_collection([1, 2]).name("numbers").slot_sharing_group("first").map(lambda n: 2 * n)
    doubled.name("doubled").set_parallelism(1).map(str).name("text").start_new_chain().set_parallelism(1).print()
    nodes = env._j_stream_execution_environment.getStreamGraph(False).getStreamNodes().toArray()
    assert [node.getOperatorName() for node in nodes] == ["numbers", "doubled", "text", "Print to Std. Out"]
    assert [node.getSlotSharingGroup() for node in nodes] == ["first"] * 4
    chainable = get_gateway().jvm.org.apache.flink.streaming.api.graph.StreamingJobGraphGenerator.isChainable
    assert chainable(nodes[1].getInEdges().get(0), None)
    assert not chainable(nodes[2].getInEdges().get(0), None)


def test_the_plan_takes_keys_off_again() -> None:
    env = environment()
    env.from_collection([1, 2]).key_by(lambda n: n).print()
    assert [(node["type"], node["parallelism"]) for node in plan(env)] == [
        ("Source: Collection Source", 1),
        ("_stream_key_by_map_operator", 1),
        ("_keyed_stream_values_operator", 2),
        ("Sink: Print to Std. Out", 2),
    ]
    ships = [node["predecessors"][0]["ship_strategy"] for node in plan(env)[1:]]
    assert ships == ["FORWARD", "HASH", "FORWARD"]


def test_failures_are_what_they_were_and_gateway_errors_too() -> None:
    gateway_error = importlib.import_module("py4j.protocol").Py4JJavaError
    error = KeyError("word")
    error.add_note("in operator 'Map'")
    twin = as_gateway_error(error)
    assert isinstance(twin, KeyError)
    assert isinstance(twin, gateway_error)
    assert (str(twin), twin.__notes__, type(twin).__name__) == ("'word'", ["in operator 'Map'"], "KeyError")
    assert as_gateway_error(twin) is twin


def test_async_functions_do_not_run_in_thread_mode() -> None:
    class Lookup(AsyncFunction[int, int]):
        async def async_invoke(self, value: int) -> list[int]:
            return [value]

    env = environment()
    env.configure(Configuration.from_dict({"python.execution-mode": "thread"}))
    with pytest.raises(GraphError, match="AsyncFunction is still not supported for 'thread' mode"):
        AsyncDataStream.unordered_wait(env.from_collection([1]), Lookup(), Time.seconds(1))


# What travels with a program


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    dependencies = Dependencies.of(Configuration.from_dict({"python.files": str(tmp_path / "gone.py")}))
    with pytest.raises(ConfigurationError, match=r"gone.py, which the program needs on its workers, cannot be read"):
        pickle.dumps(OperatorName("Map", (dependencies,) if dependencies else ()))


@pytest.mark.slow
def test_files_archives_and_packages_reach_the_workers(spark: SparkSession, tmp_path: Path) -> None:
    import shutil

    (tmp_path / "adding.py").write_text("def add_two(n):\n    return n + 2\n")
    (tmp_path / "package" / "greetings").mkdir(parents=True)
    (tmp_path / "package" / "greetings" / "__init__.py").write_text("HELLO = 'hello'\n")
    (tmp_path / "numbers").mkdir()
    (tmp_path / "numbers" / "ten.txt").write_text("10")
    archive = shutil.make_archive(str(tmp_path / "packed"), "zip", tmp_path / "numbers")

    class Use(MapFunction):
        def map(self, value: int) -> str:
            adding, greetings = importlib.import_module("adding"), importlib.import_module("greetings")
            ten = int(Path("data/ten.txt").read_text())
            return f"{greetings.HELLO} {adding.add_two(value) + ten}"

    env = environment()
    env.add_python_file(str(tmp_path / "adding.py"))
    env.add_python_file(str(tmp_path / "package" / "greetings"))
    env.add_python_archive(archive, "data")
    results = env.from_collection([1, 2]).map(Use(), Types.STRING()).execute_and_collect()
    assert sorted(results) == ["hello 13", "hello 14"]
    assert Path.cwd() != tmp_path
