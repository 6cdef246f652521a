"""Keeping NumPy's floating-point warnings away from those who use tensors.

PyTorch says nothing of ``log(0)``, ``1 / 0`` or an overflow: the result does. NumPy
warns of them unless told not to, and the user's own NumPy code is to keep what the
user told it.

Note [Silence]
~~~~~~~~~~~~~~
An op that records tells NumPy before its forward and takes it back afterwards; a pass
does so once, for all its threads, which inherit the caller's context variables. NumPy's
setting is such a context variable. `np.errstate` sets it too, but builds the setting
anew each time and takes as long as a small op; so the setting is built once, here, and
only put in place. Where a NumPy keeps it elsewhere, `np.errstate` it is.
"""

import contextlib
import functools
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any, Final

import numpy as np


def _setting() -> tuple[ContextVar[Any], Any] | None:
    """NumPy's context variable, and the value of it that keeps silent."""
    try:
        from numpy._core.umath import _extobj_contextvar as variable  # noqa: PLC0415 - private: it may be gone
    except ImportError:
        return None
    with np.errstate(all="ignore"):
        return variable, variable.get()


def _slowly() -> tuple[Callable[[], Any], Callable[[Any], object]]:
    def mute() -> Any:  # noqa: ANN401 - goes back to `unmute` as it is
        state = np.errstate(all="ignore")
        state.__enter__()
        return state

    return mute, lambda state: state.__exit__(None, None, None)


_found: Final = _setting()
if _found is not None:
    _variable, _silent = _found

    #: Silence NumPy in this context; takes nothing, returns what `unmute` takes.
    mute: Callable[[], Any] = functools.partial(_variable.set, _silent)
    unmute: Callable[[Any], object] = _variable.reset
else:
    mute, unmute = _slowly()


@contextlib.contextmanager
def silent() -> Iterator[None]:
    """A block in which NumPy does not warn of floating-point errors."""
    token = mute()
    try:
        yield
    finally:
        unmute(token)
