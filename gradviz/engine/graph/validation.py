"""Validation of gradients: converts them to the expected form, or raises.

A gradient may be larger than expected (broadcasting in the forward pass): it is summed.
It may have another dtype: it is cast. Anything else is an error, in PyTorch's words.
"""

from collections.abc import Sequence

from gradviz.backends.base import copy_to, device_of, only_device
from gradviz.backends.cpu import sum_along
from gradviz.engine.graph.node import Edge, InputMetadata, Node
from gradviz.engine.graph.protocols import Gradient, name_of


def validate_outputs(
    edges: Sequence[Edge],
    gradients: Sequence[Gradient],
    function: Node | None = None,
) -> Sequence[Gradient]:
    """Check gradients against the inputs they go to.

    Args:
        edges: Destination of each gradient.
        gradients: Returned by a node, or given by the caller for the roots.
        function: The node that returned them; None for those of the caller.

    Returns:
        `gradients`, or a list of them with some reduced, cast or moved.

    Raises:
        RuntimeError: Wrong number, shape, dtype or device.
        TypeError: `gradients` is not a sequence.

    Source: torch/csrc/autograd/engine.cpp, validate_outputs (V1-V8).
    """
    if type(gradients) is not tuple and not isinstance(gradients, (tuple, list)):
        raise TypeError(
            _message(
                function,
                f"invalid result: expected a tuple or list with one gradient for each "
                f"of its {len(edges)} next_edges, but got {type(gradients).__name__}",
            )
        )
    if len(gradients) != len(edges):
        raise RuntimeError(
            _message(
                function,
                f"invalid number of gradients - expected {len(edges)}, "
                f"but got {len(gradients)}",
            )
        )
    changed: list[Gradient] | None = None
    index = -1
    for edge in edges:
        index += 1  # when compiled: index
        node = edge.node
        gradient = gradients[index]
        if gradient is None or node is None:
            continue
        metadata = node.input_metadata[edge.input_nr]
        if metadata is None:
            continue
        # Nearly always there is nothing to do, so detect that first, and fast:
        # `only_device` is the first step of `device_of`, 40 ns sooner.
        dtype = metadata.dtype
        try:
            if (
                gradient.shape == metadata.shape
                and (gradient.dtype is dtype or gradient.dtype == dtype)
                and (only_device(type(gradient)) or device_of(gradient))
                is metadata.device
            ):
                continue
        except AttributeError:
            pass  # not an array: `_conform` says so
        if changed is None:
            changed = list(gradients)
        changed[index] = _conform(gradient, metadata, index, function)
    return gradients if changed is None else changed


def _conform(
    gradient: Gradient,
    metadata: InputMetadata,
    index: int,
    function: Node | None,
) -> Gradient:
    """Reduce, cast and move `gradient`, or raise an error that says why not."""
    if not hasattr(gradient, "shape") or not hasattr(gradient, "dtype"):
        raise TypeError(
            _message(
                function,
                f"invalid gradient at index {index} - expected an array of shape "
                f"{list(metadata.shape)} but got {type(gradient).__name__}",
            )
        )
    if gradient.shape != metadata.shape:
        if not is_expandable_to(metadata.shape, gradient.shape):
            raise RuntimeError(
                _message(
                    function,
                    f"invalid gradient at index {index} - got "
                    f"{list(gradient.shape)} but expected shape compatible with "
                    f"{list(metadata.shape)}",
                )
            )
        gradient = sum_to(gradient, metadata.shape)
    gradient = _cast(gradient, metadata, function)
    device = device_of(gradient)
    if device is not metadata.device:
        if gradient.shape != ():
            raise RuntimeError(
                _message(
                    function,
                    f"invalid gradient at index {index} - expected device "
                    f"{metadata.device} but got {device}",
                )
            )
        gradient = copy_to(gradient, metadata.device)
    return gradient


def _message(function: Node | None, text: str) -> str:
    return (
        text if function is None else f"Function {name_of(function)} returned an {text}"
    )


def _cast(
    gradient: Gradient, metadata: InputMetadata, function: Node | None
) -> Gradient:
    if metadata.dtype is None or gradient.dtype == metadata.dtype:
        return gradient
    if _is_complex(gradient.dtype) and not _is_complex(metadata.dtype):
        if function is not None and function.cuts_imaginary:
            return gradient.real.astype(metadata.dtype)
        raise RuntimeError(
            "Expected isFloatingType(grad.scalar_type()) || "
            "(input_is_complex == grad_is_complex) to be true, but got false.  "
            "(Could this error message be improved?  If so, please report an "
            "enhancement request to PyTorch.)"
        )
    return gradient.astype(metadata.dtype)


def _is_complex(dtype: object) -> bool:
    return getattr(dtype, "kind", None) == "c"


def is_expandable_to(shape: tuple[int, ...], desired: tuple[int, ...]) -> bool:
    """Return whether broadcasting turns `shape` into `desired`."""
    if len(shape) > len(desired):
        return False
    tail = desired[len(desired) - len(shape) :]
    return tail == shape or all(
        size in (1, wanted) for size, wanted in zip(shape, tail, strict=True)
    )


def sum_to(gradient: Gradient, shape: tuple[int, ...]) -> Gradient:
    """Sum `gradient` over the axes that broadcasting from `shape` added or widened."""
    own = gradient.shape
    num_added = len(own) - len(shape)
    if own[num_added:] == shape and only_device(type(gradient)):
        # Every bias comes here. The general code takes 2 µs longer for a raw array; for
        # a tensor's graph PyTorch's two nodes are expected.
        return sum_along(gradient, 0 if num_added == 1 else tuple(range(num_added)))
    axes = tuple(range(num_added)) + tuple(
        [
            axis + num_added
            for axis, size in enumerate(shape)
            if size == 1 and own[axis + num_added] != 1
        ]
    )
    summed = gradient.sum(axis=axes, keepdims=True)
    return summed.reshape(shape) if num_added else summed
