"""Saved tensors by node: how large they are, where that is known."""

from typing import Final

import numpy as np
import numpy.typing as npt

from gradviz.trace.format.model import Trace
from gradviz.trace.format.table import Column, different

#: No tensor is larger, whatever a damaged trace says.
MAX_BYTES: Final = 1 << 40

#: Stands for a size that is not known.
UNKNOWN: Final = -1

_SAVES_NOTHING: Final = frozenset({"AccumulateGrad", "GraphRoot"})


def saved_bytes(trace: Trace, nodes: Column) -> Column:
    """Return how large the tensors are that each node kept, or `UNKNOWN`."""
    table = trace.columns["tensor_saved"]
    some, place = np.unique(table["node"], return_inverse=True)
    sizes_bytes = np.clip(table["size_bytes"], 0, MAX_BYTES)  # a file may say anything
    sizes = np.append(np.bincount(place, sizes_bytes, len(some)), 0).astype(np.int64)
    at = np.searchsorted(some, nodes)
    at[~np.isin(nodes, some)] = -1
    return np.where(is_unknown(trace, nodes), UNKNOWN, sizes[at])


def is_unknown(trace: Trace, nodes: Column) -> npt.NDArray[np.bool_]:
    """Tell of each node if it may have saved something that is not known.

    A watched pass of PyTorch's reports what each of its nodes saved. Where events are
    missing, so may be that report.
    """
    columns = trace.columns
    saved, started = columns["tensor_saved"], columns["node_started"]
    is_told = np.isin(nodes, saved["node"])
    if "tensor_saved" not in trace.header.scope.left_out:
        is_told |= np.isin(nodes, columns["node_created"]["node"])
        is_asked = np.isin(started.narrow("task"), passes_that_tell(trace))
        is_told |= np.isin(nodes, started["node"][is_asked])
    is_unmeasured = np.isin(nodes, saved["node"][saved["size_bytes"] < 0])
    names, place = trace.nodes.names(nodes)
    saves = np.array([name not in _SAVES_NOTHING for name in names], np.bool_)
    return (~is_told | is_unmeasured) & saves[place]


def passes_that_tell(trace: Trace) -> Column:
    """Return the passes that report each node's saved bytes."""
    freed = trace.columns["buffer_freed"]
    if not trace.losses.is_complete:
        return freed["task"][:0]
    return different(freed["task"][freed.narrow("inferred") > 0])
