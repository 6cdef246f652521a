"""The node of an op: what was saved, and the formulas that use it."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from gradviz.backends.base import Array
from gradviz.backends.device import CPU
from gradviz.engine.grad_mode import GRAD_ENABLED
from gradviz.engine.node import Edge, InputMetadata, Node, next_sequence_nr
from gradviz.engine.protocols import Gradient, size_bytes
from gradviz.ops import creation_hooks
from gradviz.ops.plan import CONSTANT, RESULT, Plan
from gradviz.ops.variable import Value, variable
from gradviz.trace import probe

#: Source: torch/csrc/autograd/saved_variable.cpp, ERR_BACKWARD_TWICE (N3).
SECOND_BACKWARD: Final = (
    "Trying to backward through the graph a second time (or directly access saved "
    "tensors after they have already been freed). Saved intermediate values of the "
    "graph are freed when you call .backward() or autograd.grad(). Specify "
    "retain_graph=True if you need to backward through the graph a second time or if "
    "you need to access saved tensors after calling backward."
)


class OpNode(Node):
    """The backward of one op with one result.

    Attributes:
        plan: Which gradients are wanted, and how they are computed.
        saved: What `plan` kept, as raw arrays; None once it was freed.
    """

    __slots__ = ("plan", "saved")

    def __init__(
        self, edges: tuple[Edge, ...], data: Array, plan: Plan, saved: tuple[Any, ...]
    ) -> None:
        device = CPU if type(data) is np.ndarray else data.device
        self._initialise(
            edges,
            (tuple.__new__(InputMetadata, (data.shape, data.dtype, device)),),
            device,
            next_sequence_nr(),
        )
        self.plan = plan
        self.saved: tuple[Any, ...] | None = saved
        if plan.has_tensors and (listener := probe.current) is not None:
            listener.tensor_saved(self.id, sum(map(size_bytes, saved)))
        if creation_hooks.num_hooks:
            creation_hooks.call(self)

    def output_edge(self) -> Edge:
        """The edge to this node's only input."""
        return tuple.__new__(Edge, (self, 0))

    def __call__(self, inputs: list[Gradient]) -> Sequence[Gradient]:
        """The gradients of the op's inputs; see `Node.apply`.

        Raises:
            RuntimeError: What was saved has been freed.
        """
        grad = inputs[0]
        steps = self.plan.steps
        if grad is None:
            return (None,) * len(steps)
        saved = self.saved
        if saved is None or GRAD_ENABLED.get():
            saved = self._unpacked()
        if len(steps) == 1:
            formula = steps[0][0]
            return (formula and formula(grad, *saved),)
        return tuple([step and step(grad, *pick(saved)) for step, pick in steps])

    def call_restricted(
        self, inputs: list[Gradient], wanted: Sequence[bool]
    ) -> Sequence[Gradient]:
        """The gradients that are wanted, None in place of the others (I8)."""
        if all(wanted) or inputs[0] is None:
            return self(inputs)
        saved = self._unpacked()
        return tuple(
            step(inputs[0], *pick(saved)) if is_wanted and step else None
            for (step, pick), is_wanted in zip(self.plan.steps, wanted, strict=True)
        )

    def apply(self, *grads: Gradient) -> Sequence[Gradient]:
        """The gradients of the op's inputs, given that of its result."""
        return self(list(grads))

    def _unpacked(self) -> tuple[Any, ...]:
        """What was saved, as formulas want it in this pass."""
        if self.saved is None:
            raise RuntimeError(SECOND_BACKWARD)
        return self._as_variables(self.saved) if GRAD_ENABLED.get() else self.saved

    def release_variables(self) -> None:
        """Let go of saved tensors; what is no tensor may be used again (N3)."""
        if self.plan.has_tensors:
            self.saved = None

    def _as_variables(self, saved: tuple[Any, ...]) -> tuple[Any, ...]:
        """What was saved, in its place in the graph.

        The result was saved without its edge, which would lead back to this node and
        keep it alive for ever; here the edge is put back.
        """
        return tuple(
            value
            if origin == CONSTANT
            else _attached(
                value, Edge(self, 0) if origin == RESULT else self.next_edges[origin]
            )
            for value, origin in zip(saved, self.plan.origins, strict=True)
        )


def _attached(value: Array, edge: Edge) -> Value:
    return value if edge.node is None else variable(value, edge)


_node_classes: Final[dict[str, type[OpNode]]] = {}


def node_class_of(name: str) -> type[OpNode]:
    """The class of nodes of this name: one, however many ops share it."""
    known = _node_classes.get(name)
    if known is None:
        attributes = {
            "__slots__": (),
            "__module__": __name__,
            "__doc__": OpNode.__doc__,
        }
        known = _node_classes[name] = type(name, (OpNode,), attributes)
    return known
