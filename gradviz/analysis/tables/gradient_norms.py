"""Norms of gradients, of traces whose recording has checked values."""

from collections.abc import Sequence

from gradviz.analysis.tables.executions import MAX_TEXT
from gradviz.trace.format.model import Trace
from gradviz.trace.format.strings import shortened


def gradient_norms(trace: Trace, tasks: Sequence[int]) -> dict[int, str]:
    """Return the norms of the ``.grad`` that some passes left, by AccumulateGrad.

    Each is Euclidean, as `repr` writes a float; none where values were not checked.
    """
    measured = trace.columns["gradient_measured"].having("task", tasks)
    return {
        node: shortened(trace.strings[norm], MAX_TEXT)
        for node, norm in measured.rows("node", "norm")
    }
