"""Checks for the first NaN or infinity of our engine, while a program is recorded.

Note [First in a pass]
~~~~~~~~~~~~~~~~~~~~~~
An op or a node is told if its inputs do not explain its result; see
`ValueRange.explains`. A forward ends where the next pass begins. In each forward, and
in each pass, at most one infinity and one NaN are told; once there was a NaN, nothing
more is looked at.
"""

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from gradviz.backends.base import Array, backend_of, device_of
from gradviz.engine.graph.anomaly import GRADIENT_CHECKS
from gradviz.engine.graph.basic_nodes import AccumulateGrad
from gradviz.engine.graph.node import Node
from gradviz.engine.graph.protocols import Gradient
from gradviz.locks import SafeLock
from gradviz.ops.dispatch import creation_hooks
from gradviz.ops.variables.variable import Variable, gradient_edge, raw
from gradviz.program_hooks import after_step
from gradviz.trace import probe
from gradviz.trace.probe import Checked, Probe
from gradviz.trace.reporting.value_range import (
    FirstFound,
    ValueRange,
    joined_range,
    range_of_number,
)

#: The key of the forward among those of passes.
_FORWARD: Final = -1

_lock = SafeLock()
#: One entry for each recording that wants values checked. Guarded by the lock.
_in_use: Final[list[None]] = []
#: Functions that end the checks of ops and optimizers, while there are any. Guarded by
#: the lock.
_end: Final[list[Callable[[], None]]] = []


def start() -> Callable[[], None]:
    """Begin to check every op and node; returns the function that ends it.

    Where several recordings ask for it, each value is looked at once.
    """
    with _lock:
        _in_use.append(None)
        if len(_in_use) == 1:
            checks = _Checks()
            _end.append(creation_hooks.observe_all(checks.op_done))
            GRADIENT_CHECKS.append(checks.node_done)
            after_step.append(checks.step_done)
            _end.append(functools.partial(after_step.remove, checks.step_done))
    return _stop


def _stop() -> None:
    with _lock:
        _in_use.pop()
        if not _in_use:
            GRADIENT_CHECKS.clear()
            while _end:
                _end.pop()()


class _Checks:
    """Checks of ops and nodes, on all threads."""

    def __init__(self) -> None:
        self._found = FirstFound()
        self._of_parameters = FirstFound()
        self._last_pass = _FORWARD

    def op_done(
        self, node: Node, results: Sequence[Array], values: Sequence[Any]
    ) -> None:
        """Look at the results of an op that made a node."""
        listener = probe.current
        if listener is None or self._found.is_done(_FORWARD):
            return
        for index, result in enumerate(results):
            if is_finite(result):
                continue
            seen = range_of(result)
            given = joined_range(_ranges(values, result))
            if not given.explains(seen) and self._found.is_news(_FORWARD, seen):
                _tell(listener, _FORWARD, node, Checked.RESULT, index, seen, given)

    def node_done(
        self,
        listener: Probe,
        task: int,
        node: Node,
        inputs: Sequence[Gradient],
        outputs: Sequence[Gradient],
    ) -> None:
        """Look at the gradients that a node made."""
        if task != self._last_pass:
            self._last_pass = task
            self._found.forget(_FORWARD)  # what follows is another one
        if isinstance(node, AccumulateGrad):
            norm = norm_of(getattr(node.leaf, "grad", None))
            if norm is not None:
                listener.gradient_measured(task, node.id, repr(norm))
        if self._found.is_done(task):
            return
        for index, output in enumerate(outputs):
            if is_finite(output):
                continue
            seen = range_of(output)
            ranges = [range_of(one) for one in inputs]
            given = joined_range(ranges)
            if not given.explains(seen):
                what, place = Checked.GRADIENT, index
            elif not self._found.has_any(task):
                # The sum of finite gradients, or what the caller gave.
                what, seen = Checked.SUM, given
                place = next(i for i, one in enumerate(ranges) if not one.is_finite)
            else:
                continue
            if self._found.is_news(task, seen):
                _tell(listener, task, node, what, place, seen, given)

    def step_done(self, optimizer: Any) -> None:  # noqa: ANN401 - anybody's
        """Look at the parameters that a step of an optimizer has changed.

        The first that is not finite is told once, for it stays so.
        """
        listener = probe.current
        if listener is None:
            return
        for group in getattr(optimizer, "param_groups", ()):
            for one in group["params"]:
                if isinstance(one, Variable) and not is_finite(one):
                    self._tell_parameter(listener, one)
                    return

    def _tell_parameter(self, listener: Probe, one: Variable) -> None:
        seen, leaf = range_of(one), gradient_edge(one).node
        if self._of_parameters.is_news(_FORWARD, seen):
            node = -1 if leaf is None else leaf.id
            names = ""
            if isinstance(leaf, AccumulateGrad):
                names = " = ".join(leaf.leaf_names())
            what, is_nan = Checked.PARAMETER, seen.has_nan
            listener.not_finite(
                *(-1, node, what, 0, is_nan, False, "", "", -1, "", names, "")
            )


def _tell(
    listener: Probe,
    task: int,
    node: Node,
    what: Checked,
    index: int,
    seen: ValueRange,
    given: ValueRange,
) -> None:
    smallest, largest = given.magnitudes()
    listener.not_finite(
        task,
        node.id,
        what,
        index,
        seen.has_nan,
        given.has_infinity,
        smallest,
        largest,
        -1,
        node.module,
        type(node).name(node),
        "",
    )


def is_finite(value: object) -> bool:
    """Return whether every value of an array or a tensor is finite.

    Waits for the device of the array.
    """
    host = _floats_of(value)
    return host is None or bool(np.isfinite(host).all())


def range_of(value: object) -> ValueRange:
    """Return the range of an array, a tensor or a number; of others a finite one.

    Waits for the device of the array.
    """
    if isinstance(value, float | complex):
        return range_of_number(value)
    host = _floats_of(value)
    if host is None:
        return ValueRange()
    with np.errstate(all="ignore"):
        magnitudes = np.abs(host[np.isfinite(host)])
        above = magnitudes[magnitudes > 0]
        return ValueRange(
            bool(np.isnan(host).any()),
            bool(np.isinf(host).any()),
            float(above.min()) if above.size else math.inf,
            float(magnitudes.max()) if magnitudes.size else -1.0,
        )


def norm_of(value: object) -> float | None:
    """Return the Euclidean norm of an array or a tensor of floats; else None.

    Waits for the device of the array.
    """
    host = _floats_of(value)
    if host is None:
        return None
    with np.errstate(all="ignore"):
        return float(np.linalg.norm(np.abs(host.ravel()).astype(np.float64)))


def _floats_of(value: object) -> Any:  # noqa: ANN401 - an array of NumPy's, or None
    """Return the floating or complex values of an array on the host, else None."""
    array = raw(value)
    dtype, device = getattr(array, "dtype", None), device_of(array)
    if dtype is None or device is None or dtype.kind not in "fc":
        return None
    return backend_of(device).to_host(array)


def _ranges(values: Sequence[Any], result: Array) -> Iterator[ValueRange]:
    """Yield the ranges of an op's inputs, without the result itself."""
    for one in values:
        if raw(one) is not result:
            yield range_of(one)
