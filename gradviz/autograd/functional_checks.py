"""Checks of functions of functions: their arguments, and required dependencies."""

from collections.abc import Sequence
from typing import Final, Literal

from gradviz.ops.variables.variable import Value, Variable
from gradviz.tensors.creation.factories import zeros_like

#: Computation in which a value may turn out not to depend on another.
Stage = Literal["back", "back_trick", "double_back", "double_back_trick"]

_IS_INDEPENDENT: Final[dict[Stage, str]] = {
    "back": (
        "The output of the user-provided function is independent of input {}. This is "
        "not allowed in strict mode."
    ),
    "back_trick": (
        "The gradient with respect to the input is independent of entry {} in the "
        "grad_outputs when using the double backward trick to compute forward mode "
        "gradients. This is not allowed in strict mode."
    ),
    "double_back": (
        "The jacobian of the user-provided function is independent of input {}. This "
        "is not allowed in strict mode."
    ),
    "double_back_trick": (
        "The hessian of the user-provided function is independent of entry {} in the "
        "grad_jacobian. This is not allowed in strict mode as it prevents from using "
        "the double backward trick to replace forward mode AD."
    ),
}

#: Value that may be cut off from the inputs.
Kind = Literal["outputs", "grad_inputs", "jacobian", "hessian"]

_IS_CUT: Final[dict[Kind, str]] = {
    "outputs": (
        "Output {} of the user-provided function does not require gradients. The "
        "outputs must be computed in a differentiable manner from the input when "
        "running in strict mode."
    ),
    "grad_inputs": (
        "The gradient with respect to input {} is independent of the inputs of the "
        "user-provided function. This is not allowed in strict mode."
    ),
    "jacobian": (
        "While computing the hessian, found that the jacobian of the user-provided "
        "function with respect to input {} is independent of the input. This is not "
        "allowed in strict mode. You should ensure that your function is twice "
        "differentiable and that the jacobian depends on the inputs (this would be "
        "violated by a linear function for example)."
    ),
    "hessian": (
        "The hessian of the user-provided function with respect to input {} is "
        "independent of the input. This is not allowed in strict mode. You should "
        "ensure that your function is thrice differentiable and that the hessian "
        "depends on the inputs."
    ),
}


def checked_tuple(
    what: str, given: object, function: str
) -> tuple[bool, tuple[Value, ...]]:
    """Return whether `given` is a tuple, and its tensors.

    Raises:
        TypeError: It is neither a tensor nor a tuple of tensors.
    """
    is_tuple = isinstance(given, tuple)
    tensors = given if isinstance(given, tuple) else (given,)
    for index, one in enumerate(tensors):
        if not isinstance(one, Variable):
            which = f"the value at index {index}" if is_tuple else f"the given {what}"
            raise TypeError(
                f"The {what} given to {function} must be either a Tensor or a tuple of "
                f"Tensors but {which} has type {type(one)}."
            )
    return is_tuple, tensors


def checked_vector(
    v: object,
    like: Sequence[Value],
    function: str,
    *,
    of_output: bool,
    is_tuple: bool,
) -> Sequence[Value] | None:
    """Return the vector `v`, which must have the shapes of `like`; None means a 1.

    Raises:
        RuntimeError: It has not, or is missing though there are several elements.
        TypeError: It is neither a tensor nor a tuple of tensors.
    """
    if v is None:
        if len(like) != 1 or like[0].numel() != 1:
            of_what = "" if of_output else "input to the "
            verb = "returns" if of_output else "is"
            raise RuntimeError(
                f"The vector v can only be None if the {of_what}user-provided function "
                f"{verb} a single Tensor with a single element."
            )
        return None
    _, vector = checked_tuple("v", v, function)
    if len(vector) != len(like):
        raise RuntimeError(
            f"v is a tuple of invalid length: should be {len(like)} but got "
            f"{len(vector)}."
            if is_tuple
            else "The given v should contain a single Tensor."
        )
    for index, (one, other) in enumerate(zip(vector, like, strict=True)):
        if one.shape != other.shape:
            entry = f"Entry {index} in " if is_tuple else ""
            raise RuntimeError(
                f"{entry}v has invalid size: should be {other.shape} but got "
                f"{one.shape}."
            )
    return vector


def single_scalar(result: object, function: str, *, strict: bool) -> tuple[Value, ...]:
    """Return a tuple of the only tensor, of a single element, of a result.

    Raises:
        RuntimeError: The function returned something else.
        TypeError: The function returned no tensor.
    """
    is_tuple, tensors = checked_tuple(
        "outputs of the user-provided function", result, function
    )
    refuse_cut(tensors, "outputs", strict=strict)
    if is_tuple:
        raise RuntimeError(
            f"The function given to {function} should return a single Tensor"
        )
    if tensors[0].numel() != 1:
        raise RuntimeError(
            f"The Tensor returned by the function given to {function} should contain a "
            f"single element"
        )
    return tensors


def refuse_cut(tensors: Sequence[Value], kind: Kind, *, strict: bool) -> None:
    """Raise if `strict` and one of `tensors` is cut off from the inputs.

    Raises:
        RuntimeError: One is.
    """
    if not strict:
        return
    for index, one in enumerate(tensors):
        if one is None:
            raise RuntimeError(_IS_INDEPENDENT["back"].format(index))
        if not one.requires_grad:
            raise RuntimeError(_IS_CUT[kind].format(index))


def filled(
    gradients: Sequence[Value],
    like: Sequence[Value],
    stage: Stage,
    *,
    strict: bool,
    create_graph: bool,
) -> tuple[Value, ...]:
    """Return `gradients` with zeros in place of None.

    Raises:
        RuntimeError: `strict`, and there is something to fill in, or a gradient that
            is to be differentiated does not depend on the inputs.
    """
    for index, gradient in enumerate(gradients):
        if gradient is None and strict:
            raise RuntimeError(_IS_INDEPENDENT[stage].format(index))
        if strict and create_graph and not gradient.requires_grad:
            what = "hessian" if "double" in stage else "jacobian"
            raise RuntimeError(
                f"The {what} of the user-provided function is independent of input "
                f"{index}. This is not allowed in strict mode when create_graph=True."
            )
    return tuple(
        zeros_like(other) if gradient is None else gradient
        for gradient, other in zip(gradients, like, strict=True)
    )
