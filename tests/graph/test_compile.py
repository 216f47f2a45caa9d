"""From a program to levels, stages, uids and chains."""

from __future__ import annotations

from typing import Any

import pytest

from millrace.errors import GraphError
from millrace.graph.compile import JobGraph, compile_graph
from millrace.graph.node import Chaining, Edge, Node, NodeKind
from millrace.graph.partitioners import Forward, KeyBy, Partitioner, Rebalance


class Graph:
    """Builds nodes by name; an edge is a name, or a name with a partitioner."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}

    def add(self, name: str, *inputs: str | tuple[str, Partitioner], **settings: Any) -> Graph:
        edges = []
        for entry in inputs:
            source, partitioner = entry if isinstance(entry, tuple) else (entry, None)
            edges.append(Edge(self.nodes[source], partitioner))
        kind = NodeKind.SOURCE if not inputs else settings.pop("kind", NodeKind.OPERATOR)
        self.nodes[name] = Node(len(self.nodes) + 1, name, kind, inputs=edges, **settings)
        return self

    def sink(self, name: str, *inputs: str | tuple[str, Partitioner], **settings: Any) -> Graph:
        return self.add(name, *inputs, kind=NodeKind.SINK, **settings)

    def compile(self, parallelism: int = 2, **settings: Any) -> JobGraph:
        return compile_graph(list(self.nodes.values()), name="job", parallelism=parallelism, **settings)


def levels(job: JobGraph) -> dict[str, int]:
    return {node.name: node.level for node in job.nodes}


KEYED = KeyBy(lambda value: value)


def test_a_level_counts_the_exchanges_of_the_longest_path() -> None:
    graph = Graph().add("src").add("map", "src").add("sum", ("map", KEYED)).add("max", ("sum", KEYED))
    job = graph.sink("out", "max", "map").compile()
    assert levels(job) == {"src": 0, "map": 0, "sum": 1, "max": 2, "out": 2}
    assert job.depth == 2
    assert [(stage.level, stage.tasks) for stage in job.stages] == [(0, 2), (1, 2), (2, 2)]
    (short_cut,) = [edge for edge in job.edges if edge.source.name == "map" and edge.target.name == "out"]
    assert isinstance(short_cut.partitioner, Forward)
    assert not short_cut.local


def test_another_parallelism_means_rebalance() -> None:
    job = Graph().add("src", non_parallel=True).add("map", "src").sink("out", "map", parallelism=3).compile()
    assert [edge.partitioner.ship_strategy for edge in job.edges] == ["REBALANCE", "REBALANCE"]
    assert [stage.tasks for stage in job.stages] == [1, 2, 3]


def test_explicit_forward_needs_the_same_parallelism() -> None:
    graph = Graph().add("src").sink("out", ("src", Forward()), parallelism=3)
    with pytest.raises(GraphError, match="both need the same parallelism"):
        graph.compile()


def test_sources_of_spark_have_stages_of_their_own() -> None:
    graph = Graph().add("own").add("frame", external=object()).add("both", "own", "frame")
    job = graph.sink("out", "both").compile()
    assert levels(job) == {"own": 0, "frame": 0, "both": 1, "out": 1}
    assert [stage.id for stage in job.stages] == ["0-own", "0-spark2", "1"]


def test_two_own_sources_meet_in_the_same_task() -> None:
    job = Graph().add("a").add("b").sink("out", "a", "b").compile()
    assert [stage.id for stage in job.stages] == ["0-own"]
    assert all(edge.local for edge in job.edges)


def test_generated_uids_follow_the_shape_not_the_names() -> None:
    first = Graph().add("src").add("map", "src").sink("out", "map").compile()
    renamed = Graph().add("source").add("convert", "source").sink("end", "convert").compile()
    longer = Graph().add("src").add("map", "src").add("more", "map").sink("out", "more").compile()
    assert [node.uid for node in first.nodes] == [node.uid for node in renamed.nodes]
    assert first.nodes[-1].uid != longer.nodes[-1].uid
    assert len({node.uid for node in longer.nodes}) == 4


def test_a_uid_belongs_to_one_operator() -> None:
    graph = Graph().add("src", uid="x").sink("out", "src", uid="x")
    with pytest.raises(GraphError, match="'x' is given to both 'src' and 'out'"):
        graph.compile()


def test_parallelism_up_to_the_number_of_key_groups() -> None:
    with pytest.raises(GraphError, match="parallelism 5 but max parallelism 4"):
        Graph().add("src").sink("out", "src").compile(parallelism=5, max_parallelism=4)


def test_chains_end_at_exchanges_and_where_they_are_told_to() -> None:
    graph = Graph().add("src").add("a", "src").add("b", "a", chaining=Chaining.HEAD).add("c", "b")
    graph.add("d", "c", chaining=Chaining.NEVER).add("e", "d").sink("out", ("e", Rebalance()))
    chains = {node.name: node.chain for node in graph.compile().nodes}
    assert chains == {"src": 0, "a": 0, "b": 1, "c": 1, "d": 2, "e": 3, "out": 4}
    alone = {node.name: node.chain for node in graph.compile(chaining=False).nodes}
    assert len(set(alone.values())) == 7


def test_what_leads_to_no_sink_is_left_out() -> None:
    job = Graph().add("src").add("unused", "src").sink("out", "src").compile()
    assert [node.name for node in job.nodes] == ["src", "out"]


def test_a_program_without_a_sink_is_refused() -> None:
    with pytest.raises(GraphError, match="no sink"):
        Graph().add("src").add("map", "src").compile()
