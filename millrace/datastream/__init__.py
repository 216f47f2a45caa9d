"""The DataStream API: streams, keys, windows, state and time.

>>> from millrace.datastream import StreamExecutionEnvironment
>>> env = StreamExecutionEnvironment.get_execution_environment()
>>> words = env.from_elements("to be", "or not").flat_map(str.split)
>>> sink = words.key_by(lambda word: word).count_window(2).count().print()
"""

from __future__ import annotations

from millrace.datastream.async_data_stream import AsyncDataStream
from millrace.datastream.async_function import AsyncFunction, AsyncRetryPredicate, AsyncRetryStrategy
from millrace.datastream.broadcast import BroadcastConnectedStream, BroadcastStream
from millrace.datastream.cached import CachedDataStream
from millrace.datastream.checkpoint_config import CheckpointConfig
from millrace.datastream.checkpoint_storage import (
    CheckpointStorage,
    CustomCheckpointStorage,
    FileSystemCheckpointStorage,
    JobManagerCheckpointStorage,
)
from millrace.datastream.checkpointed import CheckpointedFunction, CheckpointListener, ListCheckpointed
from millrace.datastream.checkpointing_mode import CheckpointingMode
from millrace.datastream.closeable_iterator import CloseableIterator
from millrace.datastream.connected_streams import ConnectedStreams
from millrace.datastream.data_stream import DataStream
from millrace.datastream.environment import StreamExecutionEnvironment
from millrace.datastream.execution_mode import RuntimeExecutionMode
from millrace.datastream.externalized_checkpoint_retention import ExternalizedCheckpointRetention
from millrace.datastream.functions import (
    AggregateFunction,
    AllWindowFunction,
    BroadcastProcessFunction,
    CoFlatMapFunction,
    CoGroupFunction,
    CoMapFunction,
    CoProcessFunction,
    FilterFunction,
    FlatJoinFunction,
    FlatMapFunction,
    JoinFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    KeySelector,
    MapFunction,
    Partitioner,
    ProcessAllWindowFunction,
    ProcessFunction,
    ProcessJoinFunction,
    ProcessWindowFunction,
    ReduceFunction,
    RuntimeContext,
    SinkFunction,
    SourceFunction,
    WindowFunction,
)
from millrace.datastream.keyed_stream import KeyedStream
from millrace.datastream.output_tag import OutputTag
from millrace.datastream.sink import DataStreamSink
from millrace.datastream.slot_sharing_group import MemorySize, SlotSharingGroup
from millrace.datastream.state_backend import (
    CustomStateBackend,
    EmbeddedRocksDBStateBackend,
    HashMapStateBackend,
    PredefinedOptions,
    StateBackend,
)
from millrace.datastream.time_characteristic import TimeCharacteristic
from millrace.datastream.time_domain import TimeDomain
from millrace.datastream.timerservice import TimerService
from millrace.datastream.window import (
    CountWindow,
    GlobalWindow,
    MergingWindowAssigner,
    TimeWindow,
    Trigger,
    TriggerResult,
    Window,
    WindowAssigner,
)
from millrace.datastream.windowed_stream import AllWindowedStream, WindowedStream

__all__ = [
    "AggregateFunction",
    "AllWindowFunction",
    "AllWindowedStream",
    "AsyncDataStream",
    "AsyncFunction",
    "AsyncRetryPredicate",
    "AsyncRetryStrategy",
    "BroadcastConnectedStream",
    "BroadcastProcessFunction",
    "BroadcastStream",
    "CachedDataStream",
    "CheckpointConfig",
    "CheckpointListener",
    "CheckpointStorage",
    "CheckpointedFunction",
    "CheckpointingMode",
    "CloseableIterator",
    "CoFlatMapFunction",
    "CoGroupFunction",
    "CoMapFunction",
    "CoProcessFunction",
    "ConnectedStreams",
    "CountWindow",
    "CustomCheckpointStorage",
    "CustomStateBackend",
    "DataStream",
    "DataStreamSink",
    "EmbeddedRocksDBStateBackend",
    "ExternalizedCheckpointRetention",
    "FileSystemCheckpointStorage",
    "FilterFunction",
    "FlatJoinFunction",
    "FlatMapFunction",
    "GlobalWindow",
    "HashMapStateBackend",
    "JobManagerCheckpointStorage",
    "JoinFunction",
    "KeySelector",
    "KeyedBroadcastProcessFunction",
    "KeyedCoProcessFunction",
    "KeyedProcessFunction",
    "KeyedStream",
    "ListCheckpointed",
    "MapFunction",
    "MemorySize",
    "MergingWindowAssigner",
    "OutputTag",
    "Partitioner",
    "PredefinedOptions",
    "ProcessAllWindowFunction",
    "ProcessFunction",
    "ProcessJoinFunction",
    "ProcessWindowFunction",
    "ReduceFunction",
    "RuntimeContext",
    "RuntimeExecutionMode",
    "SinkFunction",
    "SlotSharingGroup",
    "SourceFunction",
    "StateBackend",
    "StreamExecutionEnvironment",
    "TimeCharacteristic",
    "TimeDomain",
    "TimeWindow",
    "TimerService",
    "Trigger",
    "TriggerResult",
    "Window",
    "WindowAssigner",
    "WindowFunction",
    "WindowedStream",
]
