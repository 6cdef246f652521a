"""Tensors that modules take and return, and their part in a graph."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Final

from gradviz.engine.graph.grad_mode import is_grad_enabled
from gradviz.tensors.tensor import Tensor
from gradviz.trace.probe import Tracking

#: No more tensors of one call are looked at.
_MAX_TENSORS: Final = 32


def tracking_of(values: Iterable[object]) -> Tracking:
    """Return the part that the tensors among some values have in a graph."""
    some = list(islice(_tensors(values), _MAX_TENSORS))
    if not some:
        return Tracking.NO_TENSORS
    if any(one.requires_grad for one in some):
        return Tracking.TRACKED
    if not is_grad_enabled():
        return Tracking.DISABLED
    if not any(one.array.dtype.kind in "fc" for one in some):
        return Tracking.INTEGERS
    return Tracking.UNTRACKED


def _tensors(values: Iterable[object]) -> Iterator[Tensor]:
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, (tuple, list)):
            yield from (one for one in value if isinstance(one, Tensor))
        elif isinstance(value, Mapping):
            yield from (one for one in value.values() if isinstance(one, Tensor))
