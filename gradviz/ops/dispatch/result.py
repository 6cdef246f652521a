"""The result of an op as a variable, with the node that the op records."""

from collections.abc import Sequence

import numpy as np
from numpy import generic, ndarray  # in one step: each op asks

from gradviz.backends.base import Array
from gradviz.engine.graph.grad_mode import grad_enabled
from gradviz.engine.graph.node import Edge, edge_to
from gradviz.ops.dispatch import creation_hooks
from gradviz.ops.dispatch.creation_hooks import CREATION_HOOKS_IN_USE
from gradviz.ops.dispatch.op_node import OpNode, node_class_of
from gradviz.ops.dispatch.plan import (
    Formula,
    Plan,
    Plans,
    Properties,
    pick,
)
from gradviz.ops.variables.variable import (
    NOWHERE,
    Value,
    Variable,
    gradient_edge,
    variable,
)
from gradviz.ops.variables.version import Version


class Recipe:
    """Recipe for the results of an op; one per op.

    Attributes:
        node_class: Class of its nodes.
        plans: One for each set of wanted gradients.
        positions: Indices of the arguments that have formulas.
        properties: Other values that formulas name.
        only_plan: The only plan, if only one argument has a formula.
    """

    __slots__ = ("node_class", "only_plan", "plans", "positions", "properties")

    def __init__(
        self,
        node_class: type[OpNode],
        plans: Plans,
        positions: Sequence[int],
        properties: Properties = (),
    ) -> None:
        self.node_class = node_class
        self.plans = plans
        self.positions = positions
        self.properties = properties
        self.only_plan = plans[1] if len(positions) == 1 else None


def result_of(
    recipe: Recipe, args: Sequence[Value], arrays: Sequence[Value], data: Array
) -> Value:
    """The result of an op, with a node if one is wanted.

    Args:
        recipe: That of the op.
        args: The arguments of a call.
        arrays: The same with raw arrays in place of variables.
        data: Array that the forward computed.
    """
    if not grad_enabled():
        return variable(data)
    edges, wanted = edges_of(args, recipe.positions)
    if not (wanted or any_needs_grad(args)):
        return variable(data)
    plan = recipe.plans[wanted]
    kept = kept_result(data) if plan.saves_results else data
    values = [*args, kept]
    for position, read in recipe.properties:
        values.append(read(arrays[position]))
    return recorded(recipe.node_class, plan, edges, kept, values)


def result_of_one(
    recipe: Recipe, input: Variable, rest: Sequence[Value], data: Array
) -> Value:
    """Return the result of an op with one array, its first argument.

    Args:
        recipe: That of the op.
        input: The first argument.
        rest: The others.
        data: Array that the forward computed.
    """
    if not grad_enabled():
        return variable(data)
    edge = gradient_edge(input)
    if edge is NOWHERE and not input.needs_grad:  # see `any_needs_grad`
        return variable(data)
    plan = recipe.only_plan
    assert plan is not None
    kept = kept_result(data) if plan.saves_results else data
    values = [input, *rest, kept]
    for _, read in recipe.properties:
        values.append(read(input.array))
    return recorded(recipe.node_class, plan, (edge,), kept, values)


def recorded(
    node_class: type[OpNode],
    plan: Plan,
    edges: tuple[Edge, ...],
    data: Value,
    values: Sequence[Value],
) -> Value:
    """The result of an op, with its node.

    Args:
        node_class: Of the node.
        plan: Plan of the values to save.
        edges: Edges along which its gradients go.
        data: Array that the op computed; as `kept_result` if `plan` saves it.
        values: All that formulas can name; `data` among them.
    """
    version = None
    if plan.saves_results:
        kept: Variable = data
        data, version = kept.array, kept.version
    elif type(data) is not ndarray and isinstance(data, generic):
        data = np.asarray(data)
    node = node_class.__new__(node_class)  # when compiled: new
    node.record(edges, data, plan, plan.keep(values) if plan.names else ())
    if CREATION_HOOKS_IN_USE:
        creation_hooks.call(node, (data,), values)
    result: Variable = variable(data, edge_to(node, 0))
    result.version = version
    return result


def kept_result(data: Array, *, needs_grad: bool = True) -> Variable:
    """Return a result to save: a variable without its edge; see Note [Saving]."""
    kept: Variable = variable(data)
    kept.needs_grad = needs_grad
    kept.version = Version()
    return kept


def edges_of(
    args: Sequence[Value], positions: Sequence[int]
) -> tuple[tuple[Edge, ...], int]:
    """The edges of the arguments at `positions`, and a bit for each that is wanted."""
    if len(positions) == 2:  # written out: sums and products come here
        x, y = gradient_edge(args[positions[0]]), gradient_edge(args[positions[1]])
        return (x, y), (x is not NOWHERE) + 2 * (y is not NOWHERE)
    edges = tuple([gradient_edge(args[position]) for position in positions])
    return edges, sum([1 << i for i, edge in enumerate(edges) if edge is not NOWHERE])


def any_needs_grad(args: Sequence[Value]) -> bool:
    """Return whether one needs gradients, although no edge is wanted.

    That is a view made under no_grad: its results have a node, as in PyTorch, but
    gradients end there.
    """
    return any(isinstance(one, Variable) and one.needs_grad for one in args)


def record(
    name: str,
    data: Array,
    inputs: Sequence[Value],
    formulas: Sequence[Formula],
) -> Value:
    """The result of an op with any number of inputs, which saves nothing.

    Args:
        name: Of its node.
        data: Array that the forward computed.
        inputs: The op's inputs, variables or not.
        formulas: Of the gradient of each: they take the gradient.

    Returns:
        `data` as a variable, or `data` itself if no input is a variable.
    """
    if not any(isinstance(one, Variable) for one in inputs):
        return data
    if not grad_enabled():
        return variable(data)
    # Not `edges_of`: there may be any number, and its bits would take their square.
    edges = tuple([gradient_edge(one) for one in inputs])
    if all(edge is NOWHERE for edge in edges):
        return variable(data)
    nothing = pick(())
    steps = tuple(
        (None if edge.node is None else formula, nothing)
        for edge, formula in zip(edges, formulas, strict=True)
    )
    plan = Plan((), (), steps, (), has_tensors=False, saves_results=False)
    return recorded(node_class_of(name), plan, edges, data, ())
