from __future__ import annotations

from tests.backends import each_backend

__all__ = ["each_backend"]
