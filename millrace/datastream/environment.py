"""Where a program begins and ends: sources, and execution."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from millrace.common.configuration import Configuration
from millrace.common.job_client import JobClient
from millrace.common.job_execution_result import JobExecutionResult
from millrace.common.typeinfo import TypeInformation, Types, infer_type
from millrace.common.watermark_strategy import NoWatermarksGenerator, WatermarkStrategy
from millrace.connectors.collection import CollectionSource
from millrace.connectors.generator import GeneratorSource
from millrace.connectors.sequence import NumberSequenceSource
from millrace.connectors.socket import SocketTextSource
from millrace.connectors.text import TextFileSource
from millrace.datastream._checks import check_function, check_travels
from millrace.datastream._dependencies import Dependencies, OperatorName
from millrace.datastream._environment_settings import MAX_PARALLELISM, EnvironmentSettings
from millrace.datastream._explanation import Explanation
from millrace.datastream._source_function import FunctionSource
from millrace.datastream._typed import check_type
from millrace.datastream.data_stream import DataStream
from millrace.datastream.execution_mode import RuntimeExecutionMode
from millrace.datastream.functions import SourceFunction
from millrace.errors import ConfigurationError, GraphError
from millrace.graph.compile import JobGraph, compile_graph, is_bounded
from millrace.graph.executor import JobSettings, default_executor
from millrace.graph.node import Edge, Node, NodeKind
from millrace.graph.partitioners import Forward
from millrace.runtime.operators.watermarks import AssignWatermarks
from millrace.runtime.source import Source

__all__ = ["StreamExecutionEnvironment"]

DEFAULT_JOB_NAME = "Millrace Streaming Job"


class StreamExecutionEnvironment(EnvironmentSettings):
    """The environment a program is written in: makes streams from sources, and runs what was built from them.

    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> _ = env.from_collection([1, 2, 3]).map(lambda value: value * 2).print()
    >>> import json
    >>> [node["type"] for node in json.loads(env.get_execution_plan())["nodes"]]
    ['Source: Collection Source', 'Map', 'Sink: Print to Std. Out']
    """

    def __init__(self, configuration: Configuration | None = None) -> None:
        super().__init__(configuration)
        self._nodes: list[Node] = []
        self._last_id = 0

    @staticmethod
    def get_execution_environment(configuration: Configuration | None = None) -> StreamExecutionEnvironment:
        """A new environment with these settings; those given on the command line count where these say nothing."""
        return StreamExecutionEnvironment(configuration)

    # Sources

    def from_collection(self, collection: Iterable[Any], type_info: TypeInformation | None = None) -> DataStream:
        """A stream of the elements of a list, in their order, narrowed to ``type_info`` if that is given."""
        if isinstance(collection, str | bytes | dict) or not isinstance(collection, Iterable):
            kind = type(collection).__name__
            message = f"from_collection takes a list of records, not a {kind}: put it into a list, or use from_elements"
            raise GraphError(message)
        values = list(collection)
        if not values:
            raise GraphError("from_collection: the collection is empty, so there is nothing to stream; add an element")
        declared = check_type(type_info, "from_collection")
        if declared is not None:
            values = _coerced(values, declared)
        _check_elements(values)
        known = declared or _common_type(values)
        return self._source_stream(CollectionSource(values), "Collection Source", declared, known)

    def from_elements(self, *values: Any, type_info: TypeInformation | None = None) -> DataStream:
        """A stream of the arguments, in their order."""
        if not values:
            raise GraphError("from_elements: no elements are given, so there is nothing to stream; pass at least one")
        return self.from_collection(values, type_info)

    def from_sequence(self, start: int, end: int) -> DataStream:
        """A stream of the whole numbers from ``start`` to ``end``, both included, read by all tasks."""
        return self._source_stream(NumberSequenceSource(start, end), "Sequence Source", None, Types.LONG())

    def from_generator(
        self,
        function: Callable[[int], Any],
        count: int | None = None,
        records_per_second: float | None = None,
        parallelism: int | None = None,
        type_info: TypeInformation | None = None,
    ) -> DataStream:
        """A stream of ``function(0)``, ``function(1)``, ...: ``count`` of them or without end, at so many a second.

        ``parallelism`` tasks make them; task i of n makes the records i, i + n, i + 2n and so on.
        """
        check_function(function, "from_generator", (), ("__call__",))
        source = GeneratorSource(function, count, records_per_second, parallelism)
        stream = self._source_stream(source, "Generator Source", check_type(type_info, "from_generator"))
        return stream if parallelism is None else stream.set_parallelism(parallelism)

    def from_source(
        self,
        source: Source[Any],
        watermark_strategy: WatermarkStrategy,
        source_name: str,
        type_info: TypeInformation | None = None,
    ) -> DataStream:
        """A stream from a source, with timestamps and watermarks made as the strategy says, per split of the source."""
        if not isinstance(source, Source):
            hint = "; call it to make one" if isinstance(source, type) else ""
            message = f"from_source takes a Source, not {source!r}{hint}. For a SourceFunction use add_source(...)"
            raise GraphError(message)
        if not isinstance(watermark_strategy, WatermarkStrategy):
            message = (
                f"from_source takes a WatermarkStrategy, not {watermark_strategy!r}: "
                "use WatermarkStrategy.no_watermarks() for a stream without event time"
            )
            raise GraphError(message)
        check_travels(source, "from_source")
        declared = check_type(type_info, "from_source")
        produced = getattr(source, "get_produced_type", None)
        known = declared if declared is not None or produced is None else produced()
        stream = self._source_stream(source, source_name, declared, known)
        return self._with_watermarks(stream, watermark_strategy)

    def add_source(
        self, source_func: SourceFunction, source_name: str = "Custom Source", type_info: TypeInformation | None = None
    ) -> DataStream:
        """A stream of what a SourceFunction gives; it runs in this process."""
        check_function(source_func, "add_source", (SourceFunction,), ("run",), plain=False, travels=False)
        declared = check_type(type_info, "add_source")
        return self._source_stream(FunctionSource(source_func, declared), source_name, declared)

    def create_input(self, input_format: Source[Any], type_info: TypeInformation | None = None) -> DataStream:
        """A stream from a source, without event time."""
        return self.from_source(input_format, WatermarkStrategy.no_watermarks(), "Custom Source", type_info)

    def read_text_file(self, file_path: str | Path, charset_name: str = "UTF-8") -> DataStream:
        """A stream of the lines of a file, of all files in a directory, or of all that match a pattern."""
        return self._source_stream(TextFileSource(file_path, charset_name), "Text File Source", None, Types.STRING())

    def socket_text_stream(self, host: str, port: int, delimiter: str = "\n", max_retry: int = 0) -> DataStream:
        """A stream of the lines that a server sends; connects again ``max_retry`` times, with -1 for ever."""
        return self._source_stream(
            SocketTextSource(host, port, delimiter, max_retry), "Socket Stream", None, Types.STRING()
        )

    def from_spark(self, data_frame: Any, name: str | None = None) -> DataStream:
        """A stream of the rows of a Spark DataFrame, batch or streaming, as `Row` with the names of its columns."""
        external = default_executor().spark_source(data_frame)
        node = self._new_node(name or "Spark DataFrame", NodeKind.SOURCE)
        node.external = external
        columns = list(data_frame.columns)
        known = Types.ROW_NAMED(columns, [Types.PICKLED_BYTE_ARRAY()] * len(columns))
        node.output_type = known
        return DataStream(self, [(node, None, None)], None, known)

    def _source_stream(
        self,
        source: Source[Any],
        name: str,
        declared: TypeInformation | None = None,
        known: TypeInformation | None = None,
    ) -> DataStream:
        node = self._new_node(name, NodeKind.SOURCE)
        node.source = source
        node.non_parallel = not source.parallel
        node.output_type = declared if known is None else known
        return DataStream(self, [(node, None, None)], declared, node.output_type)

    def _with_watermarks(self, stream: DataStream, strategy: WatermarkStrategy) -> DataStream:
        if strategy.timestamp_assigner is None and strategy.generator_supplier is NoWatermarksGenerator:
            return stream
        check_travels(strategy, "the watermark strategy")
        (source, _, _) = stream._inputs[0]
        node = self._new_node("Timestamps/Watermarks", NodeKind.OPERATOR, [Edge(source, Forward())])
        node.operator = self._watermarks_operator(strategy)
        node.non_parallel = source.non_parallel
        node.output_type = source.output_type
        return DataStream(self, [(node, None, None)], stream._declared, stream._known, behind=source)

    def _watermarks_operator(self, strategy: WatermarkStrategy) -> AssignWatermarks:
        emission = self._configuration.get_string("pipeline.watermark-emission", "periodic")
        if emission not in ("periodic", "every-record"):
            message = f"pipeline.watermark-emission: {emission!r} is unknown; use periodic or every-record"
            raise ConfigurationError(message)
        return AssignWatermarks(strategy, emission == "every-record")

    def _new_node(self, name: str, kind: NodeKind, inputs: list[Edge] | None = None) -> Node:
        self._last_id += 1
        node = Node(self._last_id, name, kind, inputs=inputs or [])
        self._nodes.append(node)
        return node

    # Execution

    def execute(self, job_name: str | None = None) -> JobExecutionResult:
        """Run the program and wait until it has ended; raises what a user function raised. Forgets the program."""
        client = self.execute_async(job_name)
        result = client.get_job_execution_result()
        try:
            return result.result()
        except KeyboardInterrupt:
            client.cancel().result()
            raise
        except Exception as error:
            # How it came back from the job's thread is of no interest; where it was raised stands in its cause.
            raise error.with_traceback(None)  # noqa: B904

    def execute_async(self, job_name: str | None = None) -> JobClient:
        """Start the program and return a handle on the running job. Forgets the program."""
        job = self.compile(job_name)
        settings = self._job_settings(job)
        client = default_executor().submit(job, settings)
        self._nodes.clear()
        return client

    def compile(self, job_name: str | None = None) -> JobGraph:
        """The program with everything decided that it leaves open: what would run, and what is explained."""
        return self._compile(job_name)

    def get_execution_plan(self) -> str:
        """The program as JSON, in the form that Flink prints."""
        from millrace.graph.render import plan_json

        return plan_json(self.compile())

    def explain(self, job_name: str | None = None) -> Explanation:
        """The program for people: levels, chains and exchanges, as text, and as a picture in a notebook."""
        return Explanation.of(self.compile(job_name))

    def _compile(self, job_name: str | None, nodes: list[Node] | None = None) -> JobGraph:
        name = job_name or self._configuration.get_string("pipeline.name", DEFAULT_JOB_NAME)
        width = self.get_max_parallelism()
        job = compile_graph(
            self._nodes if nodes is None else nodes,
            name=name,
            parallelism=self.get_parallelism(),
            max_parallelism=width if width > 0 else None,
            chaining=self.is_chaining_enabled(),
        )
        if not self._execution_config.has_auto_generated_uids_enabled():
            _require_uids(job)
        preparations = self._preparations()
        if preparations:
            for node in job.nodes:
                node.node.name = OperatorName(node.name, preparations)
        return job

    def _preparations(self) -> tuple[Callable[[], None], ...]:
        """What a worker does before it gets to know the functions of the program."""
        dependencies = Dependencies.of(self._configuration)
        return () if dependencies is None else (dependencies,)

    def _job_settings(self, job: JobGraph) -> JobSettings:
        mode = self._runtime_mode()
        if mode is RuntimeExecutionMode.BATCH:
            _require_bounded(job, "BATCH mode")
        interval = self.get_checkpoint_interval()
        config = self._settings_by_key()
        if self.get_max_parallelism() > 0:
            config[MAX_PARALLELISM] = str(self.get_max_parallelism())
        return JobSettings(
            batch=mode is RuntimeExecutionMode.BATCH or (mode is RuntimeExecutionMode.AUTOMATIC and job.bounded),
            parallelism=self.get_parallelism(),
            config=config,
            parameters=self._execution_config.get_global_job_parameters(),
            checkpointing=interval > 0,
            checkpoint_interval_ms=interval,
        )

    # Files and interpreters that travel with a program

    def add_python_file(self, file_path: str) -> None:
        """Send a Python file, package or archive of them along with the program."""
        self._add_to_list("python.files", file_path)

    def set_python_requirements(self, requirements_file_path: str, requirements_cache_dir: str | None = None) -> None:
        """Name a requirements file for the workers, and a directory with its packages if they cannot download them."""
        cached = "" if requirements_cache_dir is None else f"#{requirements_cache_dir}"
        self._configuration.set_string("python.requirements", requirements_file_path + cached)

    def add_python_archive(self, archive_path: str, target_dir: str | None = None) -> None:
        """Send an archive along, to be unpacked next to the program, under ``target_dir`` if that is given."""
        self._add_to_list("python.archives", archive_path if target_dir is None else f"{archive_path}#{target_dir}")

    def set_python_executable(self, python_exec: str) -> None:
        """Set the interpreter of the workers; by default it is that of the program."""
        self._configuration.set_string("python.executable", python_exec)

    def add_jars(self, *jars_path: str) -> None:
        """Send jars along, for Spark sources that need them."""
        for path in jars_path:
            self._add_to_list("pipeline.jars", path, ";")

    def add_classpaths(self, *classpaths: str) -> None:
        """Name class paths that exist on all workers."""
        for path in classpaths:
            self._add_to_list("pipeline.classpaths", path, ";")

    def register_cached_file(self, file_path: str, name: str, executable: bool = False) -> None:
        """Send a file along under a name."""
        flag = "true" if executable else "false"
        self._add_to_list("pipeline.cached-files", f"name:{name},path:{file_path},executable:{flag}", ";")

    def _add_to_list(self, key: str, item: str, separator: str = ",") -> None:
        held = self._configuration.get_string(key, "")
        self._configuration.set_string(key, f"{held}{separator}{item}" if held else item)

    def close(self) -> None:
        """Forget what was built and not yet run. Spark stays: other environments of the process may use it."""
        self._nodes.clear()


def _common_type(values: list[Any]) -> TypeInformation:
    """The type all elements share, as they are; elements of different types can be anything."""
    first = infer_type(values[0])
    same = all(infer_type(value) == first for value in values[1:])
    guess = copy.copy(first if same else Types.PICKLED_BYTE_ARRAY())
    guess.guessed = True
    return guess


def _coerced(values: list[Any], type_info: TypeInformation) -> list[Any]:
    coerce = type_info.coercer()
    if coerce is None:
        return values
    coerced = []
    for index, value in enumerate(values):
        try:
            coerced.append(coerce(value))
        except (TypeError, ValueError) as error:
            message = f"from_collection: element {index} does not fit: {error}"
            raise GraphError(message) from error
    return coerced


def _check_elements(values: list[Any]) -> None:
    try:
        check_travels(values, "from_collection")
    except GraphError:
        for index, value in enumerate(values):
            check_travels(value, f"from_collection: element {index}")
        raise


def _require_bounded(job: JobGraph, what: str) -> None:
    for node in job.nodes:
        if node.node.kind is NodeKind.SOURCE and not is_bounded(node.node):
            message = (
                f"{what} needs sources that come to an end, and {node.node.describe()} does not: "
                "use a bounded source, or RuntimeExecutionMode.STREAMING"
            )
            raise GraphError(message)


def _require_uids(job: JobGraph) -> None:
    without = [node.name for node in job.nodes if node.node.uid is None and node.node.uid_hash is None]
    if without:
        message = (
            f"generated uids are disabled, and these operators have none: {', '.join(map(repr, without))}. "
            'Call uid("...") on each, or enable_auto_generated_uids()'
        )
        raise GraphError(message)
