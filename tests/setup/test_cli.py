from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import tomllib
from pathlib import Path

import pytest

import millrace

ROOT = Path(__file__).resolve().parents[2]


def write(path: Path, source: str) -> Path:
    path.write_text(textwrap.dedent(source))
    return path


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "millrace", *map(str, arguments)]


def environment(**variables: str) -> dict[str, str]:
    ours = ("MILLRACE_CONFIG", "MILLRACE_LOG", "MILLRACE_MASTER")
    return {**{k: v for k, v in os.environ.items() if k not in ours}, "PYTHONPATH": str(ROOT), **variables}


def millrace_run(*arguments: object, **variables: str) -> subprocess.CompletedProcess[str]:
    variables = environment(**variables)
    return subprocess.run(
        command("run", *arguments), capture_output=True, text=True, check=False, env=variables, timeout=120
    )


def test_version_is_the_packages() -> None:
    answer = subprocess.run(command("--version"), capture_output=True, text=True, check=True, env=environment())
    assert answer.stdout == f"millrace, version {millrace.__version__}\n"
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"] == millrace.__version__


def test_a_program_finds_its_arguments_its_neighbours_and_its_name(tmp_path: Path) -> None:
    write(tmp_path / "neighbour.py", "NAME = 'next door'")
    app = write(
        tmp_path / "app.py",
        """
        import sys
        import neighbour
        print(__name__, sys.argv[1:], neighbour.NAME, sys.path[0], sys.modules["__main__"].__file__ == __file__)
        """,
    )
    answer = millrace_run(app, "--help", "-p", "x", "--", "y")
    assert answer.stdout == f"__main__ ['--help', '-p', 'x', '--', 'y'] next door {tmp_path} True\n"
    assert (answer.stderr, answer.returncode) == ("", 0)


def test_what_the_program_defines_is_pickled_by_value(tmp_path: Path) -> None:
    app = write(
        tmp_path / "app.py",
        """
        import subprocess
        import sys
        from pyspark import cloudpickle

        class Point:
            def __init__(self, x):
                self.x = x

        double = lambda point: Point(point.x * 2)
        program = "import pickle, sys; f, p = pickle.load(sys.stdin.buffer); print(f(p).x)"
        subprocess.run([sys.executable, "-c", program], input=cloudpickle.dumps((double, Point(21))), check=True)
        """,
    )
    answer = millrace_run(app)
    assert (answer.stdout, answer.stderr, answer.returncode) == ("42\n", "", 0)


def test_options_reach_the_program_through_the_environment(tmp_path: Path) -> None:
    app = write(
        tmp_path / "app.py",
        """
        import os
        print(os.environ["MILLRACE_CONFIG"], os.environ["MILLRACE_MASTER"], os.environ["MILLRACE_LOG"], sep="\\n")
        """,
    )
    options = ["-p", "3", "--master", "local[2]", "-D", "a.b=1=2", "-D", "pipeline.name=x", "--log-level", "warn"]
    answer = millrace_run(*options, app, MILLRACE_CONFIG='{"a.b": "old", "kept": "yes"}')
    config, *rest = answer.stdout.splitlines()
    assert json.loads(config) == {"a.b": "1=2", "kept": "yes", "pipeline.name": "x", "parallelism.default": "3"}
    assert rest == ["local[2]", "warn"]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["-D", "novalue", "APP"], "'novalue' is not KEY=VALUE"),
        (["-p", "0", "APP"], "0 is not in the range x>=1"),
        (["--unknown", "APP"], "No such option"),
        (["absent.py"], "File 'absent.py' does not exist"),
    ],
)
def test_a_wrong_command_says_what_is_wrong(tmp_path: Path, arguments: list[str], complaint: str) -> None:
    app = write(tmp_path / "app.py", "print('must not run')")
    answer = millrace_run(*[app if argument == "APP" else argument for argument in arguments])
    assert complaint in answer.stderr
    assert (answer.stdout, answer.returncode) == ("", 2)


def test_a_configuration_that_is_not_json_is_refused(tmp_path: Path) -> None:
    answer = millrace_run(write(tmp_path / "app.py", ""), MILLRACE_CONFIG="a=b")
    assert "MILLRACE_CONFIG in the environment is not JSON" in answer.stderr
    assert answer.returncode == 2


def test_an_exception_shows_the_programs_frames_only(tmp_path: Path) -> None:
    app = write(
        tmp_path / "app.py",
        """\
        def parse(text):
            return int(text)

        parse("x")
        """,
    )
    answer = millrace_run(app)
    assert answer.stderr.splitlines() == [
        "Traceback (most recent call last):",
        f'  File "{app}", line 4, in <module>',
        '    parse("x")',
        f'  File "{app}", line 2, in parse',
        "    return int(text)",
        "           ^^^^^^^^^",
        "ValueError: invalid literal for int() with base 10: 'x'",
    ]
    assert answer.returncode == 1
    assert answer.stderr == millrace_run("--full-traceback", app).stderr


def test_a_syntax_error_points_at_the_program(tmp_path: Path) -> None:
    app = write(tmp_path / "app.py", "a = (")
    answer = millrace_run(app)
    assert answer.stderr.splitlines()[0] == f'  File "{app}", line 1'
    assert answer.stderr.splitlines()[-1] == "SyntaxError: '(' was never closed"
    assert answer.returncode == 1


@pytest.mark.parametrize(("code", "returned", "stderr"), [("3", 3, ""), ("'no input'", 1, "no input\n"), ("", 0, "")])
def test_the_programs_exit_code_is_the_commands(tmp_path: Path, code: str, returned: int, stderr: str) -> None:
    answer = millrace_run(write(tmp_path / "app.py", f"import sys\nsys.exit({code})"))
    assert (answer.returncode, answer.stderr) == (returned, stderr)


def interrupt_when_ready(app: Path) -> tuple[int, str]:
    with subprocess.Popen(
        command("run", "--master", "local[2]", app),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        return process.wait(timeout=120), process.stderr.read()


def test_an_interrupt_ends_without_a_word(tmp_path: Path) -> None:
    app = write(tmp_path / "app.py", "import threading\nprint('ready', flush=True)\nthreading.Event().wait()\n")
    assert interrupt_when_ready(app) == (130, "")


@pytest.mark.slow
def test_an_interrupt_amid_a_spark_job_ends_without_a_word(tmp_path: Path) -> None:
    app = write(
        tmp_path / "app.py",
        """
        import time
        from millrace.spark.session import get_session

        session = get_session()

        def endless(batches):
            while True:
                time.sleep(0.05)
            yield from batches

        print("ready", flush=True)
        session.range(2).mapInArrow(endless, "id long").collect()
        """,
    )
    assert interrupt_when_ready(app) == (130, "")
