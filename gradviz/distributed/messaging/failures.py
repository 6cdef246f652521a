"""Failures of a call of another worker."""

import functools
from typing import Final

from gradviz.errors import GradvizError


class RpcError(GradvizError, RuntimeError):
    """A call of another worker has failed."""


class PeerDownError(RpcError):
    """The other worker is gone, or was never there."""


class GivenUpError(PeerDownError):
    """The other worker takes this one for gone, and answers nothing any more."""


class RpcTimeoutError(RpcError, TimeoutError):
    """The other worker did not answer in time."""


class WorkerFailedError(RpcError):
    """A worker did not end well.

    Attributes:
        rank: Rank of the worker.
        exit_code: That of its process, as a shell has it: 128 and the number of the
            signal that killed it. That of a thread is 1.
    """

    def __init__(self, rank: int, exit_code: int, text: str) -> None:
        super().__init__(text)
        self.rank = rank
        self.exit_code = exit_code


class RemoteError(RpcError):
    """An error raised by a function on another worker.

    If that raised a built-in error, such as `ValueError`, this is one as well.

    Args:
        node: The other worker's rank.
        kind: Name of the class of the error.
        text: Its message.
        remote_traceback: Its traceback as text; empty if unknown.

    Attributes:
        node: As given, like the others.
    """

    def __init__(self, node: int, kind: str, text: str, remote_traceback: str) -> None:
        super().__init__(text)
        self.node = node
        self.kind = kind
        self.remote_traceback = remote_traceback


def remote_error(node: int, kind: str, text: str, remote_traceback: str) -> RemoteError:
    """Return the error to raise for a caller of another worker."""
    return _class_of(kind)(node, kind, text, remote_traceback)


#: Built-in errors that a text alone makes, and that callers tell apart.
_BUILT_IN: Final = {
    one.__name__: one
    for one in (
        ArithmeticError,
        AssertionError,
        AttributeError,
        IndexError,
        KeyError,
        LookupError,
        MemoryError,
        NotImplementedError,
        OverflowError,
        TypeError,
        ValueError,
        ZeroDivisionError,
    )
}


@functools.lru_cache(maxsize=64)
def _class_of(kind: str) -> type[RemoteError]:
    """The class of errors that are remote ones, and of the built-in class `kind`."""
    found = _BUILT_IN.get(kind)
    if found is None:
        return RemoteError
    return type(
        f"Remote{kind}", (RemoteError, found), {"__str__": BaseException.__str__}
    )
