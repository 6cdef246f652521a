"""Checks of gradients against finite differences.

In the fast mode one random inner product checks a whole Jacobian: for a direction u of
an input and a direction v of an output, ``<v, Ju>`` by differences must equal
``<J'v, u>`` by backward. The slow mode compares the Jacobians element by element: it
does the same with a direction for each element. See `gradviz.autograd.jacobians`.
"""

import warnings
from collections.abc import Sequence
from typing import Final, NamedTuple, TypeAlias

import numpy as np

from gradviz.autograd.gradient import grad
from gradviz.autograd.jacobians import (
    Slope,
    TensorFunction,
    as_tuple,
    gradients_of,
    is_complex,
    numerical,
    projected,
    random_vector,
    scale_of,
    slopes_of,
    unit_vectors,
)
from gradviz.backends.base import copy_to
from gradviz.backends.device import CPU
from gradviz.ops.dispatch.result import record
from gradviz.ops.variables.variable import Value, Variable, variable

#: One input or several, of which some are tensors that require gradients.
CheckedInputs: TypeAlias = Value | Sequence[Value]

_SEED: Final = 0


class GradcheckError(RuntimeError):
    """A gradient differs from finite differences."""


class _CheckSettings(NamedTuple):
    """Settings of one check; see `gradcheck`."""

    eps: float
    atol: float
    rtol: float
    nondet_tol: float
    check_undefined_grad: bool
    check_grad_dtypes: bool
    fast_mode: bool


