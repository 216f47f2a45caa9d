"""The program as it is written: nodes, and the edges between them."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from millrace.graph.partitioners import Partitioner

__all__ = ["Chaining", "Edge", "Node", "NodeKind"]


class NodeKind(Enum):
    """What a node is to the graph; the values are the words of Flink's plan."""

    SOURCE = "Data Source"
    OPERATOR = "Operator"
    SINK = "Data Sink"


class Chaining(Enum):
    """With whom an operator may share a chain."""

    ALWAYS = "always"
    HEAD = "head"
    NEVER = "never"


@dataclass(eq=False)
class Edge:
    """From one node's output to one input of another.

    ``partitioner`` None leaves it to the compiler: forward where both sides have the same parallelism, else rebalance.
    """

    source: Node
    partitioner: Partitioner | None = None
    tag: str | None = None
    side: int = 0


@dataclass(eq=False)
class Node:
    """One step of the program.

    ``operator`` is a template: it is pickled once and every task unpickles an instance of its own. ``source`` is
    there for sources that Millrace reads itself, ``external`` for those that Spark reads (an object of the Spark
    layer, never pickled).
    """

    id: int
    name: str
    kind: NodeKind
    operator: Any = None
    source: Any = None
    external: Any = None
    inputs: list[Edge] = field(default_factory=list)
    parallelism: int | None = None
    max_parallelism: int | None = None
    uid: str | None = None
    uid_hash: str | None = None
    description: str | None = None
    slot_sharing_group: str | None = None
    chaining: Chaining = Chaining.ALWAYS
    keyed: bool = False
    output_type: Any = None
    type_name: str | None = None
    non_parallel: bool = False
    lane: str = "python"
    lane_reason: str = ""

    def describe(self) -> str:
        """The node as messages name it."""
        return f"{self.name!r}" if self.uid is None else f"{self.name!r} (uid {self.uid})"
