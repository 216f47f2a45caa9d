"""What a task needs to know of its stage: plain data, pickled once for all tasks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from millrace.graph.compile import JobGraph, JobNode, Stage
from millrace.graph.node import NodeKind
from millrace.graph.partitioners import Partitioner
from millrace.state.records import aliases
from millrace.state.rocksdb_choice import backend_settings

__all__ = ["InputSpec", "OperatorSpec", "OutputSpec", "StageSpec", "stage_spec"]


@dataclass(frozen=True)
class InputSpec:
    """One edge into an operator.

    ``channels`` is None where only the data tells how many tasks feed it: Spark's partitions may come and go. One that
    is absent holds event time back like any silent split, unless ``absent_is_idle``: its source has an idle timeout.
    """

    edge: int
    side: int
    local: bool
    channels: int | None
    absent_is_idle: bool = False


@dataclass(frozen=True)
class OutputSpec:
    """One edge out of an operator; ``target`` is the reader's node id."""

    edge: int
    tag: str | None
    side: int
    local: bool
    target: int
    level: int
    targets: int
    max_parallelism: int
    partitioner: Partitioner


@dataclass(frozen=True)
class OperatorSpec:
    """One operator of a stage."""

    node: int
    name: str
    uid: str
    operator: Any
    source: Any
    parallelism: int
    max_parallelism: int
    keyed: bool
    inputs: tuple[InputSpec, ...]
    outputs: tuple[OutputSpec, ...]
    sources: frozenset[str]


@dataclass(frozen=True)
class StageSpec:
    """Everything a task of the stage runs, inputs before their readers."""

    stage: str
    level: int
    tasks: int
    operators: tuple[OperatorSpec, ...]
    external: bool = False
    batch: bool = False
    parameters: dict[str, str] = field(default_factory=dict)
    backend: dict[str, str] = field(default_factory=dict)
    aliases: dict[str, type] = field(default_factory=aliases)


def stage_spec(
    job: JobGraph, stage: Stage, *, batch: bool, parameters: dict[str, str], config: Mapping[str, str] | None = None
) -> StageSpec:
    """Describe a stage of a job for its tasks; of the configuration, they need to know the state backend."""
    upstream: dict[int, frozenset[str]] = {}
    operators = []
    for node in stage.nodes:
        sources = frozenset().union(*(upstream.get(edge.source.id, frozenset()) for edge in node.inputs if edge.local))
        if node.node.kind is NodeKind.SOURCE:
            sources |= {node.uid}
        upstream[node.id] = sources
        operators.append(_operator_spec(node, sources))
    external = any(node.node.external is not None for node in stage.nodes)
    backend = backend_settings(config or {})
    return StageSpec(stage.id, stage.level, stage.tasks, tuple(operators), external, batch, parameters, backend)


def _has_idle_timeout(node: JobNode) -> bool:
    """Whether the way from the source to this node, within its stage, sets an idle timeout."""
    strategy = getattr(node.node.operator, "strategy", None)
    if getattr(strategy, "idle_timeout_ms", None) is not None:
        return True
    return any(_has_idle_timeout(edge.source) for edge in node.inputs if edge.local)


def _operator_spec(node: JobNode, sources: frozenset[str]) -> OperatorSpec:
    inputs = tuple(
        InputSpec(
            edge.id,
            edge.side,
            edge.local,
            None if edge.source.group not in ("", "own") else edge.source.parallelism,
            _has_idle_timeout(edge.source),
        )
        for edge in node.inputs
    )
    outputs = tuple(
        OutputSpec(
            edge.id,
            edge.tag,
            edge.side,
            edge.local,
            edge.target.id,
            edge.target.level,
            edge.target.parallelism,
            edge.target.max_parallelism,
            edge.partitioner,
        )
        for edge in node.outputs
    )
    inner = node.node
    return OperatorSpec(
        node.id,
        node.name,
        node.uid,
        inner.operator,
        inner.source,
        node.parallelism,
        node.max_parallelism,
        inner.keyed,
        inputs,
        outputs,
        sources,
    )
