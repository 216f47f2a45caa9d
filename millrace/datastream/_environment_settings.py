"""The settings of an environment: one configuration, and the named getters and setters on top of it."""

from __future__ import annotations

import json
import os
from typing import Any, ClassVar, Final, Self

from millrace.common.configuration import Configuration
from millrace.common.execution_config import ExecutionConfig
from millrace.common.restart_strategy import RestartStrategies, RestartStrategyConfiguration
from millrace.common.time import Duration
from millrace.datastream.checkpoint_config import CheckpointConfig
from millrace.datastream.checkpointing_mode import CheckpointingMode
from millrace.datastream.execution_mode import RuntimeExecutionMode
from millrace.datastream.slot_sharing_group import SlotSharingGroup
from millrace.datastream.state_backend import HashMapStateBackend, StateBackend
from millrace.datastream.time_characteristic import TimeCharacteristic
from millrace.errors import ConfigurationError, GraphError

__all__ = ["CONFIG_VARIABLE", "EnvironmentSettings"]

CONFIG_VARIABLE: Final = "MILLRACE_CONFIG"
"""The environment variable with settings from the command line, as a JSON object."""

PARALLELISM: Final = "parallelism.default"
MAX_PARALLELISM: Final = "pipeline.max-parallelism"
RUNTIME_MODE: Final = "execution.runtime-mode"
CHAINING: Final = "pipeline.operator-chaining.enabled"
BUFFER_TIMEOUT: Final = "execution.buffer-timeout.interval"
WATERMARK_INTERVAL: Final = "pipeline.auto-watermark-interval"
OBJECT_REUSE: Final = "pipeline.object-reuse"
AUTO_UIDS: Final = "pipeline.auto-generate-uids"
JOB_PARAMETERS: Final = "pipeline.global-job-parameters"
SAVEPOINT_DIR: Final = "execution.checkpointing.savepoint-dir"
CHANGELOG: Final = "state.changelog.enabled"


