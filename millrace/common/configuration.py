"""Settings as keys and values."""

from __future__ import annotations

import base64
import builtins
from collections.abc import Mapping, MutableMapping
from typing import Any, TypeVar

from millrace.common.config_options import (
    ConfigOption,
    ConfigOptions,
    parse_boolean,
    parse_float,
    parse_integer,
    parse_length,
    parse_string,
)
from millrace.common.time import Duration
from millrace.errors import ConfigurationError

__all__ = ["ConfigOption", "ConfigOptions", "Configuration"]

T = TypeVar("T")


class Configuration:
    """Settings by key. Values keep the type they were set with and are read back from their text as well.

    >>> config = Configuration().set_integer("parallelism.default", 4)
    >>> config.set_string("execution.checkpointing.interval", "10 s").get_integer("parallelism.default", 1)
    4
    >>> config.get_duration("execution.checkpointing.interval", Duration.of_millis(0)).to_millis()
    10000
    """

    def __init__(self, other: Configuration | None = None, j_configuration: Any = None) -> None:
        # Where PyFlink shows its Java settings, there is one of ours behind them, to be shared and not copied.
        behind = getattr(j_configuration, "_configuration", None)
        self._values: dict[str, Any] = {} if behind is None else behind._values
        if other is not None:
            self._values = dict(other._values)

    @classmethod
    def from_dict(cls, map: Mapping[str, Any]) -> Configuration:
        """The settings of a dict."""
        configuration = cls()
        configuration._values.update(map)
        return configuration

    def get(self, option: ConfigOption[T]) -> T | None:
        """The value of a declared option, or its default."""
        return option.read(self._values[option.key]) if option.key in self._values else option.default_value

    def set(self, option: ConfigOption[T], value: T) -> Configuration:
        """Set a declared option; a value of another type is an error here rather than where it is read."""
        self._values[option.key] = option.read(value)
        return self

    def get_string(self, key: str, default_value: str) -> str:
        """The text set for the key, or the default."""
        return self._read(ConfigOption(key, parse_string, default_value), default_value)

    def set_string(self, key: str, value: str) -> Configuration:
        """Set a text."""
        return self._set(key, str(value))

    def get_integer(self, key: str, default_value: int) -> int:
        """The whole number set for the key, or the default."""
        return self._read(ConfigOption(key, parse_integer, default_value), default_value)

    def set_integer(self, key: str, value: int) -> Configuration:
        """Set a whole number."""
        return self._set(key, int(value))

    def get_boolean(self, key: str, default_value: bool) -> bool:
        """The truth value set for the key, or the default."""
        return self._read(ConfigOption(key, parse_boolean, default_value), default_value)

    def set_boolean(self, key: str, value: bool) -> Configuration:
        """Set a truth value."""
        return self._set(key, bool(value))

    def get_float(self, key: str, default_value: float) -> float:
        """The number set for the key, or the default."""
        return self._read(ConfigOption(key, parse_float, default_value), default_value)

    def set_float(self, key: str, value: float) -> Configuration:
        """Set a number."""
        return self._set(key, float(value))

    def get_duration(self, key: str, default_value: Duration) -> Duration:
        """The length of time set for the key, or the default."""
        return self._read(ConfigOption(key, parse_length, default_value), default_value)

    def set_duration(self, key: str, value: Duration) -> Configuration:
        """Set a length of time."""
        return self._set(key, value)

    def get_bytearray(self, key: str, default_value: bytearray) -> bytearray:
        """The bytes set for the key, or the default."""
        return self._read(ConfigOption(key, _parse_bytes, default_value), default_value)

    def set_bytearray(self, key: str, value: bytearray) -> Configuration:
        """Set bytes."""
        return self._set(key, bytearray(value))

    def key_set(self) -> builtins.set[str]:
        """All keys that are set."""
        return set(self._values)

    def contains_key(self, key: str) -> bool:
        """Whether the key is set."""
        return key in self._values

    def remove_config(self, key: str) -> bool:
        """Unset the key; whether it was set."""
        was_set = key in self._values
        self._values.pop(key, None)
        return was_set

    def add_all(self, other: Configuration, prefix: str | None = None) -> Configuration:
        """Take over all settings of another configuration, their keys behind `prefix`.

        >>> Configuration().add_all(Configuration.from_dict({"a": "1"}), "job.").to_dict()
        {'job.a': '1'}
        """
        for key, value in other._values.items():
            self._values[(prefix or "") + key] = value
        return self

    def add_all_to_dict(self, target_dict: MutableMapping[str, Any]) -> None:
        """Put all settings into a dict, with the types they were set with."""
        target_dict.update(self._values)

    def to_dict(self) -> dict[str, str]:
        """All settings as text."""
        return {key: _as_text(value) for key, value in self._values.items()}

    @staticmethod
    def parse_list_value(value: str | None) -> list[str]:
        """The items of a setting that is a list, in any of the ways to write one.

        >>> Configuration.parse_list_value("[a, b]"), Configuration.parse_list_value("a;b")
        (['a', 'b'], ['a', 'b'])
        >>> Configuration.parse_list_value("- a\\n- b"), Configuration.parse_list_value(None)
        (['a', 'b'], [])
        """
        text = (value or "").strip()
        if text.startswith("[") and text.endswith("]"):
            items = text[1:-1].split(",")
        elif text.startswith("- "):
            items = [line.strip().removeprefix("-") for line in text.splitlines()]
        else:
            items = text.split(";")
        return [item for item in (raw.strip().strip("'\"") for raw in items) if item]

    def _set(self, key: str, value: Any) -> Configuration:
        if not key:
            raise ConfigurationError(f"a setting needs a key; {value!r} was set without one")
        self._values[key] = value
        return self

    def _read(self, option: ConfigOption[T], default_value: T) -> T:
        return option.read(self._values[option.key]) if option.key in self._values else default_value

    def __eq__(self, other: object) -> bool:
        return self._values == other._values if isinstance(other, Configuration) else NotImplemented

    def __hash__(self) -> int:
        return hash(frozenset(self.to_dict().items()))

    def __repr__(self) -> str:
        return f"Configuration.from_dict({self._values!r})"

    def __str__(self) -> str:
        return "{" + ", ".join(f"{key}={value}" for key, value in self.to_dict().items()) + "}"


def _parse_bytes(value: Any) -> bytearray:
    if isinstance(value, bytes | bytearray):
        return bytearray(value)
    try:
        return bytearray(base64.b64decode(value, validate=True))
    except ValueError:
        raise ValueError("no bytes; write them in base64") from None


def _as_text(value: Any) -> str:
    if isinstance(value, bytes | bytearray):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, Duration):
        return f"{value.to_millis()} ms" if value == Duration.of_millis(value.to_millis()) else f"{value.to_nanos()} ns"
    return parse_string(value)
