"""When the sink begins a new part, and what parts are called."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from millrace.errors import ConfigurationError

__all__ = ["OutputFileConfig", "RollingPolicy"]

_DEFAULT_PART_SIZE: Final = 128 * 1024 * 1024
_MINUTE_MS: Final = 60_000


@dataclass(frozen=True)
class RollingPolicy:
    """When a part is closed and the next one begun.

    Every part ends with its epoch, whatever the policy: a part is committed as a whole or not at all. The limits of the
    default policy close it earlier.

    >>> RollingPolicy.default_rolling_policy(part_size=1000).part_size
    1000
    >>> RollingPolicy.on_checkpoint_rolling_policy().part_size is None
    True
    """

    part_size: int | None = None
    rollover_interval: int | None = None
    inactivity_interval: int | None = None

    def __post_init__(self) -> None:
        for name, limit in vars(self).items():
            if limit is not None and limit <= 0:
                raise ConfigurationError(f"rolling policy: {name}={limit}; use a number above 0")

    @staticmethod
    def default_rolling_policy(
        part_size: int = _DEFAULT_PART_SIZE,
        rollover_interval: int = _MINUTE_MS,
        inactivity_interval: int = _MINUTE_MS,
    ) -> RollingPolicy:
        """Also when a part has this many bytes, is this old or was idle for this long (both in milliseconds)."""
        return RollingPolicy(part_size, rollover_interval, inactivity_interval)

    @staticmethod
    def on_checkpoint_rolling_policy() -> RollingPolicy:
        """Only at the end of an epoch."""
        return RollingPolicy()

    def expired(self, now: int, opened: int, last_written: int) -> bool:
        """Whether a part that was opened and last written at these times is too old for another record."""
        too_old = self.rollover_interval is not None and now - opened >= self.rollover_interval
        too_idle = self.inactivity_interval is not None and now - last_written >= self.inactivity_interval
        return too_old or too_idle


class OutputFileConfig:
    """The beginning and the end of the names of parts; between them stands what makes a name unique.

    >>> config = OutputFileConfig.builder().with_part_prefix("events").with_part_suffix(".csv").build()
    >>> config.part_prefix, config.part_suffix
    ('events', '.csv')
    """

    def __init__(self, part_prefix: str = "part", part_suffix: str = "") -> None:
        if not part_prefix or part_prefix.startswith((".", "_")) or "/" in part_prefix + part_suffix:
            message = (
                f"parts cannot be called {part_prefix!r}...{part_suffix!r}: a name must not begin with '.' or '_', "
                "which readers ignore, and must not hold '/'"
            )
            raise ConfigurationError(message)
        self.part_prefix = part_prefix
        self.part_suffix = part_suffix

    @staticmethod
    def builder() -> OutputFileConfig.OutputFileConfigBuilder:
        """Begin with ``part`` and nothing behind it."""
        return OutputFileConfig.OutputFileConfigBuilder()

    class OutputFileConfigBuilder:
        """Puts a configuration together."""

        def __init__(self) -> None:
            self._prefix = "part"
            self._suffix = ""

        def with_part_prefix(self, prefix: str) -> OutputFileConfig.OutputFileConfigBuilder:
            """What names begin with."""
            self._prefix = prefix
            return self

        def with_part_suffix(self, suffix: str) -> OutputFileConfig.OutputFileConfigBuilder:
            """What names end with, such as ``.csv``."""
            self._suffix = suffix
            return self

        def build(self) -> OutputFileConfig:
            """The configuration."""
            return OutputFileConfig(self._prefix, self._suffix)
