"""Sources and sinks."""

from __future__ import annotations

from millrace.connectors.callback import CallbackSink
from millrace.connectors.collect_sink import CollectSink
from millrace.connectors.collection import CollectionSource
from millrace.connectors.discard import DiscardSink
from millrace.connectors.function_sink import FunctionSink
from millrace.connectors.generator import GeneratorSource
from millrace.connectors.print_sink import PrintSink
from millrace.connectors.sequence import NumberSequenceSource
from millrace.connectors.socket import SocketTextSource
from millrace.connectors.text import TextFileSource

__all__ = [
    "CallbackSink",
    "CollectSink",
    "CollectionSource",
    "DiscardSink",
    "FunctionSink",
    "GeneratorSource",
    "NumberSequenceSource",
    "PrintSink",
    "SocketTextSource",
    "TextFileSource",
]