def gradcheck(  # noqa: PLR0913 - PyTorch's signature
    func: TensorFunction,
    inputs: CheckedInputs,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """Compare the gradients of a function with finite differences.

    The elements of the inputs are changed in place, and restored.

    Args:
        func: Takes `inputs`, returns a tensor or several.
        inputs: Its arguments; those that require gradients are float64 or complex128.
        eps: Length of the step.
        atol: Largest absolute difference.
        rtol: Largest difference relative to the value.
        raise_exception: Raise an error on a mismatch; otherwise return False.
        nondet_tol: Largest difference between two backwards.
        check_undefined_grad: Check that missing gradients count as zeros.
        check_grad_dtypes: Check that each gradient has the dtype of its input.
        check_batched_grad: Not supported.
        check_batched_forward_grad: Not supported.
        check_forward_ad: Not supported.
        check_backward_ad: Must be True.
        fast_mode: Compare along a random direction only.
        masked: Treatment of sparse tensors, of which there are none.

    Returns:
        True if they agree.

    Raises:
        GradcheckError: They do not, or backward is not what it should be.
        ValueError: No input requires gradients.
        NotImplementedError: vmap or forward mode is needed.

    Source: torch/autograd/gradcheck.py.
    """
    del masked
    if check_batched_grad or check_batched_forward_grad:
        raise NotImplementedError("batched gradients need vmap, which gradviz lacks")
    if check_forward_ad or not check_backward_ad:
        raise NotImplementedError("gradviz differentiates in backward mode only")
    settings = _CheckSettings(
        eps, atol, rtol, nondet_tol, check_undefined_grad, check_grad_dtypes, fast_mode
    )
    try:
        _check(func, as_tuple(inputs), settings)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(  # noqa: PLR0913 - PyTorch's signature
    func: TensorFunction,
    inputs: CheckedInputs,
    grad_outputs: CheckedInputs | None = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """Compare the gradients of a function's gradients with finite differences.

    Args:
        func: As of `gradcheck`, as are all arguments not listed here.
        inputs: Its arguments.
        grad_outputs: The gradient of each output that needs one; random if not given.
        eps: Length of the step.
        atol: Largest absolute difference.
        rtol: Largest difference relative to the value.
        gen_non_contig_grad_outputs: Store random ones with gaps.
        raise_exception: Raise an error on a mismatch; otherwise return False.
        nondet_tol: Largest difference between two backwards.
        check_undefined_grad: Check that missing gradients count as zeros.
        check_grad_dtypes: Check that each gradient has the dtype of its input.
        check_batched_grad: Not supported.
        check_fwd_over_rev: Not supported.
        check_rev_over_rev: Must be True.
        fast_mode: Compare along a random direction only.
        masked: Treatment of sparse tensors, of which there are none.

    Returns:
        True if they agree.

    Raises:
        GradcheckError: They do not, or backward is not what it should be.
        NotImplementedError: vmap or forward mode is needed.
    """
    if check_fwd_over_rev or not check_rev_over_rev:
        raise NotImplementedError("gradviz differentiates in backward mode only")
    arguments = as_tuple(inputs)
    firsts = (
        _random_gradients(func(*arguments), with_gaps=gen_non_contig_grad_outputs)
        if grad_outputs is None
        else as_tuple(grad_outputs)
    )
    num_inputs = len(arguments)
    wanted = [index for index, one in enumerate(arguments) if _is_differentiated(one)]

    def gradients(*args: Value) -> tuple[Value, ...]:
        outputs = _differentiable(func(*args[:num_inputs]))
        results = grad(
            outputs,
            [args[index] for index in wanted],
            args[num_inputs:],
            create_graph=True,
            allow_unused=True,
        )
        return tuple(one for one in results if one is not None)

    return gradcheck(
        gradients,
        (*arguments, *firsts),
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad,
        check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad,
        fast_mode=fast_mode,
        masked=masked,
    )


# --- the checks -----------------------------------------------------------------------


def _check(
    func: TensorFunction, inputs: tuple[Value, ...], settings: _CheckSettings
) -> None:
    _check_inputs(inputs)
    outputs = as_tuple(func(*inputs))
    wanted = [one for one in inputs if _is_differentiated(one)]
    vectors = random_vector if settings.fast_mode else unit_vectors
    slopes = [
        [slopes_of(func, inputs, x, along, settings.eps) for along in vectors(x)]
        for x in wanted
    ]
    differentiable = [i for i, one in enumerate(outputs) if one.requires_grad]
    if not differentiable:
        _check_no_slope(slopes)
        return
    units = (1j, 1) if any(map(is_complex, outputs)) else (1,)
    for unit in units:
        for number, i in enumerate(differentiable):
            of_output = [[one[i] for one in of_input] for of_input in slopes]
            _check_jacobian(number, outputs[i], wanted, of_output, unit, settings)
    _check_zero_gradients([outputs[i] for i in differentiable], wanted)
    if settings.check_undefined_grad:
        _check_undefined_gradients(func, inputs, wanted)


def _check_jacobian(
    number: int,
    output: Variable,
    wanted: Sequence[Variable],
    slopes: Sequence[Sequence[Slope]],
    unit: complex,
    settings: _CheckSettings,
) -> None:
    """Compare the gradients of one output with its slopes along each input."""
    vectors = random_vector if settings.fast_mode else unit_vectors
    weights = list(vectors(output))
    gradients = _analytical(output, wanted, weights, unit, settings)
    for index, x in enumerate(wanted):
        directions = list(vectors(x))
        _compare(
            projected(gradients[index], directions),
            numerical(slopes[index], weights, unit),
            settings.rtol,
            settings.atol * scale_of(directions, weights),
            _mismatch(number, index, unit, is_complex=is_complex(output)),
        )


def _check_inputs(inputs: Sequence[Value]) -> None:
    differentiated = False
    for index, one in enumerate(inputs):
        if not _is_differentiated(one):
            continue
        differentiated = True
        array = one.array
        if array.dtype not in (np.float64, np.complex128):
            warnings.warn(
                f"Input #{index} requires gradient and is not a double precision "
                f"floating point or complex. This check will likely fail if all the "
                f"inputs are not of double precision floating point or complex. ",
                stacklevel=4,
            )
        if array.size and any(
            stride == 0 and size > 1
            for stride, size in zip(array.strides, array.shape, strict=True)
        ):
            raise RuntimeError(
                f"The {index}th input has a dimension with stride 0. gradcheck only "
                f"supports inputs that are non-overlapping to be able to compute the "
                f"numerical gradients correctly. You should call .contiguous on the "
                f"input before passing it to gradcheck."
            )
    if not differentiated:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none "
            "of them have requires_grad=True."
        )


def _check_no_slope(slopes: Sequence[Sequence[Sequence[Slope]]]) -> None:
    for of_input in slopes:
        for of_direction in of_input:
            for one in of_direction:
                if one.real.any() or one.imaginary.any():
                    raise GradcheckError(
                        "Numerical gradient for function expected to be zero"
                    )


def _check_zero_gradients(
    outputs: Sequence[Variable], wanted: Sequence[Variable]
) -> None:
    """Check that backward turns zeros into zeros, as a linear function must."""
    zeros = [variable(np.zeros_like(one.array)) for one in outputs]
    results = grad(outputs, wanted, zeros, retain_graph=True, allow_unused=True)
    for result, x in zip(results, wanted, strict=True):
        if result is None:
            continue
        if np.any(result.array != 0):
            raise GradcheckError("backward not multiplied by grad_output")
        if result.array.dtype != x.array.dtype:
            raise GradcheckError("grad is incorrect type")
        if result.device is not x.device:
            raise GradcheckError("grad is incorrect device")
        if result.array.shape != x.array.shape:
            raise GradcheckError("grad is incorrect size")


def _check_undefined_gradients(
    func: TensorFunction, inputs: Sequence[Value], wanted: Sequence[Variable]
) -> None:
    """Check that missing gradients count as zeros: all, and each of several."""
    num_outputs = len(_differentiable(func(*inputs)))
    absences = [set(range(num_outputs))]
    if num_outputs > 1:
        absences += [{index} for index in range(num_outputs)]
    for absent in absences:
        outputs = [
            record("UndefinedGradBackward0", one.array, (one,), (lambda _: None,))
            if index in absent
            else one
            for index, one in enumerate(_differentiable(func(*inputs)))
        ]
        zeros = [variable(np.zeros_like(one.array)) for one in outputs]
        try:
            results = grad(outputs, wanted, zeros, allow_unused=True)
        except RuntimeError as error:
            _warn_that_this_is_checked()
            raise GradcheckError(
                "Expected backward function to handle undefined output grads."
            ) from error
        if any(one is not None and np.any(one.array != 0) for one in results):
            _warn_that_this_is_checked()
            raise GradcheckError(
                "Expected all input grads to be undefined or zero when all output "
                "grads are undefined or zero."
            )


def _warn_that_this_is_checked() -> None:
    warnings.warn(
        "Backwards compatibility: New undefined gradient support checking feature is "
        "enabled by default, but it may break existing callers of this function. If "
        "this is true for you, you can call this function with "
        '"check_undefined_grad=False" to disable the feature',
        stacklevel=5,
    )


# --- by backward ----------------------------------------------------------------------


def _analytical(
    output: Variable,
    wanted: Sequence[Variable],
    weights: Sequence[np.ndarray],
    unit: complex,
    settings: _CheckSettings,
) -> list[list[np.ndarray]]:
    """Return, for each input, its gradient for each weight of the output."""
    first, again = (
        [gradients_of(output, wanted, np.asarray(weight * unit)) for weight in weights]
        for _ in range(2)
    )
    for one, other in zip(first, again, strict=True):
        for x, a, b in zip(wanted, one, other, strict=True):
            _check_gradient(x, a, b, settings)
    return [
        [copy_to(gradients[j], CPU) for gradients in first] for j in range(len(wanted))
    ]


def _check_gradient(
    x: Variable, gradient: np.ndarray, again: np.ndarray, settings: _CheckSettings
) -> None:
    if settings.check_grad_dtypes and gradient.dtype != x.array.dtype:
        raise GradcheckError("Gradient has dtype mismatch")
    if gradient.shape != x.array.shape:
        raise GradcheckError("Analytical gradient has incorrect size")
    if not np.allclose(gradient, again, 0, settings.nondet_tol, equal_nan=True):
        raise GradcheckError(
            f"Backward is not reentrant, i.e., running backward with same input and "
            f"grad_output multiple times gives different values, although analytical "
            f"gradient matches numerical gradient."
            f"The tolerance for nondeterminism was {settings.nondet_tol}."
        )


# --- comparing ------------------------------------------------------------------------


def _compare(
    analytical: np.ndarray,
    numerical: np.ndarray,
    rtol: float,
    atol: float,
    message: str,
) -> None:
    if not np.allclose(analytical, numerical, rtol, atol, equal_nan=False):
        is_real = not (np.iscomplexobj(analytical) or np.any(numerical.imag))
        shown = numerical.real if is_real else numerical
        raise GradcheckError(f"{message}numerical:{shown}\nanalytical:{analytical}\n")


def _mismatch(output: int, index: int, unit: complex, *, is_complex: bool) -> str:
    part = "imaginary" if unit == 1j else "real"
    considering = f"While considering the {part} part of complex outputs only, "
    return (
        f"{considering if is_complex else ''}Jacobian mismatch for output {output} "
        f"with respect to input {index},\n"
    )


def _random_gradients(outputs: Value, *, with_gaps: bool) -> tuple[Value, ...]:
    """Return a leaf like each differentiable output, with elements from -1 to 1."""
    random = np.random.default_rng(_SEED)
    leaves = []
    for output in _differentiable(outputs):
        array = random.uniform(-1, 1, (*output.array.shape, 2))
        if is_complex(output):
            array = array + 1j * random.uniform(-1, 1, array.shape)
        part = array[..., 0] if with_gaps else array[..., 0].copy()
        dtype = output.array.dtype
        leaf: Variable = variable(
            copy_to(np.asarray(part).astype(dtype, copy=False), output.device)
        )
        leaf.requires_grad = True
        leaves.append(leaf)
    return tuple(leaves)


def _differentiable(outputs: Value) -> list[Variable]:
    return [one for one in as_tuple(outputs) if one.requires_grad]


def _is_differentiated(value: Value) -> bool:
    return isinstance(value, Variable) and value.requires_grad
