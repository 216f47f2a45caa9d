"""PyFlink's names, so that a program written for PyFlink runs here as it is.

>>> import millrace.pyflink
>>> millrace.pyflink.install()
>>> from pyflink.common import Types
>>> Types.INT()
Types.INT()
"""

from __future__ import annotations

from millrace.pyflink.finder import install, is_installed
from millrace.pyflink.program import run_program

__all__ = ["install", "is_installed", "run_program"]
