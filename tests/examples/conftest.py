from __future__ import annotations

import sys
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

# As `python examples/taxi/hourly_tips.py` does it: a program finds its neighbours by their plain names. Workers of a
# Spark that already runs get the driver's path with the next job.
for folder in ("taxi", "why_event_time"):
    if str(EXAMPLES / folder) not in sys.path:
        sys.path.insert(0, str(EXAMPLES / folder))
