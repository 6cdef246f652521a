"""Places in models where nodes were made, kept for each thread.

Note [Who made a node]
~~~~~~~~~~~~~~~~~~~~~~
A node says nothing of the module that made it. Its sequence number does: while a module
runs, its thread gives out numbers that no other module on that thread gets. But each
thread counts by itself, so a number means something only with the thread that made the
node. Each node knows that thread, by a number of PyTorch's that is never used again,
and Python cannot ask for it. PyTorch's profiler tells it of the nodes that ran.

So there are two steps. Before a pass its nodes are supposed to be the caller's own, if
no other thread is known to have made nodes; if one is, they have no place. After the
pass, those that ran are placed by the thread that made them. If that was not the
supposed one, those that did not run lose their place, for nobody knows who made them.
A node that cannot be placed has no module and no line: never those of another one.
"""

import threading
import weakref
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from gradviz.locks import SafeRLock
from gradviz.pytorch.nodes.seen_node import SeenNode

#: Maximum number of changes remembered of a thread; of more the older half is
#: forgotten.
_MAX_CHANGES: Final = 1 << 16

#: Maximum number of different places remembered of a thread, to be shared.
_MAX_SHARED: Final = 1 << 12

#: Maximum number of changes remembered of all threads that have ended. Each counts as a
#: minimum number, for a thread takes memory, too.
_MAX_ENDED: Final = 1 << 16
_LEAST_COUNTED: Final = 200

#: In place of a thread's number: none, and several.
_NOBODY: Final = 0
_SEVERAL: Final = -1


class ForwardPlace(NamedTuple):
    """Place in a model that made nodes.

    Attributes:
        module: The path of the module that ran, empty outside of all.
        line: The line that called it, if it is one of PyTorch's own.
    """

    module: str
    line: str


OUTSIDE: Final = ForwardPlace("", "")


class _LifeOfThread:
    """An object that lives as long as its thread."""

    __slots__ = ("__weakref__",)


class ForwardPlaces:
    """Places that made the nodes of one thread, each with its first sequence number.

    Its thread changes it. Any thread may ask for nodes that have been made.

    Args:
        thread: PyTorch's number of the thread; 0 for no thread, which has no places.
    """

    def __init__(self, thread: int = _NOBODY) -> None:
        self.thread: Final = thread
        self.now = OUTSIDE
        #: True if a recording has ended since the last change, and another one begun:
        #: no listener heard what the thread did in between.
        self.is_interrupted = False
        # Replaced together when the older half is forgotten, for other threads ask.
        self._changes: tuple[array[int], list[ForwardPlace]] = array("q"), []
        #: Places by themselves, so that equal ones are one object.
        self._shared: dict[ForwardPlace, ForwardPlace] = {}

    def __len__(self) -> int:
        return len(self._changes[0])

    def of(self, sequence_nr: int) -> ForwardPlace:
        """Return where the node of this number was made, outside if not known."""
        begins, places = self._changes
        at = bisect_right(begins, sequence_nr)
        if not at or (at == len(begins) and self.is_interrupted):
            return OUTSIDE
        return places[at - 1]

    def move_to(self, place: ForwardPlace, sequence_nr: int) -> None:
        """The nodes from this number on are made at `place`."""
        known = self._shared.get(place)
        if known is None:
            if len(self._shared) >= _MAX_SHARED:
                self._shared.clear()
            known = self._shared[place] = place
        self.now = place = known
        begins, places = self._changes
        while begins and begins[-1] >= sequence_nr:
            del begins[-1], places[-1]  # nothing was made where it has been
        if len(begins) >= _MAX_CHANGES:
            half = _MAX_CHANGES // 2
            self._changes = begins, places = begins[half:], places[half:]
        places.append(place)  # first, for who asks looks at the numbers
        begins.append(sequence_nr)

    def resume(self) -> None:
        """Listen again: the thread's work in between has no place."""
        if self.is_interrupted:
            begins, _ = self._changes
            if begins and self.now != OUTSIDE:
                self.move_to(OUTSIDE, begins[-1])
            self.is_interrupted = False


