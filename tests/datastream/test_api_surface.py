"""The names that programs import; PyFlink's are all among them."""

from __future__ import annotations

import importlib
import inspect
import pkgutil

import pytest

import millrace.datastream
from millrace.datastream import (
    AllWindowedStream,
    ConnectedStreams,
    DataStream,
    DataStreamSink,
    KeyedStream,
    StreamExecutionEnvironment,
    WindowedStream,
)

PYFLINK = """
StreamExecutionEnvironment DataStream KeyedStream WindowedStream AllWindowedStream ConnectedStreams
BroadcastStream BroadcastConnectedStream DataStreamSink CachedDataStream MapFunction CoMapFunction
FlatMapFunction CoFlatMapFunction ReduceFunction FilterFunction ProcessFunction KeyedProcessFunction
CoProcessFunction KeyedCoProcessFunction WindowFunction AllWindowFunction ProcessWindowFunction
ProcessAllWindowFunction AggregateFunction BroadcastProcessFunction KeyedBroadcastProcessFunction
RuntimeContext TimerService CheckpointingMode CheckpointConfig ExternalizedCheckpointRetention StateBackend
HashMapStateBackend EmbeddedRocksDBStateBackend CustomStateBackend PredefinedOptions CheckpointStorage
JobManagerCheckpointStorage FileSystemCheckpointStorage CustomCheckpointStorage RuntimeExecutionMode Window
TimeWindow CountWindow GlobalWindow WindowAssigner MergingWindowAssigner TriggerResult Trigger
TimeCharacteristic TimeDomain KeySelector Partitioner SourceFunction SinkFunction SlotSharingGroup MemorySize
OutputTag AsyncDataStream AsyncFunction AsyncRetryPredicate AsyncRetryStrategy
""".split()

OWN = """
CheckpointListener CheckpointedFunction CloseableIterator CoGroupFunction FlatJoinFunction JoinFunction ListCheckpointed
ProcessJoinFunction
""".split()


def test_exported_names() -> None:
    assert sorted(millrace.datastream.__all__) == sorted([*PYFLINK, *OWN])


def test_every_module_lists_what_it_exports() -> None:
    modules = [found for found in pkgutil.iter_modules(millrace.datastream.__path__) if not found.ispkg]
    assert len(modules) > 30
    for module_info in modules:
        module = importlib.import_module(f"millrace.datastream.{module_info.name}")
        assert [name for name in module.__all__ if not hasattr(module, name)] == []


