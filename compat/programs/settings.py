"""Everything that can be set and asked on environments, checkpoints, backends and groups."""

from pyflink.common import Configuration, Duration, Row, RowKind, Time, Types
from pyflink.common.config_options import ConfigOptions
from pyflink.datastream import (
    CheckpointingMode,
    EmbeddedRocksDBStateBackend,
    ExternalizedCheckpointRetention,
    PredefinedOptions,
    RuntimeExecutionMode,
    SlotSharingGroup,
    StreamExecutionEnvironment,
)
from pyflink.datastream.checkpoint_storage import FileSystemCheckpointStorage, JobManagerCheckpointStorage
from pyflink.datastream.slot_sharing_group import MemorySize
from pyflink.datastream.state import StateTtlConfig
from pyflink.datastream.window import TimeWindow


def environment():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(3).set_max_parallelism(16).set_buffer_timeout(5)
    print(env.get_parallelism(), env.get_max_parallelism(), env.get_buffer_timeout(), env.is_chaining_enabled())
    env.disable_operator_chaining()
    print(env.is_chaining_enabled(), env.is_chaining_of_operators_with_different_max_parallelism_enabled())
    print(env.get_checkpoint_interval(), env.get_checkpointing_mode(), env.is_changelog_state_backend_enabled())
    env.enable_checkpointing(1000, CheckpointingMode.EXACTLY_ONCE).enable_changelog_state_backend(True)
    print(env.get_checkpoint_interval(), env.get_checkpointing_mode())
    print(env.is_changelog_state_backend_enabled(), env.is_unaligned_checkpoints_enabled())
    print(env.is_force_unaligned_checkpoints(), env.get_default_savepoint_directory())
    config = env.get_config()
    config.set_auto_watermark_interval(50).enable_object_reuse().set_global_job_parameters({"a": "1"})
    print(config.get_auto_watermark_interval(), config.is_object_reuse_enabled(), config.get_global_job_parameters())
    env.configure(Configuration.from_dict({"pipeline.max-parallelism": "32"}))
    print(env.get_max_parallelism())
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)


def checkpoints():
    config = StreamExecutionEnvironment.get_execution_environment().get_checkpoint_config()
    print(config.is_checkpointing_enabled(), config.get_checkpoint_timeout(), config.get_max_concurrent_checkpoints())
    print(config.get_min_pause_between_checkpoints(), config.is_fail_on_checkpointing_errors())
    print(config.get_tolerable_checkpoint_failure_number(), config.get_externalized_checkpoint_retention())
    config.set_checkpointing_mode(CheckpointingMode.EXACTLY_ONCE).set_checkpoint_interval(10)
    config.set_checkpoint_timeout(20).set_min_pause_between_checkpoints(30).set_max_concurrent_checkpoints(2)
    config.set_tolerable_checkpoint_failure_number(4)
    config.set_externalized_checkpoint_retention(ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION)
    print(config.get_checkpoint_interval(), config.is_externalized_checkpoints_enabled())
    config.enable_unaligned_checkpoints().set_force_unaligned_checkpoints(True)
    config.set_alignment_timeout(Duration.of_seconds(1))
    print(config.is_unaligned_checkpoints_enabled(), config.get_alignment_timeout() == Duration.of_millis(1000))
    config.disable_unaligned_checkpoints()
    print(config.is_unaligned_checkpoints_enabled(), config.is_force_unaligned_checkpoints())
    storage = FileSystemCheckpointStorage("file:///tmp/checkpoints/", 2048, 4096)
    print(storage.get_min_file_size_threshold(), storage.get_write_buffer_size())
    print(
        JobManagerCheckpointStorage().get_max_state_size(),
        JobManagerCheckpointStorage(max_state_size=5).get_max_state_size(),
    )


def backends():
    backend = EmbeddedRocksDBStateBackend()
    backend.set_predefined_options(PredefinedOptions.FLASH_SSD_OPTIMIZED)
    backend.set_db_storage_paths("/fast/")
    backend.set_number_of_transfer_threads(8)
    print(backend.get_predefined_options(), backend.get_db_storage_paths(), backend.get_options())
    print(backend.get_number_of_transfer_threads())
    size = MemorySize.of_mebi_bytes(2048)
    print(size.get_bytes(), size.get_kibi_bytes(), size.get_mebi_bytes(), size.get_gibi_bytes(), size.get_tebi_bytes())
    group = (
        SlotSharingGroup.builder("g").set_cpu_cores(1.5).set_task_heap_memory_mb(64).set_managed_memory_mb(1).build()
    )
    print(group.get_name(), group.get_cpu_cores(), group.get_task_heap_memory() == MemorySize.of_mebi_bytes(64))
    print(group.get_task_off_heap_memory(), group.get_external_resources())
    ttl = StateTtlConfig.new_builder(Time.minutes(1)).return_expired_if_not_cleaned_up().use_processing_time().build()
    print(ttl.get_update_type(), ttl.get_state_visibility(), ttl.get_ttl_time_characteristic(), ttl.is_enabled())


def values():
    row = Row(name="Ann", age=5)
    print(row, row.name, row["age"], "age" in row, row.as_dict(), Row(1, "a"), Row("x", "y")(1, 2))
    print(Row(name="Ann", age=5) == Row(age=5, name="Ann"), Row.of_kind(RowKind.DELETE, 1).get_row_kind())
    config = Configuration().set_string("a", "x").set_integer("b", 2).set_boolean("c", True).set_float("d", 0.5)
    print(
        config.get_string("a", ""), config.get_integer("b", 0), config.get_boolean("c", False), config.get_float("d", 0)
    )
    print(sorted(config.key_set()), config.contains_key("e"), config.remove_config("a"), config.to_dict()["b"])
    print(
        TimeWindow(0, 5).max_timestamp(),
        TimeWindow(0, 5).intersects(TimeWindow(5, 6)),
        TimeWindow(0, 5).cover(TimeWindow(3, 9)),
    )
    print(
        TimeWindow.get_window_start_with_offset(-1, 0, 5),
        Time.days(1).to_milliseconds(),
        Time.seconds(2).to_milliseconds(),
    )
    print(Types.ROW_NAMED(["a"], [Types.INT()]), Types.TUPLE([Types.STRING()]), Types.LIST(Types.LONG()))
    print(ConfigOptions.key("k").int_type().default_value(3) is not None)


if __name__ == "__main__":
    environment()
    checkpoints()
    backends()
    values()
