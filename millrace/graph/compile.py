"""From nodes to a job: parallelism, uids, ship strategies, levels, stages and chains."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from millrace.errors import GraphError
from millrace.graph.node import Chaining, Edge, Node, NodeKind
from millrace.graph.partitioners import Forward, Partitioner, Rebalance
from millrace.state.key_groups import default_max_parallelism

__all__ = ["JobEdge", "JobGraph", "JobNode", "Stage", "compile_graph"]

OWN_SOURCES = "own"
"""The group of level 0 that reads all sources Millrace reads itself."""


@dataclass(eq=False)
class JobNode:
    """A node with everything decided."""

    node: Node
    uid: str
    parallelism: int
    max_parallelism: int
    level: int = 0
    group: str = OWN_SOURCES
    inputs: list[JobEdge] = field(default_factory=list)
    outputs: list[JobEdge] = field(default_factory=list)
    chain: int = 0

    @property
    def id(self) -> int:
        return self.node.id

    @property
    def name(self) -> str:
        return self.node.name


@dataclass(eq=False)
class JobEdge:
    """An edge with everything decided. ``local`` edges stay within a stage; the others cross an exchange."""

    id: int
    source: JobNode
    target: JobNode
    partitioner: Partitioner
    tag: str | None
    side: int

    @property
    def local(self) -> bool:
        same_stage = self.source.level == self.target.level and self.source.group == self.target.group
        return same_stage and not self.partitioner.is_exchange


@dataclass(eq=False)
class Stage:
    """What one Spark stage runs: all nodes of a level (of a group, at level 0)."""

    level: int
    group: str
    nodes: list[JobNode]
    tasks: int

    @property
    def id(self) -> str:
        return f"{self.level}" if self.level else f"0-{self.group}"


@dataclass(eq=False)
class JobGraph:
    """A compiled program."""

    name: str
    nodes: list[JobNode]
    edges: list[JobEdge]
    stages: list[Stage]

    @property
    def depth(self) -> int:
        """The number of exchanges on the longest path."""
        return max(stage.level for stage in self.stages)

    def stages_of(self, level: int) -> list[Stage]:
        """All stages of a level: one, except at level 0."""
        return [stage for stage in self.stages if stage.level == level]

    @property
    def bounded(self) -> bool:
        """Whether every source comes to an end."""
        return all(is_bounded(node.node) for node in self.nodes if node.node.kind is NodeKind.SOURCE)


def is_bounded(node: Node) -> bool:
    """Whether a source node comes to an end by itself."""
    reader = node.source if node.source is not None else node.external
    return bool(reader.bounded)


def compile_graph(
    nodes: Sequence[Node],
    *,
    name: str,
    parallelism: int,
    max_parallelism: int | None = None,
    chaining: bool = True,
) -> JobGraph:
    """Decide everything that the program leaves open, or say why it cannot run."""
    if not any(node.kind is NodeKind.SINK for node in nodes):
        message = (
            "the program has no sink, so it would have no effect. End a stream with print(), "
            "sink_to(...), add_sink(...) "
            "or execute_and_collect() before execute()"
        )
        raise GraphError(message)
    # Streams that lead to no sink have no effect: they are left out, for example what was only used for to_spark().
    ordered = _topological([node for node in nodes if node.kind is NodeKind.SINK])
    jobs = _resolve(ordered, parallelism, max_parallelism)
    edges = _connect(jobs)
    _check_uids(jobs.values())
    _assign_levels(jobs.values())
    _assign_chains(jobs.values(), chaining)
    return JobGraph(name, list(jobs.values()), edges, _stages(jobs.values()))


def _topological(nodes: Sequence[Node]) -> list[Node]:
    """Inputs before their readers; among equals, in the order the program was written."""
    seen: dict[int, Node] = {}

    def visit(node: Node) -> None:
        if node.id in seen:
            return
        for edge in node.inputs:
            visit(edge.source)
        seen[node.id] = node

    for node in nodes:
        visit(node)
    return list(seen.values())


def _resolve(nodes: list[Node], parallelism: int, max_parallelism: int | None) -> dict[int, JobNode]:
    jobs: dict[int, JobNode] = {}
    hashes: dict[int, str] = {}
    for index, node in enumerate(nodes):
        width = 1 if node.non_parallel else node.parallelism or parallelism
        groups = node.max_parallelism or max_parallelism or default_max_parallelism(width)
        if width > groups:
            message = (
                f"{node.describe()} has parallelism {width} but max parallelism {groups}: "
                f"lower set_parallelism or raise set_max_parallelism"
            )
            raise GraphError(message)
        hashes[node.id] = _generated_uid(index, node, [hashes[edge.source.id] for edge in node.inputs])
        uid = node.uid or node.uid_hash or hashes[node.id]
        jobs[node.id] = JobNode(node, uid, width, groups)
    return jobs


def _generated_uid(index: int, node: Node, inputs: list[str]) -> str:
    """A uid that stays the same while the program's shape does: position, kind and what it reads, not its name."""
    text = "|".join([str(index), node.kind.value, type(node.operator).__name__, *inputs])
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _connect(jobs: dict[int, JobNode]) -> list[JobEdge]:
    edges: list[JobEdge] = []
    for job in jobs.values():
        for edge in job.node.inputs:
            source = jobs[edge.source.id]
            made = JobEdge(len(edges), source, job, _partitioner(edge, source, job), edge.tag, edge.side)
            edges.append(made)
            job.inputs.append(made)
            source.outputs.append(made)
    return edges


