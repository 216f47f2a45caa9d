"""Every error Millrace raises on its own account.

::

    MillraceError
    ├── GraphError              the program cannot be built as written (also a ValueError)
    ├── ConfigurationError      a setting is unknown, malformed or contradicts another (also a ValueError)
    ├── MissingDependencyError  an optional package or Java is not there (also an ImportError)
    ├── StateError              state was used where or how it cannot be used
    │   └── RestoreError        stored state does not fit the program, or is damaged
    ├── TimeError               a record has no usable timestamp, or a window has no usable time
    └── JobError                the job failed or was stopped
        └── UserCodeError       a user function raised something that cannot be carried over as it is

A user function's own exception is not wrapped: `execute()` raises the very type the function raised, with notes that
name the operator, its uid and the record.

>>> try:
...     raise GraphError("union of nothing: pass at least one stream")
... except ValueError as error:
...     print(error)
union of nothing: pass at least one stream
"""

from __future__ import annotations

__all__ = [
    "ConfigurationError",
    "GraphError",
    "JobError",
    "MillraceError",
    "MissingDependencyError",
    "RestoreError",
    "StateError",
    "TimeError",
    "UserCodeError",
]


class MillraceError(Exception):
    """Base of all errors raised by Millrace itself."""


class GraphError(MillraceError, ValueError):
    """The program cannot be turned into a job; the message says what to change."""


class ConfigurationError(MillraceError, ValueError):
    """A configuration value is malformed or contradicts another one."""


class MissingDependencyError(MillraceError, ImportError):
    """Something optional is needed and absent; the message names the command that installs it."""


class StateError(MillraceError, RuntimeError):
    """State or timers were used where they do not exist, for example on a stream without keys."""


class RestoreError(StateError):
    """Stored state cannot be taken over: it is damaged, or belongs to another program."""


class TimeError(MillraceError, ValueError):
    """A record or a window has no usable time."""


class JobError(MillraceError, RuntimeError):
    """The job failed, or was stopped before it could give a result."""


class UserCodeError(JobError):
    """A user function raised an exception that could not be pickled; its traceback is in the notes."""
