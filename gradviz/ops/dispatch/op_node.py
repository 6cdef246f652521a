"""The node of an op: its saved values, and the formulas that use them."""

import traceback
from collections.abc import Iterator, Sequence
from numbers import Number
from typing import Any, Final

import numpy as np
from numpy import ndarray  # in one step: each op asks

from gradviz.backends.base import Array
from gradviz.backends.device import CPU
from gradviz.engine.graph import basic_nodes
from gradviz.engine.graph.anomaly import SWITCHED_ON
from gradviz.engine.graph.grad_mode import GRAD_ENABLED
from gradviz.engine.graph.node import (
    SEQUENCE,
    Edge,
    InputMetadata,
    announce,
    fill_in,
    metadata_for,
    next_sequence_nr,
)
from gradviz.engine.graph.odd_fields import (
    ODD_FIELDS,
    UNUSABLE_FIELDS,
    OddField,
    described,
    is_odd,
)
from gradviz.engine.graph.protocols import Gradient
from gradviz.ops.dispatch import creation_hooks
from gradviz.ops.dispatch.creation_hooks import CREATION_HOOKS_IN_USE
from gradviz.ops.dispatch.plan import CONSTANT, IN_FORMULA, RESULT, Plan
from gradviz.ops.variables.node_hooks import Hookable
from gradviz.ops.variables.saved_memory import count_saved, report_saved
from gradviz.ops.variables.saved_variable import (
    HOOKS_IN_USE,
    SECOND_BACKWARD,
    SavedVariable,
    attached,
    check_unchanged,
)
from gradviz.ops.variables.variable import Variable, metadata_of, raw, variable
from gradviz.trace import probe
from gradviz.trace.probe import LISTENERS


class OpNode(Hookable):
    """The backward of one op with one result.

    Attributes:
        plan: Gradients that are wanted, and the way they are computed.
        saved: Values that `plan` kept; None once they were freed. Variables by
            Note [Saving], raw arrays, and what is not a tensor.
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

    def _announce(self, saved: tuple[Any, ...]) -> None:
        """Report the node and its size to the listener.

        Where there are hooks, saved results may pack in between, which makes nodes.
        """
        listener = probe.current if LISTENERS and self.plan.has_tensors else None
        if listener is not None and not HOOKS_IN_USE:
            own, of_leaves, shared = count_saved(self, saved)
            announce(self, own or -1)
            if of_leaves or shared:
                listener.saved_elsewhere(self.id, of_leaves, shared)
            return
        announce(self)
        for value in saved if HOOKS_IN_USE else ():
            if isinstance(value, SavedVariable):
                value.pack_result(self)
        if listener is not None:
            report_saved(listener, self, saved)

    def call(self, inputs: list[Gradient]) -> Sequence[Gradient]:
        """The gradients of the op's inputs; see `Node.apply`.

        Raises:
            RuntimeError: A saved value has been freed, or changed in place.
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
                    kept = value  # when compiled: typed
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
        """Return the saved values as formulas take them in a plain backward."""
        arrays = []
        for value in saved:
            if isinstance(value, Variable):
                kept = value  # when compiled: typed
                if kept.needs_grad and (kept.version is None or not kept.version.value):
                    arrays.append(kept.array)  # nearly all are like this
                    continue
            arrays.append(self._array(value, len(arrays)))
        return tuple(arrays)

    def _array(self, value: Any, index: int) -> Any:  # noqa: ANN401 - of any type
        if isinstance(value, Variable):
            # A value detached since needs no gradient any more: so this is checked.
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
        """Return the saved values as formulas take them under ``create_graph``."""
        assert self.saved is not None
        if not self.plan.has_tensors:
            return self.saved
        return tuple(
            # A constant is a plain array to formulas.
            raw(self.variable(i)) if origin == CONSTANT else self.variable(i)
            for i, origin in enumerate(self.plan.origins)
        )

    def variable(self, index: int) -> Any:  # noqa: ANN401 - of any type
        """Return the saved value at `index`, in its place in the graph."""
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

    @property
    def holds_saved(self) -> bool:
        """True if its tensors were saved and not released."""
        return self.saved is not None and self.plan.has_tensors

    def release_variables(self) -> None:
        """Release saved tensors; other saved values may be used again (N3)."""
        if self.plan.has_tensors:
            self.saved = None


