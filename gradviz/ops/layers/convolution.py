"""Convolutions over one, two or three dimensions, and their transposes.

Note [Convolution as products of matrices]
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
A convolution is a form that is linear in three arrays: the input x, the weight w, and a
gradient y of the shape of the output. Leave one of them out, and there is a kernel
that computes what belongs there from the other two:

    ======================  =========================================================
    `_outputs(x, w)`        w times the patches of x as columns ("im2col")
    `_inputs(w, y)`         w times y: columns, added up where patches lie ("col2im")
    `_weights(x, y)`        the columns of x times y
    ======================  =========================================================

Each is the derivative of the others, and so the three give gradients of any order; a
transposed convolution is `_inputs` as a forward. All work is in `numpy.matmul`, and in
copies and sums whose inner loops are long.

Patches are taken along all dimensions but the first: of an image, along its rows. For
each position in the kernel along the first, what it meets is then a view, which BLAS
takes as it is; there is a product for each, and `_outputs` and `_inputs` sum them up.
So columns take three times the memory of the input, not nine times, for a kernel of
3 x 3. Where that does not pay, a dimension of one place is put before the others, and
patches are taken along all of these: where views would be no matrices, or where it
takes longer to sum outputs than to copy columns. A batch is worked off in parts whose
columns stay in the cache.
"""

from collections.abc import Iterator, Sequence
from math import prod
from typing import Final, NamedTuple

import numpy as np

from gradviz.backends.arrays.wrapped_array import in_one_kernel
from gradviz.backends.base import Array
from gradviz.engine.graph.protocols import Gradient
from gradviz.ops.conventions.dimensions import INTEGERS, Lengths, Shape
from gradviz.ops.conventions.dtype_names import cpp_name, scalar_type_name
from gradviz.ops.conventions.memory_layout import as_images, in_c_order
from gradviz.ops.conventions.refusal import check_tensors
from gradviz.ops.dispatch.differentiable import differentiable
from gradviz.ops.dispatch.public import names
from gradviz.ops.layers.patch_columns import (
    Geometry,
    add_at,
    at,
    columns_of,
    put_at,
    sum_columns,
)
from gradviz.ops.reductions.reduction import sum as sum_of
from gradviz.ops.reductions.row_sums import summed
from gradviz.ops.shapes.broadcasting import broadcast_to
from gradviz.ops.shapes.complex_parts import conj
from gradviz.ops.shapes.shape import reshape
from gradviz.ops.shapes.unit_dimensions import squeeze, unsqueeze
from gradviz.ops.variables.variable import Value, Variable, raw

#: Name of `_inputs` on a device.
_BACK_TO_INPUT: Final = "convolution_backward_input"

# --- kernels: see Note [Convolution as products of matrices] ------------------------


def _outputs(
    x: Array, weight: Array, geometry: Geometry, outputs: Shape | None = None
) -> Array:
    dtype, x, weight = x.dtype, _widened(x), _widened(weight)
    if outputs is None:
        outputs = geometry.output_lengths(x.shape[2:], weight.shape[2:])
    shape = (len(x), len(weight), *outputs)
    target = result = np.empty_like(x, shape=shape, order="C")
    rows = prod(weight.shape[1:]) // weight.shape[2] * geometry.groups
    if _takes_copies(geometry, outputs) or rows < len(weight):
        x, weight, target = x[:, :, None], weight[:, :, None], result[:, :, None]
        geometry, outputs = geometry.with_place(), (1, *outputs)
        rows = prod(weight.shape[1:]) * geometry.groups
    spatial, kernel = len(outputs), weight.shape[2:]
    meetings = geometry.meetings(0, kernel[0], x.shape[2], outputs[0])
    matrices = _by_position(weight, geometry.groups)
    for part in _parts(len(x), rows, outputs):
        sums, put = part.of(target), put_at
        columns = columns_of(part.of(x), kernel, geometry, outputs, 1)
        for i, met in enumerate(meetings):
            right = at(columns, -spatial, met.inputs)
            right = _as_matrices(right, geometry.groups, spatial)
            put(sums, -spatial, met.outputs, _multiplied(matrices[i], right))
            put = add_at
    return result.astype(dtype, copy=False)


