from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Whatever starts Spark first in this process, a test or a page of the documentation, starts the same one.
os.environ.setdefault("MILLRACE_MASTER", "local[2,4]")


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The Spark session all tests share."""
    from millrace.spark.session import get_session, stop_session

    yield get_session({"spark.master": "local[2,4]"})
    stop_session()
