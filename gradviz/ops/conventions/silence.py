"""Suppression of NumPy's floating-point warnings for users of tensors.

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

Nor does an op whose kernel is a single function of C: `quietly` calls it in another
context, in which NumPy is silent and nothing else is set. To go there and back takes a
fifth of the time. No more than such a function may run there: no code of Python, which
would find none of the modes of its caller, and no signal handler, for these run between
two bytecodes. (Up to Python 3.11 a collection may begin inside of it, and run a
finalizer there, which never knows in what context it is.)
"""

from collections.abc import Callable
from contextvars import Context, ContextVar
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

#: Setting that keeps NumPy silent.
SILENT: Final[Any] = _found[1] if _found else dict.fromkeys(np.geterr(), "ignore")
#: Setting of NumPy in this context.
setting: Final[Callable[[], Any]] = _found[0].get if _found else np.geterr
#: Telling it, see Note [Silence].
put: Final[Callable[[Any], object]] = _found[0].set if _found else _tell


def _quiet_context() -> Context:
    context = Context()
    context.run(put, SILENT)
    return context


#: Contexts for `quietly`. A thread takes one out as long as it is there, for two cannot
#: be in the same one: by atomic calls. One that an interrupt loses is missed by nobody.
#: Some to begin with, for a list that becomes empty gives back its memory each time.
_quiet: Final = [_quiet_context() for _ in range(8)]


def quietly(kernel: Callable[..., Any], x: Any, y: Any = None) -> Any:  # noqa: ANN401 - arrays
    """Call a kernel on one or two raw arrays while NumPy is silent.

    Args:
        kernel: A C function that calls no Python: see Note [Silence].
        x: An array of NumPy's own class.
        y: Another one, None for a kernel of one array.
    """
    if setting() is SILENT:
        return kernel(x) if y is None else kernel(x, y)
    try:
        context = _quiet.pop()
    except IndexError:
        context = _quiet_context()
    try:
        return context.run(kernel, x) if y is None else context.run(kernel, x, y)
    finally:
        _quiet.append(context)
