"""Every name and every parameter of PyFlink's public API that programs can use is there."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path
from typing import Any

import pytest

import millrace.pyflink

LINES = (Path(__file__).parent / "surface.txt").read_text(encoding="utf-8").splitlines()
CALL = re.compile(r"(\w+)\(([^)]*)\)")


def offered(module: str, path: str) -> Any:
    millrace.pyflink.install()
    found: Any = importlib.import_module(module)
    for name in path.split("."):
        found = getattr(found, name)
    return found


@pytest.mark.parametrize("line", LINES, ids=[" ".join(line.split()[:2]) for line in LINES])
def test_methods_and_parameters(line: str) -> None:
    module, path, calls = line.split(" ", 2)
    kind = offered(module, path)
    complaints = []
    for method, parameters in CALL.findall(calls):
        call = getattr(kind, method, None)
        if call is None:
            complaints.append(f"{method} is missing")
            continue
        if parameters == "*":
            continue
        have = {name: each for name, each in inspect.signature(call).parameters.items() if name != "self"}
        for parameter in filter(None, parameters.split(",")):
            name = parameter.lstrip("*").rstrip("=")
            if name not in have:
                complaints.append(f"{method} has no parameter {name}: {list(have)}")
            elif parameter.endswith("=") and have[name].default is inspect.Parameter.empty:
                complaints.append(f"{method}: {name} needs a default")
    assert complaints == []


def test_the_list_is_whole() -> None:
    assert len(LINES) > 120
    assert sum(len(CALL.findall(line)) for line in LINES) > 450


@pytest.mark.parametrize(
    ("module", "names"),
    [
        ("pyflink.datastream", "CheckpointingMode ExternalizedCheckpointRetention RuntimeExecutionMode TimeDomain"),
        ("pyflink.datastream", "TriggerResult PredefinedOptions OutputTag HashMapStateBackend CustomStateBackend"),
        ("pyflink.common", "JobStatus RowKind JobID ByteArraySchema RowFieldExtractorSchema TypeSerializer"),
        ("pyflink.datastream.state", "ValueStateDescriptor ListStateDescriptor MapStateDescriptor StateTtlConfig"),
        ("pyflink.datastream.state", "ReducingStateDescriptor AggregatingStateDescriptor StateDescriptor"),
        ("pyflink.datastream.connectors", "NumberSequenceSource DeliveryGuarantee KafkaSource JdbcSink"),
        ("pyflink.common.watermark_strategy", "Duration WatermarkStrategy TimestampAssigner"),
        ("pyflink.datastream.window", "Time CountWindowSerializer GlobalWindowSerializer NeverTrigger"),
        ("pyflink.util.exceptions", "JavaException TableException"),
        ("pyflink.util.api_stability_decorators", "PublicEvolving Internal"),
    ],
)
def test_names(module: str, names: str) -> None:
    for name in names.split():
        assert offered(module, name) is not None
