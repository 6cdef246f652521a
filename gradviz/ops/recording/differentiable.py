"""The one door through which a computation becomes part of a graph.

Three ways in, for three shapes of op: `unary` (one array, elementwise), `binary` (two,
with broadcasting and type promotion) and `differentiable` (anything else: several
results, views). Each takes PyTorch's name of the node, a forward function on raw
arrays, and a formula for each input's gradient, and returns an op. See Note [Formulas
say what they need] in `gradviz.ops.recording.plan`, and Note [Silence] in
`gradviz.ops.recording.silence`.
"""

import inspect
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from gradviz.backends.base import Array
from gradviz.engine.grad_mode import GRAD_ENABLED
from gradviz.engine.node import Edge
from gradviz.ops.recording import saved_variable
from gradviz.ops.recording.op_node import (
    OpNode,
    SeveralNode,
    node_class_of,
    shows_saved,
)
from gradviz.ops.recording.plan import (
    CONSTANT,
    RESULT,
    Formula,
    Plan,
    Properties,
    Signature,
    parameters_of,
    pick,
)
from gradviz.ops.recording.promotion import as_floating, operand, promote
from gradviz.ops.recording.refusal import check_tensors
from gradviz.ops.recording.saved_variable import save
from gradviz.ops.recording.silence import mute, unmute
from gradviz.ops.recording.variable import Value, Variable, gradient_edge, variable
from gradviz.ops.recording.version import INFERENCE, Version
from gradviz.ops.recording.view import view_of

#: Takes arrays and variables first, then what else it needs.
Op: TypeAlias = Callable[..., Value]

#: All ops that come from here: of their arguments they save only those themselves.
DOORS: Final[set[Op]] = set()


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
    signature = Signature(("x",), {"x": formula})
    plan = signature.plans()[1]
    saves_input, saves_result = plan.names == ("x",), plan.saves_results
    node_class = node_class_of(name)
    shows_saved(node_class, signature.saved_names())

    new_edge, word = tuple.__new__, _word(name)

    # The shortest op, written out: every step of it is in the forward budget.
    def op(x: Value) -> Value:
        if not isinstance(x, Variable):
            if type(x) is not np.ndarray:  # formulas come here: asked first, for time
                check_tensors(word, input=x)
            return forward(x)
        source = x.array
        records = GRAD_ENABLED.get()
        if records:
            if x.viewed is not None:
                x.viewed.refresh(x)
            records = x.needs_grad
        token = mute()
        try:
            data = forward(source if records else as_floating(source))
        finally:
            unmute(token)
        if not records:
            return variable(data)
        if type(data) is not type(source):
            data = np.asarray(data)
        edge = x.edge or gradient_edge(x)
        if saves_result:
            return _recorded(node_class, (edge,), data, plan, (x, data))
        saved: tuple[Value, ...] = ()
        if saves_input:
            is_plain = x.version is None and not saved_variable.num_hooks
            saved = (x if is_plain else save(x),)
        node = node_class((edge,), data, plan, saved)
        return variable(data, new_edge(Edge, (node, 0)))

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
    signature = Signature(("x", "y"), {"x": x, "y": y})
    plans = signature.plans()
    node_class = node_class_of(name)
    shows_saved(node_class, signature.saved_names())

    def op(x: Value, y: Value) -> Value:
        if isinstance(x, Variable):
            a = x.array
            b = y.array if isinstance(y, Variable) else (y := operand(y))
        elif isinstance(y, Variable):
            a = x = operand(x)
            b = y.array
        else:
            return forward(x, y)
        token = mute()
        try:
            if type(a) is not type(b) or a.dtype is not b.dtype:
                a, b = promote(a, b)
            data = forward(a, b)
        except ValueError as error:
            raise _broadcast_error(a, b) from error
        finally:
            unmute(token)
        if isinstance(data, np.generic):
            data = np.asarray(data)
        if not GRAD_ENABLED.get():
            return variable(data)
        edges = (gradient_edge(x), gradient_edge(y))
        wanted = (edges[0].node is not None) + 2 * (edges[1].node is not None)
        if not wanted and not _need_grad((x, y)):
            return variable(data)
        return _recorded(node_class, edges, data, plans[wanted], (x, y, data))

    return _named(op, name, forward)


