"""A compiled job for people (text, SVG) and for tools (the JSON that Flink prints)."""

from __future__ import annotations

import json
from typing import Any

from millrace.graph.compile import JobEdge, JobGraph, JobNode, Stage
from millrace.graph.node import NodeKind
from millrace.graph.partitioners import KeyBy
from millrace.graph.svg import explain_svg

__all__ = ["explain_svg", "explain_text", "plan_json"]


def explain_text(job: JobGraph) -> str:
    """Levels, the chains in them, and what crosses the exchanges between them."""
    exchanges = "1 exchange" if job.depth == 1 else f"{job.depth} exchanges"
    lines = [f"Job {job.name!r}: {len(job.nodes)} operators, {exchanges}"]
    for level in range(job.depth + 1):
        for stage in job.stages_of(level):
            lines += ["", *_stage_lines(stage)]
    return "\n".join(lines)


def _stage_lines(stage: Stage) -> list[str]:
    reader = " (read by Spark)" if stage.group.startswith("spark") else ""
    tasks = "1 task" if stage.tasks == 1 else f"{stage.tasks} tasks"
    lines = [f"Level {stage.level}: {tasks}{reader}"]
    chains: dict[int, list[JobNode]] = {}
    for node in stage.nodes:
        chains.setdefault(node.chain, []).append(node)
    for chain in chains.values():
        lines += _chain_lines(chain)
    return lines


def _chain_lines(chain: list[JobNode]) -> list[str]:
    lines = []
    for position, node in enumerate(chain):
        bullet = "  * " if position == 0 else "    -> "
        uid = node.uid if node.node.uid else f"{node.uid[:8]}…"
        lane = node.node.lane + (f": {node.node.lane_reason}" if node.node.lane_reason else "")
        after = node.inputs[0].source if position else None
        branch = f" (after {after.name})" if after is not None and after is not chain[position - 1] else ""
        tag = f" (side output {node.inputs[0].tag!r})" if position and node.inputs[0].tag is not None else ""
        lines.append(f"{bullet}{node.name}{branch}{tag}  [uid {uid}, parallelism {node.parallelism}, {lane} lane]")
        lines += [f"       ~ {_edge_text(edge)}" for edge in node.outputs if edge.target.chain != node.chain]
    return lines


def _edge_text(edge: JobEdge) -> str:
    how = edge.partitioner.ship_strategy
    if isinstance(edge.partitioner, KeyBy):
        how += f" by {edge.partitioner.label}"
    output = f" (side output {edge.tag!r})" if edge.tag is not None else ""
    return f"{how}{output} to level {edge.target.level}: {edge.target.name}"


def plan_json(job: JobGraph) -> str:
    """The plan as Flink's ``getExecutionPlan`` prints it for a PyFlink program.

    PyFlink puts a node that computes the key in front of every keyed operator, and one that takes the key off again
    in front of those that are not keyed; tools that read such plans expect them.
    """
    ids: dict[int, int] = {}
    nodes: list[dict[str, Any]] = []

    def add(entry: dict[str, Any]) -> int:
        entry = {"id": len(nodes) + 1, **entry}
        nodes.append(entry)
        return len(nodes)

    for node in job.nodes:
        predecessors = []
        for edge in node.inputs:
            source, ship = ids[edge.source.id], edge.partitioner.ship_strategy
            if isinstance(edge.partitioner, KeyBy):
                upstream = [{"id": source, "ship_strategy": "FORWARD", "side": "second"}]
                entry = _plan_entry("_stream_key_by_map_operator", NodeKind.OPERATOR, edge.source.parallelism, upstream)
                source = add(entry)
                if not node.node.keyed:
                    # Whoever needs no keys gets the records without them, from a node of their own.
                    keyed = [{"id": source, "ship_strategy": ship, "side": "second"}]
                    entry = _plan_entry("_keyed_stream_values_operator", NodeKind.OPERATOR, node.parallelism, keyed)
                    source, ship = add(entry), "FORWARD"
            predecessors.append({"id": source, "ship_strategy": ship, "side": "second"})
        kind = node.node.kind
        name = _plan_name(node)
        ids[node.id] = add(_plan_entry(name, kind, node.parallelism, predecessors, node.node.type_name))
    return json.dumps({"nodes": nodes})


def _plan_name(node: JobNode) -> str:
    prefixes = {NodeKind.SOURCE: "Source: ", NodeKind.SINK: "Sink: ", NodeKind.OPERATOR: ""}
    prefix = prefixes[node.node.kind]
    return node.name if node.name.startswith(prefix) else prefix + node.name


def _plan_entry(
    name: str, kind: NodeKind, parallelism: int, predecessors: list[dict[str, Any]], type_name: str | None = None
) -> dict[str, Any]:
    entry = {"type": type_name or name, "pact": kind.value, "contents": name, "parallelism": parallelism}
    return {**entry, "predecessors": predecessors} if predecessors else entry
