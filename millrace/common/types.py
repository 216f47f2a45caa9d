"""`Row` and `RowKind` under the module name that PyFlink programs import them from.

>>> Row(1, 2)
<Row(1, 2)>
"""

from __future__ import annotations

from millrace.common.row import Row, RowKind

__all__ = ["Row", "RowKind"]