def differentiable(
    name: str,
    *,
    arrays: Sequence[str] = (),
    results: Sequence[str] = (),
    plain: Sequence[str] = (),
    zeros: bool = False,
    view: bool = False,
    **formulas: Formula,
) -> Callable[[Callable[..., Any]], Op]:
    """Make an op of a function on raw arrays; a decorator.

    The op takes what the function takes. A function that returns several arrays, as a
    tuple, makes an op with several results; a named tuple stays what it is.

    Args:
        name: Of its node.
        arrays: Parameters that may be arrays, but are not differentiated.
        results: What several results are called.
        plain: Those of `results` that are not differentiable.
        zeros: Give formulas zeros for what is undefined among ``grads``.
        view: The result is a view of the first argument. The function must do nothing
            else with it, for it is also used on other arrays of the same shape.
        **formulas: For each differentiated parameter, in order, that of its gradient;
            see Note [Formulas say what they need].
    """

    def decorate(forward: Callable[..., Any]) -> Op:
        names = parameters_of(forward)
        signature = Signature(names, formulas, arrays, results or ("result",), plain)
        form = _Form(
            forward,
            _completion(forward),
            len(names),
            signature.plans(),
            signature.properties(),
            tuple(names.index(parameter) for parameter in formulas),
            view,
        )
        firsts = {parameters_of(formula)[0] for formula in formulas.values()}
        if results or "grads" in firsts:
            several = _Several(
                bool(results),
                tuple(i for i, one in enumerate(results) if one in plain),
                zeros,
                takes_one="grads" not in firsts,
            )
            node_class = node_class_of(name, SeveralNode)
            op = _with_results(form, node_class, several)
        else:
            node_class = node_class_of(name)
            of_one = form.positions == (0,) and not arrays
            op = (_of_one if of_one else _of_several)(form, node_class)
        shows_saved(node_class, signature.saved_names())
        return _named(op, name, forward)

    return decorate


class _Form(NamedTuple):
    """What `differentiable` worked out.

    Attributes:
        forward: The function on raw arrays.
        complete: Takes arguments as given, returns all by position.
        num_parameters: How many those are.
        plans: One for each set of wanted gradients.
        properties: What else formulas name.
        positions: Of the arguments that have formulas.
        is_view: Whether results are views of the first argument.
    """

    forward: Callable[..., Any]
    complete: Callable[[tuple[Value, ...], dict[str, Value]], tuple[Value, ...]]
    num_parameters: int
    plans: Sequence[Plan]
    properties: Properties
    positions: tuple[int, ...]
    is_view: bool


class _Several(NamedTuple):
    """What several results ask for.

    Attributes:
        are_named: Whether formulas can name them; if not, there may be any number.
        plain: Which are not differentiable.
        fills: As `SeveralNode`.
        takes_one: As `SeveralNode`.
    """

    are_named: bool
    plain: tuple[int, ...]
    fills: bool
    takes_one: bool


def _of_one(form: _Form, node_class: type[OpNode]) -> Op:
    """An op whose first argument is its only array."""
    forward, complete, num_parameters, plans, properties, _, is_view = form
    plan, num_rest = plans[1], num_parameters - 1
    word = _word(node_class.__name__)

    def op(x: Value, *rest: Value, **named: Value) -> Value:
        if named or len(rest) != num_rest:
            _, *rest = complete((x, *rest), named)  # type: ignore[assignment]
        if not isinstance(x, Variable):
            if type(x) is not np.ndarray:  # formulas come here: asked first, for time
                check_tensors(word, input=x)
            return forward(x, *rest)
        source = x.array
        records = GRAD_ENABLED.get()
        if records:
            if x.viewed is not None:
                x.viewed.refresh(x)
            records = x.needs_grad and not (is_view and x.version is INFERENCE)
        token = mute()
        try:
            data = forward(source, *rest)
        finally:
            unmute(token)
        if isinstance(data, np.generic):
            data = np.asarray(data)
        if records:
            read = [read(source) for _, read in properties] if properties else ()
            values = (x, *rest, data, *read)
            edge = x.edge or gradient_edge(x)
            result = _recorded(node_class, (edge,), data, plan, values)
        else:
            result = variable(data)
        if is_view:
            result.viewed = view_of(x, result, (op, tuple(rest), None))
        return result

    return op


