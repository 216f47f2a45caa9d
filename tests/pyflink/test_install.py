from __future__ import annotations

import importlib
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import millrace.common
import millrace.pyflink
from millrace.pyflink.unavailable import UnavailableError

PROGRAM = """
    import sys
    from pyflink.common import Row, Types
    from pyflink.datastream import MapFunction, StreamExecutionEnvironment
    import pyflink.common.typeinfo as typeinfo
    import lengths

    class Measure(MapFunction):
        def open(self, runtime_context):
            self.task = runtime_context.get_task_name()

        def map(self, value):
            from pyflink.common import Row as Again
            assert Again is Row and typeinfo.Types is Types
            return Again(value, lengths.of(value))

    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    words = env.from_collection(sys.argv[1:], type_info=Types.STRING())
    words.map(Measure(), output_type=Types.ROW([Types.STRING(), Types.INT()])).print()
    words.map(lambda word: (word, None)).print("pairs")
    env.execute()
"""

MODULE = """
    from pyflink.common import Types

    def of(word):
        return Types.INT().coerce(len(word))
"""


def run(code: str, *path: Path) -> subprocess.CompletedProcess[str]:
    search = [str(each) for each in path]
    code = f"import sys; sys.path[:0] = {search!r}\n{textwrap.dedent(code)}"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_installing_twice_changes_nothing() -> None:
    millrace.pyflink.install()
    finders = list(sys.meta_path)
    millrace.pyflink.install()
    assert sys.meta_path == finders
    assert millrace.pyflink.is_installed()


def test_classes_are_millraces_own() -> None:
    millrace.pyflink.install()
    common = importlib.import_module("pyflink.common")
    assert common.Row is millrace.common.Row
    assert common.Row.__module__ == "millrace.common.row"
    assert importlib.import_module("pyflink").__version__ == "2.3.0"


def test_unknown_module_says_what_is_offered() -> None:
    millrace.pyflink.install()
    with pytest.raises(ModuleNotFoundError, match=r"'pyflink.fn_execution': .* offers pyflink, pyflink.common"):
        importlib.import_module("pyflink.fn_execution")


def test_unknown_name_says_what_is_offered() -> None:
    millrace.pyflink.install()
    with pytest.raises(ImportError, match="cannot import name 'Typos'"):
        exec("from pyflink.common import Typos")
    with pytest.raises(AttributeError, match="pyflink.common has no 'Typos' in Millrace; it offers ByteArraySchema, "):
        _ = importlib.import_module("pyflink.common").Typos


@pytest.mark.parametrize(
    ("module", "name", "hint"),
    [
        ("pyflink.table", "StreamTableEnvironment", "use the DataStream API, or Spark SQL"),
        ("pyflink.table.expressions", "col", "use the DataStream API, or Spark SQL"),
        ("pyflink.datastream.connectors.kafka", "KafkaSource", r'spark.readStream.format\("kafka"\)'),
        ("pyflink.datastream.connectors", "FlinkKafkaConsumer", r'spark.readStream.format\("kafka"\)'),
        ("pyflink.datastream.formats.avro", "AvroSchema", "use Parquet, JSON or CSV"),
        ("pyflink.datastream", "FsStateBackend", "use HashMapStateBackend or EmbeddedRocksDBStateBackend"),
    ],
)
def test_what_is_not_offered_can_be_imported_and_says_so_when_used(module: str, name: str, hint: str) -> None:
    millrace.pyflink.install()
    placeholder = getattr(importlib.import_module(module), name)
    with pytest.raises(UnavailableError, match=rf"{module}.{name} is not offered by Millrace: .*{hint}"):
        placeholder("anything")
    with pytest.raises(UnavailableError, match=hint):
        _ = placeholder.create


def test_another_pyflink_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "pyflink").mkdir()
    (tmp_path / "pyflink" / "__init__.py").write_text("")
    done = run("import millrace.pyflink; millrace.pyflink.install()", tmp_path)
    assert done.returncode == 1
    assert "cannot stand in for pyflink" in done.stderr
    assert "Uninstall it" in done.stderr


def test_a_programs_own_modules_below_pyflink_are_found(tmp_path: Path) -> None:
    (tmp_path / "pyflink" / "datastream" / "tests").mkdir(parents=True)
    (tmp_path / "pyflink" / "datastream" / "tests" / "helpers.py").write_text("ANSWER = 42")
    code = """
        import millrace.pyflink; millrace.pyflink.install()
        from pyflink.datastream.tests.helpers import ANSWER
        from pyflink.common import Row
        print(ANSWER, Row(1))
    """
    assert run(code, tmp_path).stdout == "42 <Row(1)>\n"


@pytest.mark.slow
def test_a_program_and_its_modules_run_on_the_workers(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(textwrap.dedent(PROGRAM))
    (tmp_path / "lengths.py").write_text(textwrap.dedent(MODULE))
    program = str(tmp_path / "app.py")
    done = run(f"from millrace.pyflink import run_program; run_program({program!r}, ['to', 'stream'])")
    assert sorted(done.stdout.splitlines()) == [
        "+I[stream, 6]",
        "+I[to, 2]",
        "pairs> ('stream', None)",
        "pairs> ('to', None)",
    ], done.stderr
