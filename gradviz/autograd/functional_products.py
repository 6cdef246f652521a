"""Products of Jacobians and Hessians with vectors.

Source: torch/autograd/functional.py.
"""

from collections.abc import Sequence

from gradviz.autograd.functional_checks import (
    checked_tuple,
    checked_vector,
    filled,
    refuse_cut,
    single_scalar,
)
from gradviz.autograd.functional_inputs import (
    RESULT,
    Func,
    Tensors,
    as_given,
    constants,
    finished,
    gradients,
    leaves,
)
from gradviz.autograd.grad_mode import enable_grad, set_grad_enabled
from gradviz.engine.graph.grad_mode import is_grad_enabled
from gradviz.ops.variables.variable import Value
from gradviz.tensors.creation.factories import zeros_like


def vjp(
    func: Func,
    inputs: Tensors,
    v: Tensors | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Tensors, Tensors]:
    """Return the vector `v` times the Jacobian of `func` at `inputs`.

    Args:
        func: The function.
        inputs: The point.
        v: Same shapes as the outputs; may be left out for a single element.
        create_graph: Record the computation, to differentiate it.
        strict: Raise if an input has no effect, instead of returning zeros.

    Returns:
        The results of `func`, and the product, which has the structure of `inputs`.

    Raises:
        RuntimeError: `v` does not fit; or `strict`, and an input has no effect.
        TypeError: A value is not a tensor.
    """
    with enable_grad():
        is_tuple, xs = leaves("inputs", inputs, "vjp", create_graph=create_graph)
        is_result_tuple, ys = checked_tuple(RESULT, func(*xs), "vjp")
        refuse_cut(ys, "outputs", strict=strict)
        vs = checked_vector(v, ys, "vjp", of_output=True, is_tuple=is_result_tuple)
        vs = constants(vs, create_graph=create_graph)
    with set_grad_enabled(create_graph or is_grad_enabled()):
        grads = gradients(ys, xs, vs, create_graph=create_graph)
        products = filled(grads, xs, "back", strict=strict, create_graph=create_graph)
    return (
        as_given(finished(ys, create_graph), is_result_tuple),
        as_given(finished(products, create_graph), is_tuple),
    )


def jvp(
    func: Func,
    inputs: Tensors,
    v: Tensors | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Tensors, Tensors]:
    """Return the Jacobian of `func` at `inputs` times the vector `v`.

    Computed by two backwards: the first one is linear in its gradient, and its own
    derivative with respect to that is the product.

    Args:
        func: The function.
        inputs: The point.
        v: Same shapes as the inputs; may be left out for a single element.
        create_graph: As for `vjp`.
        strict: As for `vjp`.

    Returns:
        The results of `func`, and the product, which has the same structure.

    Raises:
        RuntimeError: As `vjp`.
        TypeError: As `vjp`.
    """
    with enable_grad():
        _, xs = leaves("inputs", inputs, "jvp", create_graph=create_graph)
        is_tuple = isinstance(inputs, tuple)
        vs = checked_vector(v, xs, "jvp", of_output=False, is_tuple=is_tuple)
        vs = constants(vs, create_graph=create_graph)
        is_result_tuple, ys = checked_tuple(RESULT, func(*xs), "jvp")
        refuse_cut(ys, "outputs", strict=strict)
        firsts = tuple(zeros_like(y, requires_grad=True) for y in ys)
        backward = gradients(ys, xs, firsts, create_graph=True)
        refuse_cut(backward, "grad_inputs", strict=strict)
    with set_grad_enabled(create_graph or is_grad_enabled()):
        grads = gradients(backward, firsts, vs, create_graph=create_graph)
        products = filled(
            grads, ys, "back_trick", strict=strict, create_graph=create_graph
        )
    return (
        as_given(finished(ys, create_graph), is_result_tuple),
        as_given(finished(products, create_graph), is_result_tuple),
    )


def vhp(
    func: Func,
    inputs: Tensors,
    v: Tensors | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Tensors, Tensors]:
    """Return the vector `v` times the Hessian of `func` at `inputs`.

    Args:
        func: The function; returns a tensor of a single element.
        inputs: The point.
        v: Same shapes as the inputs; may be left out for a single element.
        create_graph: As for `vjp`.
        strict: As for `vjp`.

    Returns:
        The results of `func`, and the product, which has the structure of `inputs`.

    Raises:
        RuntimeError: As `vjp`, and as `hessian`.
        TypeError: As `vjp`.
    """
    is_tuple, xs, vs, ys, first = _first_backward(
        func, inputs, v, "vhp", create_graph=create_graph, strict=strict
    )
    with set_grad_enabled(create_graph or is_grad_enabled()):
        grads = gradients(first, xs, vs, create_graph=create_graph)
        products = filled(
            grads, xs, "double_back", strict=strict, create_graph=create_graph
        )
    return (
        finished(ys, create_graph)[0],
        as_given(finished(products, create_graph), is_tuple),
    )


def hvp(
    func: Func,
    inputs: Tensors,
    v: Tensors | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Tensors, Tensors]:
    """Return the Hessian of `func` at `inputs` times the vector `v`.

    The same as `vhp` where second derivatives are continuous, but slower: it takes
    three backwards. See there for arguments, result and errors.
    """
    is_tuple, xs, vs, ys, first = _first_backward(
        func, inputs, v, "hvp", create_graph=create_graph, strict=strict
    )
    with enable_grad():
        seconds = tuple(zeros_like(x, requires_grad=True) for x in xs)
        double = gradients(first, xs, seconds, create_graph=True)
        refuse_cut(first, "hessian", strict=strict)
    with set_grad_enabled(create_graph or is_grad_enabled()):
        grads = gradients(double, seconds, vs, create_graph=create_graph)
        products = filled(
            grads, xs, "double_back_trick", strict=strict, create_graph=create_graph
        )
    return (
        finished(ys, create_graph)[0],
        as_given(finished(products, create_graph), is_tuple),
    )


def _first_backward(
    func: Func,
    inputs: Tensors,
    v: Tensors | None,
    name: str,
    *,
    create_graph: bool,
    strict: bool,
) -> tuple[bool, tuple[Value, ...], Sequence[Value] | None, Value, tuple[Value, ...]]:
    """Start `vhp` or `hvp`: check the arguments, compute the first gradients."""
    with enable_grad():
        is_tuple, xs = leaves("inputs", inputs, name, create_graph=create_graph)
        vs = checked_vector(v, xs, name, of_output=False, is_tuple=is_tuple)
        vs = constants(vs, create_graph=create_graph)
        ys = single_scalar(func(*xs), name, strict=strict)
        first = gradients(ys, xs, None, create_graph=True)
        refuse_cut(first, "jacobian", strict=strict)
    return is_tuple, xs, vs, ys, first
