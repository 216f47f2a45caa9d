"""What stands where PyFlink has its gateway to the JVM."""

from __future__ import annotations

from typing import Any, Final

from millrace.common.watermark_strategy import Watermark, WatermarkGenerator, WatermarkOutput
from millrace.pyflink.java_environment import JavaConfiguration, JavaEnvironment, is_chainable
from millrace.pyflink.unavailable import UnavailableError

__all__ = ["JavaGateway", "get_gateway"]


class PerElementWatermarks(WatermarkGenerator):
    """A watermark after each record, at its own time.

    >>> PerElementWatermarks.__name__
    'PerElementWatermarks'
    """

    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        output.emit_watermark(Watermark(event_timestamp))

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        return


def _dependencies(env: JavaEnvironment) -> JavaConfiguration:
    return env.getConfiguration()


_FLINK: Final = "org.apache.flink"
_KNOWN: Final[dict[str, Any]] = {
    f"{_FLINK}.configuration.Configuration": JavaConfiguration,
    f"{_FLINK}.configuration.ExecutionOptions.RUNTIME_MODE": "execution.runtime-mode",
    f"{_FLINK}.api.common.eventtime.WatermarkStrategy.forGenerator": lambda supplier: supplier,
    f"{_FLINK}.streaming.api.functions.python.eventtime.PerElementWatermarkGenerator.getSupplier": (
        lambda: PerElementWatermarks
    ),
    f"{_FLINK}.streaming.api.graph.StreamingJobGraphGenerator.isChainable": is_chainable,
    f"{_FLINK}.python.util.PythonConfigUtil.getEnvConfigWithDependencies": _dependencies,
    f"{_FLINK}.python.util.PythonConfigUtil.KEYED_STREAM_VALUE_OPERATOR_NAME": "_keyed_stream_values_operator",
    f"{_FLINK}.python.util.PythonConfigUtil.STREAM_KEY_BY_MAP_OPERATOR_NAME": "_stream_key_by_map_operator",
    f"{_FLINK}.runtime.state.storage.JobManagerCheckpointStorage.DEFAULT_MAX_STATE_SIZE": 5 * 1024 * 1024,
}


class JavaName:
    """The name of a Java package, class or member; the few that are known here are not names but values.

    >>> get_gateway().jvm.org.apache.flink.configuration.Configuration().toMap()
    {}
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        full = f"{self._name}.{name}" if self._name else name
        return _KNOWN.get(full) if full in _KNOWN else JavaName(full)

    def __call__(self, *args: Any) -> Any:
        message = (
            f"{self._name}(...) is Java, and Millrace runs no Java of a program's own. Write it in Python: a "
            "SourceFunction, a SinkFunction, a WatermarkGenerator (WatermarkStrategy.for_generator) or a plain function"
        )
        raise UnavailableError(message)


class JavaGateway:
    """The gateway: `jvm` gives names, and what is called of them says what to write instead."""

    jvm = JavaName("")

    def new_array(self, j_type: Any, length: int) -> list[Any]:
        """A list of this length."""
        return [None] * length


_GATEWAY: Final = JavaGateway()


def get_gateway() -> JavaGateway:
    """The one gateway."""
    return _GATEWAY
