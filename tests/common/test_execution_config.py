from __future__ import annotations

import pytest

from millrace.common.execution_config import ExecutionConfig
from millrace.common.restart_strategy import RestartStrategies
from millrace.errors import ConfigurationError

PYFLINK_METHODS = """
enable_closure_cleaner disable_closure_cleaner is_closure_cleaner_enabled set_auto_watermark_interval
get_auto_watermark_interval set_latency_tracking_interval get_latency_tracking_interval get_parallelism set_parallelism
get_max_parallelism set_max_parallelism get_task_cancellation_interval set_task_cancellation_interval
get_task_cancellation_timeout set_task_cancellation_timeout enable_force_kryo disable_force_kryo is_force_kryo_enabled
enable_generic_types disable_generic_types has_generic_types_disabled enable_auto_generated_uids
disable_auto_generated_uids has_auto_generated_uids_enabled enable_force_avro disable_force_avro is_force_avro_enabled
enable_object_reuse disable_object_reuse is_object_reuse_enabled get_global_job_parameters set_global_job_parameters
get_default_kryo_serializer_classes get_registered_kryo_types get_registered_pojo_types is_use_snapshot_compression
set_use_snapshot_compression
""".split()


def test_all_methods_are_there() -> None:
    assert len(PYFLINK_METHODS) == 37
    assert [name for name in PYFLINK_METHODS if not callable(getattr(ExecutionConfig, name, None))] == []


def test_defaults() -> None:
    config = ExecutionConfig()
    assert config.get_parallelism() == ExecutionConfig.PARALLELISM_DEFAULT == -1
    assert config.get_max_parallelism() == -1
    assert config.get_auto_watermark_interval() == 200
    assert config.get_latency_tracking_interval() == 0
    assert config.get_task_cancellation_interval() == 30_000
    assert config.get_task_cancellation_timeout() == 180_000
    assert config.is_closure_cleaner_enabled()
    assert config.has_auto_generated_uids_enabled()
    assert not config.is_object_reuse_enabled()
    assert not config.is_use_snapshot_compression()
    assert not config.is_force_kryo_enabled()
    assert not config.is_force_avro_enabled()
    assert not config.has_generic_types_disabled()
    assert not config.is_auto_type_registration_disabled()
    assert config.get_global_job_parameters() == {}
    assert config.get_restart_strategy() == RestartStrategies.fall_back_restart()


def test_numbers_are_set() -> None:
    config = (
        ExecutionConfig()
        .set_parallelism(4)
        .set_max_parallelism(16)
        .set_auto_watermark_interval(1_000)
        .set_latency_tracking_interval(50)
        .set_task_cancellation_interval(7)
        .set_task_cancellation_timeout(8)
    )
    assert config.get_parallelism() == 4
    assert config.get_max_parallelism() == 16
    assert config.get_auto_watermark_interval() == 1_000
    assert config.get_latency_tracking_interval() == 50
    assert config.get_task_cancellation_interval() == 7
    assert config.get_task_cancellation_timeout() == 8


@pytest.mark.parametrize(
    ("enable", "disable", "ask"),
    [
        ("enable_closure_cleaner", "disable_closure_cleaner", "is_closure_cleaner_enabled"),
        ("enable_force_kryo", "disable_force_kryo", "is_force_kryo_enabled"),
        ("enable_force_avro", "disable_force_avro", "is_force_avro_enabled"),
        ("disable_generic_types", "enable_generic_types", "has_generic_types_disabled"),
        ("enable_auto_generated_uids", "disable_auto_generated_uids", "has_auto_generated_uids_enabled"),
        ("enable_object_reuse", "disable_object_reuse", "is_object_reuse_enabled"),
    ],
)
def test_switches(enable: str, disable: str, ask: str) -> None:
    config = ExecutionConfig()
    assert getattr(config, enable)() is config
    assert getattr(config, ask)() is True
    assert getattr(config, disable)() is config
    assert getattr(config, ask)() is False


def test_other_settings() -> None:
    config = (
        ExecutionConfig()
        .set_use_snapshot_compression(True)
        .set_global_job_parameters({"hello": "world", "n": 1})
        .set_restart_strategy(RestartStrategies.fixed_delay_restart(3, 1_000))
        .add_default_kryo_serializer("a.T", "a.S")
        .register_type_with_kryo_serializer("b.T", "b.S")
        .register_kryo_type("k.T")
        .register_kryo_type("k.T")
        .register_pojo_type("p.T")
        .disable_auto_type_registration()
    )
    assert config.is_use_snapshot_compression()
    assert config.get_global_job_parameters() == {"hello": "world", "n": "1"}
    assert config.get_restart_strategy() == RestartStrategies.fixed_delay_restart(3, 1_000)
    assert config.get_default_kryo_serializer_classes() == {"a.T": "a.S"}
    assert config.get_registered_types_with_kryo_serializer_classes() == {"b.T": "b.S"}
    assert config.get_registered_kryo_types() == ["k.T"]
    assert config.get_registered_pojo_types() == ["p.T"]
    assert config.is_auto_type_registration_disabled()


def test_unknown_parallelism_changes_nothing() -> None:
    config = ExecutionConfig().set_parallelism(3).set_parallelism(ExecutionConfig.PARALLELISM_UNKNOWN)
    assert config.get_parallelism() == 3


def test_numbers_out_of_range_are_refused() -> None:
    config = ExecutionConfig()
    with pytest.raises(ConfigurationError, match="set_parallelism: 0 tasks cannot run"):
        config.set_parallelism(0)
    assert config.set_max_parallelism(32_768).get_max_parallelism() == 32_768
    for number in (0, 32_769):
        with pytest.raises(ConfigurationError, match="use 1 to 32768"):
            config.set_max_parallelism(number)
    with pytest.raises(ConfigurationError, match="use 0 to turn it off"):
        config.set_auto_watermark_interval(-1)
    with pytest.raises(ConfigurationError, match="use 0 for no timeout"):
        config.set_task_cancellation_timeout(-1)


def test_equality_hash_and_repr() -> None:
    first, second = ExecutionConfig().set_parallelism(12), ExecutionConfig().set_parallelism(11)
    assert first != second
    assert hash(first) != hash(second)
    second.set_parallelism(12)
    assert first == second
    assert hash(first) == hash(second)
    assert repr(first) == "ExecutionConfig(parallelism=12)"
