"""The places that affine maps send an image to: grids for ``grid_sample``."""

from collections.abc import Sequence

import numpy as np

from gradviz.backends.base import Array, beside
from gradviz.engine.graph.protocols import Gradient
from gradviz.ops.algebra.products import matmul
from gradviz.ops.conventions.dimensions import Shape
from gradviz.ops.dispatch.differentiable import differentiable
from gradviz.ops.dispatch.public import names
from gradviz.ops.shapes.permutation import transpose
from gradviz.ops.shapes.shape import reshape
from gradviz.ops.variables.variable import Value, raw


@differentiable(
    "AffineGridGeneratorBackward0",
    theta=lambda grad, size, align_corners: _affine_slope(
        grad, size, _corners(size, align_corners, raw(grad))
    ),
)
def _affine_grid(theta: Array, size: Shape, align_corners: bool) -> Array:
    corners = _corners(size, align_corners, theta)
    places = np.matmul(corners, np.swapaxes(theta, 1, 2))
    return places.reshape(size[0], *size[2:], len(size) - 2)


def _affine_slope(grad: Gradient, size: Shape, corners: Array) -> Gradient:
    places = reshape(grad, (size[0], -1, len(size) - 2))
    return transpose(matmul(corners.T, places), 1, 2)


def _corners(size: Shape, align_corners: bool, like: Array) -> Array:
    """All places of the image as they are, each with a 1: shape ``(P, ndim + 1)``."""
    lines = []
    for length in reversed(size[2:]):
        line = np.linspace(-1, 1, length) if length > 1 else np.zeros(1)
        lines.append(line if align_corners else line * (length - 1) / length)
    mesh = np.meshgrid(*reversed(lines), indexing="ij")
    rows = [one.reshape(-1) for one in (*reversed(mesh), np.ones(size[2:]))]
    return beside(like, np.stack(rows, -1).astype(like.dtype))


def affine_grid(
    theta: Value, size: Sequence[int], align_corners: bool | None = None
) -> Value:
    """The grid for `grid_sample` that an affine map makes.

    Args:
        theta: The maps, shape ``(N, 2, 3)`` for images, ``(N, 3, 4)`` for volumes.
        size: Of the image that is to come out: ``(N, C, H, W)`` or
            ``(N, C, D, H, W)``.
        align_corners: As in `grid_sample`.

    Returns:
        Shape ``(N, H, W, 2)`` or ``(N, D, H, W, 3)``.

    Raises:
        ValueError: `theta` is not of floats, or the shapes do not fit.
        NotImplementedError: `size` is of neither kind.

    Source: torch/nn/functional.py and aten/src/ATen/native/AffineGridGenerator.cpp.
    """
    maps, size = raw(theta), tuple(size)
    if maps.dtype.kind != "f":
        name = np.dtype(maps.dtype).name
        raise ValueError(
            f"Expected theta to have floating point type, but got torch.{name}"
        )
    if len(size) not in (4, 5):
        raise NotImplementedError(
            f"affine_grid only supports 4D and 5D sizes, for 2D and 3D affine "
            f"transforms, respectively. Got size {tuple(size)}."
        )
    n = len(size) - 2
    if maps.ndim != 3 or maps.shape[1:] != (n, n + 1):
        raise ValueError(
            f"Expected a batch of {n}D affine matrices of shape Nx{n}x{n + 1} for size "
            f"{tuple(size)}. Got torch.Size({list(maps.shape)})."
        )
    if min(size) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {tuple(size)}")
    if len(maps) != size[0]:
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: "
            f"[{size[0]}, {n + 1}] but got: [{len(maps)}, {n + 1}]."
        )
    return _affine_grid(theta, size, bool(align_corners))


PUBLIC = [*names("F.f", affine_grid)]
