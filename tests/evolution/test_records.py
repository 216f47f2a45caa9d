"""Dataclasses in stored state that gained and lost fields."""

from __future__ import annotations

import base64
import copy
import dataclasses
import pickle
import sys
from collections.abc import Iterator
from dataclasses import InitVar, dataclass, field, make_dataclass
from types import ModuleType
from typing import Any, ClassVar, Generic, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millrace.errors import ConfigurationError, RestoreError
from millrace.runtime.codec import dump_records
from millrace.state import records
from millrace.state.codec import dump, load
from millrace.state.evolution import register_alias

T = TypeVar("T")
HOME = "stored_program"


@pytest.fixture(autouse=True)
def program() -> Iterator[ModuleType]:
    """A module whose classes a test may change between writing and reading."""
    module = sys.modules[HOME] = ModuleType(HOME)
    known = dict(records._aliases)
    yield module
    del sys.modules[HOME]
    records._aliases.clear()
    records._aliases.update(known)


def define(name: str, fields: list[Any], **options: Any) -> type:
    made = make_dataclass(name, fields, **options)
    made.__module__ = HOME
    setattr(sys.modules[HOME], name, made)
    return made


SHAPES = [{}, {"frozen": True}, {"slots": True}, {"frozen": True, "slots": True}, {"kw_only": True}]


@pytest.mark.parametrize("options", SHAPES)
def test_fields_come_and_go(options: dict[str, bool]) -> None:
    old = define("Order", [("id", int), ("note", str)], **options)
    stored = dump({"a": old(id=1, note="gone")})
    new = define("Order", [("id", int), ("tags", list, field(default_factory=list)), ("state", str, "open")], **options)
    order = load(stored)["a"]
    assert order == new(id=1)
    assert (order.tags, order.state, hasattr(order, "note")) == ([], "open", False)


@pytest.mark.parametrize("options", SHAPES)
def test_the_same_class_comes_back_equal(options: dict[str, bool]) -> None:
    order = define("Order", [("id", int), ("tags", list)], **options)(id=1, tags=["x"])
    assert load(dump(order)) == order
    assert pickle.loads(dump(order)) == order


def test_each_instance_gets_a_default_of_its_own() -> None:
    old = define("Order", [])
    stored = dump([old(), old()])
    define("Order", [("tags", list, field(default_factory=list))])
    one, other = load(stored)
    one.tags.append("x")
    assert other.tags == []


def test_a_new_field_without_default_is_refused() -> None:
    stored = dump(define("Order", [("id", int)])(1))
    define("Order", [("id", int), ("price", float)])
    with pytest.raises(RestoreError, match=r"stored_program\.Order have no field 'price'.*price: \.\.\. = <default>"):
        load(stored)


def test_nested_records_evolve_as_well() -> None:
    item = define("Item", [("name", str), ("old", int)])
    order = define("Order", [("items", list), ("best", item)], frozen=True)
    shared = item("tea", 1)
    stored = dump(order([shared, item("rum", 2)], shared))
    new = define("Item", [("name", str), ("count", int, 1)])
    loaded = load(stored)
    assert loaded.items == [new("tea"), new("rum")]
    assert loaded.items[0] is loaded.best


def test_a_record_that_holds_itself() -> None:
    node = define("Node", [("next", Any, None)])()
    node.next = node
    stored = dump(node)
    define("Node", [("next", Any, None), ("label", str, "")])
    loaded = load(stored)
    assert loaded.next is loaded
    assert loaded.label == ""


@dataclass
class Base(Generic[T]):
    shared: ClassVar[int] = 3
    id: int
    scale: InitVar[int] = 2
    scaled: int = field(init=False)
    unset: int = field(init=False)

    def __post_init__(self, scale: int) -> None:
        self.scaled = self.id * scale
        self.cache = "kept"


@dataclass(slots=True)
class WithSlots(Base[int]):
    extra: int = 5


def test_derived_unset_and_other_attributes_come_back() -> None:
    for made in (Base[int](4), WithSlots(4)):
        loaded = load(dump(made))
        assert type(loaded) is type(made)
        assert (loaded.id, loaded.scaled, loaded.cache, hasattr(loaded, "unset")) == (4, 8, "kept", False)


@dataclass
class OwnWay:
    value: int

    def __getstate__(self) -> int:
        return self.value

    def __setstate__(self, value: int) -> None:
        self.value = value + 100


@dataclass
class Named(dict[str, int]):
    label: str = ""


def test_classes_with_a_way_of_their_own_keep_it() -> None:
    assert load(dump(OwnWay(1))) == OwnWay(101)
    named = Named("x")
    named["a"] = 1
    loaded = load(dump(named))
    assert (loaded.label, dict(loaded)) == ("x", {"a": 1})


def test_classes_made_inside_a_function_travel_by_value() -> None:
    @dataclass
    class Local:
        a: int

    stored = dump([Local(1), define("Order", [("id", int)])(7), lambda: 3])
    new = define("Order", [("id", int), ("more", int, 0)])
    local, order, function = load(stored)
    assert (local.a, order, function()) == (1, new(7), 3)


