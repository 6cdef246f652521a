"""The node of an op: what was saved, and the formulas that use it."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy import ndarray  # in one step: each op asks

from gradviz.backends.base import Array
from gradviz.backends.device import CPU
from gradviz.engine import basic_nodes
from gradviz.engine.anomaly import SWITCHED_ON
from gradviz.engine.grad_mode import GRAD_ENABLED
from gradviz.engine.node import (
    SEQUENCE,
    Edge,
    InputMetadata,
    announce,
    fill_in,
    metadata_for,
    next_sequence_nr,
)
from gradviz.engine.protocols import Gradient, size_bytes
from gradviz.ops.recording import creation_hooks
from gradviz.ops.recording.creation_hooks import CREATION_HOOKS_IN_USE
from gradviz.ops.recording.node_hooks import Hookable
from gradviz.ops.recording.plan import CONSTANT, IN_FORMULA, RESULT, Plan
from gradviz.ops.recording.saved_variable import (
    HOOKS_IN_USE,
    SECOND_BACKWARD,
    SavedVariable,
    attached,
    check_unchanged,
)
from gradviz.ops.recording.variable import Variable, metadata_of, raw, variable
from gradviz.trace import probe
from gradviz.trace.probe import LISTENERS


class OpNode(Hookable):
    """The backward of one op with one result.

    Attributes:
        plan: Which gradients are wanted, and how they are computed.
        saved: What `plan` kept; None once it was freed. Variables by Note [Saving],
            raw arrays, and what is no tensor.
    """

    __slots__ = ("plan", "saved")

    cuts_imaginary = True  # formulas need not care that a real input is real

    def record(
        self, edges: tuple[Edge, ...], data: Array, plan: Plan, saved: tuple[Any, ...]
    ) -> None:
        """Take the place of `__init__`, which takes longer to be called."""
        device = CPU if type(data) is ndarray else data.device
        metadata = metadata_for(data.shape, data.dtype, device)
        fill_in(self, edges, (metadata,), device, next(SEQUENCE.numbers))
        self.plan = plan
        self.saved: tuple[Any, ...] | None = saved
        if LISTENERS or HOOKS_IN_USE or SWITCHED_ON:
            self._announce(saved)
        if CREATION_HOOKS_IN_USE:
            creation_hooks.call(self, (data,))

    def _announce(self, saved: tuple[Any, ...]) -> None:
        """Tell who listens of the node and how much it holds.

        Where there are hooks, saved results may pack in between, which makes nodes.
        """
        has_tensors = self.plan.has_tensors
        if not HOOKS_IN_USE:
            announce(self, _sum_of_sizes(saved) if has_tensors else -1)
            return
        announce(self)
        for value in saved:
            if isinstance(value, SavedVariable):
                value.pack_result(self)
        if has_tensors and (listener := probe.current) is not None:
            listener.tensor_saved(self.id, _sum_of_sizes(saved))

    def call(self, inputs: list[Gradient]) -> Sequence[Gradient]:
        """The gradients of the op's inputs; see `Node.apply`.

        Raises:
            RuntimeError: What was saved has been freed, or changed in place.
        """
        grad = inputs[0]
        plan = self.plan
        steps = plan.steps
        if grad is None:
            return (None,) * len(steps)
        saved = self.saved
        if saved is None:
            raise RuntimeError(SECOND_BACKWARD)
        if type(grad) is not ndarray and GRAD_ENABLED.get():
            return self._in_graph(grad, [True] * len(steps))
        if plan.has_tensors:
            if plan.only is not None:  # most nodes are like this
                value = saved[0]
                if isinstance(value, Variable):
                    kept = value
                    if kept.needs_grad and (
                        kept.version is None or not kept.version.value
                    ):
                        return (plan.only(grad, kept.array),)
                return (plan.only(grad, self._array(value, 0)),)
            saved = self._arrays(saved)
        if plan.together is not None:
            return self._together(grad, saved, [True] * len(steps))
        if len(steps) == 1 and plan.joint is None:
            formula = steps[0][0]
            return (formula and formula(grad, *saved),)
        return self._each(grad, saved)

    def _each(self, grad: Gradient, saved: tuple[Any, ...]) -> tuple[Gradient, ...]:
        """All gradients, each from its formula; None where none is wanted."""
        if not saved:
            return tuple([formula and formula(grad) for formula, _ in self.plan.steps])
        return tuple(
            [step and step(grad, *pick(saved)) for step, pick in self.plan.steps]
        )

    def call_restricted(
        self, inputs: list[Gradient], wanted: Sequence[bool]
    ) -> Sequence[Gradient]:
        """The gradients that are wanted, None in place of the others (I8)."""
        if all(wanted) or inputs[0] is None:
            return self.call(inputs)
        saved = self.saved
        if saved is None:
            raise RuntimeError(SECOND_BACKWARD)
        if type(inputs[0]) is not ndarray and GRAD_ENABLED.get():
            return self._in_graph(inputs[0], wanted)
        if self.plan.has_tensors:
            saved = self._arrays(saved)
        if self.plan.together is not None:
            return self._together(inputs[0], saved, wanted)
        return self._by_themselves(inputs[0], saved, wanted)

    def _together(
        self, grad: Gradient, saved: tuple[Any, ...], wanted: Sequence[bool]
    ) -> Sequence[Gradient]:
        """The gradients that are wanted, from one formula for all of them."""
        first = grad
        if isinstance(grad, tuple):
            first, *others = grad
            if first is None or any(other is not None for other in others):
                return self._by_themselves(grad, saved, wanted)
        assert self.plan.together is not None
        together, pick = self.plan.together
        needed = [
            is_wanted and step is not None
            for (step, _), is_wanted in zip(self.plan.steps, wanted, strict=True)
        ]
        return together(needed, first, *pick(saved))

    def _by_themselves(
        self, grad: Gradient, saved: tuple[Any, ...], wanted: Sequence[bool]
    ) -> Sequence[Gradient]:
        """The gradients that are wanted, each from its formula."""
        return tuple(
            step(grad, *pick(saved)) if is_wanted and step else None
            for (step, pick), is_wanted in zip(self.plan.steps, wanted, strict=True)
        )

    def apply(self, *grads: Gradient) -> Sequence[Gradient]:
        """The gradients of the op's inputs, given those of its results."""
        return self.call(list(grads))

    def _arrays(self, saved: tuple[Any, ...]) -> tuple[Any, ...]:
        """What was saved, as formulas want it in a plain backward."""
        arrays = []
        for value in saved:
            if isinstance(value, Variable):
                kept = value
                if kept.needs_grad and (kept.version is None or not kept.version.value):
                    arrays.append(kept.array)  # nearly all are like this
                    continue
            arrays.append(self._array(value, len(arrays)))
        return tuple(arrays)

    def _array(self, value: Any, index: int) -> Any:  # noqa: ANN401 - of any type
        if isinstance(value, Variable):
            # What was detached since needs no gradient any more: so that is looked at.
            if not value.needs_grad or (
                value.version is not None and value.version.value
            ):
                self._check(value, self.plan.origins[index])
            return value.array
        return value.unpack(self).array if type(value) is SavedVariable else value

    def _in_graph(self, grad: Gradient, wanted: Sequence[bool]) -> Sequence[Gradient]:
        """The gradients that are wanted; see Note [Formulas in a graph]."""
        plan = self.plan
        saved = self._variables()  # before it looks as if a formula called their hooks
        found: list[Gradient] = [None] * len(plan.steps)
        outside = IN_FORMULA.get()
        try:
            # In here, and without a token, for an interrupt: see Note [Silence].
            IN_FORMULA.set(True)
            if plan.joint is not None:
                joint, pick = plan.joint
                ends = zip(plan.steps, wanted, strict=True)
                needed = [one and step is not None for (step, _), one in ends]
                computed = joint(needed, grad, *pick(saved))
                return [
                    one if is_needed else None
                    for one, is_needed in zip(computed, needed, strict=True)
                ]
            for turn in range(len(found)) if plan.turns is None else plan.turns:
                step, pick = plan.steps[turn]
                if step is not None and wanted[turn]:
                    found[turn] = step(grad, *pick(saved))
        finally:
            IN_FORMULA.set(outside)
        return found

    def _variables(self) -> tuple[Any, ...]:
        """What was saved, as formulas want it under ``create_graph``."""
        assert self.saved is not None
        if not self.plan.has_tensors:
            return self.saved
        return tuple(
            # What is not differentiated is a plain array to formulas.
            raw(self.variable(i)) if origin == CONSTANT else self.variable(i)
            for i, origin in enumerate(self.plan.origins)
        )

    def variable(self, index: int) -> Any:  # noqa: ANN401 - of any type
        """What was saved at `index`, in its place in the graph."""
        assert self.saved is not None
        value, origin = self.saved[index], self.plan.origins[index]
        if isinstance(value, SavedVariable):
            return value.unpack(self)
        if not isinstance(value, Variable):
            return value
        self._check(value, origin)
        return attached(value, self, output_nr_of(origin))

    def _check(self, value: Variable, origin: int) -> None:
        """Raise if a variable that was saved by itself has changed since."""
        source = self.next_edges[origin].node if origin >= 0 else None
        check_unchanged(
            value,
            0,
            self,
            output_nr=output_nr_of(origin),
            was_leaf=source is None or isinstance(source, basic_nodes.AccumulateGrad),
        )

    def release_variables(self) -> None:
        """Let go of saved tensors; what is no tensor may be used again (N3)."""
        if self.plan.has_tensors:
            self.saved = None


