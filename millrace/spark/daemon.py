"""Spark's process that forks Python workers, with one difference: a worker whose task was cancelled goes quietly.

Spark closes the pipe of a cancelled task, and the worker at the other end would print a traceback about it.
"""

from __future__ import annotations

import os
import socket

from pyspark import daemon

__all__: list[str] = []

_spark_worker = daemon.worker


def _worker(sock: socket.socket, authenticated: bool) -> int:
    try:
        return _spark_worker(sock, authenticated)
    except BrokenPipeError:
        # The user's own errors never come this way: the worker sends them to Spark as data.
        os._exit(1)


if __name__ == "__main__":
    daemon.worker = _worker
    daemon.manager()