def test_a_renamed_class_needs_an_alias(program: ModuleType) -> None:
    stored = dump(define("Order", [("id", int)])(1))
    del program.Order  # type: ignore[attr-defined]
    with pytest.raises(RestoreError, match=r"register_alias\('stored_program:Order', NewClass\)"):
        load(stored)
    purchase = define("Purchase", [("id", int), ("price", float, 0.0)])
    register_alias("stored_program:Order", purchase)
    assert load(stored) == purchase(1)


def test_a_class_may_be_read_as_a_dict() -> None:
    stored = dump([define("Order", [("id", int)])(1)])
    register_alias("stored_program:Order", dict)
    assert load(stored) == [{"id": 1}]


def test_an_alias_may_be_a_plain_class(program: ModuleType) -> None:
    class Plain:
        id: int

    stored = dump(define("Order", [("id", int)], frozen=True)(1))
    register_alias("stored_program:Order", Plain)
    loaded = load(stored)
    assert (type(loaded), loaded.id) == (Plain, 1)


@pytest.mark.parametrize(("name", "kind"), [("Order", dict), ("", dict), ("module:", dict), ("a:B", 3)])
def test_an_alias_that_names_nothing(name: str, kind: Any) -> None:
    with pytest.raises(ConfigurationError):
        register_alias(name, kind)


@pytest.mark.parametrize("wrapped", [lambda key: key, lambda key: ("x", (key, 1)), lambda key: frozenset([key])])
def test_keys_may_not_change(wrapped: Any) -> None:
    key = define("Key", [("id", int)], frozen=True)(1)
    content = {"uid": {"keyed": {"s": (None, ([], {"": ({wrapped(key): 1}, [])}))}}}
    stored = dump(content)
    assert load(stored) == content
    define("Key", [("id", int), ("region", str, "")], frozen=True)
    with pytest.raises(RestoreError, match=r"stored_program\.Key is a key in stored state.*keys cannot change"):
        load(stored)


def test_keys_of_timers_may_not_change() -> None:
    key = define("Key", [("id", int)], frozen=True)(1)
    stored = dump({"uid": {"event_timers": ([], [(10, key, "")])}})
    define("Key", [], frozen=True)
    with pytest.raises(RestoreError, match="keys cannot change"):
        load(stored)


def test_the_class_of_a_key_may_move_but_not_change_its_name(program: ModuleType) -> None:
    key = define("Key", [("id", int)], frozen=True)
    stored = dump({key(1): "value"})
    elsewhere = make_dataclass("Key", [("id", int)], frozen=True)
    register_alias("stored_program:Key", elsewhere)
    assert load(stored) == {elsewhere(1): "value"}
    register_alias("stored_program:Key", make_dataclass("Identity", [("id", int)], frozen=True))
    with pytest.raises(RestoreError, match="keys cannot change"):
        load(stored)


def test_plain_pickles_of_before_are_still_read() -> None:
    order = define("Order", [("id", int), ("tags", list)])(1, ["x"])
    frozen = define("Frozen", [("id", int)], frozen=True, slots=True)(2)
    content = {"a": order, "b": frozen, "c": [1, "two", (3.0, None)]}
    assert load(dump_records(content)) == content


PLAIN = (
    "gASVSwAAAAAAAAB9lCiMAWGUjA5zdG9yZWRfcHJvZ3JhbZSMBU9yZGVylJOUKYGUfZQojAJpZJRLAYwEdGFnc5RdlIwBeJRhdWKMAWOUSwFLAo"
    "aUdS4="
)
BY_NAME = (
    "gAWVcwAAAAAAAAB9lIwFb3JkZXKUjA5zdG9yZWRfcHJvZ3JhbZSMBU9yZGVylJOUKYGUjBZtaWxscmFjZS5zdGF0ZS5yZWNvcmRzlIwOcmVzdG"
    "9yZV9maWVsZHOUk5RoBX2UKIwCaWSUSwGMBG5vdGWUjANvbGSUdYZSMHMu"
)


def test_bytes_written_by_plain_pickle_stay_readable() -> None:
    order = define("Order", [("id", int), ("tags", list)])
    assert load(base64.b64decode(PLAIN)) == {"a": order(1, ["x"]), "c": (1, 2)}


def test_bytes_written_by_name_stay_readable() -> None:
    order = define("Order", [("id", int), ("more", int, 9)], frozen=True, slots=True)
    assert load(base64.b64decode(BY_NAME)) == {"order": order(1, 9)}


NAMES = st.sets(st.sampled_from(["a", "b", "c", "d", "e"]))


@given(before=NAMES, after=NAMES, old=st.sampled_from(SHAPES), new=st.sampled_from(SHAPES), values=st.data())
def test_random_fields_come_and_go(before: set[str], after: set[str], old: Any, new: Any, values: Any) -> None:
    sys.modules.setdefault(HOME, ModuleType(HOME))
    held = {name: values.draw(st.integers() | st.lists(st.text())) for name in sorted(before)}
    record = define("Random", [(name, Any) for name in sorted(before)], **old)(**held)
    stored = dump({"k": [record, copy.copy(record)], "raw": dataclasses.asdict(record)})
    defaults = {name: f"default of {name}" for name in after}
    evolved = define("Random", [(name, Any, defaults[name]) for name in sorted(after)], **new)
    expected = evolved(**{name: held.get(name, defaults[name]) for name in after})
    loaded = load(stored)
    assert loaded == {"k": [expected, expected], "raw": held}
    assert load(dump(loaded)) == loaded