class SeveralNode(OpNode):
    """The backward of one op with several results.

    Attributes:
        fills: Whether formulas want zeros in place of gradients that are undefined.
        takes_one: Whether formulas take the first gradient instead of all.
    """

    __slots__ = ("fills", "takes_one")

    def __init__(
        self,
        edges: tuple[Edge, ...],
        results: Sequence[Array],
        plan: Plan,
        saved: tuple[Any, ...],
        fills: bool,
        takes_one: bool,
    ) -> None:
        metadata = tuple(map(metadata_of, results))
        fill_in(
            self,
            edges,
            metadata,
            metadata[0].device if metadata else CPU,
            next_sequence_nr(),
        )
        self.fills = fills
        self.takes_one = takes_one
        self.plan = plan
        self.saved = saved
        self._announce(saved)
        if CREATION_HOOKS_IN_USE:
            creation_hooks.call(self, results)

    def call(self, inputs: list[Gradient]) -> Sequence[Gradient]:
        """As that of `OpNode`."""
        return OpNode.call(self, [self._incoming(inputs)])

    def call_restricted(
        self, inputs: list[Gradient], wanted: Sequence[bool]
    ) -> Sequence[Gradient]:
        """As that of `OpNode`."""
        if all(wanted):
            return self.call(inputs)
        return OpNode.call_restricted(self, [self._incoming(inputs)], wanted)

    def _incoming(self, inputs: list[Gradient]) -> Gradient:
        """What formulas take: all gradients, or the only one; None if none came."""
        if self.takes_one:
            return inputs[0]
        if all(grad is None for grad in inputs):
            return None
        if not self.fills:
            return tuple(inputs)
        like = next(grad for grad in inputs if grad is not None)
        return tuple(
            _zeros(like, metadata) if grad is None else grad
            for grad, metadata in zip(inputs, self.input_metadata, strict=True)
        )


