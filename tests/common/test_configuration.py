from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from millrace.common.config_options import ConfigOptions
from millrace.common.configuration import Configuration
from millrace.common.time import Duration
from millrace.errors import ConfigurationError


def filled() -> Configuration:
    return (
        Configuration()
        .set_string("str", "v1")
        .set_integer("int", 2)
        .set_boolean("bool", True)
        .set_float("float", 0.5)
        .set_bytearray("bytes", bytearray([1, 2, 3]))
        .set_duration("length", Duration.of_seconds(1))
    )


def test_values_come_back_with_their_types() -> None:
    conf = filled()
    assert conf.get_string("str", "") == "v1"
    assert conf.get_integer("int", 0) == 2
    assert conf.get_boolean("bool", False) is True
    assert conf.get_float("float", 0.0) == 0.5
    assert conf.get_bytearray("bytes", bytearray()) == bytearray([1, 2, 3])
    assert conf.get_duration("length", Duration.of_seconds(9)) == Duration.of_seconds(1)


def test_defaults() -> None:
    conf = Configuration()
    assert conf.get_string("k", "d") == "d"
    assert conf.get_integer("k", 3) == 3
    assert conf.get_boolean("k", True) is True
    assert conf.get_float("k", 1.5) == 1.5
    assert conf.get_bytearray("k", bytearray(b"x")) == bytearray(b"x")
    assert conf.get_duration("k", Duration.of_seconds(9)) == Duration.of_seconds(9)


def test_values_survive_as_text() -> None:
    text = filled().to_dict()
    assert text == {
        "str": "v1",
        "int": "2",
        "bool": "true",
        "float": "0.5",
        "bytes": "AQID",
        "length": "1000 ms",
    }
    conf = Configuration.from_dict(text)
    assert conf.get_integer("int", 0) == 2
    assert conf.get_boolean("bool", False) is True
    assert conf.get_float("float", 0.0) == 0.5
    assert conf.get_bytearray("bytes", bytearray()) == bytearray([1, 2, 3])
    assert conf.get_duration("length", Duration.of_seconds(9)) == Duration.of_seconds(1)
    assert filled().get_string("bool", "") == "true"


def test_malformed_values_name_their_key() -> None:
    conf = Configuration.from_dict({"k": "many"})
    with pytest.raises(ConfigurationError, match="k: 'many' is no whole number"):
        conf.get_integer("k", 0)
    with pytest.raises(ConfigurationError, match="k: 'many' is no truth value; write true or false"):
        conf.get_boolean("k", False)
    with pytest.raises(ConfigurationError, match="k: 'many' is no number"):
        conf.get_float("k", 0.0)
    with pytest.raises(ConfigurationError, match="k: 'many' is no length of time; write it as in '10 s'"):
        conf.get_duration("k", Duration.of_millis(0))
    with pytest.raises(ConfigurationError, match="k: '!' is no bytes; write them in base64"):
        Configuration.from_dict({"k": "!"}).get_bytearray("k", bytearray())


def test_a_setting_needs_a_key() -> None:
    with pytest.raises(ConfigurationError, match="a setting needs a key; 'v' was set without one"):
        Configuration().set_string("", "v")


def test_keys() -> None:
    conf = Configuration.from_dict({"k1": "v1", "k2": "v2"})
    assert conf.key_set() == {"k1", "k2"}
    assert conf.contains_key("k1")
    assert conf.remove_config("k1")
    assert not conf.remove_config("k1")
    assert not conf.contains_key("k1")


def test_copies_are_independent() -> None:
    conf = Configuration.from_dict({"k1": "v1"})
    for copy in (Configuration(conf), deepcopy(conf)):
        assert copy == conf
        copy.set_string("k1", "v2")
        assert copy != conf
    assert conf.get_string("k1", "") == "v1"


def test_add_all() -> None:
    conf = (
        Configuration().add_all(Configuration.from_dict({"k": "v"})).add_all(Configuration.from_dict({"k": "w"}), "p.")
    )
    assert conf.to_dict() == {"k": "v", "p.k": "w"}
    target: dict[str, Any] = {}
    filled().add_all_to_dict(target)
    assert target["int"] == 2
    assert target["bytes"] == bytearray([1, 2, 3])


def test_equality_hash_and_text() -> None:
    first = Configuration().set_string("k1", "v1").set_integer("k2", 1)
    second = Configuration().set_string("k1", "v1")
    assert first != second
    assert hash(first) != hash(second)
    second.set_integer("k2", 1)
    assert first == second
    assert hash(first) == hash(second)
    assert str(first) == "{k1=v1, k2=1}"


@pytest.mark.parametrize("text", ["[a, b, c]", "['a', \"b\", c]", "- a\n- b\n- c", "a;b;c", " a ; b;c; "])
def test_lists(text: str) -> None:
    assert Configuration.parse_list_value(text) == ["a", "b", "c"]


def test_lists_of_nothing() -> None:
    assert Configuration.parse_list_value(None) == []
    assert Configuration.parse_list_value("") == []
    assert Configuration.parse_list_value("[]") == []


def test_options_of_every_type() -> None:
    key = ConfigOptions.key("k")
    assert key.boolean_type().default_value(True).default_value is True
    assert key.int_type().default_value(1).default_value == 1
    assert key.long_type().default_value(2).default_value == 2
    assert key.float_type().default_value(0.5).default_value == 0.5
    assert key.double_type().default_value(0.25).default_value == 0.25
    assert key.string_type().default_value("s").default_value == "s"
    assert key.duration_type().no_default_value().default_value is None


def test_options_are_read_and_set() -> None:
    option = ConfigOptions.key("parallelism.default").int_type().default_value(1)
    conf = Configuration()
    assert conf.get(option) == 1
    assert conf.set(option, 4).get(option) == 4
    assert Configuration.from_dict({"parallelism.default": "8"}).get(option) == 8
    with pytest.raises(ConfigurationError, match="parallelism.default: 'x' is no whole number"):
        conf.set(option, "x")  # type: ignore[misc]