#: The places of no thread.
NOBODYS: Final = ForwardPlaces()


class _OfCaller(threading.local):
    """The calling thread's places, None before anybody asked."""

    def __init__(self) -> None:
        self.places: ForwardPlaces | None = None
        self.life = _LifeOfThread()


class ThreadPlaces:
    """The places of all threads that make nodes; see Note [Who made a node].

    Args:
        thread_number: PyTorch's number of the calling thread.
    """

    def __init__(self, thread_number: Callable[[], int]) -> None:
        self._thread_number = thread_number
        self._of_caller = _OfCaller()
        # Its holder may run finalizers, which may run modules.
        self._lock = SafeRLock()
        #: By the thread's number; with each, a reference to what lives as long as its
        #: thread. Changed with the lock held, read by single calls into C.
        self._all: dict[int, tuple[ForwardPlaces, weakref.ref[_LifeOfThread]]] = {}
        #: The only thread that is known to have made nodes. Guarded by the lock.
        self._maker = _NOBODY

    def begin(self) -> None:
        """Start a recording; nobody heard the threads' work since the last one."""
        with self._lock:
            for places, _ in self._all.values():
                places.is_interrupted = True
            self._of_caller = _OfCaller()

    def of_caller(self) -> ForwardPlaces:
        """Return those of the calling thread, which runs a module or a pass."""
        places = self._of_caller.places
        return self._begin_caller() if places is None else places

    def supposed(self) -> ForwardPlaces:
        """Return those of the calling thread, if no other is known to make nodes.

        Else nobody's.
        """
        own = self.of_caller()
        return own if own.thread == self._maker else NOBODYS

    def place_anew(
        self, misplaced: Sequence[SeenNode], others: Iterable[SeenNode]
    ) -> list[SeenNode]:
        """Correct the places of nodes, after a pass over them.

        Args:
            misplaced: Nodes that other threads made than was supposed.
            others: Nodes of the same pass.

        Returns:
            Those whose place is another one now.
        """
        for thread in {node.made_by for node in misplaced}:
            self._has_made_nodes(thread)
        placed = []
        for node in misplaced:
            if place(node, self._of_thread(node.made_by)):
                placed.append(node)
            node.placed_by = node.made_by
        unknown = (one for one in others if one.placed_by and not one.made_by)
        placed += [node for node in unknown if place(node, NOBODYS)]
        return placed

    def _of_thread(self, thread: int) -> ForwardPlaces:
        known = self._all.get(thread)
        return NOBODYS if known is None else known[0]

    def _begin_caller(self) -> ForwardPlaces:
        of_caller, number = self._of_caller, self._thread_number()
        with self._lock:
            known = self._all.pop(number, None)
            places = ForwardPlaces(number) if known is None else known[0]
            places.resume()
            self._all[number] = places, weakref.ref(of_caller.life)
            self._has_made_nodes(number)
            self._forget_ended()
        of_caller.places = places
        return places

    def _has_made_nodes(self, thread: int) -> None:
        with self._lock:
            self._maker = thread if self._maker in (_NOBODY, thread) else _SEVERAL

    def _forget_ended(self) -> None:
        """Forget threads that have ended, the oldest first, if they are many."""
        counted = 0
        for number, (places, life) in reversed(list(self._all.items())):
            if life() is None:
                counted += max(len(places), _LEAST_COUNTED)
                if counted > _MAX_ENDED:
                    del self._all[number]


def place(node: SeenNode, places: ForwardPlaces) -> bool:
    """Note where a node was made, if a thread with these places made it.

    What anomaly mode says of its line stays.

    Returns:
        True if that is another place than before.
    """
    module, line = places.of(node.sequence_nr)
    if node.has_own_line:
        line = node.line
    is_news = module != node.module_path or line != node.line
    node.module_path, node.line, node.placed_by = module, line, places.thread
    return is_news
