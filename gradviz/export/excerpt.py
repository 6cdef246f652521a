"""An excerpt: the part of a trace that belongs to some of its passes."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from gradviz.analysis.tables.passes import with_descendants
from gradviz.trace.format.model import Trace
from gradviz.trace.format.table import Table


def excerpt(trace: Trace, tasks: Sequence[int]) -> Trace:
    """The events of these passes, and of all that were called from inside them.

    Events of no pass, such as a kernel's or a thread's sleep, are in it if they
    happened between the first event of these passes and the last. `seq` stays that of
    the whole trace, and definitions stay.
    """
    wanted = np.array(with_descendants(trace, tasks), np.int64)
    first, last = _extent(trace, wanted)

    def belongs(table: Table) -> npt.NDArray[np.bool_]:
        task, t_ns = table.narrow("task"), table.narrow("t_ns")
        meanwhile = (task == -1) & (t_ns >= first) & (t_ns <= last)
        return np.asarray(np.isin(task, wanted) | meanwhile)

    return Trace(
        path=trace.path,
        header=trace.header,
        clocks=trace.clocks,
        nodes=trace.nodes,
        threads=trace.threads,
        queues=trace.queues,
        losses=trace.losses,
        strings=trace.strings,
        columns={
            kind: table.at(belongs(table)) if table.num_rows else table
            for kind, table in trace.columns.items()
        },
        processes=trace.processes,
        models=trace.models,
    )


def _extent(trace: Trace, wanted: npt.NDArray[np.int64]) -> tuple[int, int]:
    """The first and the last moment of some passes."""
    moments = np.concatenate(
        [
            table["t_ns"][np.isin(table.narrow("task"), wanted)]
            for table in trace.columns.values()
        ]
    )
    return int(moments.min(initial=2**62)), int(moments.max(initial=-(2**62)))
