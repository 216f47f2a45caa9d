"""The commands behind `millrace`: running programs, and looking after their savepoints."""

from __future__ import annotations

__all__: list[str] = []
