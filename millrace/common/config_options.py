"""Settings with a name, a type and a default, declared once and read from any `Configuration`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from millrace.common.time import Duration, parse_duration
from millrace.errors import ConfigurationError

__all__ = ["ConfigOption", "ConfigOptions"]

T = TypeVar("T")


@dataclass(frozen=True)
class ConfigOption(Generic[T]):
    """One setting: its key, how its text is read, and its default if there is one.

    >>> option = ConfigOptions.key("pipeline.name").string_type().default_value("job")
    >>> option.key, option.default_value
    ('pipeline.name', 'job')
    """

    key: str
    parse: Callable[[Any], T]
    default_value: T | None

    def read(self, value: Any) -> T:
        """A stored value, or its text, as a value of this option."""
        try:
            return self.parse(value)
        except (TypeError, ValueError) as error:
            raise ConfigurationError(f"{self.key}: {value!r} is {_explanation(error)}") from error


@dataclass(frozen=True)
class _TypedOption(Generic[T]):
    """An option that still lacks the decision about its default."""

    key: str
    parse: Callable[[Any], T]

    def default_value(self, value: T) -> ConfigOption[T]:
        """The option has this value where it is not set."""
        return ConfigOption(self.key, self.parse, value)

    def no_default_value(self) -> ConfigOption[T]:
        """The option is None where it is not set."""
        return ConfigOption(self.key, self.parse, None)


@dataclass(frozen=True)
class ConfigOptions:
    """Declares an option step by step: key, type, default.

    >>> ConfigOptions.key("taskmanager.count").int_type().no_default_value().default_value is None
    True
    """

    _key: str

    @staticmethod
    def key(key: str) -> ConfigOptions:
        """Begin an option of this name."""
        return ConfigOptions(key)

    def boolean_type(self) -> _TypedOption[bool]:
        """The option is true or false."""
        return _TypedOption(self._key, parse_boolean)

    def int_type(self) -> _TypedOption[int]:
        """The option is a whole number."""
        return _TypedOption(self._key, parse_integer)

    def long_type(self) -> _TypedOption[int]:
        """The option is a whole number."""
        return _TypedOption(self._key, parse_integer)

    def float_type(self) -> _TypedOption[float]:
        """The option is a number."""
        return _TypedOption(self._key, parse_float)

    def double_type(self) -> _TypedOption[float]:
        """The option is a number."""
        return _TypedOption(self._key, parse_float)

    def string_type(self) -> _TypedOption[str]:
        """The option is a text."""
        return _TypedOption(self._key, parse_string)

    def duration_type(self) -> _TypedOption[Duration]:
        """The option is a length of time, such as `10 s`."""
        return _TypedOption(self._key, parse_length)


def parse_boolean(value: Any) -> bool:
    """A truth value or its text, in any case."""
    text = str(value).strip().lower()
    if text not in ("true", "false"):
        raise ValueError("no truth value; write true or false")
    return text == "true"


def parse_integer(value: Any) -> int:
    """A whole number or its text."""
    try:
        return int(str(value).strip())
    except ValueError:
        raise ValueError("no whole number") from None


def parse_float(value: Any) -> float:
    """A number or its text."""
    try:
        return float(str(value).strip())
    except ValueError:
        raise ValueError("no number") from None


def parse_string(value: Any) -> str:
    """The text of any stored value."""
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


def parse_length(value: Any) -> Duration:
    """A length of time or its text."""
    return value if isinstance(value, Duration) else parse_duration(str(value))


def _explanation(error: Exception) -> str:
    return "no length of time; write it as in '10 s'" if isinstance(error, ConfigurationError) else str(error)
