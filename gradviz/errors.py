"""The errors that gradviz raises, by whose fault they are.

Two roots: :class:`UserError` is the caller's mistake (the command line prints it as
one sentence, without a traceback), :class:`EngineError` is ours. Where PyTorch raises
a built-in type (``RuntimeError``, ``ValueError``, ``TypeError``), the engine raises
that same type, so that code written for PyTorch catches what it expects.
"""


class GradvizError(Exception):
    """Base of every error class that gradviz defines."""


class UserError(GradvizError):
    """The caller asked for something that cannot be done.

    Attributes:
        exit_code: What the command line exits with when it meets this error.
    """

    exit_code = 1


class TraceError(UserError):
    """A file is no trace, or is damaged beyond what was asked of it."""

    exit_code = 3


class MissingToolError(UserError):
    """Something optional is needed and not there (``dot``, CuPy, a GPU)."""

    exit_code = 4


class RenderTimeoutError(UserError):
    """A renderer took longer than it was given."""

    exit_code = 5


class StreamRaceError(UserError):
    """A program's work on two streams uses the same memory in no order."""


class EngineError(GradvizError, RuntimeError):
    """The engine cannot go on: one of its threads died, or it was stopped."""


class OutOfMemoryError(GradvizError, RuntimeError):
    """A device has not as much memory as was asked for.

    Source: torch.OutOfMemoryError.
    """
