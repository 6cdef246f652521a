"""Reports of kernels and memory, the same from all backends."""

import itertools
from sys import _getframe  # in one step: each launch asks
from types import CodeType, FrameType
from typing import Any, Final

from gradviz.trace.reporting.ids import KERNEL_IDS

#: Tell kernels apart.
kernel_ids: Final = KERNEL_IDS

#: Tell allocations apart, from 0.
memory_ids: Final = itertools.count()

#: Modules whose frames are never the user's.
_NOT_THE_USERS: Final = frozenset({"gradviz", "numpy", "threading"})

#: True for files whose frames are the user's. Any thread; both would say the same.
_is_users: dict[str, bool] = {}


class UsersLine:
    """A line of the user's program, found only on request.

    No frame is kept, which would keep the user's variables.

    Attributes:
        code: Code that is executed,
        instruction: and the instruction in it.
    """

    __slots__ = ("code", "instruction")

    code: CodeType
    instruction: int

    def __str__(self) -> str:
        for begin, end, line in self.code.co_lines():
            if begin <= self.instruction < end:
                return f"{self.code.co_filename}:{line}"
        return self.code.co_filename


def users_line() -> UsersLine | None:
    """The innermost line of the user's that is being executed; None if none is."""
    frame: FrameType | None = _getframe()
    while frame is not None:
        code = frame.f_code
        is_users = _is_users.get(code.co_filename)
        if is_users is None:
            package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
            is_users = _is_users[code.co_filename] = package not in _NOT_THE_USERS
        if is_users:
            line = UsersLine.__new__(UsersLine)  # when compiled: new
            line.code = code
            line.instruction = frame.f_lasti
            return line
        frame = frame.f_back
    return None


def layout_at(offset: int, array: Any) -> str:
    """Return the bytes an array covers, in the form of `Probe.array_accessed`.

    Args:
        offset: Offset of its first element in the memory.
        array: Of any library; only its shape and strides are read.
    """
    shape = ",".join(map(str, array.shape))
    strides = ",".join(map(str, array.strides))
    return f"{offset};{shape};{strides};{array.itemsize}"
