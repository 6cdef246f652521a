"""``gradviz run --live``: a line on stderr for each step that has ended."""

import mmap
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from gradviz.capture.iterations import Iterations
from gradviz.cli.console.notes import note
from gradviz.render.words.text import count, duration, size

#: So often a line is written at most, in seconds: to a terminal, and to a file or pipe.
TERMINAL_S: Final = 0.1
PLAIN_S: Final = 1.0


class LiveSteps:
    """Called as optimizers step, on the program's threads; tells of each iteration.

    Iterations that end soon after a line share the next one.

    Args:
        num_nodes: Number of nodes recorded so far.
        every_s: Seconds from one line to the next, at least.
        clock: The time in nanoseconds.
        write: Writes a line.
        memory: Memory in use, in words; empty if that is not known.
        iterations: Finds their ends.
    """

    def __init__(
        self,
        num_nodes: Callable[[], int],
        every_s: float,
        *,
        clock: Callable[[], int] = time.perf_counter_ns,
        write: Callable[[str], object] = note,
        memory: Callable[[], str] | None = None,
        iterations: Iterations | None = None,
    ) -> None:
        self._num_nodes = num_nodes
        self._every_ns = int(every_s * 1e9)
        self._clock = clock
        self._write = write
        self._memory = memory or memory_in_words
        self._iterations = iterations or Iterations()
        self._num_told = self._num_ended = 0
        self._nodes_told = 0
        self._last_ns = self._told_ns = clock()
        #: The longest of those that are not told yet.
        self._longest_ns = 0

    def __call__(self, optimizer: object) -> None:
        """See `gradviz.program_hooks.after_step`."""
        ended = self._iterations.ended_by(optimizer)
        if not ended:
            return
        now = self._clock()
        self._num_ended += ended
        self._longest_ns = max(self._longest_ns, (now - self._last_ns) // ended)
        self._last_ns = now
        if now - self._told_ns >= self._every_ns or not self._num_told:
            self.tell()

    def tell(self) -> None:
        """Write a line about those that none was written about, if there are any."""
        number = self._num_ended - self._num_told
        if not number:
            return
        nodes = self._num_nodes()
        took = (self._last_ns - self._told_ns) / number
        told = [f"{duration(took)}{' each' if number > 1 else ''}"]
        if number > 1:
            told.append(f"the longest {duration(self._longest_ns)}")
        told.append(count(nodes - self._nodes_told, "new node"))
        if memory := self._memory():
            told.append(memory)
        first, last = self._num_told, self._num_ended - 1
        which = f"steps {first:,} to {last:,}" if number > 1 else f"step {last:,}"
        self._write(f"{which}: {', '.join(told)}")
        self._num_told, self._nodes_told = self._num_ended, nodes
        self._told_ns, self._longest_ns = self._last_ns, 0


def interval_s() -> float:
    """Return how far lines are apart at least, by what stderr is."""
    return TERMINAL_S if sys.stderr.isatty() else PLAIN_S


def memory_in_words() -> str:
    """Memory of a GPU that PyTorch uses, else of this process; empty if not known."""
    cuda: Any = getattr(sys.modules.get("torch"), "cuda", None)
    if cuda is not None and cuda.is_initialized():
        return f"{size(cuda.memory_allocated())} allocated on the GPU"
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return ""
    return f"{size(pages * mmap.PAGESIZE)} in memory"
