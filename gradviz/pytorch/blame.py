"""Who raised an exception, as far as its traceback tells."""

import os
import sys
from pathlib import Path
from types import TracebackType
from typing import Final

#: The name of PyTorch's function that runs a backward.
RUN_BACKWARD: Final = "_engine_run_backward"

#: What raises in this package is in here, or in PyTorch's.
_HERE: Final = str(Path(__file__).parents[1]) + os.sep

#: And of a class of one of these.
_PACKAGES: Final = frozenset({"builtins", "gradviz", "msgspec", "torch"})


def is_ours(error: Exception) -> bool:
    """Whether gradviz failed, and not the program that it was interrupted for.

    The handler of a signal may raise wherever it is called, to stop what takes too
    long; and so may one thread in another.
    """
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    path = "" if traceback is None else traceback.tb_frame.f_code.co_filename
    package = type(error).__module__.partition(".")[0]
    torchs = str(Path(sys.modules["torch"].__file__ or "").parent) + os.sep
    return package in _PACKAGES and path.startswith((_HERE, torchs))


def is_of_a_node(traceback: TracebackType | None) -> bool:
    """Whether it was a node itself that raised, and not a hook, as far as one can tell.

    Nodes written in C++ have no frames, those in Python begin in PyTorch's own module.

    Args:
        traceback: From the frame on that called PyTorch's function.
    """
    if traceback is None or traceback.tb_next is None:
        return False
    below: TracebackType | None = traceback.tb_next
    while below is not None and below.tb_frame.f_code.co_name == RUN_BACKWARD:
        below = below.tb_next
    if below is None:
        return True
    return below.tb_frame.f_code.co_filename.endswith(
        str(Path("torch", "autograd", "function.py"))
    )
