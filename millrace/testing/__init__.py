"""Testing programs without Spark: drive a function by hand, with your own watermarks and clock.

>>> from millrace.testing import harness_for
>>> with harness_for(lambda word: word.upper()) as harness:
...     harness.process_element("hello", 5)
...     harness.get_output()
[('HELLO', 5)]
"""

from __future__ import annotations

from millrace.testing.functions import harness_for
from millrace.testing.harness import OperatorHarness
from millrace.testing.local_run import LocalRun
from millrace.testing.windows import window_harness

__all__ = ["LocalRun", "OperatorHarness", "harness_for", "window_harness"]
