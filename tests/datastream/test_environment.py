"""Settings of an environment, and what a job is told of them."""

from __future__ import annotations

import os
from typing import Any

import pytest

from millrace.common import Configuration, Duration, JobClient, JobExecutionResult, JobID, JobStatus, RestartStrategies
from millrace.common.completable_future import CompletableFuture
from millrace.connectors.socket import SocketTextSource
from millrace.datastream import (
    CheckpointConfig,
    CheckpointingMode,
    EmbeddedRocksDBStateBackend,
    ExternalizedCheckpointRetention,
    RuntimeExecutionMode,
    StreamExecutionEnvironment,
    TimeCharacteristic,
)
from millrace.datastream import environment as environment_module
from millrace.errors import ConfigurationError, GraphError
from millrace.graph.compile import JobGraph
from millrace.graph.executor import Executor, JobSettings


def env_of(**settings: str) -> StreamExecutionEnvironment:
    keys = {key.replace("__", ".").replace("_", "-"): value for key, value in settings.items()}
    return StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(keys))


def test_defaults() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    assert env.get_parallelism() == os.cpu_count()
    assert env.get_max_parallelism() == -1
    assert env.get_buffer_timeout() == 100
    assert env.get_config().get_auto_watermark_interval() == 200
    assert env.is_chaining_enabled()
    assert env.is_chaining_of_operators_with_different_max_parallelism_enabled()
    assert env.get_checkpoint_interval() == -1
    assert env.get_checkpointing_mode() is CheckpointingMode.AT_LEAST_ONCE
    assert env.is_changelog_state_backend_enabled() is None
    assert env.get_default_savepoint_directory() is None
    assert not env.is_unaligned_checkpoints_enabled()
    assert not env.is_force_unaligned_checkpoints()


def test_setters() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(3).set_max_parallelism(64).set_buffer_timeout(-1).disable_operator_chaining()
    env.enable_checkpointing(5000).enable_changelog_state_backend(True).set_default_savepoint_directory("file:///s")
    env.set_state_backend(EmbeddedRocksDBStateBackend()).set_stream_time_characteristic(
        TimeCharacteristic.ProcessingTime
    )
    assert (env.get_parallelism(), env.get_max_parallelism(), env.get_buffer_timeout()) == (3, 64, -1)
    assert not env.is_chaining_enabled()
    assert env.get_checkpoint_interval() == 5000
    assert env.get_checkpointing_consistency_mode() is CheckpointingMode.EXACTLY_ONCE
    assert env.is_changelog_state_backend_enabled() is True
    assert env.get_default_savepoint_directory() == "file:///s"
    assert env.get_configuration().get_string("state.backend.type", "") == "rocksdb"
    assert env.get_stream_time_characteristic() is TimeCharacteristic.ProcessingTime
    assert env.enable_checkpointing(1, CheckpointingMode.AT_LEAST_ONCE).get_checkpointing_mode().name == "AT_LEAST_ONCE"


def test_settings_by_key() -> None:
    env = env_of(
        parallelism__default="5",
        pipeline__max_parallelism="100",
        pipeline__auto_watermark_interval="1 s",
        pipeline__global_job_parameters="user:ann, limit:'5'",
        execution__checkpointing__interval="10 s",
        execution__buffer_timeout__interval="20 ms",
        pipeline__operator_chaining="false",
        restart_strategy__type="none",
    )
    assert (env.get_parallelism(), env.get_max_parallelism(), env.get_buffer_timeout()) == (5, 100, 20)
    assert env.get_config().get_auto_watermark_interval() == 1000
    assert env.get_config().get_global_job_parameters() == {"user": "ann", "limit": "5"}
    assert env.get_checkpoint_interval() == 10_000
    assert not env.is_chaining_enabled()
    assert env.get_restart_strategy() == RestartStrategies.no_restart()


def test_later_settings_win() -> None:
    env = env_of(parallelism__default="5")
    env.configure(Configuration.from_dict({"parallelism.default": "6"}))
    assert env.get_parallelism() == 6
    assert env.set_parallelism(7).get_parallelism() == 7