def output_nr_of(origin: int) -> int | None:
    """Which result has this origin; None if it is no result."""
    return RESULT - origin if origin <= RESULT else None


def _zeros(like: Gradient, metadata: InputMetadata | None) -> Gradient:
    """Zeros for a gradient that did not come, of the kind of one that did."""
    if metadata is None:
        return None
    array = like.array if isinstance(like, Variable) else like
    zeros = np.zeros_like(array, shape=metadata.shape, dtype=metadata.dtype)
    return variable(zeros) if isinstance(like, Variable) else zeros


_node_classes: Final[dict[tuple[str, type[OpNode]], type[Any]]] = {}


def node_class_of(name: str, base: type[OpNode] = OpNode) -> type[Any]:
    """The class of nodes of this name: one, however many ops share it."""
    known = _node_classes.get((name, base))
    if known is None:
        attributes = {"__slots__": (), "__module__": __name__, "__doc__": base.__doc__}
        known = _node_classes[name, base] = type(name, (base,), attributes)
    return known


def _sum_of_sizes(saved: tuple[Any, ...]) -> int:
    """Bytes of what was saved."""
    num_bytes = 0
    for value in saved:
        if isinstance(value, Variable):  # whose `nbytes` is a property of ours
            kept = value
            num_bytes += size_bytes(kept.array)
        else:
            num_bytes += size_bytes(value)
    return num_bytes
