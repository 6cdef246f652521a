"""Interrupts that strike while a lock is taken or given back.

Note [Interrupts at a lock]
~~~~~~~~~~~~~~~~~~~~~~~~~~~
Ctrl-C raises KeyboardInterrupt at the next place where the interpreter looks for
signals: at the start of a Python function, after a call of a C function, and where a
loop turns back. A ``with`` block of a lock in C is safe, because it does not look
between taking the lock and entering the block, nor between leaving it and the release.
A lock in Python has to be written so that the same holds for it:

* It takes the lock in C by a step of an iterator, ``for _ in iter(acquire, False)``.
  The interpreter does not look after the step of an iterator in C. The next
  instruction is inside a `try` that releases the lock again. After the last call in
  there, it does not look until the caller has entered its block.
* It releases the lock in a handler, too, if reporting is interrupted::

      @starts_unchecked
      def release(self):
          try:
              self.report()
          except BaseException:
              self._release()
              raise
          self._release()

  But a function starts before its first `try`. An interrupt there would bypass the
  handler, and the lock would stay taken. Nothing that Python code can say prevents it:
  hence `starts_unchecked`.

Cython's functions do not look for signals, so compiled ones need none of this. Python
code of the standard library (`Semaphore`, `Queue`) has such places of its own, in which
an interrupt has the same effect as without gradviz.
"""

import sys
from collections.abc import Callable
from opcode import opmap
from types import FunctionType
from typing import Any, Final, TypeVar

_F = TypeVar("_F", bound=Callable[..., Any])

#: Versions of Python of which nobody has tried whether it works.
_UNTRIED: Final = (3, 15)

#: The argument of RESUME where ``yield from`` goes on, as documented for `dis`. It
#: is the same instruction as at the start of a function, but looks for no signals.
_AFTER_YIELD_FROM: Final = 2


def starts_unchecked(function: _F) -> _F:
    """Have the interpreter look for no signals where a function starts.

    Args:
        function: No generator. Changed in place, unless it is compiled.
    """
    if isinstance(function, FunctionType) and sys.version_info < _UNTRIED:
        code = bytearray(function.__code__.co_code)  # an instruction, its argument, ...
        start = 2 * code[::2].index(opmap["RESUME"])
        code[start + 1] = _AFTER_YIELD_FROM
        function.__code__ = function.__code__.replace(co_code=bytes(code))
    return function
