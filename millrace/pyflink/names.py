"""Which of PyFlink's modules exist, and where their contents come from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

__all__ = ["MODULES", "NEIGHBOURS", "PLACEHOLDERS", "Offer"]

NEIGHBOURS: Final = (
    "millrace.common",
    "millrace.common.typeinfo",
    "millrace.datastream",
    "millrace.datastream.functions",
    "millrace.datastream.state",
    "millrace.metrics",
    "millrace.pyflink.java_gateway",
)
"""Where PyFlink's modules have names from that they do not define."""

_NO_JAR: Final = "connectors of Flink are Java; "
_KAFKA: Final = (
    _NO_JAR + 'read with Spark\'s, env.from_spark(spark.readStream.format("kafka")...), and write with '
    'to_spark().write.format("kafka")'
)
_SPARK_OR_SINK: Final = (
    _NO_JAR + "read with env.from_spark(data_frame), write with to_spark().write..., or write a SinkFunction"
)
_TABLE: Final = "there is no Table API; use the DataStream API, or Spark SQL with env.from_spark(...) and to_spark()"
_LEGACY_BACKEND: Final = "it left Flink; use HashMapStateBackend or EmbeddedRocksDBStateBackend"


@dataclass(frozen=True)
class Offer:
    """The contents of a module: all public names of the sources, the first having the last word, and the extras.

    ``unavailable`` names what can be imported but not used, with what to use instead; ``hint`` does so for every name.
    """

    sources: tuple[str, ...]
    extras: dict[str, str] = field(default_factory=dict)
    unavailable: dict[str, str] = field(default_factory=dict)
    hint: str = ""


def _of(*sources: str, **extras: str) -> Offer:
    """An offer of Millrace's own: whole modules, and single names by the module they come from."""
    return Offer(tuple(f"millrace.{source}" for source in sources), {k: f"millrace.{v}" for k, v in extras.items()})


_ENVIRONMENT: Final = "millrace.pyflink.environment:StreamExecutionEnvironment"
_CLEANUP: Final = "millrace.datastream.externalized_checkpoint_retention:ExternalizedCheckpointRetention"

_DATA_STREAM: Final = (
    "data_stream keyed_stream windowed_stream connected_streams broadcast cached sink closeable_iterator"
).split()

_COMMON: Final = (
    "completable_future config_options configuration execution_config job_client job_execution_result job_id "
    "job_status restart_strategy serialization time typeinfo types watermark_strategy"
).split()

_DATASTREAM: Final = (
    "async_data_stream async_retry_predicates checkpoint_config checkpoint_storage checkpointing_mode execution_mode "
    "externalized_checkpoint_retention functions output_tag slot_sharing_group state state_backend "
    "time_characteristic time_domain timerservice window"
).split()

_CONNECTOR_HINTS: Final = {
    "kafka": _KAFKA,
    "dynamic_kafka": _KAFKA,
    "pulsar": _SPARK_OR_SINK,
    "kinesis": _SPARK_OR_SINK,
    "rabbitmq": _SPARK_OR_SINK,
    "jdbc": _SPARK_OR_SINK,
    "elasticsearch": _SPARK_OR_SINK,
    "cassandra": _SPARK_OR_SINK,
    "hybrid_source": "read the sources one after the other with union(...) of bounded streams",
}

_CONNECTORS_OF: Final = {
    "kafka": "FlinkKafkaConsumer FlinkKafkaProducer KafkaSource KafkaSink KafkaTopicPartition KafkaOffsetsInitializer "
    "KafkaOffsetResetStrategy KafkaRecordSerializationSchema Semantic",
    "pulsar": "PulsarSource PulsarSink StartCursor StopCursor RangeGenerator MessageDelayer TopicRoutingMode",
    "kinesis": "FlinkKinesisConsumer KinesisStreamsSink KinesisFirehoseSink PartitionKeyGenerator",
    "rabbitmq": "RMQSource RMQSink RMQConnectionConfig",
    "jdbc": "JdbcSink JdbcConnectionOptions JdbcExecutionOptions",
    "elasticsearch": "Elasticsearch6SinkBuilder Elasticsearch7SinkBuilder ElasticsearchSink ElasticsearchEmitter "
    "FlushBackoffType",
    "cassandra": "CassandraSink",
    "hybrid_source": "HybridSource",
}

