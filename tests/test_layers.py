"""Imports go one way: each package may use those below it, and Spark stays in its room."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
MODULES = sorted((ROOT / "millrace").rglob("*.py"))

COMMON = {"errors", "metrics", "common"}
RUNTIME = COMMON | {"graph", "state", "runtime"}
API = RUNTIME | {"connectors", "datastream", "cep", "table"}

MAY_IMPORT = {
    "errors": set(),
    "metrics": {"errors"},
    "common": {"errors"},
    "graph": COMMON | {"state"},
    "state": COMMON,
    "runtime": COMMON | {"graph", "state"},
    "connectors": RUNTIME,
    "datastream": RUNTIME | {"connectors"},
    "cep": RUNTIME | {"connectors", "datastream"},
    "table": RUNTIME | {"connectors", "datastream", "cep"},
    "testing": API,
    "pyflink": API | {"jobs"},
    "spark": API,
    "jobs": API | {"spark", "traceback_view"},
    "traceback_view": {"errors"},
    "cli": API | {"spark", "jobs", "pyflink", "traceback_view"},
    "__main__": {"cli"},
    "__init__": API,
}


def imported_modules(source: str, package: str) -> Iterator[tuple[int, str]]:
    """Every import of a module wherever it stands, relative ones resolved against `package`."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = package.split(".")
                base = ".".join([*parts[: len(parts) - node.level + 1], *([base] if base else [])])
            # `from millrace import spark` names the package in the second half.
            yield from ((node.lineno, f"{base}.{alias.name}") for alias in node.names)


def room(module: str) -> str:
    """The part of Millrace that a module name such as `millrace.state.heap` belongs to."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


def may_use_spark(path: str) -> bool:
    return path.startswith(("millrace/spark/", "millrace/connectors/spark"))


def violations(path: str, source: str) -> list[str]:
    parts = Path(path).with_suffix("").parts
    here = room(".".join(parts))
    found = []
    for line, module in imported_modules(source, ".".join(parts[:-1])):
        top = module.split(".")[0]
        if top in {"pyspark", "py4j"} and not may_use_spark(path):
            found.append(f"{path}:{line} imports {module}, which only millrace.spark may")
        if top == "millrace" and module != "millrace.__version__":
            there = room(module)
            if there != here and there not in MAY_IMPORT[here]:
                found.append(f"{path}:{line} imports {module}: {here} may not use {there}")
    return found


@pytest.mark.parametrize("path", [str(module.relative_to(ROOT)) for module in MODULES])
def test_imports_go_one_way(path: str) -> None:
    here = room(".".join(Path(path).with_suffix("").parts))
    assert here in MAY_IMPORT, "a new package: give it a place in MAY_IMPORT"
    assert violations(path, (ROOT / path).read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("path", "source", "complaints"),
    [
        ("millrace/state/heap.py", "from millrace.common.time import Time", 0),
        ("millrace/state/heap.py", "from millrace.runtime.operator import Operator", 1),
        ("millrace/state/heap.py", "from ..runtime import operator", 1),
        ("millrace/state/heap.py", "from .snapshot import write", 0),
        ("millrace/state/heap.py", "def later():\n    import pyspark.sql", 1),
        ("millrace/connectors/spark_kafka.py", "import pyspark", 0),
        ("millrace/connectors/files.py", "import pyspark", 1),
        ("millrace/common/row.py", "from millrace import graph", 1),
        ("millrace/cli.py", "from millrace import __version__", 0),
    ],
)
def test_the_check_sees_what_it_should(path: str, source: str, complaints: int) -> None:
    assert len(violations(path, source)) == complaints