def test_settings_of_the_command_line_count_where_the_program_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MILLRACE_CONFIG", '{"parallelism.default": "3", "pipeline.name": "from the command line"}')
    env = env_of(parallelism__default="4")
    assert env.get_parallelism() == 4
    env.from_elements(1).print()
    assert env.compile().name == "from the command line"
    assert env.compile("named").name == "named"


@pytest.mark.parametrize("text", ["nonsense", "[1]"])
def test_a_broken_command_line_variable(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("MILLRACE_CONFIG", text)
    with pytest.raises(ConfigurationError, match="MILLRACE_CONFIG is no JSON object"):
        StreamExecutionEnvironment.get_execution_environment()


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"execution__runtime_mode": "sometimes"}, "'sometimes' is unknown; use STREAMING, BATCH or AUTOMATIC"),
        ({"parallelism__default": "many"}, "parallelism.default: 'many' is no whole number"),
    ],
)
def test_settings_that_make_no_sense(keys: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        env_of(**keys)


def test_default_local_parallelism() -> None:
    StreamExecutionEnvironment.set_default_local_parallelism(11)
    try:
        assert StreamExecutionEnvironment.get_execution_environment().get_parallelism() == 11
    finally:
        StreamExecutionEnvironment.set_default_local_parallelism(os.cpu_count() or 1)
    with pytest.raises(ConfigurationError):
        StreamExecutionEnvironment.set_default_local_parallelism(0)


def settings_of(env: StreamExecutionEnvironment) -> JobSettings:
    return env._job_settings(env.compile())


@pytest.mark.parametrize(
    ("mode", "bounded", "batch"),
    [
        (RuntimeExecutionMode.STREAMING, True, False),
        (RuntimeExecutionMode.STREAMING, False, False),
        (RuntimeExecutionMode.AUTOMATIC, True, True),
        (RuntimeExecutionMode.AUTOMATIC, False, False),
        (RuntimeExecutionMode.BATCH, True, True),
    ],
)
def test_runtime_mode(mode: RuntimeExecutionMode, bounded: bool, batch: bool) -> None:
    env = StreamExecutionEnvironment.get_execution_environment().set_runtime_mode(mode)
    stream = env.from_sequence(1, 2)
    if not bounded:
        stream = stream.union(env.from_generator(lambda n: n))
    stream.print()
    assert settings_of(env).batch is batch


def test_batch_mode_needs_bounded_sources() -> None:
    env = env_of(execution__runtime_mode="batch")
    env.socket_text_stream("localhost", 9999).print()
    with pytest.raises(GraphError, match="BATCH mode needs sources that come to an end, and 'Socket Stream' does not"):
        env.execute()
    assert isinstance(env.compile().nodes[0].node.source, SocketTextSource)


def test_what_a_job_is_told() -> None:
    env = env_of(custom__key="value").set_parallelism(3).enable_checkpointing(1000)
    env.get_config().set_global_job_parameters({"user": "ann"}).set_auto_watermark_interval(50)
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(3, 10))
    env.from_elements(1).print()
    settings = settings_of(env)
    assert (settings.parallelism, settings.checkpointing, settings.checkpoint_interval_ms) == (3, True, 1000)
    assert settings.parameters == {"user": "ann"}
    assert settings.config == {
        "custom.key": "value",
        "execution.checkpointing.interval": "1000 ms",
        "pipeline.auto-watermark-interval": "50 ms",
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": "3",
        "restart-strategy.fixed-delay.delay": "10 ms",
    }


@pytest.mark.parametrize(
    "strategy",
    [
        RestartStrategies.no_restart(),
        RestartStrategies.fixed_delay_restart(3, 10),
        RestartStrategies.failure_rate_restart(2, 60_000, 10),
        RestartStrategies.exponential_delay_restart(1, 20, 2.5, 300, 0.2),
    ],
)
def test_restart_strategies_travel_as_settings(strategy: Any) -> None:
    env = StreamExecutionEnvironment.get_execution_environment().set_restart_strategy(strategy)
    env.from_elements(1).print()
    told = Configuration.from_dict(settings_of(env).config)
    assert env.get_restart_strategy() == strategy
    assert RestartStrategies.from_configuration(told) == strategy


