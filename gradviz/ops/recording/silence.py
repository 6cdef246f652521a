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
only put in place. Where a NumPy keeps it elsewhere, `np.seterr` does the same.

Whoever keeps NumPy silent writes it out, with nothing around it::

    heard = setting()
    try:
        heard is SILENT or put(SILENT)
        ...
    finally:
        heard is SILENT or put(heard)

A signal handler that raises may strike after any call, but not inside or before one
into C, and these are such: so what was put in place is always taken back. A token that
a call returns is not stored yet when the call is struck, and a context manager written
in Python is struck before its first line; an interrupt could leave NumPy silent for the
rest of the program.

To put it in place and to take it back takes as long as the kernel of a small op. So an
op asks first whether NumPy is silent already, as it is for all ops of a pass; and one
whose kernels raise none of the processor's floating-point flags, as those that only
compare and choose, says that it is silent by itself.
"""

from collections.abc import Callable
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


def _tell(told: dict[str, Any]) -> object:
    return np.seterr(**told)


_found: Final = _setting()

#: What keeps NumPy silent.
SILENT: Final[Any] = _found[1] if _found else dict.fromkeys(np.geterr(), "ignore")
#: What NumPy is told in this context.
setting: Final[Callable[[], Any]] = _found[0].get if _found else np.geterr
#: Telling it, see Note [Silence].
put: Final[Callable[[Any], object]] = _found[0].set if _found else _tell
