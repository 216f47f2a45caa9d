"""Formats under the names that PyFlink programs import them by."""

from __future__ import annotations
