"""Makes `python -m millrace` the same as the `millrace` command."""

from __future__ import annotations

from millrace.cli import main

if __name__ == "__main__":
    main(prog_name="python -m millrace")
