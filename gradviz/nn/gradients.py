"""Operations on the gradients of many parameters at once."""

from collections.abc import Iterable

from gradviz.autograd.grad_mode import no_grad
from gradviz.ops.reductions.norms import vector_norm
from gradviz.ops.shapes.joining import stack
from gradviz.tensors.creation.from_data import tensor
from gradviz.tensors.tensor import Tensor


def clear(parameters: Iterable[Tensor], *, set_to_none: bool) -> None:
    """Forget the gradients of parameters, or set them to 0 in place."""
    for parameter in parameters:
        grad = parameter.grad
        if grad is None:
            continue
        if set_to_none:
            parameter.grad = None
            continue
        if grad.requires_grad:  # it was made with create_graph
            grad = parameter.grad = grad.detach()
        with no_grad():
            grad.zero_()


def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scale all gradients down, in place, so that their norm is at most `max_norm`.

    Args:
        parameters: Parameters whose gradients are taken as one long vector.
        max_norm: The most that is left as it is.
        norm_type: Kind of norm: 2 is the Euclidean one, ``inf`` the largest element.
        error_if_nonfinite: True if a norm that is not a number is an error.
        foreach: Makes no difference.

    Returns:
        The norm as it was before.

    Raises:
        RuntimeError: The norm is not a number, if that is an error.

    Source: torch/nn/utils/clip_grad.py.
    """
    del foreach
    grads = _gradients(parameters)
    total = get_total_norm(grads, norm_type, error_if_nonfinite)
    with no_grad():
        # Multiplied with even if it is 1: nobody has to wait to see whether it is.
        factor = (max_norm / (total + 1e-6)).clamp(max=1.0)
        for grad in grads:
            grad.mul_(factor.to(grad.device))
    return total


def clip_grad_value_(
    parameters: Tensor | Iterable[Tensor],
    clip_value: float,
    foreach: bool | None = None,
) -> None:
    """Cut all elements of the gradients off, in place, at ``±clip_value``."""
    del foreach
    bound = float(clip_value)
    with no_grad():
        for grad in _gradients(parameters):
            grad.copy_(grad.clamp(-bound, bound))


def get_total_norm(
    tensors: Tensor | Iterable[Tensor],
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """The norm of several tensors, taken as one long vector, where the first one is.

    Raises:
        RuntimeError: The norm is not a number, if that is an error: to see it, the
            program waits for a device.

    Source: torch/nn/utils/clip_grad.py, _get_total_norm.
    """
    del foreach
    parts = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    norm_type = float(norm_type)
    if not parts:
        return tensor(0.0)
    with no_grad():
        norms = [vector_norm(one, norm_type).to(parts[0].device) for one in parts]
        total: Tensor = vector_norm(stack(norms), norm_type)
    if error_if_nonfinite and not total.isfinite():
        raise RuntimeError(
            f"The total norm of order {norm_type} for gradients from `parameters` is "
            f"non-finite, so it cannot be clipped. To disable this error and scale the "
            f"gradients by the non-finite norm anyway, set `error_if_nonfinite=False`"
        )
    return total


def _gradients(parameters: Tensor | Iterable[Tensor]) -> list[Tensor]:
    several = [parameters] if isinstance(parameters, Tensor) else parameters
    return [one.grad for one in several if one.grad is not None]
