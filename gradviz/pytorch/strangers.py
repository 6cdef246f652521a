"""Passes that began before PyTorch's function was replaced: nobody counts them."""

import sys
from types import CodeType, FrameType


class Strangers:
    """Whether any are under way.

    Attributes:
        may_be_there: Whether it has to be looked for them.

    Args:
        original: PyTorch's function.
        own: The one that calls PyTorch's for passes that are counted.
    """

    def __init__(self, original: CodeType, own: CodeType) -> None:
        self.may_be_there = False
        self._original = original
        self._own = own

    def are_there(self) -> bool:
        """Whether a pass is under way that began before it would have been counted."""
        if self.may_be_there:
            self.may_be_there = any(
                _calls(frame, self._original, self._own)
                for frame in sys._current_frames().values()
            )
        return self.may_be_there


def _calls(frame: FrameType | None, function: CodeType, own: CodeType) -> bool:
    """Whether a thread is inside of `function`, and not by way of `own`."""
    while frame is not None:
        if frame.f_code is function:
            before = frame.f_back
            if before is None or before.f_code is not own:
                return True
        frame = frame.f_back
    return False
