"""Locks that no interrupt leaves taken.

Note [Interrupts and locks]
~~~~~~~~~~~~~~~~~~~~~~~~~~~
A signal handler that raises, or an error that is thrown into a thread, strikes where
the interpreter looks for them: also after a call of C code. From Python 3.14 on a
``with`` block calls `__enter__` as it calls anything, and looks before the block has a
handler that would call `__exit__`. So the lock stays taken, and the next who wants it
waits for good. Between a call of Python code and the next instruction it does not look:
an `__enter__` in Python undoes what it has done if it is struck, and returns unharmed
otherwise. `__exit__` has to stay C code, for Python code can be struck as it begins.

Compiled code never looks between the two, and older Pythons have an instruction of
their own for ``with``.
"""

import sys
import threading
from _thread import RLock as _RLock
from collections.abc import Callable
from typing import Final


class InterruptSafeRLock(_RLock):  # type: ignore[misc]  # final in stubs alone
    """A reentrant lock that is given back if its thread is struck as it takes it."""

    __slots__ = ()

    def __enter__(self) -> bool:  # type: ignore[override]
        """Take the lock."""
        try:
            return self.acquire()
        except BaseException:
            # One that is held already is never waited for: it was taken, and once more.
            if self._is_owned():  # type: ignore[attr-defined]
                self.release()
            raise


#: As `threading.RLock`.
SafeRLock: Final[Callable[[], _RLock]] = (
    _RLock if sys.version_info < (3, 14) else InterruptSafeRLock
)

#: As `threading.Lock`, for uses that never take it twice. Only a reentrant one can be
#: asked who holds it.
SafeLock: Final[Callable[[], "threading.Lock | _RLock"]] = (
    threading.Lock if sys.version_info < (3, 14) else InterruptSafeRLock
)
