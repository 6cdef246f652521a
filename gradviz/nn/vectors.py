"""Many parameters as one vector, and back."""

from collections.abc import Iterable

from gradviz.ops.shapes.joining import cat
from gradviz.tensors.tensor import Tensor


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """All elements of all parameters, one after the other; differentiable."""
    vector: Tensor = cat([one.reshape(-1) for one in parameters])
    return vector


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Give parameters the elements of a vector, as `parameters_to_vector` made it.

    Raises:
        TypeError: `vec` is no tensor.
    """
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected gradviz.Tensor, but got: {type(vec).__name__}")
    begin = 0
    for parameter in parameters:
        end = begin + parameter.numel()
        part = vec[begin:end].detach().reshape(parameter.shape)
        parameter.data = part
        begin = end