MODULES: Final[dict[str, Offer]] = {
    "pyflink": Offer((), {"__version__": "millrace.pyflink.version:__version__"}),
    "pyflink.version": Offer((), {"__version__": "millrace.pyflink.version:__version__"}),
    "pyflink.common": _of(
        "common",
        JsonRowDeserializationSchema="datastream.formats.json",
        TypeSerializer="pyflink.serializer",
    ),
    "pyflink.common.serializer": _of("pyflink.serializer"),
    "pyflink.common.constants": _of("common.constants"),
    **{f"pyflink.common.{name}": _of(f"common.{name}") for name in _COMMON},
    "pyflink.datastream": Offer(
        ("millrace.datastream",),
        {"StreamExecutionEnvironment": _ENVIRONMENT, "ExternalizedCheckpointCleanup": _CLEANUP},
        dict.fromkeys(["MemoryStateBackend", "FsStateBackend", "RocksDBStateBackend"], _LEGACY_BACKEND),
    ),
    "pyflink.datastream.stream_execution_environment": Offer(
        ("millrace.datastream",), {"StreamExecutionEnvironment": _ENVIRONMENT}
    ),
    "pyflink.datastream.data_stream": _of(*(f"datastream.{name}" for name in _DATA_STREAM)),
    "pyflink.datastream.async_retry_strategies": _of("datastream.async_function"),
    **{f"pyflink.datastream.{name}": _of(f"datastream.{name}") for name in _DATASTREAM},
    "pyflink.datastream.state": _of("datastream.state", OperatorStateStore="runtime.checkpointed"),
    "pyflink.datastream.functions": _of("datastream.functions", TimerService="datastream.timerservice"),
    "pyflink.datastream.connectors": Offer(
        ("millrace.datastream.connectors",),
        {"NumberSequenceSource": "millrace.datastream.connectors.number_seq:NumberSequenceSource"},
        {name: _CONNECTOR_HINTS[kind] for kind, names in _CONNECTORS_OF.items() for name in names.split()},
    ),
    **{
        f"pyflink.datastream.connectors.{name}": _of(f"datastream.connectors.{name}")
        for name in ("base", "file_system", "number_seq")
    },
    "pyflink.datastream.formats": _of("datastream.formats"),
    **{f"pyflink.datastream.formats.{name}": _of(f"datastream.formats.{name}") for name in ("csv", "json", "parquet")},
    "pyflink.metrics": _of("metrics"),
    "pyflink.metrics.metricbase": _of("metrics"),
    "pyflink.util": _of(),
    "pyflink.util.java_utils": _of("pyflink.java_utils"),
    "pyflink.util.utils": _of("pyflink.java_utils"),
    "pyflink.util.api_stability_decorators": _of("pyflink.decorators"),
    "pyflink.util.exceptions": _of("pyflink.failures"),
    "pyflink.java_gateway": _of("pyflink.java_gateway"),
    "pyflink.find_flink_home": Offer(
        (),
        {name: f"millrace.pyflink.java_utils:{name}" for name in ("_find_flink_home", "_find_flink_source_root")},
    ),
    "pyflink.pyflink_gateway_server": Offer((), {"on_windows": "millrace.pyflink.java_utils:on_windows"}),
    "pyflink.testing": _of(),
    "pyflink.testing.test_case_utils": _of("pyflink.test_cases"),
}

PLACEHOLDERS: Final[dict[str, str]] = {
    "pyflink.table": _TABLE,
    **{f"pyflink.datastream.connectors.{name}": hint for name, hint in _CONNECTOR_HINTS.items()},
    "pyflink.datastream.formats.avro": "use Parquet, JSON or CSV, or Spark's Avro with env.from_spark(...)",
    "pyflink.datastream.formats.orc": "use Parquet, or Spark's ORC with env.from_spark(...) and to_spark()",
}
"""Modules that can be imported, to say what to use instead when something of them is used."""
