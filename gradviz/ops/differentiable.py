"""The one door through which a computation becomes part of a graph.

Three ways in, for three shapes of op: `unary` (one array, elementwise), `binary` (two,
with broadcasting and type promotion) and `differentiable` (anything else). Each takes
PyTorch's name of the node, a forward function on raw arrays, and a formula for each
input's gradient, and returns an op. See Note [Formulas say what they need] in
`gradviz.ops.plan`.
"""

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from gradviz.backends.base import Array
from gradviz.engine.grad_mode import GRAD_ENABLED
from gradviz.ops.op_node import OpNode, node_class_of
from gradviz.ops.plan import (
    Formula,
    Plan,
    Properties,
    parameters_of,
    pick,
    plans_of,
    properties_of,
)
from gradviz.ops.promotion import as_floating, operand, promote
from gradviz.ops.variable import Value, Variable, gradient_edge, variable

#: Takes its arguments by position: arrays and variables first, then what else it needs.
Op: TypeAlias = Callable[..., Value]


def unary(
    name: str,
    forward: Callable[[Array], Array],
    formula: Formula,
) -> Op:
    """An op on each element of one array of floats.

    Args:
        name: Of its node.
        forward: The function on raw arrays; its parameter is called ``x``.
        formula: Of the gradient; see Note [Formulas say what they need].
    """
    plan = plans_of(("x",), {"x": formula}, arrays=())[1]
    saves = {(): 0, ("x",): 1, ("result",): 2}[parameters_of(formula)[1:]]
    node_class = node_class_of(name)

    # The shortest op, written out: every step of it is in the forward budget.
    def op(x: Value) -> Value:
        if not isinstance(x, Variable):
            return forward(x)
        source = x.array
        if not (x.needs_grad and GRAD_ENABLED.get()):
            return variable(forward(as_floating(source)))
        data = forward(source)
        if type(data) is not type(source):
            data = np.asarray(data)
        edge = x.edge or gradient_edge(x)
        saved = () if saves == 0 else (source,) if saves == 1 else (data,)
        return variable(data, node_class((edge,), data, plan, saved).output_edge())

    return _named(op, name, forward)


def binary(
    name: str,
    forward: Callable[[Array, Array], Array],
    *,
    x: Formula,
    y: Formula,
) -> Op:
    """An op on pairs of elements: broadcasts, and promotes types as PyTorch does.

    Args:
        name: Of its node.
        forward: The function on raw arrays; its parameters are called ``x``, ``y``.
        x: Formula of the first input's gradient.
        y: Formula of the second input's gradient.
    """
    plans = plans_of(("x", "y"), {"x": x, "y": y}, arrays=())
    node_class = node_class_of(name)

    def op(x: Value, y: Value) -> Value:
        if isinstance(x, Variable):
            a = x.array
            b = y.array if isinstance(y, Variable) else operand(y)
        elif isinstance(y, Variable):
            a = operand(x)
            b = y.array
        else:
            return forward(x, y)
        if type(a) is not type(b) or a.dtype is not b.dtype:
            a, b = promote(a, b)
        try:
            data = forward(a, b)
        except ValueError as error:
            raise _broadcast_error(a, b) from error
        if isinstance(data, np.generic):
            data = np.asarray(data)
        if not GRAD_ENABLED.get():
            return variable(data)
        edges = (gradient_edge(x), gradient_edge(y))
        wanted = (edges[0].node is not None) + 2 * (edges[1].node is not None)
        if not wanted:
            return variable(data)
        plan = plans[wanted]
        saved = plan.keep((a, b, data))
        return variable(data, node_class(edges, data, plan, saved).output_edge())

    return _named(op, name, forward)


def differentiable(
    name: str, *, arrays: Sequence[str] = (), **formulas: Formula
) -> Callable[[Callable[..., Array]], Op]:
    """Make an op of a function on raw arrays; a decorator.

    The op takes its arguments by position.

    Args:
        name: Of its node.
        arrays: Parameters that may be arrays, but are not differentiated.
        **formulas: For each differentiated parameter, in order, that of its gradient;
            see Note [Formulas say what they need].
    """

    def decorate(forward: Callable[..., Array]) -> Op:
        names = parameters_of(forward)
        plans = plans_of(names, formulas, arrays)
        properties = properties_of(names, formulas)
        node_class = node_class_of(name)
        if names[0] in formulas and len(formulas) == 1 and not arrays:
            op = _of_one(forward, node_class, plans[1], properties)
        else:
            positions = tuple(names.index(parameter) for parameter in formulas)
            op = _of_several(forward, node_class, plans, properties, positions)
        return _named(op, name, forward)

    return decorate