def _inputs(weight: Array, y: Array, lengths: Shape, geometry: Geometry) -> Array:
    dtype, weight, y = y.dtype, _widened(weight), _widened(y)
    shape = (len(y), geometry.groups * weight.shape[1], *lengths)
    target = result = np.empty_like(y, shape=shape, order="C")
    if _is_small(y.shape[2:]):
        y, weight, target = y[:, :, None], weight[:, :, None], result[:, :, None]
        geometry, lengths = geometry.with_place(), (1, *lengths)
    spatial, kernel, outputs = len(lengths), weight.shape[2:], y.shape[2:]
    meetings = geometry.meetings(0, kernel[0], lengths[0], outputs[0])
    matrices = np.swapaxes(_by_position(weight, geometry.groups), 2, 3)
    rows = prod(matrices.shape[1:3])
    for part in _parts(len(y), rows, outputs):
        sums, grads, put = part.of(target), part.of(y), put_at
        columns = sums
        if spatial > 1:
            shape = (*sums.shape[:2], *kernel[1:], *sums.shape[2:4], *outputs[1:])
            columns = np.empty_like(y, shape=shape, order="C")
        for i, met in enumerate(meetings):
            right = at(grads, -spatial, met.outputs)
            right = _as_matrices(right, geometry.groups, spatial)
            put(columns, -spatial, met.inputs, _multiplied(matrices[i], right))
            put = add_at
        sum_columns(columns, lengths, geometry, 1, out=sums)
    return result.astype(dtype, copy=False)