@pytest.mark.parametrize(
    ("module", "names"),
    [
        ("stream_execution_environment", "StreamExecutionEnvironment"),
        ("functions", "RuntimeContext KeyedStateStore BaseBroadcastProcessFunction Function MapFunction AsyncFunction"),
        ("state", "ValueState ListState MapState ReducingState AggregatingState BroadcastState ReadOnlyBroadcastState"),
        ("state", "ValueStateDescriptor ListStateDescriptor MapStateDescriptor StateTtlConfig AppendingState"),
        ("window", "TumblingEventTimeWindows SlidingProcessingTimeWindows EventTimeSessionWindows GlobalWindows"),
        ("window", "CountTumblingWindowAssigner CountSlidingWindowAssigner DynamicEventTimeSessionWindows"),
        ("window", "PurgingTrigger CountTrigger ContinuousEventTimeTrigger NeverTrigger TimeWindowSerializer"),
        ("window", "CountEvictor TimeEvictor DeltaEvictor DeltaTrigger SessionWindowTimeGapExtractor"),
        ("timerservice", "TimerService"),
        ("time_domain", "TimeDomain"),
        ("output_tag", "OutputTag"),
        ("execution_mode", "RuntimeExecutionMode"),
        ("checkpoint_config", "CheckpointConfig"),
        ("checkpointing_mode", "CheckpointingMode"),
        ("externalized_checkpoint_retention", "ExternalizedCheckpointRetention"),
        ("slot_sharing_group", "SlotSharingGroup MemorySize"),
        ("state_backend", "HashMapStateBackend EmbeddedRocksDBStateBackend PredefinedOptions"),
        ("checkpoint_storage", "JobManagerCheckpointStorage FileSystemCheckpointStorage"),
        ("async_retry_predicates", "empty_result_predicate has_exception_predicate exception_type_predicate"),
    ],
)
def test_module_layout(module: str, names: str) -> None:
    loaded = importlib.import_module(f"millrace.datastream.{module}")
    assert [name for name in names.split() if name not in loaded.__all__] == []


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        (
            StreamExecutionEnvironment,
            """get_config set_parallelism set_max_parallelism register_slot_sharing_group get_parallelism
            get_max_parallelism set_runtime_mode set_buffer_timeout get_buffer_timeout disable_operator_chaining
            is_chaining_enabled is_chaining_of_operators_with_different_max_parallelism_enabled get_checkpoint_config
            enable_checkpointing get_checkpoint_interval get_checkpointing_mode get_checkpointing_consistency_mode
            enable_changelog_state_backend is_changelog_state_backend_enabled set_default_savepoint_directory
            get_default_savepoint_directory configure add_python_file set_python_requirements add_python_archive
            set_python_executable add_jars add_classpaths get_default_local_parallelism set_default_local_parallelism
            execute execute_async get_execution_plan register_cached_file get_execution_environment create_input
            add_source from_source from_collection is_unaligned_checkpoints_enabled is_force_unaligned_checkpoints close
            get_state_backend set_state_backend get_restart_strategy set_restart_strategy get_stream_time_characteristic
            set_stream_time_characteristic read_text_file register_type register_type_with_kryo_serializer
            add_default_kryo_serializer from_elements from_sequence from_generator from_spark socket_text_stream
            explain compile""",
        ),
        (
            DataStream,
            """get_name name uid set_uid_hash set_parallelism set_max_parallelism get_type get_execution_environment
            get_execution_config force_non_parallel set_buffer_timeout start_new_chain disable_chaining
            slot_sharing_group set_description map flat_map key_by filter window_all union connect shuffle project
            rescale rebalance forward broadcast process assign_timestamps_and_watermarks partition_custom add_sink
            sink_to execute_and_collect print get_side_output cache global global_ to_global split join co_group
            count_window_all to_spark print_to_err""",
        ),
        (
            KeyedStream,
            """map flat_map reduce filter sum min max min_by max_by add_sink key_by process window count_window union
            connect project print interval_join time_window""",
        ),
        (
            WindowedStream,
            """get_execution_environment get_input_type trigger allowed_lateness side_output_late_data reduce aggregate
            apply process evictor sum min max min_by max_by count""",
        ),
        (
            AllWindowedStream,
            "trigger allowed_lateness side_output_late_data reduce aggregate apply process evictor sum",
        ),
        (ConnectedStreams, "key_by map flat_map process"),
        (DataStreamSink, "name uid set_uid_hash set_parallelism set_description disable_chaining slot_sharing_group"),
    ],
)
def test_methods(kind: type, names: str) -> None:
    assert [name for name in names.split() if not callable(getattr(kind, name, None))] == []


@pytest.mark.parametrize(
    ("method", "parameters"),
    [
        (DataStream.map, ["func", "output_type"]),
        (DataStream.partition_custom, ["partitioner", "key_selector"]),
        (DataStream.execute_and_collect, ["job_execution_name", "limit"]),
        (KeyedStream.sum, ["position_to_sum"]),
        (KeyedStream.count_window, ["size", "slide"]),
        (WindowedStream.aggregate, ["aggregate_function", "window_function", "accumulator_type", "output_type"]),
        (ConnectedStreams.key_by, ["key_selector1", "key_selector2", "key_type"]),
        (
            StreamExecutionEnvironment.from_source,
            ["source", "watermark_strategy", "source_name", "type_info"],
        ),
        (StreamExecutionEnvironment.from_collection, ["collection", "type_info"]),
    ],
)
def test_parameters_have_pyflinks_names(method: object, parameters: list[str]) -> None:
    assert callable(method)
    assert list(inspect.signature(method).parameters)[1:] == parameters
