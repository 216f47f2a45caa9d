"""The few Java objects that PyFlink programs and tests take hold of, without Java."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millrace.common.configuration import Configuration
from millrace.datastream.slot_sharing_group import MemorySize, SlotSharingGroup
from millrace.graph.compile import JobEdge, JobNode

if TYPE_CHECKING:
    from millrace.datastream.environment import StreamExecutionEnvironment

__all__ = ["JavaConfiguration", "JavaEnvironment", "is_chainable"]


class JavaConfiguration:
    """The settings of an environment under their Java names; what is set here is set there.

    >>> settings = Configuration()
    >>> JavaConfiguration(settings).setString("python.fn-execution.bundle.size", "1")
    >>> settings.get_integer("python.fn-execution.bundle.size", 0)
    1
    """

    def __init__(self, configuration: Configuration | None = None) -> None:
        self._configuration = Configuration() if configuration is None else configuration

    def setString(self, key: str, value: str) -> None:
        """Set a text."""
        self._configuration.set_string(key, value)

    def setInteger(self, key: str, value: int) -> None:
        """Set a whole number."""
        self._configuration.set_integer(key, value)

    def setBoolean(self, key: str, value: bool) -> None:
        """Set a truth value."""
        self._configuration.set_boolean(key, value)

    def getString(self, key: str, default: str | None = None) -> str | None:
        """The text that is set, or the default."""
        return self.getValue(key) if self.containsKey(key) else default

    def getInteger(self, key: str, default: int) -> int:
        """The whole number that is set, or the default."""
        return self._configuration.get_integer(key, default)

    def getBoolean(self, key: str, default: bool) -> bool:
        """The truth value that is set, or the default."""
        return self._configuration.get_boolean(key, default)

    def getValue(self, key: Any) -> str | None:
        """What is set, as text."""
        return self._configuration.to_dict().get(str(key))

    def containsKey(self, key: str) -> bool:
        """Whether the key is set."""
        return self._configuration.contains_key(key)

    def toMap(self) -> dict[str, str]:
        """All settings as text."""
        return self._configuration.to_dict()


class JavaList(list[Any]):
    """A list that answers to Java's names as well."""

    def get(self, index: int) -> Any:
        """The element at a position."""
        return self[index]

    def size(self) -> int:
        """The number of elements."""
        return len(self)

    def toArray(self) -> list[Any]:
        """The elements."""
        return list(self)


class _CachedFile:
    def __init__(self, name: str) -> None:
        self._name = name

    def getField(self, index: int) -> str:
        return self._name


class JavaEnvironment:
    """What is asked of the Java environment behind an environment: settings, files, and the graph."""

    def __init__(self, env: StreamExecutionEnvironment) -> None:
        self._env = env

    def getConfiguration(self) -> JavaConfiguration:
        """The settings of the environment."""
        return JavaConfiguration(self._env._configuration)

    def getCachedFiles(self) -> JavaList:
        """The files that were registered."""
        text = self._env._configuration.get_string("pipeline.cached-files", "")
        names = [part.partition("name:")[2].partition(",")[0] for part in text.split(";") if part]
        return JavaList(_CachedFile(name) for name in names)

    def getStreamGraph(self, clear_transformations: bool = True) -> JavaStreamGraph:
        """The program as a graph; forgets the program unless told otherwise."""
        graph = JavaStreamGraph(self._env)
        if clear_transformations:
            self._env._nodes.clear()
        return graph


class JavaStreamGraph:
    """The operators of a program, for those who look at names, groups and chains."""

    def __init__(self, env: StreamExecutionEnvironment) -> None:
        self._job = env.compile()
        self._groups = dict(env._slot_sharing_groups)

    def getStreamNodes(self) -> JavaList:
        """All operators."""
        return JavaList(JavaStreamNode(node) for node in self._job.nodes)

    def getSlotSharingGroupResource(self, name: str) -> JavaOptional:
        """What a registered group asks for, if it asks for anything."""
        group = self._groups.get(name)
        return JavaOptional(None if group is None or group.get_cpu_cores() is None else JavaResourceProfile(group))


class JavaOptional:
    """A value, or none."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def isPresent(self) -> bool:
        """Whether there is a value."""
        return self._value is not None

    def get(self) -> Any:
        """The value."""
        if self._value is None:
            raise ValueError("there is no value: ask isPresent() first")
        return self._value


class JavaResourceProfile:
    """What a slot sharing group asks for."""

    def __init__(self, group: SlotSharingGroup) -> None:
        self._group = group

    def getCpuCores(self) -> JavaCpuCores:
        """The number of cores."""
        return JavaCpuCores(self._group.get_cpu_cores())

    def getTaskHeapMemory(self) -> MemorySize | None:
        """The memory of the heap."""
        return self._group.get_task_heap_memory()

    def getTaskOffHeapMemory(self) -> MemorySize | None:
        """The memory outside of the heap."""
        return self._group.get_task_off_heap_memory()

    def getManagedMemory(self) -> MemorySize | None:
        """The memory that is managed."""
        return self._group.get_managed_memory()


class JavaCpuCores:
    """A number of cores."""

    def __init__(self, value: float | None) -> None:
        self._value = value

    def getValue(self) -> float | None:
        """The number."""
        return self._value


class JavaStreamNode:
    """One operator."""

    def __init__(self, node: JobNode) -> None:
        self._node = node

    def getOperatorName(self) -> str:
        """The name that was set."""
        return self._node.name

    def getSlotSharingGroup(self) -> str:
        """The group that was set, or that of the operators it reads."""
        own = self._node.node.slot_sharing_group
        groups = {JavaStreamNode(edge.source).getSlotSharingGroup() for edge in self._node.inputs}
        return own or (groups.pop() if len(groups) == 1 else "default")

    def getParallelism(self) -> int:
        """The number of tasks."""
        return self._node.parallelism

    def getInEdges(self) -> JavaList:
        """What it reads."""
        return JavaList(self._node.inputs)

    def getOutEdges(self) -> JavaList:
        """Who reads it."""
        return JavaList(self._node.outputs)


def is_chainable(edge: JobEdge, graph: JavaStreamGraph | None = None) -> bool:
    """Whether the two operators of an edge share a chain."""
    return edge.source.chain == edge.target.chain
