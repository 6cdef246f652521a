"""Modes: settings of a context that a backward pass restores.

Note [Modes in a backward]
~~~~~~~~~~~~~~~~~~~~~~~~~~
A node, hook or callback may change a mode and leave it changed: it enters inference
mode and never leaves it, or raises in between. On a device's thread that ends with the
node, which runs in a copy of the caller's context. On the caller's own thread nodes run
in the caller's own context, since a context cannot be entered twice and a copy would
cost more than a small node. So there the pass restores modes: before each node, before
its callbacks, and when it ends. As almost no node changes any, each change of a mode
draws a number; while the newest number is the one that the pass has seen, there is
nothing to do.

Gradient mode is not among them: every pass sets it for every node in any case. A user's
own context variables are the user's business; on the caller's thread a node changes
them as any call would, which is PyTorch's behavior. Streams are not among them either:
the pass knows those of its nodes, see `gradviz.engine.tasks.pass_streams`.

Source: aten/src/ATen/ThreadLocalState.h, of which PyTorch's engine keeps one per pass.

Note [Contexts and collections]
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
Setting a context variable makes a few objects, and up to Python 3.11 a garbage
collection may start there. If it runs a finalizer that sets a context variable, as one
that calls `backward` does, the table that the first call is still reading is freed, and
the process crashes. A copy of the context keeps the table alive; it takes 50 ns.

Note [Undone in one call]
~~~~~~~~~~~~~~~~~~~~~~~~~
An interrupt may strike between any two bytecodes, and so before the first one of a
Python function: after ``finally: assign(...)`` the variable may never have been
restored. It never strikes inside a call of a C function, nor between two steps of
compiled code. So a `finally` calls ``variable.set`` itself, and a block that must
restore more than one variable first makes an iterator that does so (`undoing`) and
exhausts it: ``list(undo)`` is one call. Exhausting it again does nothing.
"""

import itertools
import sys
import weakref
from collections.abc import Callable, Iterator
from contextvars import Context, ContextVar, copy_context
from functools import partial
from operator import call
from typing import Any, Final, Generic, TypeVar

T = TypeVar("T")

#: Keeps the table that a call that sets a variable reads, as long as its result is
#: kept. See Note [Contexts and collections]. Always a C function, so that an interrupt
#: strikes before or after it. From Python 3.12 on there is nothing to keep.
keep_table: Final[Callable[[], object]] = (
    tuple if sys.version_info >= (3, 12) else copy_context
)

_next_change: Final = itertools.count(1).__next__
_modes: "Final[list[Mode[Any]]]" = []

#: The number of the newest change, in any context. Each number is stored only once, so
#: a thread that finds the one it saw knows that it has changed nothing since. In a
#: list, like `gradviz.trace.probe.LISTENERS`, because it is read for each node.
NEWEST_CHANGE: Final = [0]


def assign(variable: ContextVar[T], value: T) -> None:
    """Set a context variable. See Note [Contexts and collections]."""
    table = keep_table()
    variable.set(value)
    del table


def undoing(*variables: ContextVar[Any]) -> Iterator[object]:
    """Return an iterator that restores the variables' present values when exhausted.

    See Note [Undone in one call].
    """
    return _called(*[partial(variable.set, variable.get()) for variable in variables])


def _called(*functions: Callable[[], object]) -> Iterator[object]:
    """Call each function as the iterator reaches it, with the table kept."""
    return map(call, (keep_table, *functions))


class Mode(Generic[T]):
    """A context variable with its value at a backward's start in all its nodes.

    It is set and never reset by a token, which is useless in another context: a block
    may be entered in one node and left in another.

    Args:
        name: Name for display.
        default: Its value in a context that has not set it.

    Attributes:
        get: Returns its value in this context.
    """

    __slots__ = ("_default", "_variable", "get")

    def __init__(self, name: str, default: T) -> None:
        self._variable = ContextVar(name, default=default)
        self._default = default
        self.get = self._variable.get  # bound once: ops call some of them
        _modes.append(self)

    def set(self, value: T) -> None:
        """Change its value in this context."""
        NEWEST_CHANGE[0] = _next_change()
        assign(self._variable, value)

    def undoing(self) -> Iterator[object]:
        """Return an iterator that restores its present value; see `undoing`."""
        # The number is drawn now and stored once, when the value changes.
        noted = partial(NEWEST_CHANGE.__setitem__, 0, _next_change())
        return _called(noted, partial(self._variable.set, self.get()))

    def put_back(self, context: Context) -> bool:
        """Take its value from `context`; return whether it had another one."""
        value = context.get(self._variable, self._default)
        if self.get() is value:
            return False
        assign(self._variable, value)
        return True


class Entered:
    """A block's setting of a mode; a base class.

    It is among the `living` ones as long as a context has it, so that ops need ask no
    further while there are none. Counting how often blocks are entered and left would
    not do: a backward restores its caller's settings that its nodes removed, and
    removes those that they left behind.

    Args:
        living: References to those of one mode. Each is taken out when its object is
            gone, by a C function: an interrupt in a ``__del__`` would be lost.
    """

    __slots__ = ("__weakref__",)

    def __init__(self, living: "set[weakref.ref[Entered]]") -> None:
        living.add(weakref.ref(self, living.discard))


def put_back(context: Context) -> int:
    """Restore all modes to their values in `context`.

    Returns:
        The number of the newest change that this thread can have made.
    """
    seen = NEWEST_CHANGE[0]
    if sum(mode.put_back(context) for mode in _modes):
        # A change like any other: an outer pass on this thread must notice it.
        NEWEST_CHANGE[0] = seen = _next_change()
    return seen