def _partitioner(edge: Edge, source: JobNode, target: JobNode) -> Partitioner:
    same = source.parallelism == target.parallelism
    if edge.partitioner is None:
        return Forward() if same else Rebalance()
    if isinstance(edge.partitioner, Forward) and not same:
        message = (
            f"forward() from {source.node.describe()} (parallelism {source.parallelism}) to {target.node.describe()} "
            f"(parallelism {target.parallelism}): forwarding keeps a record in its task, so both need the "
            "same parallelism. "
            "Use rebalance(), or give both the same set_parallelism"
        )
        raise GraphError(message)
    return edge.partitioner


def _check_uids(jobs: Iterable[JobNode]) -> None:
    owners: dict[str, JobNode] = {}
    for job in jobs:
        other = owners.setdefault(job.uid, job)
        if other is not job:
            message = (
                f"the uid {job.uid!r} is given to both {other.name!r} and {job.name!r}: a uid is the "
                "address of an operator's "
                "state, so each operator needs one of its own"
            )
            raise GraphError(message)


def _assign_levels(jobs: Iterable[JobNode]) -> None:
    """A node's level: the number of exchanges on the longest path from a source.

    Two groups of level 0 run in different Spark tasks, so whoever reads from both sits behind an exchange.
    """
    for job in jobs:
        if not job.inputs:
            job.group = OWN_SOURCES if job.node.external is None else f"spark{job.id}"
            continue
        job.level = max(edge.source.level + (1 if edge.partitioner.is_exchange else 0) for edge in job.inputs)
        groups = {edge.source.group for edge in job.inputs if edge.source.level == 0}
        if job.level == 0 and len(groups) > 1:
            job.level = 1
        job.group = groups.pop() if job.level == 0 else ""


def _assign_chains(jobs: Iterable[JobNode], enabled: bool) -> None:
    """Number the chains: runs of operators that hand records on by a plain call."""
    next_chain = 0
    for job in jobs:
        head = _chained_to(job) if enabled else None
        if head is None:
            job.chain = next_chain
            next_chain += 1
        else:
            job.chain = head.chain


def _chained_to(job: JobNode) -> JobNode | None:
    if len(job.inputs) != 1 or not job.inputs[0].local or job.node.chaining is not Chaining.ALWAYS:
        return None
    source = job.inputs[0].source
    return None if source.node.chaining is Chaining.NEVER else source


def _stages(jobs: Iterable[JobNode]) -> list[Stage]:
    members: dict[tuple[int, str], list[JobNode]] = {}
    for job in jobs:
        members.setdefault((job.level, job.group), []).append(job)
    return [
        Stage(level, group, nodes, max(node.parallelism for node in nodes))
        for (level, group), nodes in sorted(members.items(), key=lambda item: item[0])
    ]
