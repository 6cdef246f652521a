"""Origins of tensors: recorded, at a price, while a user wants them."""

import contextlib
import linecache
import sys
import types
from collections.abc import Iterator
from typing import NamedTuple, Self

import numpy as np

from gradviz.engine.graph import anomaly
from gradviz.engine.graph.grad_mode import GRAD_ENABLED
from gradviz.ops.variables.variable import result_class, variable
from gradviz.tensors.tensor import Tensor


class Origin(NamedTuple):
    """Origin of a tensor; prints as the line that made it.

    Attributes:
        path: The file of the program.
        line: The line in it.
        under_no_grad: True if gradients were disabled then.
    """

    path: str
    line: int
    under_no_grad: bool

    def __str__(self) -> str:
        text = linecache.getline(self.path, self.line).strip()
        return f"{self.path}:{self.line}" + (f" ({text})" if text else "")


class RememberingTensor(Tensor):
    """A tensor that knows its origin."""

    __slots__ = ("origin",)

    origin: Origin

    def __new__(cls) -> Self:
        """Made by whatever makes tensors, which does not know of this class."""
        new = super().__new__(cls)
        frame = _users_frame()
        if frame is not None:
            path, line = frame.f_code.co_filename, frame.f_lineno
            new.origin = Origin(path, line, not GRAD_ENABLED.get())
        return new


@contextlib.contextmanager
def remember_origins() -> Iterator[None]:
    """Let tensors and nodes that are made in the block remember which line made them.

    For the whole process, and slow. `why_none` and `find_nan` then tell these lines.
    """
    before = type(variable(np.zeros(())))
    mode = anomaly.switch(anomaly.Anomaly(check_nan=False))
    result_class(RememberingTensor)
    try:
        yield
    finally:
        result_class(before)
        anomaly.switch(mode)


def origin_of(tensor: Tensor) -> Origin | None:
    """The origin of a tensor, None if it was not remembered."""
    return getattr(tensor, "origin", None)


def _users_frame() -> types.FrameType | None:
    """The innermost function that runs and is none of gradviz or NumPy."""
    frame: types.FrameType | None = sys._getframe(2)
    while frame is not None:
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if package not in {"gradviz", "numpy"}:
            return frame
        frame = frame.f_back
    return None
