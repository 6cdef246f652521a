"""Graphs that a program keeps alive, one more in each step.

A trace of passes cannot tell what holds a graph. The recorder looks for that in the
program itself where graphs pile up, and as the program ends: see `GraphKept`.
"""

from collections.abc import Iterator

import numpy as np

from gradviz.analysis.memory.finding import CostlyFinding
from gradviz.analysis.memory.kept_graphs import line_of, lines_of
from gradviz.analysis.tables.executions import MAX_TEXT
from gradviz.trace.format.model import Trace
from gradviz.trace.format.strings import shortened


def graphs_pile_up(trace: Trace) -> Iterator[CostlyFinding]:
    """Graphs of earlier steps that variables of the program still hold.

    A sum that a pass of this engine ran holds one graph, however many it has added up.
    """
    table = trace.columns["graph_kept"]
    ran = set(trace.columns["node_started"].narrow("node").tolist())
    names = ("node", "root", "location", "num_graphs", "num_passes", "num_nodes")
    for (
        node,
        root,
        line,
        num_graphs,
        num_passes,
        num_nodes,
        size,
        holders,
    ) in table.rows(*names, "size_bytes", "holders"):
        if num_graphs == 1 and node in ran:
            continue
        made_at = line_of(trace, int(lines_of(trace, np.array([node]))[0]))
        yield CostlyFinding(
            rule="graphs_pile_up",
            certainty="certain",
            location=shortened(trace.strings[line], MAX_TEXT) or made_at,
            cost_bytes=size or None,
            times=num_passes,
            name=shortened(trace.strings[root], MAX_TEXT),
            count=num_nodes,
            detail=shortened(trace.strings[holders], MAX_TEXT),
        )
