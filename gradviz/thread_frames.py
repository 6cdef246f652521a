"""Frames of other threads, read so that CPython 3.11 neither deadlocks nor crashes.

Note [Frames of threads]
~~~~~~~~~~~~~~~~~~~~~~~~
`sys._current_frames` holds an interpreter lock while it allocates. In 3.11 a garbage
collection may start there and let another thread run. If that one starts or ends a
thread, it waits for the same lock while it holds the GIL, and the process hangs for
good (CPython issue 106883).

``f_locals`` and ``f_back`` of a frame that another thread is running allocate too: the
dict for the variables, the frame object of the caller. If a collection lets that thread
run, its function may return, and the interpreter goes on to read and write where the
variables were: a segmentation fault. (Since 3.12 an allocation starts no collection,
and since 3.13 ``f_locals`` copies nothing.)

So collections are disabled meanwhile. One C call directly follows the other: between
them no other thread can run, which might enable collections again. One danger remains
before 3.13: if the function has called ``locals()`` itself, ``f_locals`` drops the
values of that time, and the finalizer of such a value may let its thread run.

The interpreter also returns the frame of the thread that asks: our own. A variable of
ours that refers to it, even by way of a dict, makes a cycle. All callers are part of
it, so that the variables of the program's functions would outlive them, until a
collection. So `without_collections` keeps no result in a variable, and `thread_frames`
returns the frames of other threads only.
"""

import gc
import operator
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from types import FrameType
from typing import Any, Final, TypeVar, cast

_T = TypeVar("_T")

_variables: Final = operator.attrgetter("f_locals")
_caller: Final = operator.attrgetter("f_back")


def thread_frames() -> dict[int, FrameType]:
    """Return the innermost frame of each other thread, by the thread's identifier."""
    frames = without_collections(sys._current_frames)
    frames.pop(threading.get_ident(), None)
    return frames


def variables_of(frame: FrameType) -> dict[str, Any]:
    """Return ``f_locals`` of a frame that another thread may run."""
    return without_collections(partial(_variables, frame))


def outwards(frame: FrameType | None) -> Iterator[FrameType]:
    """Yield a frame that another thread may run, then its callers."""
    while frame is not None:
        yield frame
        frame = without_collections(partial(_caller, frame))


def without_collections(read: Callable[[], _T]) -> _T:
    """Call a function of C; see Note [Frames of threads]."""
    steps: tuple[Callable[[], Any], ...] = (gc.isenabled, gc.disable, read)
    results = list(map(operator.call, steps))
    if results[0]:
        gc.enable()
    return cast("_T", results.pop())