class EnvironmentSettings:
    """What can be set on an environment. Settings given by key and settings made by a method are the same settings.

    >>> settings = EnvironmentSettings(Configuration.from_dict({"parallelism.default": "3"}))
    >>> settings.get_parallelism(), settings.get_max_parallelism(), settings.get_buffer_timeout()
    (3, -1, 100)
    """

    _default_local_parallelism: ClassVar[int | None] = None

    def __init__(self, configuration: Configuration | None = None) -> None:
        self._configuration = Configuration()
        self._execution_config = ExecutionConfig()
        self._checkpoint_config = CheckpointConfig(self._configuration)
        self._state_backend: StateBackend | None = None
        self._time_characteristic = TimeCharacteristic.EventTime
        self._slot_sharing_groups: dict[str, SlotSharingGroup] = {}
        self.configure(_from_command_line())
        if configuration is not None:
            self.configure(configuration)

    def configure(self, configuration: Configuration) -> None:
        """Take over all settings of a configuration; those set before under the same keys give way."""
        self._configuration.add_all(configuration)
        config, execution = self._configuration, self._execution_config
        if config.contains_key(PARALLELISM):
            execution.set_parallelism(config.get_integer(PARALLELISM, -1))
        if config.contains_key(MAX_PARALLELISM):
            execution.set_max_parallelism(config.get_integer(MAX_PARALLELISM, 128))
        if config.contains_key(WATERMARK_INTERVAL):
            interval = config.get_duration(WATERMARK_INTERVAL, Duration.of_millis(200))
            execution.set_auto_watermark_interval(interval.to_millis())
        if config.contains_key(JOB_PARAMETERS):
            execution.set_global_job_parameters(_parse_parameters(config.get_string(JOB_PARAMETERS, "")))
        if config.get_boolean(OBJECT_REUSE, False):
            execution.enable_object_reuse()
        if not config.get_boolean(AUTO_UIDS, True):
            execution.disable_auto_generated_uids()
        self._runtime_mode()

    def get_config(self) -> ExecutionConfig:
        """Settings of the execution that are no keys."""
        return self._execution_config

    def get_configuration(self) -> Configuration:
        """A copy of all settings by key."""
        return Configuration(self._configuration)

    # Parallelism

    def set_parallelism(self, parallelism: int) -> Self:
        """Set how many tasks run each operator that sets no number itself."""
        self._execution_config.set_parallelism(parallelism)
        return self

    def get_parallelism(self) -> int:
        """How many tasks run each operator that sets no number itself: by default as many as there are cores."""
        own = self._execution_config.get_parallelism()
        return own if own > 0 else self.get_default_local_parallelism()

    def set_max_parallelism(self, max_parallelism: int) -> Self:
        """Set the number of key groups, and so how far operators can ever be scaled."""
        self._execution_config.set_max_parallelism(max_parallelism)
        return self

    def get_max_parallelism(self) -> int:
        """The number of key groups; -1 if it follows from the parallelism."""
        return self._execution_config.get_max_parallelism()

    @staticmethod
    def get_default_local_parallelism() -> int:
        """The parallelism of environments that set none: the number of cores, unless set."""
        return EnvironmentSettings._default_local_parallelism or os.cpu_count() or 1

    @staticmethod
    def set_default_local_parallelism(parallelism: int) -> None:
        """Set the parallelism of environments that set none."""
        if parallelism < 1:
            message = f"set_default_local_parallelism: {parallelism} tasks cannot run; use 1 or more"
            raise ConfigurationError(message)
        EnvironmentSettings._default_local_parallelism = parallelism

    # Execution

    def set_runtime_mode(self, execution_mode: RuntimeExecutionMode) -> Self:
        """Set whether the program runs as a stream or as a batch."""
        self._configuration.set_string(RUNTIME_MODE, execution_mode.value)
        return self

    def _runtime_mode(self) -> RuntimeExecutionMode:
        name = self._configuration.get_string(RUNTIME_MODE, "STREAMING")
        try:
            return RuntimeExecutionMode(name.upper())
        except ValueError:
            message = f"{RUNTIME_MODE}: {name!r} is unknown; use STREAMING, BATCH or AUTOMATIC"
            raise ConfigurationError(message) from None

    def set_buffer_timeout(self, timeout_millis: int) -> Self:
        """Note how long records may be gathered before they are sent; chunks go when full, or at an epoch's end."""
        if timeout_millis < -1:
            message = f"set_buffer_timeout: {timeout_millis} ms; use 0 or more, or -1 to send full buffers only"
            raise ConfigurationError(message)
        self._configuration.set_integer(BUFFER_TIMEOUT, timeout_millis)
        return self

    def get_buffer_timeout(self) -> int:
        """How long records may be gathered before they are sent, in milliseconds."""
        text = self._configuration.get_string(BUFFER_TIMEOUT, "100")
        if text.lstrip("-").isdigit():
            return int(text)
        return self._configuration.get_duration(BUFFER_TIMEOUT, Duration.of_millis(100)).to_millis()

    def disable_operator_chaining(self) -> Self:
        """Put each operator into a chain of its own, as far as plans and metrics show."""
        self._configuration.set_boolean(CHAINING, False)
        return self

    def is_chaining_enabled(self) -> bool:
        """Whether operators that can be called directly share a chain."""
        legacy = self._configuration.get_boolean("pipeline.operator-chaining", True)
        return self._configuration.get_boolean(CHAINING, legacy)

    def is_chaining_of_operators_with_different_max_parallelism_enabled(self) -> bool:
        """Whether a chain may hold operators with different numbers of key groups."""
        key = "pipeline.operator-chaining.chain-operators-with-different-max-parallelism"
        return self._configuration.get_boolean(key, True)

    def register_slot_sharing_group(self, slot_sharing_group: SlotSharingGroup) -> Self:
        """Make a group known by its name."""
        self._slot_sharing_groups[slot_sharing_group.get_name()] = slot_sharing_group
        return self

    # Checkpoints, state and failures

    def get_checkpoint_config(self) -> CheckpointConfig:
        """The settings of checkpoints."""
        return self._checkpoint_config

    def enable_checkpointing(self, interval: int, mode: CheckpointingMode | None = None) -> Self:
        """Write a checkpoint every ``interval`` milliseconds."""
        self._checkpoint_config.set_checkpoint_interval(interval)
        if mode is not None:
            self._checkpoint_config.set_checkpointing_mode(mode)
        return self

    def get_checkpoint_interval(self) -> int:
        """Milliseconds between two checkpoints; -1 if there are none."""
        return self._checkpoint_config.get_checkpoint_interval()

    def get_checkpointing_mode(self) -> CheckpointingMode:
        """What a checkpoint promises."""
        return self._checkpoint_config.get_checkpointing_mode()

    def get_checkpointing_consistency_mode(self) -> CheckpointingMode:
        """Another name of get_checkpointing_mode()."""
        return self.get_checkpointing_mode()

    def is_unaligned_checkpoints_enabled(self) -> bool:
        """Whether checkpoints may overtake records."""
        return self._checkpoint_config.is_unaligned_checkpoints_enabled()

    def is_force_unaligned_checkpoints(self) -> bool:
        """Whether checkpoints overtake records in any case."""
        return self._checkpoint_config.is_force_unaligned_checkpoints()

    def enable_changelog_state_backend(self, enabled: bool) -> Self:
        """Note the wish to log state changes; Millrace writes the changes of each epoch anyway."""
        self._configuration.set_boolean(CHANGELOG, enabled)
        return self

    def is_changelog_state_backend_enabled(self) -> bool | None:
        """What was asked of enable_changelog_state_backend; None if nothing was."""
        return (
            self._configuration.get_boolean(CHANGELOG, False) if self._configuration.contains_key(CHANGELOG) else None
        )

    def set_default_savepoint_directory(self, directory: str) -> Self:
        """Set where savepoints go that name no directory."""
        self._configuration.set_string(SAVEPOINT_DIR, directory)
        return self

    def get_default_savepoint_directory(self) -> str | None:
        """Where savepoints go that name no directory."""
        return self._configuration.get_string(SAVEPOINT_DIR, "") or None

    def set_state_backend(self, state_backend: StateBackend) -> Self:
        """Set how state is kept: the setting ``state.backend.type``."""
        self._state_backend = state_backend
        for key, value in state_backend.settings().items():
            self._configuration.set_string(key, value)
        return self

    def get_state_backend(self) -> StateBackend:
        """How state is kept."""
        return self._state_backend or HashMapStateBackend()

    def set_restart_strategy(self, restart_strategy_configuration: RestartStrategyConfiguration) -> Self:
        """Set what happens after a failure."""
        self._execution_config.set_restart_strategy(restart_strategy_configuration)
        return self

    def get_restart_strategy(self) -> RestartStrategyConfiguration:
        """What happens after a failure."""
        own = self._execution_config.get_restart_strategy()
        fallback = isinstance(own, RestartStrategies.FallbackRestartStrategyConfiguration)
        return RestartStrategies.from_configuration(self._configuration) if fallback else own

    def _settings_by_key(self) -> dict[str, str]:
        """All settings as a job gets them: those made by a method as keys, too."""
        interval = self._execution_config.get_auto_watermark_interval()
        return {
            **self._configuration.to_dict(),
            WATERMARK_INTERVAL: f"{interval} ms",
            **_restart_keys(self._execution_config.get_restart_strategy()),
        }

    # Kept for older programs

    def set_stream_time_characteristic(self, characteristic: TimeCharacteristic) -> Self:
        """Note the time a program is about; windows and timers say themselves which time they mean."""
        if characteristic is TimeCharacteristic.IngestionTime:
            message = (
                "ingestion time is a watermark strategy here: call "
                "stream.assign_timestamps_and_watermarks(WatermarkStrategy.for_ingestion_time()) behind the source"
            )
            raise GraphError(message)
        self._time_characteristic = characteristic
        return self

    def get_stream_time_characteristic(self) -> TimeCharacteristic:
        """What set_stream_time_characteristic noted."""
        return self._time_characteristic

    def add_default_kryo_serializer(self, type_class_name: str, serializer_class_name: str) -> None:
        """Note a Kryo serializer; records are Python objects and need none."""
        self._execution_config.add_default_kryo_serializer(type_class_name, serializer_class_name)

    def register_type_with_kryo_serializer(self, type_class_name: str, serializer_class_name: str) -> None:
        """Note a Kryo serializer; records are Python objects and need none."""
        self._execution_config.register_type_with_kryo_serializer(type_class_name, serializer_class_name)

    def register_type(self, type_class_name: str) -> None:
        """Note a class for the serializers of the JVM; records are Python objects and need none."""
        self._execution_config.register_pojo_type(type_class_name)


