"""Which operators share the resources of a slot, and how much of them there should be."""

from __future__ import annotations

from dataclasses import InitVar, dataclass, field

from millrace.errors import ConfigurationError

__all__ = ["MemorySize", "SlotSharingGroup"]


@dataclass(frozen=True, order=True)
class MemorySize:
    """A number of bytes.

    >>> MemorySize.of_mebi_bytes(2).get_kibi_bytes()
    2048
    """

    bytes_size: int = 0
    j_memory_size: InitVar[MemorySize | None] = None

    def __post_init__(self, j_memory_size: MemorySize | None) -> None:
        if j_memory_size is not None:
            # PyFlink wraps Java's sizes in its own; here both are of this class.
            object.__setattr__(self, "bytes_size", j_memory_size.bytes_size)
        if self.bytes_size < 0:
            message = f"a memory size of {self.bytes_size} bytes is impossible; use 0 or more"
            raise ConfigurationError(message)

    @staticmethod
    def of_mebi_bytes(mebi_bytes: int) -> MemorySize:
        """A size given in units of 1024 * 1024 bytes."""
        return MemorySize(mebi_bytes << 20)

    def get_bytes(self) -> int:
        """The size in bytes."""
        return self.bytes_size

    def get_kibi_bytes(self) -> int:
        """The size in units of 1024 bytes, cut off downwards."""
        return self.bytes_size >> 10

    def get_mebi_bytes(self) -> int:
        """The size in units of 1024 ** 2 bytes, cut off downwards."""
        return self.bytes_size >> 20

    def get_gibi_bytes(self) -> int:
        """The size in units of 1024 ** 3 bytes, cut off downwards."""
        return self.bytes_size >> 30

    def get_tebi_bytes(self) -> int:
        """The size in units of 1024 ** 4 bytes, cut off downwards."""
        return self.bytes_size >> 40

    def get_java_memory_size(self) -> MemorySize:
        """This size: there is no other behind it."""
        return self

    def __str__(self) -> str:
        return f"{self.bytes_size} bytes"


@dataclass(frozen=True)
class SlotSharingGroup:
    """A name for operators that share slots, with the resources they would like; made by ``builder``.

    On Spark all operators of a level share its tasks, and resources are given to executors as a whole: the group is
    kept, and changes nothing.

    >>> group = SlotSharingGroup.builder("heavy").set_cpu_cores(2.0).set_task_heap_memory_mb(512).build()
    >>> group.get_name(), group.get_cpu_cores(), group.get_task_heap_memory().get_mebi_bytes()
    ('heavy', 2.0, 512)
    """

    name: str
    cpu_cores: float | None = None
    task_heap_memory: MemorySize | None = None
    task_off_heap_memory: MemorySize | None = None
    managed_memory: MemorySize | None = None
    external_resources: dict[str, float] = field(default_factory=dict)

    def get_name(self) -> str:
        """The group's name."""
        return self.name

    def get_cpu_cores(self) -> float | None:
        """The cores wished for."""
        return self.cpu_cores

    def get_task_heap_memory(self) -> MemorySize | None:
        """The heap memory wished for."""
        return self.task_heap_memory

    def get_task_off_heap_memory(self) -> MemorySize | None:
        """The memory outside of the heap wished for."""
        return self.task_off_heap_memory

    def get_managed_memory(self) -> MemorySize | None:
        """The managed memory wished for."""
        return self.managed_memory

    def get_external_resources(self) -> dict[str, float]:
        """Other resources wished for, by name."""
        return dict(self.external_resources)

    def get_java_slot_sharing_group(self) -> SlotSharingGroup:
        """This group: there is no other behind it."""
        return self

    @staticmethod
    def builder(name: str) -> SlotSharingGroup.Builder:
        """Begin a group."""
        return SlotSharingGroup.Builder(name)

    class Builder:
        """Makes a `SlotSharingGroup` step by step."""

        def __init__(self, name: str) -> None:
            self._name = name
            self._cpu_cores: float | None = None
            self._memory: dict[str, MemorySize] = {}
            self._external: dict[str, float] = {}

        def set_cpu_cores(self, cpu_cores: float) -> SlotSharingGroup.Builder:
            """Wish for cores."""
            if cpu_cores <= 0:
                message = f"slot sharing group {self._name!r}: {cpu_cores} cores are too few; use more than 0"
                raise ConfigurationError(message)
            self._cpu_cores = cpu_cores
            return self

        def set_task_heap_memory(self, task_heap_memory: MemorySize) -> SlotSharingGroup.Builder:
            """Wish for heap memory."""
            self._memory["task_heap_memory"] = task_heap_memory
            return self

        def set_task_heap_memory_mb(self, task_heap_memory_mb: int) -> SlotSharingGroup.Builder:
            """Wish for heap memory, in MiB."""
            return self.set_task_heap_memory(MemorySize.of_mebi_bytes(task_heap_memory_mb))

        def set_task_off_heap_memory(self, task_off_heap_memory: MemorySize) -> SlotSharingGroup.Builder:
            """Wish for memory outside of the heap."""
            self._memory["task_off_heap_memory"] = task_off_heap_memory
            return self

        def set_task_off_heap_memory_mb(self, task_off_heap_memory_mb: int) -> SlotSharingGroup.Builder:
            """Wish for memory outside of the heap, in MiB."""
            return self.set_task_off_heap_memory(MemorySize.of_mebi_bytes(task_off_heap_memory_mb))

        def set_managed_memory(self, managed_memory: MemorySize) -> SlotSharingGroup.Builder:
            """Wish for managed memory."""
            self._memory["managed_memory"] = managed_memory
            return self

        def set_managed_memory_mb(self, managed_memory_mb: int) -> SlotSharingGroup.Builder:
            """Wish for managed memory, in MiB."""
            return self.set_managed_memory(MemorySize.of_mebi_bytes(managed_memory_mb))

        def set_external_resource(self, name: str, value: float) -> SlotSharingGroup.Builder:
            """Wish for another resource, such as a GPU."""
            self._external[name] = value
            return self

        def build(self) -> SlotSharingGroup:
            """The group; cores and heap memory are wished for together, or no resources at all."""
            heap = self._memory.get("task_heap_memory")
            wishes = bool(self._cpu_cores or self._memory or self._external)
            if wishes and (self._cpu_cores is None or heap is None or heap.get_bytes() == 0):
                message = (
                    f"slot sharing group {self._name!r}: a group with resources needs set_cpu_cores(...) and "
                    "set_task_heap_memory(...) of more than 0 bytes; call both, or neither of the setters"
                )
                raise ConfigurationError(message)
            if wishes:
                for kind in ("task_off_heap_memory", "managed_memory"):
                    self._memory.setdefault(kind, MemorySize(0))
            return SlotSharingGroup(
                self._name, self._cpu_cores, **self._memory, external_resources=dict(self._external)
            )
