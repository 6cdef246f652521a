"""Graphs that pile up while a program of PyTorch's runs: one more in each step.

A list of losses keeps the graph of each step alive, with all that its nodes hold. A
mark in the metadata of the root of each pass lives as long as that node, so counting
the graphs that are alive costs a pass next to nothing. Only where they pile up, and as
a program ends, are they looked for among all objects, which takes a moment.
"""

import weakref
from array import array
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from gradviz.pytorch.nodes.graph_reader import MIN_KEPT, ROOT_KEY
from gradviz.trace.probe import Probe
from gradviz.trace.recording.recorder import alone

if TYPE_CHECKING:
    from gradviz.pytorch.nodes.live_graphs import PiledUp

#: Maximum number of passes told apart, the last ones.
_MAX_PASSES: Final = 1 << 16


class _Mark:
    """Lives as long as a node of PyTorch's."""

    __slots__ = ("__weakref__",)


class KeptGraphs:
    """The passes whose graphs are still alive. Any thread, by single calls into C."""

    def __init__(self) -> None:
        self._alive: set[weakref.ref[_Mark]] = set()
        #: The number that the next node had as each pass began.
        self._passes = array("q")
        #: Number of graphs of earlier passes that were alive when the last one began.
        self._num_alive = 0
        #: Looked for once there are so many; each time twice as many.
        self._next_look = MIN_KEPT
        self._found: list[PiledUp] = []
        #: Number of them when these were found.
        self._num_alive_then = 0

    def note_roots(self, functions: Iterable[Any], number: int) -> None:
        """Note the nodes at which a pass is about to begin.

        Args:
            functions: The nodes.
            number: That which the next node of this thread will have.
        """
        self._num_alive = len(self._alive)
        self._passes.append(number)
        del self._passes[:-_MAX_PASSES]
        for function in functions:
            metadata = function.metadata
            if ROOT_KEY not in metadata:
                mark = metadata[ROOT_KEY] = _Mark()
                self._alive.add(weakref.ref(mark, self._alive.discard))
        # A function of the program that keeps them may be over when recording ends.
        if self._num_alive >= self._next_look:
            self._next_look = 2 * self._num_alive
            self._num_alive_then = self._num_alive
            self._found = self._look()

    def tell(self, listener: Probe, *, always: bool) -> None:
        """Tell a listener which graphs the program keeps, as its recording ends.

        Args:
            listener: The listener.
            always: Look for them even if few graphs of passes are alive: there may be
                others that no pass ran, or only parts of theirs.
        """
        before = self._found if self._num_alive >= MIN_KEPT else []
        found = self._look() if always or before else []
        # Of those found before, one was of the pass that had just begun.
        num_later = max(self._num_alive - self._num_alive_then - 1, 0)
        for graphs, num_passes in found or before:
            is_before = not found and num_passes
            listener.graph_kept(
                -1,
                graphs.root,
                graphs.location,
                graphs.num_graphs,
                num_passes + num_later if is_before else num_passes,
                graphs.num_nodes,
                graphs.saved_bytes,
                ", and by ".join(graphs.holders),
            )

    def _look(self) -> "list[PiledUp]":
        """Return what piles up; nothing while other threads run, see `alone`."""
        # Loaded where there may be some.
        from gradviz.pytorch.nodes.live_graphs import piled_up_graphs  # noqa: PLC0415

        with alone() as is_alone:
            return piled_up_graphs(sorted(self._passes)) if is_alone else []
