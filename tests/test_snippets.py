"""Runs every Python block of the README and the documentation: the blocks of a page in order, as one program."""

from __future__ import annotations

import re
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = [page for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))] if page.is_file()]

FENCE = re.compile(r"^(?P<indent>[ \t]*)```(?P<language>\w*)[^\n]*\n(?P<code>.*?)^(?P=indent)```[ \t]*$", re.M | re.S)
NOT_RUN = re.compile(r"<!--\s*not run:(?P<reason>(?:(?!-->).)*)-->\s*\Z", re.S)


@dataclass(frozen=True)
class Snippet:
    line: int
    code: str
    not_run: str | None

    @property
    def is_run(self) -> bool:
        return self.not_run is None


def snippets(text: str) -> list[Snippet]:
    found = []
    for fence in FENCE.finditer(text):
        if fence["language"] == "python":
            mark = NOT_RUN.search(text[: fence.start()])
            line = text.count("\n", 0, fence.start("code"))
            found.append(Snippet(line, textwrap.dedent(fence["code"]), mark["reason"].strip() if mark else None))
    return found


@pytest.mark.parametrize("page", [pytest.param(page, id=str(page.relative_to(ROOT))) for page in PAGES])
def test_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = snippets(page.read_text(encoding="utf-8"))
    assert [block.line for block in blocks if block.not_run == ""] == [], "say why these lines are not run"
    monkeypatch.chdir(tmp_path)
    # As in a program, functions and classes of the page belong to __main__: workers get them by value.
    program = ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", program)
    for block in blocks:
        if block.is_run:
            # Empty lines ahead make a traceback point at the line of the page.
            exec(compile("\n" * block.line + block.code, str(page), "exec"), program.__dict__)


def test_blocks_are_found_where_they_stand() -> None:
    page = textwrap.dedent(
        """\
        # Title

        ```python
        a = 1
        ```

        1. in a list

           ```python title="b.py"
           b = 2
           ```

        <!-- not run: needs Kafka -->
        ```python
        c = 3
        ```

        <!-- not run: -->

        ```python
        d = 4
        ```

        ```bash
        make run
        ```
        """
    )
    assert snippets(page) == [
        Snippet(3, "a = 1\n", None),
        Snippet(9, "b = 2\n", None),
        Snippet(14, "c = 3\n", "needs Kafka"),
        Snippet(20, "d = 4\n", ""),
    ]
