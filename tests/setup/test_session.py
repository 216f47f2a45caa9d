from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from millrace.errors import ConfigurationError
from millrace.spark.session import get_session
from millrace.spark.settings import (
    default_settings,
    is_local,
    local_cores,
    log_level,
    read_spark_defaults,
    worker_python_path,
)

ROOT = Path(__file__).resolve().parents[2]

SILENT_PROGRAM = """
import sys, tempfile, threading
from millrace.spark.session import get_session, stop_session
import neighbour

def where(batches):
    import os, pyarrow, sys, millrace
    for batch in batches:
        texts = [sys.executable, os.path.dirname(millrace.__file__), neighbour.NAME]
        yield pyarrow.RecordBatch.from_arrays([pyarrow.array(texts)], names=["text"])

def broken(batches):
    raise LookupError("the user's own words")

session = get_session()
for row in session.range(0, 1, 1, 1).mapInArrow(where, "text string").collect():
    print(row.text)

try:
    session.range(1).mapInArrow(broken, "id long").collect()
except Exception as error:
    print(type(error).__name__, "the user's own words" in str(error))

third = threading.Event()
def epoch(batch, number):
    batch.collect()
    if number == 2:
        third.set()

ticks = session.readStream.format("rate-micro-batch").option("rowsPerBatch", 2).load().selectExpr("value as id")
query = (
    ticks.mapInArrow(lambda batches: batches, "id long")
    .writeStream.foreachBatch(epoch)
    .option("checkpointLocation", tempfile.mkdtemp())
    .start()
)
print(third.wait(60))
# Most likely this stops it in the middle of the next epoch.
query.stop()
stop_session()
"""


def where_am_i(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for _ in batches:
        yield pa.RecordBatch.from_arrays([pa.array([sys.executable])], names=["text"])


def test_workers_run_the_drivers_interpreter(spark: SparkSession) -> None:
    # The function above is sent by reference: the worker imports this very module.
    rows = spark.range(0, 2, 1, 2).mapInArrow(where_am_i, "text string").collect()
    assert [row.text for row in rows] == [sys.executable, sys.executable]


def test_the_running_session_is_the_one_you_get(spark: SparkSession) -> None:
    assert get_session() is spark
    assert spark.sparkContext.master == "local[2,4]"


def test_a_setting_that_can_change_is_changed(spark: SparkSession) -> None:
    before = spark.conf.get("spark.sql.shuffle.partitions")
    assert before == "2"
    get_session({"spark.sql.shuffle.partitions": "3"})
    assert spark.conf.get("spark.sql.shuffle.partitions") == "3"
    get_session({"spark.sql.shuffle.partitions": before})


def test_a_setting_that_comes_too_late_is_named(spark: SparkSession) -> None:
    with pytest.warns(RuntimeWarning, match=r"spark.driver.memory=9g has no effect: .*stop_session\(\) first"):
        get_session({"spark.driver.memory": "9g"})


def test_starting_leaves_environment_and_signals_as_they_were(spark: SparkSession) -> None:
    assert "PYSPARK_PYTHON" not in os.environ
    assert "MILLRACE_JAVA" not in os.environ
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.slow
def test_nothing_but_the_programs_own_output(tmp_path: Path) -> None:
    (tmp_path / "neighbour.py").write_text("NAME = 'next door'")
    (tmp_path / "app.py").write_text(textwrap.dedent(SILENT_PROGRAM))
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("MILLRACE_", "PYSPARK_", "PYTHON", "SPARK_"))}
    # As from a checkout that is not installed: only the driver is told where the package is.
    paths = [str(tmp_path), str(ROOT)]
    launcher = f"import sys, runpy; sys.path[:0] = {paths}; runpy.run_path('app.py', run_name='__main__')"
    answer = subprocess.run(
        [sys.executable, "-c", launcher],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=kept,
        timeout=180,
    )
    assert answer.stderr == ""
    assert answer.stdout.splitlines() == [
        sys.executable,
        str(ROOT / "millrace"),
        "next door",
        "PythonException True",
        "True",
    ]
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != "__pycache__") == ["app.py", "neighbour.py"]


def test_defaults_of_a_local_master() -> None:
    settings = default_settings("local[3]")
    assert settings["spark.master"] == "local[3]"
    assert settings["spark.sql.shuffle.partitions"] == "3"
    assert settings["spark.driver.host"] == "127.0.0.1"
    assert str(ROOT) in settings["spark.executorEnv.PYTHONPATH"].split(os.pathsep)


def test_parallelism_is_the_number_of_partitions() -> None:
    assert default_settings("local[3]", parallelism=8)["spark.sql.shuffle.partitions"] == "8"
    assert default_settings("yarn", parallelism=8)["spark.sql.shuffle.partitions"] == "8"


def test_a_cluster_keeps_its_own_sizes_and_paths() -> None:
    settings = default_settings("yarn")
    for key in ("spark.sql.shuffle.partitions", "spark.driver.memory", "spark.executorEnv.PYTHONPATH"):
        assert key not in settings


def test_all_cores_means_those_this_process_may_use() -> None:
    assert is_local("local[*]")
    assert 1 <= local_cores("local[*]") <= (os.cpu_count() or 1)


def test_driver_memory_of_the_environment_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_DRIVER_MEMORY", "7g")
    assert "spark.driver.memory" not in default_settings("local[2]")


@pytest.mark.parametrize(("value", "level"), [("", "off"), ("WARN", "warn"), (" debug ", "debug")])
def test_log_level_of_the_environment(monkeypatch: pytest.MonkeyPatch, value: str, level: str) -> None:
    monkeypatch.setenv("MILLRACE_LOG", value)
    assert log_level() == level


def test_an_unknown_log_level_lists_the_known_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MILLRACE_LOG", "loud")
    with pytest.raises(ConfigurationError, match="'loud' is no log level; use one of off, fatal, error, warn"):
        log_level()


def test_workers_see_what_the_driver_added_to_its_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "path", [str(tmp_path), str(tmp_path / "absent"), *sys.path])
    paths = worker_python_path().split(os.pathsep)
    assert paths[0] == str(tmp_path)
    assert str(tmp_path / "absent") not in paths
    assert not [path for path in paths if path.endswith(("site-packages", "lib-dynload"))]


def test_the_installations_defaults_are_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("SPARK_CONF_DIR", raising=False)
    assert read_spark_defaults(str(tmp_path)) == {}
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "spark-defaults.conf").write_text(
        "# a comment\nspark.master  yarn\nspark.driver.memory=8g\n\nspark.x.y : a b \n"
    )
    expected = {"spark.master": "yarn", "spark.driver.memory": "8g", "spark.x.y": "a b"}
    assert read_spark_defaults(str(tmp_path)) == expected
