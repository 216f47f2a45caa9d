"""What people and tools see of a program."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from millrace.datastream import OutputTag, StreamExecutionEnvironment

ROOT = Path(__file__).resolve().parents[2]


def program() -> StreamExecutionEnvironment:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
    numbers = env.from_sequence(1, 9).uid("numbers").map(lambda n: n).name("<convert>").uid("convert")
    numbers.get_side_output(OutputTag("odd")).print().uid("odd out")
    numbers.key_by(lambda n: n).reduce(lambda a, b: a + b).name("sum").uid("sum").print().uid("out")
    return env


def test_text() -> None:
    assert str(program().explain("demo")) == "\n".join(
        [
            "Job 'demo': 5 operators, 1 exchange",
            "",
            "Level 0: 2 tasks",
            "  * Sequence Source  [uid numbers, parallelism 2, python lane]",
            "    -> <convert>  [uid convert, parallelism 2, python lane]",
            "       ~ HASH by a function to level 1: sum",
            "    -> Print to Std. Out (side output 'odd')  [uid odd out, parallelism 2, python lane]",
            "",
            "Level 1: 2 tasks",
            "  * sum  [uid sum, parallelism 2, python lane]",
            "    -> Print to Std. Out  [uid out, parallelism 2, python lane]",
        ]
    )


def test_a_picture_in_a_notebook() -> None:
    drawn = program().explain("demo")._repr_svg_()
    root = ElementTree.fromstring(drawn)
    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert "<convert>" in texts
    assert "HASH" in texts
    assert "level 1, 2 tasks" in texts


def test_flinks_json() -> None:
    nodes = json.loads(program().get_execution_plan())["nodes"]
    by_type = {node["type"]: node for node in nodes}
    key = by_type["_stream_key_by_map_operator"]
    assert key["predecessors"][0]["ship_strategy"] == "FORWARD"
    assert by_type["sum"]["predecessors"] == [{"id": key["id"], "ship_strategy": "HASH", "side": "second"}]
    assert [node["pact"] for node in nodes].count("Data Sink") == 2


def test_the_picture_in_the_readme_is_what_the_program_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    sys.modules.pop("ad_campaigns", None)
    from ad_campaigns import explained

    assert (ROOT / "docs" / "graph.svg").read_text() == explained() + "\n"
