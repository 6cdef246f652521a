"""Interrupts that strike while a lock is taken or given back.

Note [Interrupts at a lock]
~~~~~~~~~~~~~~~~~~~~~~~~~~~
Ctrl-C raises KeyboardInterrupt at the next place where the interpreter checks for
signals: at the start of a Python function, after a call of a C function, and where a
loop turns back. A ``with`` block of a lock in C is safe, because there is no check
between taking the lock and entering the block, nor between leaving it and the release.
A lock in Python has to be written so that the same holds for it:

* It takes the lock in C by a step of an iterator, ``for _ in iter(acquire, False)``.
  There is no check for signals after the step of an iterator in C. The next
  instruction is inside a `try` that releases the lock again. After the last call in
  there, no check follows until the caller has entered its block.
* It releases the lock in a handler, too, if reporting is interrupted. But the function
  starts before the first instruction of a `try`, and there the interpreter checks: the
  error would bypass the handler, and the lock would stay taken. Hence
  `cover_beginning`.

Cython's functions do not check for signals, so compiled ones need none of this. Python
code of the standard library (`Semaphore`, `Queue`) has such places of its own, in which
an interrupt has the same effect as without gradviz.
"""

import sys
from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeVar

_F = TypeVar("_F", bound=Callable[..., Any])

#: Versions of Python whose tables of exceptions have not been looked at.
_UNKNOWN = (3, 15)

#: Bits of a byte in a table of exceptions.
_ENTRY, _MORE, _VALUE = 0x80, 0x40, 0x3F


def cover_beginning(function: _F) -> _F:
    """Have the `try` with which a function begins cover its very first instruction.

    Interpreters keep beside the code a table of which instructions each handler is for
    (CPython's InternalDocs/exception_handling.md). The first row gets a new start.

    Args:
        function: Begins with a `try`. Changed in place, unless it is compiled.
    """
    if isinstance(function, FunctionType) and sys.version_info < _UNKNOWN:
        code = function.__code__
        start, rest = _number(code.co_exceptiontable)
        length, rest = _number(rest)
        table = _bytes(0, _ENTRY) + _bytes(start + length) + rest
        function.__code__ = code.replace(co_exceptiontable=table)
    return function


def _number(table: bytes) -> tuple[int, bytes]:
    """Read the number with which `table` begins; return it and what follows."""
    number = 0
    for index, byte in enumerate(table):
        number = number << 6 | byte & _VALUE
        if not byte & _MORE:
            return number, table[index + 1 :]
    raise ValueError("the function begins with no try")


def _bytes(number: int, mark: int = 0) -> bytes:
    """Write a number as it stands in a table."""
    digits = [number & _VALUE]
    while number := number >> 6:
        digits.insert(0, number & _VALUE | _MORE)
    digits[0] |= mark
    return bytes(digits)
