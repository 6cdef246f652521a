"""Parameters that should have got a gradient, and that no pass of a trace reached."""

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec
import numpy as np

from gradviz.analysis.nodes.missing_gradients import (
    MissingGradient,
    NoGradient,
    forward_calls,
)
from gradviz.analysis.nodes.parameter_gradients import held_parameters
from gradviz.analysis.nodes.parameters import (
    TELLING,
    KnownParameter,
    every_parameter,
)
from gradviz.trace.format.model import Trace
from gradviz.trace.format.table import different

#: Maximum number of parameters listed; all are counted.
MAX_LISTED: Final = 100

#: Reasons that a program has on purpose.
_WANTED: Final = frozenset(
    {NoGradient.FROZEN, NoGradient.NOT_ASKED, NoGradient.UNKNOWN}
)


class UnreachedFinding(msgspec.Struct, frozen=True, kw_only=True):
    """A parameter that required a gradient, and that no pass reached.

    Attributes:
        name: Its first name.
        optimizers: The optimizers that hold it.
        missing: Reason why the last pass did not reach it.
    """

    name: str
    optimizers: tuple[str, ...]
    missing: MissingGradient


class UnreachedParameters(msgspec.Struct, frozen=True, kw_only=True):
    """Parameters that no pass of a trace reached, and those that differ by rank.

    Attributes:
        listed: The first ones that no pass reached.
        num_found: Number of all that no pass reached.
        differing: The first ones that passes of some ranks reached, and of others did
            not.
        num_differing: Number of all that differ.
    """

    listed: tuple[UnreachedFinding, ...] = ()
    num_found: int = 0
    differing: tuple[str, ...] = ()
    num_differing: int = 0


def unreached_parameters(trace: Trace) -> UnreachedParameters:
    """Find parameters that got no gradient, although they required one.

    Those of which the trace cannot tell are left out, and models of which no module
    ran, unless an optimizer holds them.
    """
    if not trace.models or not trace.tasks:
        return UnreachedParameters()
    every = every_parameter(trace)
    reached = _reached(trace)
    anywhere = different(np.concatenate(reached)) if reached else np.empty(0, np.int64)
    without = [one for one in every if not np.isin(one.nodes, anywhere).any()]
    found = list(_findings(trace, without))
    differing = [one.names[0] for one in every if _differs(one, reached)]
    return UnreachedParameters(
        listed=tuple(found[:MAX_LISTED]),
        num_found=len(found),
        differing=tuple(differing[:MAX_LISTED]),
        num_differing=len(differing),
    )


def _reached(trace: Trace) -> list[np.ndarray]:
    """Return the nodes that passes of each process had to do with."""
    tables = [trace.columns[kind] for kind in TELLING]
    found = []
    for process in trace.processes:
        mine = [
            one.narrow("node")[np.isin(one.narrow("thread"), process.threads)]
            for one in tables
        ]
        nodes = different(np.concatenate(mine).astype(np.int64))
        if len(nodes):
            found.append(nodes)
    return found


def _findings(
    trace: Trace, without: Sequence[KnownParameter]
) -> Iterator[UnreachedFinding]:
    held, calls = held_parameters(trace), forward_calls(trace)
    last = calls.last_pass()
    for one in without:
        missing = calls.why(last, one.names, one.definition)
        optimizers = () if held is None else held.of(one.names)
        if missing.reason in _WANTED:
            continue
        if missing.reason is NoGradient.MODULE_NOT_CALLED and not (
            missing.inside or optimizers
        ):
            continue  # a model that never ran
        yield UnreachedFinding(
            name=one.names[0], optimizers=optimizers, missing=missing
        )


def _differs(one: KnownParameter, reached: Sequence[np.ndarray]) -> bool:
    has = [bool(np.isin(one.nodes, nodes).any()) for nodes in reached]
    return any(has) and not all(has)