def _from_command_line() -> Configuration:
    text = os.environ.get(CONFIG_VARIABLE, "")
    if not text:
        return Configuration()
    try:
        settings: Any = json.loads(text)
    except ValueError:
        settings = None
    if not isinstance(settings, dict):
        message = f"the environment variable {CONFIG_VARIABLE} is no JSON object of settings: {text!r}"
        raise ConfigurationError(message)
    return Configuration.from_dict(settings)


def _parse_parameters(text: str) -> dict[str, str]:
    """Parameters as configuration files write them: ``user:ann,limit:5``."""
    pairs = [pair.partition(":") for pair in text.split(",") if pair.strip()]
    return {key.strip().strip("'\""): value.strip().strip("'\"") for key, _, value in pairs}


def _restart_keys(strategy: RestartStrategyConfiguration) -> dict[str, str]:
    """The ``restart-strategy.*`` settings that stand for a strategy; none for the fall-back."""
    made: dict[str, Any]
    match strategy:
        case RestartStrategies.NoRestartStrategyConfiguration():
            kind, made = "none", {}
        case RestartStrategies.FixedDelayRestartStrategyConfiguration(attempts, delay):
            kind, made = "fixed-delay", {"attempts": attempts, "delay": f"{delay} ms"}
        case RestartStrategies.FailureRateRestartStrategyConfiguration(rate, interval, delay):
            kind = "failure-rate"
            made = {
                "max-failures-per-interval": rate,
                "failure-rate-interval": f"{interval} ms",
                "delay": f"{delay} ms",
            }
        case RestartStrategies.ExponentialDelayRestartStrategyConfiguration(first, longest, factor, reset, jitter):
            kind = "exponential-delay"
            made = {
                "initial-backoff": f"{first} ms",
                "max-backoff": f"{longest} ms",
                "backoff-multiplier": factor,
                "reset-backoff-threshold": f"{reset} ms",
                "jitter-factor": jitter,
            }
        case _:
            return {}
    return {
        "restart-strategy.type": kind,
        **{f"restart-strategy.{kind}.{key}": str(value) for key, value in made.items()},
    }