def test_uids_can_be_demanded() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.get_config().disable_auto_generated_uids()
    env.from_elements(1).uid("source").map(lambda n: n).name("double").print().uid("sink")
    with pytest.raises(GraphError, match=r"these operators have none: 'double'"):
        env.compile()


def test_dependencies_are_settings() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.add_python_file("a.py")
    env.add_python_file("b.zip")
    env.add_python_archive("model.zip", "model")
    env.set_python_requirements("requirements.txt", "cache")
    env.set_python_executable("python3.11")
    env.add_jars("a.jar", "b.jar")
    env.add_classpaths("c.jar")
    env.register_cached_file("data.csv", "data")
    assert env.get_configuration().to_dict() == {
        "python.files": "a.py,b.zip",
        "python.archives": "model.zip#model",
        "python.requirements": "requirements.txt#cache",
        "python.executable": "python3.11",
        "pipeline.jars": "a.jar;b.jar",
        "pipeline.classpaths": "c.jar",
        "pipeline.cached-files": "name:data,path:data.csv,executable:false",
    }


class FinishedJob(JobClient):
    def __init__(self, error: BaseException | None = None) -> None:
        self.cancelled = False
        done = CompletableFuture.completed(JobExecutionResult(JobID("0" * 32), 5))
        self._result = done if error is None else CompletableFuture[JobExecutionResult].failed(error)

    def get_job_id(self) -> JobID:
        return JobID("0" * 32)

    def get_job_status(self) -> CompletableFuture[JobStatus]:
        return CompletableFuture.completed(JobStatus.FINISHED)

    def cancel(self) -> CompletableFuture[None]:
        self.cancelled = True
        return CompletableFuture.completed(None)

    def stop_with_savepoint(
        self, advance_to_end_of_event_time: bool, savepoint_directory: str | None = None
    ) -> CompletableFuture[str]:
        return CompletableFuture.completed("")

    def trigger_savepoint(self, savepoint_directory: str | None = None) -> CompletableFuture[str]:
        return CompletableFuture.completed("")

    def get_accumulators(self) -> CompletableFuture[dict[str, Any]]:
        return CompletableFuture.completed({})

    def get_job_execution_result(self) -> CompletableFuture[JobExecutionResult]:
        return self._result


class RecordingExecutor(Executor):
    def __init__(self, client: JobClient) -> None:
        self.client = client
        self.jobs: list[JobGraph] = []

    def submit(self, job: JobGraph, settings: JobSettings) -> JobClient:
        self.jobs.append(job)
        return self.client

    def to_data_frame(self, job: JobGraph, settings: JobSettings, schema: Any) -> Any:
        return job, schema

    def spark_source(self, data_frame: Any) -> Any:
        return data_frame


@pytest.fixture
def executor(monkeypatch: pytest.MonkeyPatch) -> RecordingExecutor:
    made = RecordingExecutor(FinishedJob())
    monkeypatch.setattr(environment_module, "default_executor", lambda: made)
    monkeypatch.setattr("millrace.datastream._sinks.default_executor", lambda: made)
    return made


def test_execute_runs_and_forgets_the_program(executor: RecordingExecutor) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.from_elements(1).print()
    assert env.execute("first").get_net_runtime() == 5
    env.from_elements(2).map(lambda n: n).print()
    assert env.execute_async("second") is executor.client
    assert [(job.name, len(job.nodes)) for job in executor.jobs] == [("first", 2), ("second", 3)]
    assert env._nodes == []


def test_execute_raises_what_the_job_raised(executor: RecordingExecutor) -> None:
    executor.client = FinishedJob(ZeroDivisionError("by zero"))
    env = StreamExecutionEnvironment.get_execution_environment()
    env.from_elements(1).print()
    with pytest.raises(ZeroDivisionError):
        env.execute()


def test_ctrl_c_cancels_the_job(executor: RecordingExecutor) -> None:
    client = FinishedJob(KeyboardInterrupt())
    executor.client = client
    env = StreamExecutionEnvironment.get_execution_environment()
    env.from_elements(1).print()
    with pytest.raises(KeyboardInterrupt):
        env.execute()
    assert client.cancelled


