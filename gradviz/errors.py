"""The errors that gradviz raises, by who is at fault.

There are two roots: :class:`UserError` is the caller's mistake (the command line prints
it as one sentence, without a traceback), :class:`EngineError` is ours. Where PyTorch
raises a built-in type (``RuntimeError``, ``ValueError``, ``TypeError``), the engine
raises the same type, so that code written for PyTorch catches it.
"""

from typing import Final

#: Exit code of a command that Ctrl-C ended, as in shells: 128 + SIGINT.
INTERRUPTED: Final = 130


class GradvizError(Exception):
    """Base of every error class that gradviz defines."""


class UserError(GradvizError):
    """The caller asked for something that cannot be done.

    Attributes:
        exit_code: Exit code of the command line after this error.
    """

    exit_code = 1


class TraceError(UserError):
    """A file is not a trace, or is too damaged for the request."""

    exit_code = 3


class MissingToolError(UserError):
    """An optional tool is needed and missing (``dot``, CuPy, a GPU)."""

    exit_code = 4


class RenderTimeoutError(UserError):
    """A renderer exceeded its time limit."""

    exit_code = 5


class StreamRaceError(UserError):
    """A program's work on two streams uses the same memory without an order."""


class EngineError(GradvizError, RuntimeError):
    """The engine cannot go on: one of its threads died, or it was stopped."""


class OutOfMemoryError(GradvizError, RuntimeError):
    """A device has less free memory than requested.

    Source: torch.OutOfMemoryError.
    """
