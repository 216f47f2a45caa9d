"""When and how a job writes checkpoints."""

from __future__ import annotations

from typing import Final

from millrace.common.configuration import Configuration
from millrace.common.time import Duration
from millrace.datastream.checkpointing_mode import CheckpointingMode
from millrace.datastream.externalized_checkpoint_retention import ExternalizedCheckpointRetention
from millrace.errors import ConfigurationError

__all__ = ["CheckpointConfig"]

_PREFIX: Final = "execution.checkpointing."
_ANY_NUMBER_OF_FAILURES: Final = 2**31 - 1


class CheckpointConfig:
    """The settings under ``execution.checkpointing.``, by name; every setter returns the object itself.

    Millrace checkpoints at the end of an epoch, when nothing is in flight. Settings about checkpoints that overlap or
    that overtake records are kept and given back, and have nothing to act on.

    >>> config = CheckpointConfig().set_checkpoint_interval(10_000)
    >>> config.is_checkpointing_enabled(), config.get_checkpointing_mode().name
    (True, 'EXACTLY_ONCE')
    """

    DEFAULT_MODE: Final = CheckpointingMode.EXACTLY_ONCE
    DEFAULT_TIMEOUT: Final = 600_000
    DEFAULT_MIN_PAUSE_BETWEEN_CHECKPOINTS: Final = 0
    DEFAULT_MAX_CONCURRENT_CHECKPOINTS: Final = 1

    def __init__(self, configuration: Configuration | None = None) -> None:
        self._configuration = Configuration() if configuration is None else configuration

    def is_checkpointing_enabled(self) -> bool:
        """Whether the job writes checkpoints."""
        return self.get_checkpoint_interval() > 0

    def get_checkpointing_mode(self) -> CheckpointingMode:
        """What a checkpoint promises; AT_LEAST_ONCE while there are none, and nothing was set."""
        default = self.DEFAULT_MODE if self.is_checkpointing_enabled() else CheckpointingMode.AT_LEAST_ONCE
        name = self._configuration.get_string(f"{_PREFIX}mode", default.name)
        try:
            return CheckpointingMode[name.upper().replace("-", "_")]
        except KeyError:
            message = f"{_PREFIX}mode: {name!r} is unknown; use EXACTLY_ONCE or AT_LEAST_ONCE"
            raise ConfigurationError(message) from None

    def set_checkpointing_mode(self, checkpointing_mode: CheckpointingMode) -> CheckpointConfig:
        """Set what a checkpoint promises."""
        self._configuration.set_string(f"{_PREFIX}mode", checkpointing_mode.name)
        return self

    def get_checkpoint_interval(self) -> int:
        """Milliseconds between two checkpoints; -1 if there are none."""
        return self._millis("interval", -1)

    def set_checkpoint_interval(self, checkpoint_interval: int) -> CheckpointConfig:
        """Set the milliseconds between two checkpoints."""
        return self._set_millis("interval", checkpoint_interval, least=1)

    def get_checkpoint_timeout(self) -> int:
        """Milliseconds after which a checkpoint that is not done counts as failed."""
        return self._millis("timeout", self.DEFAULT_TIMEOUT)

    def set_checkpoint_timeout(self, checkpoint_timeout: int) -> CheckpointConfig:
        """Set the milliseconds after which a checkpoint counts as failed."""
        return self._set_millis("timeout", checkpoint_timeout, least=10)

    def get_min_pause_between_checkpoints(self) -> int:
        """Milliseconds from the end of a checkpoint to the start of the next."""
        return self._millis("min-pause", self.DEFAULT_MIN_PAUSE_BETWEEN_CHECKPOINTS)

    def set_min_pause_between_checkpoints(self, min_pause_between_checkpoints: int) -> CheckpointConfig:
        """Set the milliseconds from the end of a checkpoint to the start of the next."""
        return self._set_millis("min-pause", min_pause_between_checkpoints, least=0)

    def get_max_concurrent_checkpoints(self) -> int:
        """How many checkpoints may be under way."""
        return self._integer("max-concurrent-checkpoints", self.DEFAULT_MAX_CONCURRENT_CHECKPOINTS)

    def set_max_concurrent_checkpoints(self, max_concurrent_checkpoints: int) -> CheckpointConfig:
        """Set how many checkpoints may be under way."""
        return self._set_integer("max-concurrent-checkpoints", max_concurrent_checkpoints, least=1)

    def is_fail_on_checkpointing_errors(self) -> bool:
        """Whether a failed checkpoint fails the job."""
        return self.get_tolerable_checkpoint_failure_number() == 0

    def set_fail_on_checkpointing_errors(self, fail_on_checkpointing_errors: bool) -> CheckpointConfig:
        """Set whether a failed checkpoint fails the job."""
        tolerable = 0 if fail_on_checkpointing_errors else _ANY_NUMBER_OF_FAILURES
        return self.set_tolerable_checkpoint_failure_number(tolerable)

    def get_tolerable_checkpoint_failure_number(self) -> int:
        """How many checkpoints in a row may fail before the job does."""
        return self._integer("tolerable-failed-checkpoints", 0)

    def set_tolerable_checkpoint_failure_number(self, tolerable_checkpoint_failure_number: int) -> CheckpointConfig:
        """Set how many checkpoints in a row may fail before the job does."""
        return self._set_integer("tolerable-failed-checkpoints", tolerable_checkpoint_failure_number, least=0)

    def get_externalized_checkpoint_retention(self) -> ExternalizedCheckpointRetention:
        """What becomes of the checkpoints of a job that was cancelled."""
        default = ExternalizedCheckpointRetention.NO_EXTERNALIZED_CHECKPOINTS.name
        name = self._configuration.get_string(f"{_PREFIX}externalized-checkpoint-retention", default)
        try:
            return ExternalizedCheckpointRetention[name.upper().replace("-", "_")]
        except KeyError:
            known = ", ".join(retention.name for retention in ExternalizedCheckpointRetention)
            message = f"{_PREFIX}externalized-checkpoint-retention: {name!r} is unknown; use one of {known}"
            raise ConfigurationError(message) from None

    def set_externalized_checkpoint_retention(
        self, retention_mode: ExternalizedCheckpointRetention
    ) -> CheckpointConfig:
        """Set what becomes of the checkpoints of a job that was cancelled."""
        self._configuration.set_string(f"{_PREFIX}externalized-checkpoint-retention", retention_mode.name)
        return self

    def is_externalized_checkpoints_enabled(self) -> bool:
        """Whether checkpoints outlive the job."""
        never = ExternalizedCheckpointRetention.NO_EXTERNALIZED_CHECKPOINTS
        return self.get_externalized_checkpoint_retention() is not never

    def is_unaligned_checkpoints_enabled(self) -> bool:
        """Whether checkpoints may overtake records."""
        return self._configuration.get_boolean(f"{_PREFIX}unaligned.enabled", False)

    def enable_unaligned_checkpoints(self, enabled: bool = True) -> CheckpointConfig:
        """Note the wish that checkpoints overtake records."""
        self._configuration.set_boolean(f"{_PREFIX}unaligned.enabled", enabled)
        return self

    def disable_unaligned_checkpoints(self) -> CheckpointConfig:
        """Withdraw the wish that checkpoints overtake records."""
        return self.enable_unaligned_checkpoints(False)

    def get_aligned_checkpoint_timeout(self) -> Duration:
        """How long a checkpoint waits before it overtakes records."""
        return self._configuration.get_duration(f"{_PREFIX}aligned-checkpoint-timeout", Duration.of_millis(0))

    def set_aligned_checkpoint_timeout(self, alignment_timeout: Duration) -> CheckpointConfig:
        """Note how long a checkpoint waits before it overtakes records."""
        self._configuration.set_duration(f"{_PREFIX}aligned-checkpoint-timeout", alignment_timeout)
        return self

    def get_alignment_timeout(self) -> Duration:
        """Another name of get_aligned_checkpoint_timeout()."""
        return self.get_aligned_checkpoint_timeout()

    def set_alignment_timeout(self, alignment_timeout: Duration) -> CheckpointConfig:
        """Another name of set_aligned_checkpoint_timeout()."""
        return self.set_aligned_checkpoint_timeout(alignment_timeout)

    def is_force_unaligned_checkpoints(self) -> bool:
        """Whether checkpoints overtake records in any case."""
        return self._configuration.get_boolean(f"{_PREFIX}unaligned.forced", False)

    def set_force_unaligned_checkpoints(self, force_unaligned_checkpoints: bool = True) -> CheckpointConfig:
        """Note the wish that checkpoints overtake records in any case."""
        self._configuration.set_boolean(f"{_PREFIX}unaligned.forced", force_unaligned_checkpoints)
        return self

    def set_checkpoint_storage_dir(self, checkpoint_path: str) -> CheckpointConfig:
        """Set the directory that checkpoints are written to."""
        self._configuration.set_string(f"{_PREFIX}dir", checkpoint_path)
        return self

    def get_checkpoint_storage_dir(self) -> str | None:
        """The directory that checkpoints are written to, None if none was set."""
        return self._configuration.get_string(f"{_PREFIX}dir", "") or None

    def _millis(self, key: str, default: int) -> int:
        if not self._configuration.contains_key(_PREFIX + key):
            return default
        return self._configuration.get_duration(_PREFIX + key, Duration.of_millis(0)).to_millis()

    def _set_millis(self, key: str, value: int, least: int) -> CheckpointConfig:
        self._configuration.set_duration(_PREFIX + key, Duration.of_millis(_at_least(key, value, least)))
        return self

    def _integer(self, key: str, default: int) -> int:
        return self._configuration.get_integer(_PREFIX + key, default)

    def _set_integer(self, key: str, value: int, least: int) -> CheckpointConfig:
        self._configuration.set_integer(_PREFIX + key, _at_least(key, value, least))
        return self


def _at_least(key: str, value: int, least: int) -> int:
    if value < least:
        message = f"{_PREFIX}{key}: {value} is too little; use {least} or more"
        raise ConfigurationError(message)
    return value
