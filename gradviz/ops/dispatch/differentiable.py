"""The one door through which a computation becomes part of a graph.

Three ways in, for three shapes of op: `unary` (one array, elementwise), `binary` (two,
with broadcasting and type promotion) and `differentiable` (anything else: several
results, views). Each takes PyTorch's name of the node, a forward function on raw
arrays, and a formula for each input's gradient, and returns an op. See Note [Formulas
say what they need] in `gradviz.ops.dispatch.plan`, and Note [Silence] in
`gradviz.ops.conventions.silence`.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy import generic, ndarray  # in one step: each op asks

from gradviz.backends.arrays.mixing import MixedDevicesError
from gradviz.backends.base import Array
from gradviz.engine.graph.grad_mode import GRAD_ENABLED
from gradviz.engine.graph.node import Edge
from gradviz.engine.graph.protocols import Gradient
from gradviz.ops.conventions.memory_layout import laid_out_like
from gradviz.ops.conventions.promotion import (
    Operand,
    as_floating,
    number_beside,
    operand,
    promote,
)
from gradviz.ops.conventions.refusal import check_tensors
from gradviz.ops.conventions.silence import SILENT, put, quietly, setting
from gradviz.ops.dispatch.arguments import (
    Completion,
    any_numpy,
    completion_of,
    places_of_numbers,
)
from gradviz.ops.dispatch.op_node import (
    OpNode,
    SeveralNode,
    node_class_of,
)
from gradviz.ops.dispatch.plan import (
    IN_FORMULA,
    Formula,
    Plans,
    Properties,
    Signature,
    parameters_of,
)
from gradviz.ops.dispatch.result import (
    Recipe,
    any_needs_grad,
    edges_of,
    kept_result,
    result_of,
    result_of_one,
)
from gradviz.ops.dispatch.shown_saved import shows_saved
from gradviz.ops.variables.variable import (
    Value,
    Variable,
    is_inference,
    raw,
    variable,
)
from gradviz.ops.variables.view import record_view

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
    node_class = node_class_of(name)
    recipe = Recipe(node_class, Plans(signature), (0,))
    shows_saved(node_class, signature.saved_names())

    word = _word(name)
    is_ufunc = isinstance(forward, np.ufunc)

    def of_floats(x: Array) -> Array:
        return forward(as_floating(x))

    def op(input: Value) -> Value:
        if not isinstance(input, Variable):
            if type(input) is not ndarray:  # formulas come here: first, for time
                check_tensors(word, input=input)
            return forward(input)
        source = raw(input)
        if is_ufunc and type(source) is ndarray and source.dtype.kind in "fc":
            data = quietly(forward, source)
        else:
            data = _computed(of_floats, (source,), word)
        return result_of_one(recipe, input, (), data)

    return _named(op, name, forward)


def binary(
    name: str,
    forward: Callable[[Array, Array], Array],
    *,
    x: Formula,
    y: Formula,
    with_number: Op | None = None,
    x_first: bool = False,
) -> Op:
    """An op on pairs of elements: broadcasts, and promotes types as PyTorch does.

    Args:
        name: Of its node.
        forward: The function on raw arrays; its parameters are called ``x``, ``y``.
        x: Formula of the first input's gradient.
        y: Formula of the second input's gradient.
        with_number: The op that takes the place of this one where a formula gives it a
            number as `y`.
        x_first: True if the gradient of `x` is computed first, as where PyTorch calls
            the two ``grad_output`` and ``output``.
    """
    formulas = {"x": x, "y": y}
    turns = (0, 1) if x_first else (1, 0)
    signature = Signature(("x", "y"), formulas, turns=turns)
    node_class = node_class_of(name)
    shows_saved(node_class, signature.saved_names())
    recipe = Recipe(node_class, Plans(signature), (0, 1))
    word = _word(name)
    is_ufunc = isinstance(forward, np.ufunc)

    def op(input: Value, other: Value) -> Value:
        if isinstance(input, Variable):
            a = raw(input)
            is_ordered = a.flags.c_contiguous
            if isinstance(other, Variable):
                b = raw(other)
            elif with_number is not None and IN_FORMULA.get() and not _is_array(other):
                return with_number(input, other)
            else:
                b = other = operand(other)
        elif isinstance(other, Variable):
            a = input = operand(input)
            is_ordered = True
            b = raw(other)
        else:
            return forward(input, other)
        beside = number_beside(a, b) if is_ufunc else b
        try:
            if (
                is_ufunc
                and type(a) is type(beside) is ndarray
                and (beside is not b or a.dtype is b.dtype)
            ):
                data = quietly(forward, a, beside)
            else:
                a, b, data = _promoted(forward, a, b, word)
        except ValueError as error:
            raise _broadcast_error(a, b) from error
        if not is_ordered:  # then NumPy and PyTorch may choose different orders
            data = laid_out_like(data, a, b)
        return result_of(recipe, (input, other), (a, b), data)

    return _named(op, name, forward)


def differentiable(  # noqa: PLR0913 - all that there is to say of an op
    name: str,
    *,
    arrays: Sequence[str] = (),
    results: Sequence[str] = (),
    plain: Sequence[str] = (),
    zeros: bool = False,
    view: bool = False,
    silent: bool = False,
    joint: Formula | None = None,
    together: Formula | None = None,
    **formulas: Formula,
) -> Callable[[Callable[..., Any]], Op]:
    """Make an op of a function on raw arrays; a decorator.

    The op takes what the function takes. A function that returns several arrays, as a
    tuple, makes an op with several results; a named tuple stays what it is.

    Args:
        name: Of its node.
        arrays: Parameters that may be arrays, but are not differentiated.
        results: Names of several results.
        plain: Those of `results` that are not differentiable.
        zeros: Give formulas zeros for what is undefined among ``grads``.
        view: The result is a view of the first argument. The function must do nothing
            else with it, for it is also used on other arrays of the same shape.
        silent: NumPy warns of nothing that the function, of one array or of two, may
            do with arrays of its own: see Note [Silence].
        joint: Computes all gradients in a graph; see Note [Formulas in a graph].
        together: Computes all gradients in a plain backward; see Note [Formulas say
            what they need].
        **formulas: For each differentiated parameter that of its gradient, in the order
            in which PyTorch computes them; see Note [Formulas say what they need].
    """

    def decorate(forward: Callable[..., Any]) -> Op:
        names = parameters_of(forward)
        ordered = {one: formulas[one] for one in names if one in formulas}
        turns = tuple(map(list(ordered).index, formulas))
        signature = Signature(
            names,
            ordered,
            arrays,
            results or ("result",),
            plain,
            turns,
            joint,
            together,
        )
        form = _Form(
            forward,
            completion_of(forward),
            len(names),
            Plans(signature),
            signature.properties(),
            tuple(names.index(parameter) for parameter in ordered),
            view,
            places_of_numbers(forward),
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
            has_one = form.positions == (0,) and not arrays
            if view:
                op = _of_view(form, node_class)
            elif has_one:
                op = _of_one(form, node_class, silent)
            elif names == tuple(ordered) and len(names) == 2:
                op = _of_two(form, node_class, silent)
            else:
                op = _of_several(form, node_class)
        shows_saved(node_class, signature.saved_names())
        return _named(op, name, forward)

    return decorate


class _Form(NamedTuple):
    """Form of an op, derived by `differentiable`.

    Attributes:
        forward: The function on raw arrays.
        complete: Takes arguments as given, returns all by position.
        num_parameters: Number of parameters.
        plans: One for each set of wanted gradients.
        properties: Other values that formulas name.
        positions: Indices of the arguments that have formulas.
        is_view: True if results are views of the first argument.
        numbers: Indices of parameters that are numbers, and may be NumPy's.
    """

    forward: Callable[..., Any]
    complete: Completion
    num_parameters: int
    plans: Plans
    properties: Properties
    positions: tuple[int, ...]
    is_view: bool
    numbers: tuple[int, ...]


class _Several(NamedTuple):
    """Settings of an op with several results.

    Attributes:
        are_named: True if formulas can name them; if not, there may be any number.
        plain: Results that are not differentiable.
        fills: As in `SeveralNode`.
        takes_one: As in `SeveralNode`.
    """

    are_named: bool
    plain: tuple[int, ...]
    fills: bool
    takes_one: bool


def _of_one(form: _Form, node_class: type[OpNode], silent: bool) -> Op:
    """Return an op with one array, its first argument."""
    forward, complete, num_parameters, plans, properties, _, _, numbers = form
    recipe = Recipe(node_class, plans, (0,), properties)
    num_rest = num_parameters - 1
    numbers = tuple(place - 1 for place in numbers)  # in `rest`
    word = _word(node_class.__name__)

    def op(input: Value, *rest: Value, **named: Value) -> Value:
        if named or len(rest) != num_rest or (numbers and any_numpy(rest, numbers)):
            rest = complete((input, *rest), named)[1:]
        if not isinstance(input, Variable):
            if type(input) is not ndarray:  # formulas come here: first, for time
                check_tensors(word, input=input)
            return forward(input, *rest)
        source = raw(input)
        if silent:
            data = forward(source, *rest)
        else:
            heard = setting()
            try:
                heard is SILENT or put(SILENT)
                data = forward(source, *rest)
            finally:
                heard is SILENT or put(heard)
        return result_of_one(recipe, input, rest, data)

    return op


def _of_view(form: _Form, node_class: type[OpNode]) -> Op:
    """Return an op with one array, its first argument, and a view as its result."""
    forward, complete, num_parameters, plans, properties, _, _, _ = form
    recipe = Recipe(node_class, plans, (0,), properties)
    num_rest = num_parameters - 1
    word = _word(node_class.__name__)

    def op(input: Value, *rest: Value, **named: Value) -> Value:
        if named or len(rest) != num_rest:
            rest = complete((input, *rest), named)[1:]
        if not isinstance(input, Variable):
            if type(input) is not ndarray:
                check_tensors(word, input=input)
            return forward(input, *rest)
        data = forward(raw(input), *rest)  # computes nothing: nothing to silence
        if is_inference(input):
            result = variable(data)
        else:
            result = result_of_one(recipe, input, rest, data)
        record_view(input, result, (op, rest, None))
        return result

    return op


def _of_two(form: _Form, node_class: type[OpNode], silent: bool) -> Op:
    """Return an op with two arrays as its only arguments."""
    forward, complete, _, plans, properties, positions, _, _ = form
    recipe = Recipe(node_class, plans, positions, properties)
    word = _word(node_class.__name__)

    def op(*args: Value, **named: Value) -> Value:
        x, y = complete(args, named) if named or len(args) != 2 else args
        a, b = raw(x), raw(y)
        if a is x and b is y:
            return forward(x, y)
        if silent and type(a) is type(b) is ndarray:
            data = forward(a, b)
        else:
            data = _computed(forward, (a, b), word)
        return result_of(recipe, (x, y), (a, b), data)

    return op


def _of_several(form: _Form, node_class: type[OpNode]) -> Op:
    """Return an op with arrays in several arguments; `positions` have formulas."""
    forward, complete, num_parameters, plans, properties, positions, _, numbers = form
    recipe = Recipe(node_class, plans, positions, properties)
    word = _word(node_class.__name__)

    def op(*args: Value, **named: Value) -> Value:
        if (
            named
            or len(args) != num_parameters
            or (numbers and any_numpy(args, numbers))
        ):
            args = complete(args, named)
        for value in args:
            if isinstance(value, Variable):
                break
        else:
            return forward(*args)
        arrays = [raw(one) for one in args]
        data = _computed(forward, arrays, word)
        return result_of(recipe, args, arrays, data)

    return op


def _with_results(form: _Form, node_class: type[SeveralNode], several: _Several) -> Op:
    """An op that returns a tuple."""
    (
        forward,
        complete,
        num_parameters,
        plans,
        properties,
        positions,
        is_view,
        numbers,
    ) = form
    are_named, plain, fills, takes_one = several
    word = _word(node_class.__name__)

    def op(*args: Value, **named: Value) -> Value:
        if (
            named
            or len(args) != num_parameters
            or (numbers and any_numpy(args, numbers))
        ):
            args = complete(args, named)
        if not any(isinstance(value, Variable) for value in args):
            return forward(*args)
        arrays = [raw(one) for one in args]
        data = _computed(forward, arrays, word)
        parts = [np.asarray(d) if isinstance(d, generic) else d for d in data]
        records = GRAD_ENABLED.get()
        edges, wanted = edges_of(args, positions if records else ())
        results = [variable(part) for part in parts]
        if records and (wanted or any_needs_grad(args)):
            plan = plans[wanted]
            kept: Sequence[Value] = parts if are_named else [None]
            if plan.saves_results:
                kept = [
                    kept_result(part, needs_grad=i not in plain)
                    for i, part in enumerate(parts)
                ]
                for one, own in zip(results, kept, strict=True):
                    one.version = own.version
            values = (*args, *kept, *[read(arrays[i]) for i, read in properties])
            outputs = [i for i in range(len(parts)) if i not in plain]
            node = node_class(
                edges,
                [parts[i] for i in outputs],
                plan,
                plan.keep(values),
                fills,
                takes_one,
            )
            for number, i in enumerate(outputs):
                results[i].edge = Edge(node, number)
                results[i].needs_grad = True
        if is_view:
            for i, result in enumerate(results):
                record_view(args[0], result, (op, tuple(args[1:]), i))
        return type(data)(*results) if hasattr(data, "_fields") else tuple(results)

    return op


def _promoted(
    forward: Callable[[Array, Array], Array], a: Operand, b: Operand, word: str
) -> tuple[Operand, Operand, Array]:
    """Return two operands in PyTorch's common dtype, and the raw result."""
    heard = setting()
    try:
        heard is SILENT or put(SILENT)
        if type(a) is not type(b) or a.dtype is not b.dtype:
            a, b = promote(a, b)
        return a, b, forward(a, b)
    except MixedDevicesError as error:
        raise error.of(word) from None
    finally:
        heard is SILENT or put(heard)


def _computed(forward: Callable[..., Any], arrays: Sequence[Any], word: str) -> Any:  # noqa: ANN401 - what `forward` returns
    """Call a function on raw arrays without NumPy's warnings."""
    heard = setting()
    try:
        heard is SILENT or put(SILENT)
        return forward(*arrays)
    except MixedDevicesError as error:
        raise error.of(word) from None
    finally:
        heard is SILENT or put(heard)


def without_gradient(grad: Gradient) -> Gradient:  # noqa: ARG001 - as all formulas
    """The formula of an input that PyTorch's node has an edge to, and no gradient."""
    return None


def _is_array(value: Value) -> bool:
    return hasattr(value, "ndim") and not isinstance(value, generic)


def _named(op: Op, name: str, forward: Callable[..., Array]) -> Op:
    """Give an op the name and docstring of its function."""
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
    """Return the user's name for the op whose node has this name."""
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
