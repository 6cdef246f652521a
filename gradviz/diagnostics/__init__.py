"""Diagnoses of problems with gradients, NaNs and memory.

In: tensors and models. Out: answers as values that print as sentences. Read
`graph_walk`, then a question: `missing_gradient`, `not_finite`, `live_graphs`, `size`.
"""

from gradviz.diagnostics.live_graphs import LiveGraph, live_graphs
from gradviz.diagnostics.missing_gradient import Answer, Reason, why_none
from gradviz.diagnostics.not_finite import Culprit, NanReport, find_nan
from gradviz.diagnostics.origins import remember_origins
from gradviz.diagnostics.size import GraphSize, Share, graph_size

__all__ = [
    "Answer",
    "Culprit",
    "GraphSize",
    "LiveGraph",
    "NanReport",
    "Reason",
    "Share",
    "find_nan",
    "graph_size",
    "live_graphs",
    "remember_origins",
    "why_none",
]