def _of_several(form: _Form, node_class: type[OpNode]) -> Op:
    """An op whose arguments may be arrays; those at `positions` have formulas."""
    forward, complete, num_parameters, plans, properties, positions, is_view = form

    def op(*args: Value, **named: Value) -> Value:
        if named or len(args) != num_parameters:
            args = complete(args, named)
        for value in args:
            if isinstance(value, Variable):
                break
        else:
            return forward(*args)
        arrays = [a.array if isinstance(a, Variable) else a for a in args]
        token = mute()
        try:
            data = forward(*arrays)
        finally:
            unmute(token)
        if isinstance(data, np.generic):
            data = np.asarray(data)
        edges, wanted = _wanted(args, positions)
        if wanted or _need_grad(args):
            values = (*args, data, *[read(arrays[i]) for i, read in properties])
            result = _recorded(node_class, edges, data, plans[wanted], values)
        else:
            result = variable(data)
        if is_view:
            result.viewed = view_of(args[0], result, (op, tuple(args[1:]), None))
        return result

    return op


def _with_results(form: _Form, node_class: type[SeveralNode], several: _Several) -> Op:
    """An op that returns a tuple."""
    forward, complete, num_parameters, plans, properties, positions, is_view = form
    are_named, plain, fills, takes_one = several

    def op(*args: Value, **named: Value) -> Value:
        if named or len(args) != num_parameters:
            args = complete(args, named)
        if not any(isinstance(value, Variable) for value in args):
            return forward(*args)
        arrays = [a.array if isinstance(a, Variable) else a for a in args]
        token = mute()
        try:
            data = forward(*arrays)
        finally:
            unmute(token)
        parts = [np.asarray(d) if isinstance(d, np.generic) else d for d in data]
        edges, wanted = _wanted(args, positions)
        results = [variable(part) for part in parts]
        if wanted or _need_grad(args):
            plan = plans[wanted]
            kept: Sequence[Value] = parts if are_named else [None]
            if plan.saves_results:
                kept = [_kept(part) for part in parts]
                for one, own in zip(results, kept, strict=True):
                    one.version = own.version
            values = (*args, *kept, *[read(arrays[i]) for i, read in properties])
            outputs = [i for i in range(len(parts)) if i not in plain]
            node = node_class(
                edges,
                [parts[i] for i in outputs],
                plan,
                _saved(plan, values),
                fills,
                takes_one,
            )
            for number, i in enumerate(outputs):
                results[i].edge = Edge(node, number)
                results[i].needs_grad = True
        if is_view:
            for i, result in enumerate(results):
                result.viewed = view_of(args[0], result, (op, tuple(args[1:]), i))
        return type(data)(*results) if hasattr(data, "_fields") else tuple(results)

    return op


def record(
    name: str,
    data: Array,
    inputs: Sequence[Value],
    formulas: Sequence[Formula],
    saved: Sequence[Value] = (),
) -> Value:
    """The result of an op with any number of inputs.

    Args:
        name: Of its node.
        data: What the forward computed.
        inputs: The op's inputs, variables or not.
        formulas: Of the gradient of each: they take the gradient, and what was saved.
        saved: What to save: inputs, other arrays, anything.

    Returns:
        `data` as a variable, or `data` itself if no input is a variable.
    """
    if not any(isinstance(one, Variable) for one in inputs):
        return data
    edges, wanted = _wanted(inputs, range(len(inputs)))
    if not wanted:
        return variable(data)
    everything = pick(range(len(saved)))
    steps = tuple(
        (None if edge.node is None else formula, everything)
        for edge, formula in zip(edges, formulas, strict=True)
    )
    origins = tuple(
        next((i for i, one in enumerate(inputs) if one is value), CONSTANT)
        for value in saved
    )
    has_tensors = any(isinstance(one, Variable | np.ndarray) for one in saved)
    plan = Plan(
        everything, (), steps, origins, has_tensors=has_tensors, saves_results=False
    )
    return _recorded(node_class_of(name), edges, data, plan, saved)


