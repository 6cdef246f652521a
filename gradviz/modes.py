"""Modes: settings of a context that a backward pass gives back as it found them.

Note [Modes in a backward]
~~~~~~~~~~~~~~~~~~~~~~~~~~
A node, hook or callback may change a mode and leave it changed: it enters inference
mode and never leaves it, or raises in between. On a device's thread that ends with the
node, which runs in a copy of the caller's context. On the caller's own thread nodes run
in the caller's own context, since a context cannot be entered twice and a copy would
cost more than a small node. So there the pass puts modes back: before each node, before
its callbacks, and when it ends. As almost no node changes any, each change of any mode
draws a number, and as long as the newest is the one that the pass has seen, nothing is
to be done.

Gradient mode is not among them: every pass sets it for every node in any case. What a
user's own context variables hold is the user's; on the caller's thread a node changes
them as any call would, which is what happens in PyTorch. Nor are streams: the pass
knows those that its nodes work on, see `gradviz.engine.pass_streams`.

Source: aten/src/ATen/ThreadLocalState.h, of which PyTorch's engine keeps one a pass.

Note [Contexts and collections]
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
To set a context variable makes a few objects, and up to Python 3.11 a collection may
begin there. If it runs a finaliser that sets a context variable, as one that calls
`backward` does, the table is gone that the first call goes on reading, and the process
crashes. A copy of the context keeps the table; it takes 50 ns.
"""

import itertools
import sys
from contextvars import Context, ContextVar, copy_context
from typing import Any, Final, Generic, TypeVar

T = TypeVar("T")


def _nothing() -> None:
    """What is to be kept where collections begin between two bytecodes only."""


#: Keeps what a call that sets a variable reads, as long as what it returns is kept.
#: See Note [Contexts and collections]. A C function where it matters, so that an
#: interrupt strikes before or after it.
keep_table: Final = _nothing if sys.version_info >= (3, 12) else copy_context

_next_change: Final = itertools.count(1).__next__
_modes: "Final[list[Mode[Any]]]" = []

#: The number of the newest change, in any context. Each number is stored only once, so
#: who finds the one that it saw knows that its own thread has changed nothing since. In
#: a list, as `gradviz.trace.probe.LISTENERS` is: it is read for each node.
NEWEST_CHANGE: Final = [0]


def assign(variable: ContextVar[T], value: T) -> None:
    """Set a context variable. See Note [Contexts and collections]."""
    table = keep_table()
    variable.set(value)
    del table


class Mode(Generic[T]):
    """A context variable that is what it was when a backward began, in all its nodes.

    It is set and never reset by a token, which is of no use in another context: a block
    may be entered in one node and left in another.

    Args:
        name: For people.
        default: Its value in a context that has not set it.

    Attributes:
        get: Returns its value in this context.
    """

    __slots__ = ("_default", "_variable", "get")

    def __init__(self, name: str, default: T) -> None:
        self._variable = ContextVar(name, default=default)
        self._default = default
        self.get = self._variable.get  # found in one step: ops ask some of them
        _modes.append(self)

    def set(self, value: T) -> None:
        """Change its value in this context."""
        NEWEST_CHANGE[0] = _next_change()
        assign(self._variable, value)

    def put_back(self, context: Context) -> bool:
        """Take its value from `context`; returns whether it had another one."""
        value = context.get(self._variable, self._default)
        if self.get() is value:
            return False
        assign(self._variable, value)
        return True


class Entered:
    """What a block puts into a mode; a base class.

    It is among the `living` ones, by its id, as long as a context has it, so that ops
    need ask no further while there are none. Counting how often blocks are entered and
    left would not do: a backward gives its caller back what its nodes took away, and
    takes away what they left behind.

    Args:
        living: Those of one mode.
    """

    __slots__ = ("_leave",)

    def __init__(self, living: set[int]) -> None:
        self._leave = living.discard
        living.add(id(self))

    def __del__(self) -> None:
        self._leave(id(self))


def put_back(context: Context) -> int:
    """Give all modes the values that they have in `context`.

    Returns:
        The number of the newest change that this thread can have made.
    """
    seen = NEWEST_CHANGE[0]
    if sum(mode.put_back(context) for mode in _modes):
        # A change like any other: an outer pass on this thread must notice it.
        NEWEST_CHANGE[0] = seen = _next_change()
    return seen
