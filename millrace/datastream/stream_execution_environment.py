"""The environment, under the module name that PyFlink programs import it from."""

from __future__ import annotations

from millrace.datastream.environment import StreamExecutionEnvironment

__all__ = ["StreamExecutionEnvironment"]
