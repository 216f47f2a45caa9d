"""Connectors under the names that PyFlink programs import them by."""

from __future__ import annotations

from millrace.datastream.connectors.base import DeliveryGuarantee, Sink, Source

__all__ = ["DeliveryGuarantee", "Sink", "Source"]
