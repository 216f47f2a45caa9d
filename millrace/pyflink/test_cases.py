"""Base classes for tests that were written on top of PyFlink's."""

from __future__ import annotations

import shutil
import tempfile
import unittest
from typing import Any, ClassVar

from millrace.datastream.execution_mode import RuntimeExecutionMode
from millrace.pyflink.environment import StreamExecutionEnvironment

__all__ = [
    "PyFlinkBatchTestCase",
    "PyFlinkITTestCase",
    "PyFlinkStreamingTestCase",
    "PyFlinkTestCase",
    "PyFlinkUTTestCase",
]


class PyFlinkTestCase(unittest.TestCase):
    """A test with a directory of its own, `tempdir`."""

    tempdir: ClassVar[str]

    @classmethod
    def setUpClass(cls) -> None:
        cls.tempdir = tempfile.mkdtemp(prefix="millrace-test-")

    @classmethod
    def tearDownClass(cls) -> None:
        shutil.rmtree(cls.tempdir, ignore_errors=True)

    @classmethod
    def assert_equals(cls, actual: Any, expected: Any) -> None:
        """Equal, whatever the order."""
        assert sorted(actual) == sorted(expected)


class PyFlinkITTestCase(PyFlinkTestCase):
    """A test with an environment, `env`, of two tasks for each operator."""

    env: StreamExecutionEnvironment
    _mode: ClassVar[RuntimeExecutionMode] = RuntimeExecutionMode.STREAMING

    def setUp(self) -> None:
        super().setUp()
        self.env = StreamExecutionEnvironment.get_execution_environment()
        self.env.set_parallelism(2)
        self.env.set_runtime_mode(self._mode)


class PyFlinkUTTestCase(PyFlinkITTestCase):
    """A test that runs as a stream."""


class PyFlinkStreamingTestCase(PyFlinkITTestCase):
    """A test that runs as a stream."""


class PyFlinkBatchTestCase(PyFlinkITTestCase):
    """A test that runs as a batch."""

    _mode = RuntimeExecutionMode.BATCH
