"""How a program is executed, where its own code does not say otherwise."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from millrace.common.restart_strategy import RestartStrategies, RestartStrategyConfiguration
from millrace.errors import ConfigurationError

__all__ = ["ExecutionConfig"]


@dataclass
class _Settings:
    parallelism: int = -1
    max_parallelism: int = -1
    auto_watermark_interval: int = 200
    latency_tracking_interval: int = 0
    task_cancellation_interval: int = 30_000
    task_cancellation_timeout: int = 180_000
    closure_cleaner: bool = True
    force_kryo: bool = False
    force_avro: bool = False
    generic_types: bool = True
    auto_generated_uids: bool = True
    object_reuse: bool = False
    snapshot_compression: bool = False
    auto_type_registration: bool = True
    restart_strategy: RestartStrategyConfiguration = field(default_factory=RestartStrategies.fall_back_restart)
    global_job_parameters: dict[str, str] = field(default_factory=dict)
    default_kryo_serializers: dict[str, str] = field(default_factory=dict)
    types_with_kryo_serializers: dict[str, str] = field(default_factory=dict)
    kryo_types: list[str] = field(default_factory=list)
    pojo_types: list[str] = field(default_factory=list)


class ExecutionConfig:
    """Settings of the execution; every setter returns the configuration itself.

    Settings about Java's serializers (Kryo, Avro, POJO) are kept and given back, but have nothing to act on here:
    records are Python objects.

    >>> config = ExecutionConfig().set_parallelism(4).enable_object_reuse()
    >>> config.get_parallelism(), config.is_object_reuse_enabled(), config.get_auto_watermark_interval()
    (4, True, 200)
    """

    PARALLELISM_DEFAULT: ClassVar[int] = -1
    """As a parallelism: whatever the environment's default is."""

    PARALLELISM_UNKNOWN: ClassVar[int] = -2
    """As a parallelism: leave it unchanged."""

    def __init__(self) -> None:
        self._settings = _Settings()

    # Parallelism

    def get_parallelism(self) -> int:
        """The parallelism of operators that set none themselves; -1 for the environment's default."""
        return self._settings.parallelism

    def set_parallelism(self, parallelism: int) -> ExecutionConfig:
        """Set the parallelism of operators that set none themselves."""
        if parallelism == self.PARALLELISM_UNKNOWN:
            return self
        if parallelism < 1 and parallelism != self.PARALLELISM_DEFAULT:
            raise ConfigurationError(
                f"set_parallelism: {parallelism} tasks cannot run; use 1 or more, or -1 for default"
            )
        self._settings.parallelism = parallelism
        return self

    def get_max_parallelism(self) -> int:
        """The number of key groups, and so the highest parallelism state can be rescaled to; -1 if not set."""
        return self._settings.max_parallelism

    def set_max_parallelism(self, max_parallelism: int) -> ExecutionConfig:
        """Set the number of key groups, from 1 to 32768."""
        if not 1 <= max_parallelism <= 32_768:
            raise ConfigurationError(f"set_max_parallelism: {max_parallelism} is out of range; use 1 to 32768")
        self._settings.max_parallelism = max_parallelism
        return self

    # Time

    def get_auto_watermark_interval(self) -> int:
        """Milliseconds between two askings of the periodic watermark generators; 0 turns them off."""
        return self._settings.auto_watermark_interval

    def set_auto_watermark_interval(self, interval: int) -> ExecutionConfig:
        """Set how often periodic watermark generators are asked, in milliseconds; 0 turns them off."""
        if interval < 0:
            raise ConfigurationError(f"set_auto_watermark_interval: {interval} ms is negative; use 0 to turn it off")
        self._settings.auto_watermark_interval = interval
        return self

    def get_latency_tracking_interval(self) -> int:
        """Milliseconds between two latency marks; 0 or less means none."""
        return self._settings.latency_tracking_interval

    def set_latency_tracking_interval(self, interval: int) -> ExecutionConfig:
        """Set the milliseconds between two latency marks; 0 or less turns them off."""
        self._settings.latency_tracking_interval = interval
        return self

    # Failure and cancellation

    def get_restart_strategy(self) -> RestartStrategyConfiguration:
        """What happens after a failure."""
        return self._settings.restart_strategy

    def set_restart_strategy(self, restart_strategy_configuration: RestartStrategyConfiguration) -> ExecutionConfig:
        """Set what happens after a failure."""
        self._settings.restart_strategy = restart_strategy_configuration
        return self

    def get_task_cancellation_interval(self) -> int:
        """Milliseconds between two attempts to cancel a running task."""
        return self._settings.task_cancellation_interval

    def set_task_cancellation_interval(self, interval: int) -> ExecutionConfig:
        """Set the milliseconds between two attempts to cancel a running task."""
        self._settings.task_cancellation_interval = interval
        return self

    def get_task_cancellation_timeout(self) -> int:
        """Milliseconds after which a cancellation counts as stuck; 0 means never."""
        return self._settings.task_cancellation_timeout

    def set_task_cancellation_timeout(self, timeout: int) -> ExecutionConfig:
        """Set the milliseconds after which a cancellation counts as stuck; 0 means never."""
        if timeout < 0:
            raise ConfigurationError(f"set_task_cancellation_timeout: {timeout} ms is negative; use 0 for no timeout")
        self._settings.task_cancellation_timeout = timeout
        return self

    # Operators and their identity

    def enable_auto_generated_uids(self) -> ExecutionConfig:
        """Let operators without a uid get one that follows from the shape of the program."""
        self._settings.auto_generated_uids = True
        return self

    def disable_auto_generated_uids(self) -> ExecutionConfig:
        """Demand a uid of every operator, so that none loses its state to a change of the program."""
        self._settings.auto_generated_uids = False
        return self

    def has_auto_generated_uids_enabled(self) -> bool:
        """Whether operators may go without a uid of their own."""
        return self._settings.auto_generated_uids

    def enable_object_reuse(self) -> ExecutionConfig:
        """Hand records from function to function without copying them."""
        self._settings.object_reuse = True
        return self

    def disable_object_reuse(self) -> ExecutionConfig:
        """Do not promise that records are handed on without copying."""
        self._settings.object_reuse = False
        return self

    def is_object_reuse_enabled(self) -> bool:
        """Whether records are handed on without copying."""
        return self._settings.object_reuse

    def enable_closure_cleaner(self) -> ExecutionConfig:
        """Let functions be stripped of what they do not use before they travel."""
        self._settings.closure_cleaner = True
        return self

    def disable_closure_cleaner(self) -> ExecutionConfig:
        """Let functions travel as they are."""
        self._settings.closure_cleaner = False
        return self

    def is_closure_cleaner_enabled(self) -> bool:
        """Whether functions are stripped of what they do not use."""
        return self._settings.closure_cleaner

    def get_global_job_parameters(self) -> dict[str, str]:
        """Parameters that every function can read from its runtime context."""
        return dict(self._settings.global_job_parameters)

    def set_global_job_parameters(self, global_job_parameters_dict: dict[str, Any]) -> ExecutionConfig:
        """Set the parameters that every function can read from its runtime context."""
        self._settings.global_job_parameters = {str(k): str(v) for k, v in global_job_parameters_dict.items()}
        return self

    def is_use_snapshot_compression(self) -> bool:
        """Whether state is compressed when it is written."""
        return self._settings.snapshot_compression

    def set_use_snapshot_compression(self, use_snapshot_compression: bool) -> ExecutionConfig:
        """Set whether state is compressed when it is written."""
        self._settings.snapshot_compression = use_snapshot_compression
        return self

    # Java's serializers: kept for programs that set them

    def enable_force_kryo(self) -> ExecutionConfig:
        """Note the wish to use Kryo throughout."""
        self._settings.force_kryo = True
        return self

    def disable_force_kryo(self) -> ExecutionConfig:
        """Withdraw the wish to use Kryo throughout."""
        self._settings.force_kryo = False
        return self

    def is_force_kryo_enabled(self) -> bool:
        """Whether `enable_force_kryo` was called."""
        return self._settings.force_kryo

    def enable_force_avro(self) -> ExecutionConfig:
        """Note the wish to use Avro throughout."""
        self._settings.force_avro = True
        return self

    def disable_force_avro(self) -> ExecutionConfig:
        """Withdraw the wish to use Avro throughout."""
        self._settings.force_avro = False
        return self

    def is_force_avro_enabled(self) -> bool:
        """Whether `enable_force_avro` was called."""
        return self._settings.force_avro

    def enable_generic_types(self) -> ExecutionConfig:
        """Allow types that only a general-purpose serializer can handle."""
        self._settings.generic_types = True
        return self

    def disable_generic_types(self) -> ExecutionConfig:
        """Note the wish to refuse types that only a general-purpose serializer can handle."""
        self._settings.generic_types = False
        return self

    def has_generic_types_disabled(self) -> bool:
        """Whether `disable_generic_types` was called."""
        return not self._settings.generic_types

    def add_default_kryo_serializer(self, type_class_name: str, serializer_class_name: str) -> ExecutionConfig:
        """Note a Kryo serializer for a class and its subclasses."""
        self._settings.default_kryo_serializers[type_class_name] = serializer_class_name
        return self

    def get_default_kryo_serializer_classes(self) -> dict[str, str]:
        """What `add_default_kryo_serializer` noted."""
        return dict(self._settings.default_kryo_serializers)

    def register_type_with_kryo_serializer(self, type_class_name: str, serializer_class_name: str) -> ExecutionConfig:
        """Note a Kryo serializer for a class."""
        self._settings.types_with_kryo_serializers[type_class_name] = serializer_class_name
        return self

    def get_registered_types_with_kryo_serializer_classes(self) -> dict[str, str]:
        """What `register_type_with_kryo_serializer` noted."""
        return dict(self._settings.types_with_kryo_serializers)

    def register_kryo_type(self, type_class_name: str) -> ExecutionConfig:
        """Note a class for Kryo."""
        self._settings.kryo_types = _with(self._settings.kryo_types, type_class_name)
        return self

    def get_registered_kryo_types(self) -> list[str]:
        """What `register_kryo_type` noted."""
        return list(self._settings.kryo_types)

    def register_pojo_type(self, type_class_name: str) -> ExecutionConfig:
        """Note a class for the POJO serializer."""
        self._settings.pojo_types = _with(self._settings.pojo_types, type_class_name)
        return self

    def get_registered_pojo_types(self) -> list[str]:
        """What `register_pojo_type` noted."""
        return list(self._settings.pojo_types)

    def disable_auto_type_registration(self) -> ExecutionConfig:
        """Note the wish not to register types by themselves."""
        self._settings.auto_type_registration = False
        return self

    def is_auto_type_registration_disabled(self) -> bool:
        """Whether `disable_auto_type_registration` was called."""
        return not self._settings.auto_type_registration

    def __eq__(self, other: object) -> bool:
        return self._settings == other._settings if isinstance(other, ExecutionConfig) else NotImplemented

    def __hash__(self) -> int:
        return hash(repr(self._settings))

    def __repr__(self) -> str:
        defaults = _Settings()
        names = [name for name, value in vars(self._settings).items() if value != getattr(defaults, name)]
        return f"ExecutionConfig({', '.join(f'{name}={getattr(self._settings, name)!r}' for name in names)})"


def _with(names: list[str], name: str) -> list[str]:
    return names if name in names else [*names, name]
