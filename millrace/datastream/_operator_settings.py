"""What can be said about the operator that gives a stream, or that ends one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self

from millrace.datastream.slot_sharing_group import SlotSharingGroup
from millrace.errors import GraphError
from millrace.graph.node import Chaining, Node

__all__ = ["OperatorSettings"]


class OperatorSettings(ABC):
    """Name, uid, parallelism and chaining of an operator; every setter returns the stream or sink itself."""

    @abstractmethod
    def _set_on(self, what: str) -> tuple[Node, Node | None]:
        """The node that settings go to, and a node that shares its fate; a GraphError if there is no one node."""

    def name(self, name: str) -> Self:
        """Set the name that plans, logs and errors show."""
        self._set_on("name")[0].name = name
        return self

    def uid(self, uid: str) -> Self:
        """Set the address of the operator's state: the same uid finds the state again after the program has changed."""
        if not isinstance(uid, str) or not uid:
            message = f'uid takes a text that is unique in the program, not {uid!r}: uid("count-per-user"), for example'
            raise GraphError(message)
        node, companion = self._set_on("uid")
        node.uid = uid
        if companion is not None:
            companion.uid = f"{uid}-watermarks"
        return self

    def set_uid_hash(self, uid_hash: str) -> Self:
        """Set the address of the operator's state as the 32 hexadecimal digits of an earlier generated uid."""
        if len(uid_hash) != 32 or not all(digit in "0123456789abcdefABCDEF" for digit in uid_hash):
            message = f"set_uid_hash takes 32 hexadecimal digits, not {uid_hash!r}; for a name of your own use uid(...)"
            raise GraphError(message)
        self._set_on("set_uid_hash")[0].uid_hash = uid_hash.lower()
        return self

    def set_parallelism(self, parallelism: int) -> Self:
        """Set how many tasks run the operator."""
        node, companion = self._set_on("set_parallelism")
        _positive("set_parallelism", parallelism)
        if node.non_parallel and parallelism != 1:
            message = f"set_parallelism({parallelism}): {node.describe()} can only run in one task; leave it at 1"
            raise GraphError(message)
        for each in (node, companion):
            if each is not None:
                each.parallelism = parallelism
        return self

    def set_max_parallelism(self, max_parallelism: int) -> Self:
        """Set the number of key groups of the operator, and so how far it can ever be scaled."""
        node, companion = self._set_on("set_max_parallelism")
        _positive("set_max_parallelism", max_parallelism)
        for each in (node, companion):
            if each is not None:
                each.max_parallelism = max_parallelism
        return self

    def force_non_parallel(self) -> Self:
        """Run the operator in one task, whatever else is said about it."""
        node, companion = self._set_on("force_non_parallel")
        for each in (node, companion):
            if each is not None:
                each.non_parallel = True
                each.parallelism = 1
        return self

    def set_description(self, description: str) -> Self:
        """Set a longer text for people."""
        self._set_on("set_description")[0].description = description
        return self

    def start_new_chain(self) -> Self:
        """Let a new chain begin with the operator."""
        self._set_on("start_new_chain")[0].chaining = Chaining.HEAD
        return self

    def disable_chaining(self) -> Self:
        """Keep the operator out of chains."""
        self._set_on("disable_chaining")[0].chaining = Chaining.NEVER
        return self

    def set_buffer_timeout(self, timeout_millis: int) -> Self:
        """Accepted for programs that set it. Chunks are sent when they are full, and when an epoch ends."""
        self._set_on("set_buffer_timeout")
        return self

    def slot_sharing_group(self, slot_sharing_group: str | SlotSharingGroup) -> Self:
        """Note the group for plans. All operators of a level share its tasks, whatever their groups."""
        named = slot_sharing_group if isinstance(slot_sharing_group, str) else slot_sharing_group.get_name()
        self._set_on("slot_sharing_group")[0].slot_sharing_group = named
        return self


def _positive(method: str, value: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        message = f"{method}({value!r}): use a whole number of 1 or more"
        raise GraphError(message)
