"""Whole Jacobians and Hessians, row by row.

Source: torch/autograd/functional.py.
"""

from typing import Literal, TypeAlias

from gradviz.autograd.functional_checks import (
    checked_tuple,
    refuse_cut,
    single_scalar,
)
from gradviz.autograd.functional_inputs import (
    RESULT,
    Func,
    Tensors,
    as_given,
    finished,
    gradients,
    leaves,
)
from gradviz.autograd.grad_mode import enable_grad
from gradviz.ops.shapes.joining import stack
from gradviz.ops.variables.variable import Value
from gradviz.tensors.creation.factories import zeros, zeros_like

Strategy: TypeAlias = Literal["reverse-mode", "forward-mode"]


def jacobian(
    func: Func,
    inputs: Tensors,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: Strategy = "reverse-mode",
) -> Tensors:
    """Return the Jacobian of `func` at `inputs`: one backward per output element.

    Args:
        func: The function.
        inputs: The point.
        create_graph: As for `vjp`.
        strict: As for `vjp`.
        vectorize: Differs: has no effect, because there is no vmap.
        strategy: ``"reverse-mode"``.

    Returns:
        For one output and one input a tensor of the output's shape followed by the
        input's. For several inputs a tuple of them, for several outputs a tuple of
        the results for each.

    Raises:
        RuntimeError: `strict`, and an output does not depend on an input.
        NotImplementedError: ``"forward-mode"``.
        TypeError: As `vjp`.
    """
    _check_strategy(strategy, "jacobian")
    with enable_grad():
        is_tuple, xs = leaves("inputs", inputs, "jacobian", create_graph=create_graph)
        is_result_tuple, ys = checked_tuple(RESULT, func(*xs), "jacobian")
        refuse_cut(ys, "outputs", strict=strict)
        if vectorize and strict:
            raise RuntimeError(
                "torch.autograd.functional.jacobian: `strict=True` and "
                "`vectorized=True` are not supported together. Please either set "
                "`strict=False` or `vectorize=False`."
            )
        rows = [
            _jacobian_of(y, i, xs, create_graph=create_graph, strict=strict)
            for i, y in enumerate(ys)
        ]
    done = (as_given(finished(row, create_graph), is_tuple) for row in rows)
    return as_given(tuple(done), is_result_tuple)


def hessian(
    func: Func,
    inputs: Tensors,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: Strategy = "reverse-mode",
) -> Tensors:
    """Return the Hessian of `func` at `inputs`; it returns a single element.

    Args:
        func: The function.
        inputs: The point.
        create_graph: As for `vjp`.
        strict: As for `vjp`.
        vectorize: As for `jacobian`.
        outer_jacobian_strategy: As `strategy` of `jacobian`.

    Returns:
        For one input a tensor of its shape twice; for several a tuple of tuples of
        tensors, one for each pair.

    Raises:
        RuntimeError: `func` returns something else; or as `jacobian`.
        NotImplementedError: As `jacobian`.
        TypeError: As `vjp`.
    """
    _check_strategy(outer_jacobian_strategy, "hessian")
    is_tuple, xs = checked_tuple("inputs", inputs, "hessian")

    def scalar(*args: Value) -> Value:
        (y,) = single_scalar(func(*args), "hessian", strict=strict)
        return y.reshape(())

    def first(*args: Value) -> tuple[Value, ...]:
        found: tuple[Value, ...] = jacobian(scalar, args, create_graph=True)
        refuse_cut(found, "jacobian", strict=strict)
        return found

    rows = jacobian(first, xs, create_graph, strict, vectorize)
    return as_given(tuple(as_given(row, is_tuple) for row in rows), is_tuple)


def _jacobian_of(
    y: Value,
    index: int,
    xs: tuple[Value, ...],
    *,
    create_graph: bool,
    strict: bool,
) -> tuple[Value, ...]:
    """Return the Jacobian of one output, one tensor for each input."""
    rows: list[list[Value]] = [[] for _ in xs]
    flat = y.reshape(-1)
    for j in range(y.numel()):
        found = gradients(
            (flat[j],), xs, None, create_graph=create_graph, retain_graph=True
        )
        for i, (row, gradient, x) in enumerate(zip(rows, found, xs, strict=True)):
            if gradient is None and strict:
                raise RuntimeError(
                    f"Output {index} of the user-provided function is independent of "
                    f"input {i}. This is not allowed in strict mode."
                )
            if gradient is not None and strict and create_graph:
                _check_recorded(gradient, index)
            row.append(zeros_like(x) if gradient is None else gradient)
    return tuple(
        stack(row, 0).reshape((*y.shape, *x.shape))
        if row
        else zeros((*y.shape, *x.shape), dtype=x.dtype, device=x.device)
        for row, x in zip(rows, xs, strict=True)
    )


def _check_recorded(gradient: Value, index: int) -> None:
    if not gradient.requires_grad:
        raise RuntimeError(
            f"The jacobian of the user-provided function is independent of input "
            f"{index}. This is not allowed in strict mode when create_graph=True."
        )


def _check_strategy(strategy: str, name: str) -> None:
    if strategy not in ("forward-mode", "reverse-mode"):
        raise ValueError(
            f'Expected strategy to be either "forward-mode" or "reverse-mode", but got '
            f"{strategy!r}."
        )
    if strategy == "forward-mode":
        raise NotImplementedError(
            f'{name}: "forward-mode" needs forward-mode differentiation, which gradviz '
            f'does not have; use "reverse-mode"'
        )
