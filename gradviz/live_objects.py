"""All objects of a type, found without harm to threads that run meanwhile.

Note [Objects under construction]
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
``tuple(f(x) for x in xs)`` makes a tuple, fills it while `f` runs, and cuts it to its
length. `gc.get_objects` and `gc.get_referrers` return such tuples, too. If a list of
ours still refers to one when its thread goes on, it cannot be cut, and that thread gets
a SystemError. So nobody may hold a list of all objects while another thread can run: in
a search that the program did not ask for, be it of microseconds.

`instances_of` makes the list and lets go of it inside of one call of C, during which
the interpreter stays with its thread. A search for who holds something takes longer,
and runs much of Python's code. Unasked, it waits until there is no other thread: see
`alone` in `trace.recording.recorder`.
"""

import gc
import operator
from collections.abc import Callable
from functools import partial
from itertools import chain, compress, repeat
from typing import Any

from gradviz.thread_frames import without_collections


def instances_of(kind: type) -> list[Any]:
    """Return the objects of a type that the garbage collector knows.

    It asks a type and not the object, which may be anybody's and say anything.
    """
    every: list[Any] = []
    from_collector = chain.from_iterable(map(operator.call, [gc.get_objects]))
    are_of_kind = map(issubclass, map(type, every), repeat(kind))
    steps: tuple[Callable[[], Any], ...] = (
        partial(every.extend, from_collector),
        partial(list, compress(every, are_of_kind)),
        every.clear,
    )
    # A collection might run a finalizer, and the interpreter might turn to another
    # thread there.
    results: list[Any] = without_collections(partial(list, map(operator.call, steps)))
    found: list[Any] = results[1]
    return found