class SeveralNode(OpNode):
    """The backward of one op with several results.

    Attributes:
        fills: True if formulas want zeros in place of gradients that are undefined.
        takes_one: True if formulas take the first gradient instead of all.
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
        """See `OpNode.call`."""
        return OpNode.call(self, [self._incoming(inputs)])

    def call_restricted(
        self, inputs: list[Gradient], wanted: Sequence[bool]
    ) -> Sequence[Gradient]:
        """See `OpNode.call_restricted`."""
        if all(wanted):
            return self.call(inputs)
        return OpNode.call_restricted(self, [self._incoming(inputs)], wanted)

    def _incoming(self, inputs: list[Gradient]) -> Gradient:
        """Return all gradients, or the only one; None if none arrived."""
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


def _odd_fields(node: OpNode) -> Iterator[OddField]:
    """Yield the fields of an op's node that its formulas could not use."""
    yield from is_odd(node, "plan", Plan, "the Plan that it was recorded with")
    expected = "a tuple of what its formulas need, None once it was freed"
    yield from is_odd(node, "saved", (tuple, type(None)), expected)
    if node.saved is None:
        return
    size = len(node.plan.kept)
    if len(node.saved) != size:
        found = f"a tuple of {len(node.saved)}"
        yield OddField("saved", found, f"{expected}: a tuple of {size}")
    for index, value in enumerate(node.saved):
        kinds, expected = _saved_kinds(node, index)
        name = f"saved[{index}]"
        if kinds and not isinstance(value, kinds):
            yield OddField(name, described(value), expected)
        elif isinstance(value, Variable) and getattr(value, "array", None) is None:
            yield OddField(name, f"a {described(value)} without an array", expected)
        elif isinstance(value, SavedVariable) and not value.is_begun:
            yield OddField(name, "a SavedVariable without a tensor", expected)
        elif isinstance(value, Variable):
            shape = _saved_shape(node, index)
            if shape is not None and value.array.shape != shape:
                found = f"a {described(value)} of shape {[*value.array.shape]}"
                yield OddField(name, found, f"one of shape {[*shape]}")


def _saved_shape(node: OpNode, index: int) -> tuple[int, ...] | None:
    """Return the shape of an input or a result that was saved; None if unknown."""
    origin = node.plan.origins[index]
    metadata = None
    if origin >= 0:
        edge = node.next_edges[origin]
        if edge.node is not None:
            metadata = edge.node.input_metadata[edge.input_nr]
    elif (output_nr := output_nr_of(origin)) is not None:
        metadata = node.input_metadata[output_nr]
    return None if metadata is None else metadata.shape


def _unusable(node: OpNode, error: Exception) -> OddField | None:
    """Return `saved` if a formula of the op failed, and not code of the user's.

    Formulas never do with what their op has kept; constants among it, such as
    positions, may be of any type, so nothing can be said of each alone. A hook that
    unpacks what was saved is the user's, and `saved_variable` says what is wrong there.
    """
    frames = traceback.walk_tb(error.__traceback__)
    modules = [str(frame.f_globals.get("__name__")) for frame, _ in frames]
    is_expected = type(error) not in _OF_ODD_VALUES
    if is_expected or __name__ not in modules or node.saved is None:
        return None
    inside = modules[modules.index(__name__) :]
    if _UNPACKING in inside:
        return None
    if any(one.partition(".")[0] not in {"gradviz", "numpy"} for one in inside):
        return None
    named = zip(node.plan.names, node.saved, strict=True)
    found = ", ".join(f"{name}: {described(value)}" for name, value in named)
    return OddField("saved", f"({found})", "the values that its op kept")


def _saved_kinds(node: OpNode, index: int) -> tuple[tuple[type, ...], str]:
    """Return the expected classes of a saved value, and words for them."""
    plan, origin = node.plan, node.plan.origins[index]
    is_input = origin >= 0 and node.next_edges[origin].node is not None
    if is_input or origin <= RESULT:
        return _TENSORS, "a saved tensor"
    if origin >= 0 or plan.only is not None:
        return _TENSORS_OR_NUMBERS, "a saved tensor"
    if plan.names[index].endswith("_shape"):  # see `Signature.properties`
        return (tuple,), "a shape"
    return (), ""


#: Errors of formulas for values that nobody has kept; `LinAlgError` is another matter.
_OF_ODD_VALUES: Final = (AttributeError, TypeError, IndexError, KeyError, ValueError)

#: The module that calls hooks which unpack saved tensors.
_UNPACKING: Final = SavedVariable.__module__

_TENSORS: Final = (Variable, SavedVariable)
#: Types kept by nodes of arguments that may be tensors, numbers or left out.
_TENSORS_OR_NUMBERS: Final = (*_TENSORS, Number, np.generic, type(None))

ODD_FIELDS[OpNode] = _odd_fields
UNUSABLE_FIELDS[OpNode] = _unusable


def output_nr_of(origin: int) -> int | None:
    """Return the index of the result with this origin; None if it is not a result."""
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
