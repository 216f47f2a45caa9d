"""Running a program's file, and building its job without running it."""

from __future__ import annotations

import builtins
import io
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from millrace.jobs.capture import Captured

__all__ = ["captured_job", "run_as_main"]


def run_as_main(app: Path, args: Sequence[str]) -> None:
    """Executes a file as the `__main__` module, and leaves it there.

    cloudpickle sends what `__main__` defines by value, so workers need not import the program; and threads or exit
    handlers of the program still find their module after its last line. (runpy would take the module away again.)
    """
    module = ModuleType("__main__")
    module.__file__ = str(app)
    module.__dict__["__builtins__"] = builtins
    sys.modules["__main__"] = module
    sys.argv[:] = [str(app), *args]
    if not sys.flags.safe_path:
        # The interpreter put the directory of its own start there; the program expects its own.
        sys.path[0] = str(app.resolve().parent)
    with io.open_code(str(app.absolute())) as source:
        code = compile(source.read(), str(app), "exec")
    exec(code, module.__dict__)


def captured_job(app: Path, args: Sequence[str]) -> Captured | None:
    """Run a program up to its first `execute()`, and take the job that it would start; None if it starts none."""
    from millrace.graph import executor
    from millrace.jobs.capture import Captured, CapturingExecutor

    usual = executor._DEFAULT
    executor._DEFAULT = f"{CapturingExecutor.__module__}:{CapturingExecutor.__qualname__}"
    try:
        run_as_main(app, args)
    except Captured as captured:
        return captured
    finally:
        executor._DEFAULT = usual
    return None