def test_collecting_runs_every_sink_of_the_program(executor: RecordingExecutor) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.from_elements(1).print()
    assert list(env.from_elements(2).execute_and_collect()) == []
    assert [node.name for node in executor.jobs[0].nodes] == [
        "Collection Source",
        "Print to Std. Out",
        "Collection Source",
        "Collect Stream Sink",
    ]
    assert [node.parallelism for node in executor.jobs[0].nodes[2:]] == [1, 1]


def test_collecting_raises_what_the_job_raised_after_the_records(executor: RecordingExecutor) -> None:
    executor.client = FinishedJob(ZeroDivisionError("by zero"))
    results = StreamExecutionEnvironment.get_execution_environment().from_elements(2).execute_and_collect()
    with pytest.raises(ZeroDivisionError):
        next(results)
    assert list(results) == []


def test_to_spark_runs_this_stream_alone(executor: RecordingExecutor) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.from_elements(1).print()
    job, schema = env.from_elements(2).to_spark("n long")
    assert [node.name for node in job.nodes] == ["Collection Source", "Spark DataFrame"]
    assert schema == "n long"
    assert [node.name for node in env.compile().nodes] == ["Collection Source", "Print to Std. Out"]
    with pytest.raises(GraphError, match=r"to_spark\(\) needs sources that come to an end"):
        env.from_generator(lambda n: n).to_spark()


def test_from_spark(executor: RecordingExecutor) -> None:
    class Frame:
        columns = ("word", "n")
        bounded = True

    env = StreamExecutionEnvironment.get_execution_environment()
    stream = env.from_spark(Frame(), "words")
    stream.key_by("word").sum("n").print()
    job = env.compile()
    assert (job.nodes[0].name, job.nodes[0].group, job.bounded) == ("words", "spark1", True)
    with pytest.raises(GraphError, match="their fields are word, n"):
        stream.key_by("wrd")


def test_checkpoint_config() -> None:
    config = CheckpointConfig()
    assert not config.is_checkpointing_enabled()
    assert config.get_checkpoint_interval() == -1
    assert config.get_checkpoint_timeout() == 600_000
    assert config.get_min_pause_between_checkpoints() == 0
    assert config.get_max_concurrent_checkpoints() == 1
    assert config.is_fail_on_checkpointing_errors()
    assert config.get_tolerable_checkpoint_failure_number() == 0
    retention = ExternalizedCheckpointRetention
    assert config.get_externalized_checkpoint_retention() is retention.NO_EXTERNALIZED_CHECKPOINTS
    assert not config.is_externalized_checkpoints_enabled()
    assert not config.is_unaligned_checkpoints_enabled()
    assert config.get_alignment_timeout() == Duration.of_millis(0)
    assert not config.is_force_unaligned_checkpoints()
    config.set_checkpoint_interval(1000).set_checkpoint_timeout(20).set_min_pause_between_checkpoints(7)
    config.set_max_concurrent_checkpoints(2).set_fail_on_checkpointing_errors(False).enable_unaligned_checkpoints()
    config.set_externalized_checkpoint_retention(retention.RETAIN_ON_CANCELLATION).set_checkpoint_storage_dir("/c")
    config.set_alignment_timeout(Duration.of_seconds(1)).set_force_unaligned_checkpoints()
    assert config.get_checkpointing_mode() is CheckpointingMode.EXACTLY_ONCE
    assert config.set_checkpointing_mode(CheckpointingMode.AT_LEAST_ONCE).get_checkpointing_mode().value == 1
    assert (config.get_checkpoint_interval(), config.get_checkpoint_timeout()) == (1000, 20)
    assert (config.get_min_pause_between_checkpoints(), config.get_max_concurrent_checkpoints()) == (7, 2)
    assert config.get_tolerable_checkpoint_failure_number() == 2**31 - 1
    assert config.is_externalized_checkpoints_enabled()
    assert config.is_unaligned_checkpoints_enabled()
    assert not config.disable_unaligned_checkpoints().is_unaligned_checkpoints_enabled()
    assert config.get_aligned_checkpoint_timeout() == Duration.of_seconds(1)
    assert config.is_force_unaligned_checkpoints()
    assert config.get_checkpoint_storage_dir() == "/c"
    with pytest.raises(ConfigurationError, match="interval: 0 is too little"):
        config.set_checkpoint_interval(0)
