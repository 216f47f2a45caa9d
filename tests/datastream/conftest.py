from __future__ import annotations

import sys
from pathlib import Path

# The tests are no package: what they share is found next to them.
sys.path.insert(0, str(Path(__file__).parent))
