"""The operators that a task runs, one family a module."""
