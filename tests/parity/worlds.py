"""PyTorch and gradviz behind one vocabulary, to run the same program in both.

A program is a function of a `World`; what it returns must not depend on which. What
the two spell alike (``x.register_hook``, ``loss.backward()``) a program uses directly;
here is what they spell differently. Values of one world stay in it: what a program
returns are numbers, names and labels.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
import pytest

import gradviz as gv
from gradviz.engine import Edge, InputMetadata, Node, default_engine
from gradviz.ops.variables.variable import gradient_edge, raw, variable

# Whoever imports this module is skipped where there is no PyTorch to compare with.
torch = pytest.importorskip("torch")

#: Gradients of a step's outputs in, gradients of its inputs out; of either world.
Backward = Callable[[Sequence[Any]], Sequence[Any]]


class World(Protocol):
    """The common interface of both libraries for programs."""

    #: The namespace: ``torch`` or ``gradviz``.
    lib: Any

    def tensor(self, numbers: Any, *, requires_grad: bool = False) -> Any:
        """A leaf of float64."""

    def step(self, backward: Backward, num_outputs: int, inputs: Sequence[Any]) -> Any:
        """Tensors of two zeros, made from `inputs` by a node that calls `backward`."""

    def array(self, numbers: Any, dtype: str) -> Any:
        """A gradient for a step to return."""

    def node(self, x: Any) -> Any:
        """Return the node that receives the gradient of `x`."""

    def children(self, node: Any) -> Sequence[tuple[Any, int]]:
        """The edges of a node."""

    def name(self, node: Any) -> str:
        """Return the world's name for a node."""

    def sequence_nr(self, node: Any) -> int:
        """Its number."""

    def before(self, node: Any, hook: Callable[[Any], Any]) -> None:
        """Call `hook` with what the node is given."""

    def after(self, node: Any, hook: Callable[[Any, Any], Any]) -> None:
        """Call `hook` with what the node returned and what it was given."""

    def after_accumulation(self, leaf: Any, hook: Callable[[Any], Any]) -> None:
        """Call `hook` with `leaf` once its ``.grad`` has changed."""

    def queue_callback(self, callback: Callable[[], None]) -> None:
        """Have `callback` called at the end of the current pass."""

    def task(self) -> int:
        """The id of the current pass, -1 outside."""

    def keeps_graph(self) -> bool:
        """Return whether the current pass does."""

    def will_run(self, node: Any) -> bool:
        """Return whether the current pass will run the node."""

    def is_checkpoint_valid(self) -> bool:
        """Return whether all passes under way are unrestricted."""

    def order(self) -> Sequence[Any]:
        """The nodes of the current pass in the order in which they will run."""

    def numbers(self, gradient: Any) -> Any:
        """Its elements as plain lists."""


class _Step(torch.autograd.Function):
    """PyTorch calls its node ``_StepBackward``."""

    @staticmethod
    def forward(ctx, backward, num_outputs, *inputs):
        ctx.set_materialize_grads(False)
        ctx.backward_of_inputs = backward
        return tuple(torch.zeros(2, dtype=torch.float64) for _ in range(num_outputs))

    @staticmethod
    def backward(ctx, *grads):
        return (None, None, *ctx.backward_of_inputs(grads))


class _TorchWorld:
    lib = torch

    def tensor(self, numbers, *, requires_grad=False):
        return torch.tensor(numbers, dtype=torch.float64, requires_grad=requires_grad)

    def step(self, backward, num_outputs, inputs):
        return _Step.apply(backward, num_outputs, *inputs)

    def array(self, numbers, dtype):
        return torch.tensor(numbers, dtype=getattr(torch, dtype))

    def node(self, x):
        return torch.autograd.graph.get_gradient_edge(x).node

    def children(self, node):
        return node.next_functions

    def name(self, node):
        return node.name().rpartition("::")[2]

    def sequence_nr(self, node):
        return node._sequence_nr()

    def before(self, node, hook):
        node.register_prehook(hook)

    def after(self, node, hook):
        node.register_hook(hook)

    def after_accumulation(self, leaf, hook):
        leaf.register_post_accumulate_grad_hook(hook)

    def queue_callback(self, callback):
        torch.autograd.Variable._execution_engine.queue_callback(callback)

    def task(self):
        return torch._C._current_graph_task_id()

    def keeps_graph(self):
        return torch._C._autograd._get_current_graph_task_keep_graph()

    def will_run(self, node):
        return torch._C._will_engine_execute_node(node)

    def is_checkpoint_valid(self):
        return torch.autograd._is_checkpoint_valid()

    def order(self):
        with torch.autograd.set_multithreading_enabled(False):
            return torch._C._current_graph_task_execution_order()

    def numbers(self, gradient):
        return None if gradient is None else gradient.tolist()


class _StepBackward(Node):
    __slots__ = ("backward",)

    def __init__(self, edges, num_outputs, backward):
        metadata = InputMetadata((2,), np.dtype(np.float64))
        super().__init__(edges, (metadata,) * num_outputs)
        self.backward = backward

    def apply(self, *grads):
        return self.backward(grads)


class _GradvizWorld:
    lib = gv

    def tensor(self, numbers, *, requires_grad=False):
        return gv.tensor(numbers, dtype=gv.float64, requires_grad=requires_grad)

    def step(self, backward, num_outputs, inputs):
        node = _StepBackward(map(gradient_edge, inputs), num_outputs, backward)
        return tuple(variable(np.zeros(2), Edge(node, i)) for i in range(num_outputs))

    def array(self, numbers, dtype):
        array = np.array(numbers, dtype)
        # With gradient mode on, what flows are tensors.
        return variable(array) if gv.is_grad_enabled() else array

    def node(self, x):
        return gradient_edge(x).node

    def children(self, node):
        return node.next_edges

    def name(self, node):
        return node.name()

    def sequence_nr(self, node):
        return node.sequence_nr

    def before(self, node, hook):
        hooks = node.hooks_to_add_to()
        hooks.pre = (*hooks.pre, hook)

    def after(self, node, hook):
        hooks = node.hooks_to_add_to()
        hooks.post = (*hooks.post, hook)

    def after_accumulation(self, leaf, hook):
        hooks = leaf.own_hooks()
        hooks.post_accumulate = (*hooks.post_accumulate, hook)

    def queue_callback(self, callback):
        default_engine().queue_callback(callback)

    def task(self):
        task = default_engine().current_graph_task
        return -1 if task is None else task.id

    def keeps_graph(self):
        return gv.autograd.graph.current_graph_task_keep_graph()

    def will_run(self, node):
        return gv.autograd.graph.will_execute_node(node)

    def is_checkpoint_valid(self):
        return default_engine().is_checkpoint_valid()

    def order(self):
        order = default_engine().current_execution_order()
        return [position.node for position in order]

    def numbers(self, gradient):
        return None if gradient is None else raw(gradient).tolist()


TORCH: World = _TorchWorld()
GRADVIZ: World = _GradvizWorld()
