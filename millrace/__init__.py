"""Millrace: Apache Flink's programming model in plain Python, on Apache Spark."""

from __future__ import annotations

__all__ = ["__version__"]

__version__ = "0.1.0"