def _need_grad(args: Sequence[Value]) -> bool:
    """Whether one needs gradients, although no edge is wanted.

    That is a view made under no_grad: what comes of it has a node, as in PyTorch, but
    gradients end there.
    """
    return GRAD_ENABLED.get() and any(
        isinstance(one, Variable) and one.needs_grad for one in args
    )


def _wanted(
    args: Sequence[Value], positions: Sequence[int]
) -> tuple[tuple[Edge, ...], int]:
    """The edges of the arguments at `positions`, and a bit for each that is wanted."""
    if not GRAD_ENABLED.get():
        return (), 0
    edges = tuple([gradient_edge(args[position]) for position in positions])
    wanted, bit = 0, 1
    for edge in edges:
        if edge.node is not None:
            wanted += bit
        bit <<= 1
    return edges, wanted


def _recorded(
    node_class: type[OpNode],
    edges: tuple[Edge, ...],
    data: Array,
    plan: Plan,
    values: Sequence[Value],
) -> Value:
    """The result of an op, with its node.

    Args:
        node_class: Of the node.
        edges: Where its gradients go.
        data: The result.
        plan: What to save.
        values: All that formulas can name; `data` among them if it is one of those.
    """
    if not plan.saves_results:
        node = node_class(edges, data, plan, _saved(plan, values))
        return variable(data, node.output_edge())
    kept = _kept(data)
    values = [kept if value is data else value for value in values]
    node = node_class(edges, data, plan, _saved(plan, values))
    result = variable(data, node.output_edge())
    result.version = kept.version
    return result


def _kept(data: Array) -> Variable:
    """What to save of a result: a variable without its edge; see Note [Saving]."""
    kept: Variable = variable(data)
    kept.needs_grad = True
    kept.version = Version()
    return kept


def _saved(plan: Plan, values: Sequence[Value]) -> tuple[Value, ...]:
    """What a node keeps of `values`; see Note [Saving]."""
    kept = plan.keep(values)
    if not plan.has_tensors:
        return kept
    if not saved_variable.num_hooks:
        return tuple(
            [
                save(value)
                if isinstance(value, Variable) and value.version is not None
                else value
                for value in kept
            ]
        )
    return tuple(
        save(value, output_nr=RESULT - origin if origin <= RESULT else None)
        if isinstance(value, Variable)
        else value
        for value, origin in zip(kept, plan.origins, strict=True)
    )


def _completion(
    function: Callable[..., Any],
) -> Callable[[tuple[Value, ...], dict[str, Value]], tuple[Value, ...]]:
    """What puts the arguments of a call of `function` in order, with its defaults."""
    names = parameters_of(function)
    defaults = dict(
        zip(reversed(names), reversed(function.__defaults__ or ()), strict=False)
    )

    def complete(args: tuple[Value, ...], named: dict[str, Value]) -> tuple[Value, ...]:
        given = defaults | named
        try:
            completed = args + tuple([given[name] for name in names[len(args) :]])
        except KeyError:
            completed = ()
        if len(completed) == len(names) and named.keys() <= set(names[len(args) :]):
            return completed
        return (
            inspect.signature(function).bind(*args, **named).args
        )  # says what is wrong

    return complete


def _named(op: Op, name: str, forward: Callable[..., Array]) -> Op:
    """Give an op the name and docstring of what it computes."""
    op.__name__ = op.__qualname__ = forward.__name__
    op.__module__ = getattr(forward, "__module__", None) or __name__
    op.__doc__ = (
        f"``numpy.{forward.__name__}``, differentiable: its node is {name}."
        if isinstance(forward, np.ufunc)
        else forward.__doc__
    )
    DOORS.add(op)
    return op


def _word(name: str) -> str:
    """What users call the op whose node has this name."""
    return name.partition("Backward")[0].lower()


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
