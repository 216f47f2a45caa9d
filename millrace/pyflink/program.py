"""Running a file that was written for PyFlink."""

from __future__ import annotations

import builtins
import io
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from millrace.pyflink.finder import install

__all__ = ["run_program"]


def run_program(path: str | Path, args: Sequence[str] = ()) -> None:
    """Run a PyFlink program as `python path args...` would, with Millrace in the place of PyFlink.

    The file becomes the `__main__` module and stays it, so that what it defines travels to the workers by value.
    """
    install()
    file = Path(path)
    module = ModuleType("__main__")
    module.__file__ = str(file)
    module.__dict__["__builtins__"] = builtins
    sys.modules["__main__"] = module
    sys.argv[:] = [str(file), *args]
    if not sys.flags.safe_path:
        sys.path[0] = str(file.resolve().parent)
    with io.open_code(str(file.absolute())) as source:
        code = compile(source.read(), str(file), "exec")
    exec(code, module.__dict__)