def _weights(x: Array, y: Array, kernel: Shape, geometry: Geometry) -> Array:
    dtype, x, y = x.dtype, _widened(x), _widened(y)
    groups, shape = geometry.groups, (y.shape[1], x.shape[1] // geometry.groups)
    size = kernel
    if _takes_copies(geometry, y.shape[2:]):
        x, y, size = x[:, :, None], y[:, :, None], (1, *kernel)
        geometry = geometry.with_place()
    spatial, outputs = len(size), y.shape[2:]
    meetings = geometry.meetings(0, size[0], x.shape[2], outputs[0])
    rows, per_group = shape[1] * prod(size[1:]), shape[0] // groups
    # The transpose, for BLAS is faster where what has more rows comes first.
    sums = np.zeros_like(y, shape=(size[0], groups, rows, per_group), order="C")
    for part in _parts(len(y), groups * rows, outputs):
        columns = columns_of(part.of(x), size, geometry, outputs, 1)
        grads = part.of(y)
        for i, met in enumerate(meetings):
            left = _as_matrices(at(columns, -spatial, met.inputs), groups, spatial)
            right = _as_matrices(at(grads, -spatial, met.outputs), groups, spatial)
            sums[i] += np.sum(np.matmul(left, np.swapaxes(right, 2, 3)), axis=0)
    sums = sums.reshape((size[0], groups, shape[1], prod(size[1:]), per_group))
    result = np.transpose(sums, (1, 4, 2, 0, 3)).reshape((*shape, *kernel))
    return in_c_order(result).astype(dtype, copy=False)


def _takes_copies(geometry: Geometry, outputs: Shape) -> bool:
    """Return whether a product needs copies of patches of the first dimension."""
    return geometry.stride[0] != 1 or _is_small(outputs)


def _is_small(outputs: Shape) -> bool:
    """Return whether a sample is too small for matrices of its own; see `_Part`."""
    return prod(outputs) < _MANY


class _Part(NamedTuple):
    """Samples that are worked off together.

    Attributes:
        samples: Slice of the batch.
        beside: True if a matrix has them all, one beside the other. Where images are
            small, a product of matrices for each takes several times as long.
    """

    samples: slice
    beside: bool

    def of(self, batch: Array) -> Array:
        """A view of shape ``(N, C, 1, *lengths)``, or ``(1, C, N, *lengths)``."""
        part = batch[self.samples]
        return np.swapaxes(part, 0, 1)[None] if self.beside else part[:, :, None]


#: Number of elements in the columns of a part of a batch: 2 MB in single precision.
_PART: Final = 1 << 19

#: From so many outputs on, a sample has matrices of its own.
_MANY: Final = 128


def _parts(batch: int, rows: int, outputs: Shape) -> Iterator[_Part]:
    """A batch cut into parts, given how many rows its columns have."""
    count = max(1, _PART // max(rows * prod(outputs), 1))
    for start in range(0, batch, count):
        yield _Part(slice(start, start + count), _is_small(outputs))


def _by_position(weight: Array, groups: int) -> Array:
    """For each position along the first dimension, and each group, a matrix."""
    outputs, channels, size = weight.shape[:3]
    shape = (groups, outputs // groups, channels, size, prod(weight.shape[3:]))
    rows = np.moveaxis(np.reshape(weight, shape), 3, 0)
    return np.reshape(rows, (*rows.shape[:3], shape[2] * shape[4]))


def _as_matrices(x: Array, groups: int, spatial: int) -> Array:
    """Return matrices with a column for each sample and place of `x`."""
    cut = x.ndim - spatial - 1
    rows, columns = prod(x.shape[1:cut]) // groups, prod(x.shape[cut:])
    return x.reshape((len(x), groups, rows, columns))


def _multiplied(left: Array, right: Array) -> Array:
    """The product of matrices, which may be of one column and one row."""
    return left * right if left.shape[-1] == 1 else np.matmul(left, right)


def _widened(x: Array) -> Array:
    """Half precision as single precision: there is no BLAS for it."""
    return x.astype(np.float32) if x.dtype == np.float16 else x


# --- nodes --------------------------------------------------------------------------


@differentiable(
    "ConvolutionBackward0",
    joint=lambda wanted, grad, x, weight, geometry: _gradients(
        grad, x, weight, geometry, False, wanted
    ),
    x=lambda grad, weight, x_shape, geometry: _to_input(
        conj(weight), grad, x_shape[2:], geometry
    ),
    weight=lambda grad, x, weight_shape, geometry: _to_weight(
        conj(x), grad, weight_shape[2:], geometry
    ),
    bias=lambda grad: _bias_gradient(grad),
)
def _convolution(x: Array, weight: Array, bias: Array, geometry: Geometry) -> Array:
    outputs = in_one_kernel("convolution", _outputs, x, weight, geometry)
    return as_images(_with_bias(outputs, bias), x)


@differentiable(
    "ConvolutionBackward0",
    joint=lambda wanted, grad, x, weight, geometry: _gradients(
        grad, x, weight, geometry, True, wanted
    ),
    x=lambda grad, weight, x_shape, geometry: _to_output(
        grad, conj(weight), x_shape[2:], geometry
    ),
    weight=lambda grad, x, weight_shape, geometry: _to_weight(
        grad, conj(x), weight_shape[2:], geometry
    ),
    bias=lambda grad: _bias_gradient(grad),
)
def _transposed_convolution(
    x: Array, weight: Array, bias: Array, lengths: Shape, geometry: Geometry
) -> Array:
    outputs = in_one_kernel(_BACK_TO_INPUT, _inputs, weight, x, lengths, geometry)
    return as_images(_with_bias(outputs, bias), x)


# The three kernels as ops, each differentiable by way of the others. What is linear in
# `grads` below is computed by them.


@differentiable(
    "ConvolutionBackward0",
    x=lambda grad, weight, x_shape, geometry: _to_input(
        conj(weight), grad, x_shape[2:], geometry
    ),
    weight=lambda grad, x, weight_shape, geometry: _to_weight(
        conj(x), grad, weight_shape[2:], geometry
    ),
)
def _to_output(x: Array, weight: Array, outputs: Shape, geometry: Geometry) -> Array:
    return in_one_kernel("convolution", _outputs, x, weight, geometry, outputs)


@differentiable(
    "ConvolutionBackward0",
    weight=lambda grad, y, weight_shape, geometry: _to_weight(
        grad, conj(y), weight_shape[2:], geometry
    ),
    y=lambda grad, weight, y_shape, geometry: _to_output(
        grad, conj(weight), y_shape[2:], geometry
    ),
)
def _to_input(weight: Array, y: Array, lengths: Shape, geometry: Geometry) -> Array:
    gradient = in_one_kernel(_BACK_TO_INPUT, _inputs, weight, y, lengths, geometry)
    return in_c_order(gradient)


@differentiable(
    "ConvolutionBackward0",
    x=lambda grad, y, x_shape, geometry: _to_input(
        grad, conj(y), x_shape[2:], geometry
    ),
    y=lambda grad, x, y_shape, geometry: _to_output(
        conj(x), grad, y_shape[2:], geometry
    ),
)
def _to_weight(x: Array, y: Array, kernel: Shape, geometry: Geometry) -> Array:
    return in_one_kernel(
        "convolution_backward_weight", _weights, x, y, kernel, geometry
    )


# --- all gradients of a convolution as one op, as in PyTorch ------------------------


@differentiable(
    "ConvolutionBackwardBackward0",
    results=("of_x", "of_weight", "of_bias"),
    grad=lambda grads, x, weight, grad_shape, geometry, transposed: _grad_gradient(
        grads, x, weight, grad_shape[2:], geometry, transposed
    ),
    x=lambda grads, grad, x_shape, geometry, transposed: (
        None
        if grads[1] is None
        else _to_output(grad, conj(grads[1]), x_shape[2:], geometry)
        if transposed
        else _to_input(conj(grads[1]), grad, x_shape[2:], geometry)
    ),
    weight=lambda grads, grad, weight_shape, geometry, transposed: (
        None
        if grads[0] is None
        else _to_weight(grad, conj(grads[0]), weight_shape[2:], geometry)
        if transposed
        else _to_weight(conj(grads[0]), grad, weight_shape[2:], geometry)
    ),
)
def _gradients(
    grad: Array,
    x: Array,
    weight: Array,
    geometry: Geometry,
    transposed: bool,
    wanted: Sequence[bool],
) -> tuple[Array, Array, Array]:
    """Return the gradients of input, weight and bias; empty if not wanted.

    Source: aten/src/ATen/native/Convolution.cpp, convolution_backward.
    """
    lengths, kernel = x.shape[2:], weight.shape[2:]
    none = np.zeros_like(grad, shape=(0,))
    of_x = of_weight = none
    if wanted[0] and transposed:
        of_x = _to_output(grad, conj(weight), lengths, geometry)
    elif wanted[0]:
        of_x = _to_input(conj(weight), grad, lengths, geometry)
    if wanted[1]:
        pair = (grad, conj(x)) if transposed else (conj(x), grad)
        of_weight = _to_weight(*pair, kernel, geometry)
    return of_x, of_weight, _bias_gradient(grad) if wanted[2] else none


def _grad_gradient(
    grads: Sequence[Gradient],
    x: Gradient,
    weight: Gradient,
    lengths: Shape,
    geometry: Geometry,
    transposed: bool,
) -> Gradient:
    """The gradient of the gradient that `_gradients` were computed from.

    Source: aten/src/ATen/native/Convolution.cpp, _convolution_double_backward.
    """
    of_x, of_weight, of_bias = grads
    total = None
    for left, right in ((of_x, weight), (x, of_weight)):
        if left is not None and right is not None:
            pair = (right, left) if transposed else (left, right)
            part = (_to_input if transposed else _to_output)(*pair, lengths, geometry)
            total = part if total is None else total + part
    if of_bias is not None:
        shape = (1, -1, *(1,) * len(lengths))
        level = broadcast_to(
            reshape(of_bias, shape), (len(raw(x)), raw(of_bias).size, *lengths)
        )
        total = level if total is None else total + level
    return total


@differentiable(
    "ConstantPadNdBackward0", x=lambda grad, x_shape: _shorter(grad, x_shape)
)
def _longer(x: Array, more: Shape) -> Array:
    """`x` with zeros after the end of some spatial dimensions."""
    return np.pad(x, ((0, 0), (0, 0), *((0, size) for size in more)))


def _shorter(x: Value, shape: Shape) -> Value:
    return x[tuple(slice(length) for length in shape)]


def _bias_gradient(grad: Value) -> Value:
    axes = (0, *range(2, raw(grad).ndim))
    if isinstance(grad, Variable):
        return sum_of(grad, axes)
    return summed(grad, axes).reshape(-1)


def _with_bias(result: Array, bias: Array) -> Array:
    if bias is not None:
        result += np.reshape(bias, (-1, *(1,) * (result.ndim - 2)))
    return result


# --- what users call ----------------------------------------------------------------


def conv1d(
    input: Value,
    weight: Value,
    bias: Value = None,
    stride: Lengths = 1,
    padding: Lengths | str = 0,
    dilation: Lengths = 1,
    groups: int = 1,
) -> Value:
    """Each output: a kernel's weighted sum over a patch of a sequence.

    Args:
        input: Shape ``(N, C, L)`` or ``(C, L)``.
        weight: Shape ``(channels of the output, C / groups, kernel length)``.
        bias: Shape ``(channels of the output,)``.
        stride: Steps between neighboring outputs.
        padding: Zeros at both ends; ``"valid"`` is none, with ``"same"`` the output is
            as long as the input.
        dilation: Steps between neighboring elements of the kernel.
        groups: Into how many parts the channels are divided that do not mix.

    Raises:
        RuntimeError: Shapes, dtypes or settings do not fit.
    """
    return _convolved(1, input, weight, bias, stride, padding, dilation, groups)


def conv2d(
    input: Value,
    weight: Value,
    bias: Value = None,
    stride: Lengths = 1,
    padding: Lengths | str = 0,
    dilation: Lengths = 1,
    groups: int = 1,
) -> Value:
    """Each output: a kernel's weighted sum over a patch of an image; see `conv1d`.

    `input` has shape ``(N, C, H, W)`` or ``(C, H, W)``, `weight` four dimensions.
    """
    return _convolved(2, input, weight, bias, stride, padding, dilation, groups)


def conv3d(
    input: Value,
    weight: Value,
    bias: Value = None,
    stride: Lengths = 1,
    padding: Lengths | str = 0,
    dilation: Lengths = 1,
    groups: int = 1,
) -> Value:
    """Each output: a kernel's weighted sum over a patch of a volume; see `conv1d`.

    `input` has shape ``(N, C, D, H, W)`` or ``(C, D, H, W)``, `weight` five dimensions.
    """
    return _convolved(3, input, weight, bias, stride, padding, dilation, groups)


def conv_transpose1d(
    input: Value,
    weight: Value,
    bias: Value = None,
    stride: Lengths = 1,
    padding: Lengths = 0,
    output_padding: Lengths = 0,
    groups: int = 1,
    dilation: Lengths = 1,
) -> Value:
    """The transpose of the linear map that is `conv1d`: it lengthens a sequence.

    Args:
        input: Shape ``(N, C, L)`` or ``(C, L)``.
        weight: Shape ``(C, channels of the output / groups, kernel length)``.
        bias: Shape ``(channels of the output,)``.
        stride: That of the convolution of which this is the transpose; so are
            `padding`, `dilation` and `groups`.
        padding: Number of elements that are cut off at both ends of the output.
        output_padding: Number of elements that are added at the end of the output.
        groups: See `conv1d`.
        dilation: See `conv1d`.

    Raises:
        RuntimeError: Shapes, dtypes or settings do not fit.
    """
    settings = _Settings(1, stride, padding, dilation, output_padding)
    return _transposed(input, weight, bias, settings, groups)


def conv_transpose2d(
    input: Value,
    weight: Value,
    bias: Value = None,
    stride: Lengths = 1,
    padding: Lengths = 0,
    output_padding: Lengths = 0,
    groups: int = 1,
    dilation: Lengths = 1,
) -> Value:
    """The transpose of the linear map that is `conv2d`; see `conv_transpose1d`."""
    settings = _Settings(2, stride, padding, dilation, output_padding)
    return _transposed(input, weight, bias, settings, groups)


def conv_transpose3d(
    input: Value,
    weight: Value,
    bias: Value = None,
    stride: Lengths = 1,
    padding: Lengths = 0,
    output_padding: Lengths = 0,
    groups: int = 1,
    dilation: Lengths = 1,
) -> Value:
    """The transpose of the linear map that is `conv3d`; see `conv_transpose1d`."""
    settings = _Settings(3, stride, padding, dilation, output_padding)
    return _transposed(input, weight, bias, settings, groups)


class _Settings(NamedTuple):
    """The user's settings, not yet checked."""

    spatial: int
    stride: Lengths
    padding: Lengths
    dilation: Lengths
    output_padding: Lengths = 0

    def geometry(self, groups: int) -> Geometry:
        """The settings as numbers for each dimension.

        Raises:
            RuntimeError: They are too many, too few or too small.
        """
        geometry = Geometry(
            self.for_each("stride"),
            self.for_each("padding"),
            self.for_each("dilation"),
            groups,
        )
        if min(geometry.dilation) < 0:
            raise RuntimeError("dilation should be greater than zero")
        if min(geometry.padding) < 0:
            raise RuntimeError("negative padding is not supported")
        for name, least in (
            ("stride", min(geometry.stride)),
            ("dilation", min(geometry.dilation)),
            ("groups", groups),
        ):
            if least <= 0:
                raise RuntimeError(f"non-positive {name} is not supported")
        return geometry

    def for_each(self, name: str) -> Shape:
        """The setting of this name, for each spatial dimension."""
        given = getattr(self, name)
        values = (given,) if isinstance(given, INTEGERS) else tuple(given)
        if len(values) == 1:
            return values * self.spatial
        if len(values) != self.spatial:
            raise RuntimeError(
                f"expected {name} to be a single integer value or a list of "
                f"{self.spatial} values to match the convolution dimensions, but got "
                f"{name}={[*values]}"
            )
        return values


def _convolved(
    spatial: int,
    x: Value,
    weight: Value,
    bias: Value,
    stride: Lengths,
    padding: Lengths | str,
    dilation: Lengths,
    groups: int,
) -> Value:
    """The convolution of a batch, or of a single input.

    Source: aten/src/ATen/native/Convolution.cpp, conv2d_symint.
    """
    name = f"conv{spatial}d"
    check_tensors(name, input=x, weight=weight)
    if raw(x).ndim == spatial + 1:
        arguments = (weight, bias, stride, padding, dilation, groups)
        return squeeze(_convolved(spatial, unsqueeze(x, 0), *arguments), 0)
    _check_dimensions(name, spatial, raw(x).shape)
    if isinstance(padding, str):
        if raw(weight).ndim != spatial + 2:
            raise _unlike_weight(raw(x).shape, raw(weight).shape, space="")
        settings = _Settings(spatial, stride, 0, dilation)
        x, padding = _named_padding(settings, x, raw(weight).shape[2:], padding)
    if raw(weight).ndim < 3:
        raise RuntimeError("weight should have at least three dimensions")
    geometry = _Settings(spatial, stride, padding, dilation).geometry(groups)
    _check_weight(raw(x), raw(weight), geometry)
    _check_bias(raw(x), raw(weight), raw(bias), raw(weight).shape[0], transposed=False)
    _check_size(raw(x).shape, raw(weight).shape, geometry)
    return _convolution(x, weight, bias, geometry)


def _transposed(
    x: Value, weight: Value, bias: Value, settings: _Settings, groups: int
) -> Value:
    spatial = settings.spatial
    name = f"conv_transpose{spatial}d"
    if raw(x).ndim == spatial + 1:
        return squeeze(_transposed(unsqueeze(x, 0), weight, bias, settings, groups), 0)
    _check_dimensions(name, spatial, raw(x).shape)
    geometry = settings.geometry(groups)
    extra = settings.for_each("output_padding")
    if min(extra) < 0:
        raise RuntimeError("negative output_padding is not supported")
    _check_groups(raw(weight).shape, groups)
    _check_channels(1, raw(x).shape, raw(weight).shape, raw(weight).shape[0], True)
    channels = raw(weight).shape[1] * groups
    _check_bias(raw(x), raw(weight), raw(bias), channels, transposed=True)
    _check_output_padding(extra, geometry)
    lengths = tuple(
        (length - 1) * step - 2 * padding + dilation * (size - 1) + more + 1
        for length, size, step, padding, dilation, more in zip(
            raw(x).shape[2:],
            raw(weight).shape[2:],
            geometry.stride,
            geometry.padding,
            geometry.dilation,
            extra,
            strict=True,
        )
    )
    if min(lengths) < 1:
        raise RuntimeError(
            f"Given input size per channel: ({_by(raw(x).shape[2:])}). Calculated "
            f"output size per channel: ({_by(lengths)}). Output size is too small"
        )
    return _transposed_convolution(x, weight, bias, lengths, geometry)


def _named_padding(
    settings: _Settings, x: Value, kernel: Shape, padding: str
) -> tuple[Value, Shape]:
    """Resolve ``"same"`` and ``"valid"``; pad `x` if its two ends differ."""
    none = (0,) * settings.spatial
    if padding == "valid":
        return x, none
    if padding != "same":
        raise RuntimeError(f"Invalid padding string: '{padding}'")
    if any(step != 1 for step in settings.for_each("stride")):
        raise RuntimeError("padding='same' is not supported for strided convolutions")
    dilations = settings.for_each("dilation")
    totals = [
        dilation * (size - 1) for size, dilation in zip(kernel, dilations, strict=True)
    ]
    if any(total % 2 for total in totals):
        x = _longer(x, tuple(total % 2 for total in totals))
    return x, tuple(total // 2 for total in totals)


# --- what is refused ----------------------------------------------------------------


def _check_dimensions(name: str, spatial: int, shape: Shape) -> None:
    if len(shape) != spatial + 2:
        raise RuntimeError(
            f"Expected {spatial + 1}D (unbatched) or {spatial + 2}D (batched) input to "
            f"{name}, but got input of size: {[*shape]}"
        )


def _check_weight(x: Array, weight: Array, geometry: Geometry) -> None:
    if weight.ndim != x.ndim:
        raise _unlike_weight(x.shape, weight.shape)
    if weight.shape[0] < geometry.groups:
        raise RuntimeError(
            f"Given groups={geometry.groups}, expected weight to be at least "
            f"{geometry.groups} at dimension 0, but got weight of size "
            f"{[*weight.shape]} instead"
        )
    _check_groups(weight.shape, geometry.groups)
    channels = weight.shape[1] * geometry.groups
    _check_channels(geometry.groups, x.shape, weight.shape, channels, False)


def _unlike_weight(shape: Shape, weight: Shape, space: str = " ") -> RuntimeError:
    return RuntimeError(
        f"Expected {len(weight)}-dimensional input for {len(weight)}-dimensional "
        f"weight{space}{[*weight]}, but got {len(shape)}-dimensional input of size "
        f"{[*shape]} instead"
    )


def _check_groups(weight: Shape, groups: int) -> None:
    if weight[0] % groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be divisible by {groups} at "
            f"dimension 0, but got weight of size [{[*weight]}] instead"
        )


def _check_channels(
    groups: int, shape: Shape, weight: Shape, channels: int, transposed: bool
) -> None:
    if shape[1] != channels:
        given = "transposed=1" if transposed else f"groups={groups}"
        raise RuntimeError(
            f"Given {given}, weight of size {[*weight]}, expected input{[*shape]} to "
            f"have {channels} channels, but got {shape[1]} channels instead"
        )


def _check_bias(
    x: Array, weight: Array, bias: Array | None, channels: int, *, transposed: bool
) -> None:
    if bias is not None:
        if bias.shape != (channels,):
            given = "Given transposed=1, weight" if transposed else "Given weight"
            raise RuntimeError(
                f"{given} of size {[*weight.shape]}, expected bias to be 1-dimensional "
                f"with {channels} elements, but got bias of size {[*bias.shape]} "
                f"instead"
            )
        if bias.dtype != x.dtype:
            raise RuntimeError(
                f"Input type ({cpp_name(x.dtype)}) and bias type "
                f"({cpp_name(bias.dtype)}) should be the same"
            )
    if weight.dtype != x.dtype:
        raise RuntimeError(
            f"expected scalar type {scalar_type_name(x.dtype)} "
            f"but found {scalar_type_name(weight.dtype)}"
        )


def _check_size(shape: Shape, weight: Shape, geometry: Geometry) -> None:
    lengths, kernel = shape[2:], weight[2:]
    if min(geometry.output_lengths(lengths, kernel)) < 1:
        padded = [
            length + 2 * padding
            for length, padding in zip(lengths, geometry.padding, strict=True)
        ]
        extents = [
            dilation * (size - 1) + 1
            for size, dilation in zip(kernel, geometry.dilation, strict=True)
        ]
        raise RuntimeError(
            f"Calculated padded input size per channel: ({_by(padded)}). Kernel size: "
            f"({_by(extents)}). Kernel size can't be greater than actual input size"
        )


def _check_output_padding(extra: Shape, geometry: Geometry) -> None:
    steps = zip(extra, geometry.stride, geometry.dilation, strict=True)
    if all(more < max(stride, dilation) for more, stride, dilation in steps):
        return
    axes = ("depth", "height", "width")
    words = [
        f"{name}_{axis}: {size}"
        for name, sizes, missing in (
            ("output_padding", extra, 0),
            ("stride", geometry.stride, 1),
            ("dilation", geometry.dilation, 1),
        )
        for axis, size in zip(
            axes if len(sizes) == 3 else axes[1:],
            (missing,) * (2 - len(sizes)) + sizes,
            strict=True,
        )
    ]
    raise RuntimeError(
        "output padding must be smaller than either stride or dilation, but got "
        + " ".join(words)
    )


def _by(sizes: Sequence[int]) -> str:
    return " x ".join(map(str, sizes))


PUBLIC = [
    *names("gv.f F.f", conv1d, conv2d, conv3d, conv_transpose1d, conv_transpose2d),
    *names("gv.f F.f", conv_transpose3d),
]
