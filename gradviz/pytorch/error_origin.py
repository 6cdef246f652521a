"""The origin of an exception, as far as its traceback tells."""

import os
import sys
from pathlib import Path
from types import FrameType, TracebackType
from typing import Final

#: The name of PyTorch's function that runs a backward.
RUN_BACKWARD: Final = "_engine_run_backward"

#: Folder of this package: code that raises is in here, or in PyTorch's.
_HERE: Final = str(Path(__file__).parents[1]) + os.sep

#: And of a class of one of these.
_PACKAGES: Final = frozenset({"builtins", "gradviz", "msgspec", "torch"})


def is_ours(error: Exception) -> bool:
    """Return whether gradviz failed, and not the program that interrupted it.

    A signal handler may raise wherever it is called, to stop a call that takes too
    long; and one thread may raise in another.
    """
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    package = type(error).__module__.partition(".")[0]
    return (
        package in _PACKAGES
        and traceback is not None
        and not _is_programs(traceback.tb_frame)
    )


class ForgivingModels:
    """A block that asks modules and tensors, and ends where one of them fails.

    Their methods may be a program's own. What a signal handler raises meanwhile, or
    another thread, is not theirs, and reaches the program.
    """

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> bool:
        return isinstance(error, Exception) and not is_interrupt(error)


def is_interrupt(error: Exception) -> bool:
    """Return whether neither gradviz failed, nor a module or tensor that it asked."""
    if is_ours(error):
        return False
    torch = sys.modules["torch"]
    traceback = error.__traceback__
    while traceback is not None:
        if _is_programs(traceback.tb_frame):
            kind = type(_first_argument(traceback.tb_frame))
            if issubclass(kind, (torch.nn.Module, torch.Tensor)):
                return False
        traceback = traceback.tb_next
    return True


def _is_programs(frame: FrameType) -> bool:
    torchs = str(Path(sys.modules["torch"].__file__ or "").parent) + os.sep
    return not frame.f_code.co_filename.startswith((_HERE, torchs))


def _first_argument(frame: FrameType) -> object:
    """Return the first argument of a running function, None if it has none.

    A decorated method is called with all of its arguments in a tuple.
    """
    for name in frame.f_code.co_varnames[:1]:
        value = frame.f_locals.get(name)
        return value[0] if type(value) is tuple and value else value
    return None


def is_of_a_node(traceback: TracebackType | None) -> bool:
    """Return whether a node itself raised, and not a hook, as far as is known.

    Nodes written in C++ have no frames, those in Python begin in PyTorch's own module.

    Args:
        traceback: From the frame that called PyTorch's function.
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