def _of_one(
    forward: Callable[..., Array],
    node_class: type[OpNode],
    plan: Plan,
    properties: Properties,
) -> Op:
    """An op whose first argument is its only array."""

    def op(x: Value, *rest: Value) -> Value:
        if not isinstance(x, Variable):
            return forward(x, *rest)
        source = x.array
        data = forward(source, *rest)
        if isinstance(data, np.generic):
            data = np.asarray(data)
        if not (x.needs_grad and GRAD_ENABLED.get()):
            return variable(data)
        values = (source, *rest, data)
        if properties:
            values += tuple([read(source) for _, read in properties])
        edge = x.edge or gradient_edge(x)
        node = node_class((edge,), data, plan, plan.keep(values))
        return variable(data, node.output_edge())

    return op


def _of_several(
    forward: Callable[..., Array],
    node_class: type[OpNode],
    plans: Sequence[Plan],
    properties: Properties,
    positions: tuple[int, ...],
) -> Op:
    """An op whose arguments may be arrays; those at `positions` have formulas."""
    bits = tuple(1 << i for i in range(len(positions)))

    def op(*args: Value) -> Value:
        for value in args:
            if isinstance(value, Variable):
                break
        else:
            return forward(*args)
        values = [a.array if isinstance(a, Variable) else a for a in args]
        data = forward(*values)
        if isinstance(data, np.generic):
            data = np.asarray(data)
        if not GRAD_ENABLED.get():
            return variable(data)
        edges = tuple([gradient_edge(args[position]) for position in positions])
        wanted = 0
        for bit, edge in zip(bits, edges, strict=True):
            if edge.node is not None:
                wanted += bit
        if not wanted:
            return variable(data)
        plan = plans[wanted]
        values.append(data)
        values += [read(values[position]) for position, read in properties]
        node = node_class(edges, data, plan, plan.keep(values))
        return variable(data, node.output_edge())

    return op


def record(
    name: str, data: Array, inputs: Sequence[Value], formulas: Sequence[Formula]
) -> Value:
    """The result of an op with any number of inputs, which saves no tensors.

    Args:
        name: Of its node.
        data: What the forward computed.
        inputs: The op's inputs, variables or not.
        formulas: Of the gradient of each, with the gradient as only parameter.

    Returns:
        `data` as a variable, or `data` itself if no input is a variable.
    """
    if not any(isinstance(one, Variable) for one in inputs):
        return data
    edges = tuple(map(gradient_edge, inputs))
    if not GRAD_ENABLED.get() or all(edge.node is None for edge in edges):
        return variable(data)
    steps = tuple(
        (None if edge.node is None else formula, pick(()))
        for edge, formula in zip(edges, formulas, strict=True)
    )
    plan = Plan(pick(()), steps, (), has_tensors=False)
    node = node_class_of(name)(edges, data, plan, ())
    return variable(data, node.output_edge())


def _named(op: Op, name: str, forward: Callable[..., Array]) -> Op:
    """Give an op the name and docstring of what it computes."""
    op.__name__ = op.__qualname__ = forward.__name__
    op.__module__ = getattr(forward, "__module__", None) or __name__
    op.__doc__ = (
        f"``numpy.{forward.__name__}``, differentiable: its node is {name}."
        if isinstance(forward, np.ufunc)
        else forward.__doc__
    )
    return op


def _broadcast_error(a: Array, b: Array) -> RuntimeError:
    """PyTorch's words for shapes that do not broadcast."""
    pairs = list(zip(reversed(np.shape(a)), reversed(np.shape(b)), strict=False))
    for from_end, (size_a, size_b) in enumerate(pairs, 1):
        if size_a != size_b and 1 not in (size_a, size_b):
            dimension = max(np.ndim(a), np.ndim(b)) - from_end
            return RuntimeError(
                f"The size of tensor a ({size_a}) must match the size of tensor b "
                f"({size_b}) at non-singleton dimension {dimension}"
            )
    return RuntimeError(f"cannot combine arrays of shapes {a.shape} and {b.shape}")
