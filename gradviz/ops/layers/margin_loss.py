"""Losses with a margin between similar and dissimilar pairs."""

from collections.abc import Callable

import numpy as np

from gradviz.ops.algebra.products import broadcast_batches
from gradviz.ops.conventions.dimensions import Shape
from gradviz.ops.conventions.promotion import python_number
from gradviz.ops.dispatch.public import names
from gradviz.ops.elementwise.arithmetic import add, div, mul, neg, sub, taken_from
from gradviz.ops.elementwise.scalar_arithmetic import minus, plus
from gradviz.ops.elementwise.selection import clamp_min, minimum, where
from gradviz.ops.elementwise.transcendental import sqrt
from gradviz.ops.layers.distance import pairwise_distance
from gradviz.ops.layers.loss_reduction import (
    Reduction,
    check_reduction,
    old_names,
    reduced,
)
from gradviz.ops.reductions.reduction import sum as sum_of
from gradviz.ops.variables.variable import Value, raw, variable


@old_names("size_average", "reduce", "reduction")
def hinge_embedding_loss(
    input: Value,
    target: Value,
    margin: float = 1.0,
    *,
    reduction: Reduction = "mean",
) -> Value:
    """Return distances of similar pairs, and shortfalls of the others.

    Args:
        input: Distances.
        target: 1 where a pair is alike, -1 where it is not.
        margin: The distance from which on it does not matter.
        reduction: The mean, the sum, or the loss of each pair.

    Raises:
        ValueError: There is no such reduction.
    """
    margin = python_number(margin)
    check_reduction(reduction)
    zeros = variable(np.zeros_like(raw(input)))
    broadcast_batches(raw(target).shape, raw(input).shape)
    missing = clamp_min(taken_from(input, margin), 0)
    unlike = where(variable(raw(target) != 1), missing, zeros)
    alike = where(variable(raw(target) != -1), input, zeros)
    return reduced(add(unlike, alike), reduction)


@old_names("size_average", "reduce", "reduction")
def margin_ranking_loss(
    input1: Value,
    input2: Value,
    target: Value,
    margin: float = 0,
    *,
    reduction: Reduction = "mean",
) -> Value:
    """Return the shortfall of the input that should rank higher.

    Args:
        input1: Scores.
        input2: Scores to compare them with.
        target: 1 where the first is to rank higher, -1 where the second.
        margin: Required difference.
        reduction: The mean, the sum, or the loss of each pair.

    Raises:
        ValueError: There is no such reduction.
        RuntimeError: The numbers of dimensions differ.
    """
    margin = python_number(margin)
    check_reduction(reduction)
    shapes = [raw(one).shape for one in (input1, input2, target)]
    if len(set(map(len, shapes))) > 1:
        sizes = [f"torch.Size({[*shape]})" for shape in shapes]
        raise RuntimeError(
            f"margin_ranking_loss : All input tensors should have same dimension but "
            f"got sizes: input1: {sizes[0]}, input2: {sizes[1]}, target: {sizes[2]} "
        )
    lacking = plus(mul(neg(target), sub(input1, input2)), margin)
    return reduced(clamp_min(lacking, 0), reduction)


@old_names("size_average", "reduce", "reduction")
def cosine_embedding_loss(
    input1: Value,
    input2: Value,
    target: Value,
    margin: float = 0,
    *,
    reduction: Reduction = "mean",
) -> Value:
    """Return the distance of similar vectors, and the closeness of others.

    Args:
        input1: Vectors, shape ``(N, D)`` or ``(D,)``.
        input2: Vectors of the same shape.
        target: 1 where a pair is similar, -1 where it is not; shape ``(N,)`` or ``()``.
        margin: Highest cosine of dissimilar vectors without a loss.
        reduction: The mean, the sum, or the loss of each pair.

    Raises:
        ValueError: There is no such reduction.
        RuntimeError: The shapes do not fit.

    Source: aten/src/ATen/native/Loss.cpp, cosine_embedding_loss.
    """
    margin = python_number(margin)
    check_reduction(reduction)
    _check_cosine(raw(input1).shape, raw(input2).shape, raw(target).shape)
    dim = raw(target).ndim
    products = sum_of(mul(input1, input2), dim)
    first = plus(sum_of(mul(input1, input1), dim), 1e-12)
    second = plus(sum_of(mul(input2, input2), dim), 1e-12)
    broadcast_batches(raw(target).shape, raw(first).shape)
    cosines = div(products, sqrt(mul(first, second)))
    zeros = variable(np.zeros_like(raw(cosines)))
    apart = taken_from(cosines, 1)
    together = clamp_min(minus(cosines, margin), 0)
    apart = where(variable(raw(target) == 1), apart, zeros)
    together = where(variable(raw(target) == -1), together, zeros)
    return reduced(add(apart, together), reduction)


@old_names("size_average", "reduce", "reduction")
def triplet_margin_loss(
    anchor: Value,
    positive: Value,
    negative: Value,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    *,
    reduction: Reduction = "mean",
) -> Value:
    """Return the amount by which similar vectors are not nearer than others.

    Args:
        anchor: Vectors, shape ``(N, D)`` or ``(D,)``.
        positive: Vectors similar to those of `anchor`.
        negative: Vectors that are not.
        margin: Required difference of the distances.
        p: The exponent of the norm of a difference.
        eps: Added to differences, so that no norm is 0.
        swap: Use the distance of `negative` from `positive` where it is smaller.
        reduction: The mean, the sum, or the loss of each triplet.

    Raises:
        ValueError: There is no such reduction, or `margin` is not positive.
        RuntimeError: The numbers of dimensions differ.

    Source: aten/src/ATen/native/Loss.cpp, triplet_margin_loss.
    """
    margin = python_number(margin)
    eps = python_number(eps)
    check_reduction(reduction)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    ndims = [raw(one).ndim for one in (anchor, positive, negative)]
    if len(set(ndims)) > 1:
        raise RuntimeError(
            f"The anchor, positive, and negative tensors are expected to have the same "
            f"number of dimensions, but got: anchor {ndims[0]}D, positive {ndims[1]}D, "
            f"and negative {ndims[2]}D inputs"
        )
    near = pairwise_distance(anchor, positive, p, eps)
    far = pairwise_distance(anchor, negative, p, eps)
    if swap:
        far = minimum(far, pairwise_distance(positive, negative, p, eps))
    return reduced(clamp_min(sub(plus(near, margin), far), 0), reduction)


def triplet_margin_with_distance_loss(
    anchor: Value,
    positive: Value,
    negative: Value,
    *,
    distance_function: Callable[[Value, Value], Value] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: Reduction = "mean",
) -> Value:
    """`triplet_margin_loss` with a distance of one's own.

    Raises:
        ValueError: There is no such reduction, or `margin` is not positive.

    Source: torch/nn/functional.py, triplet_margin_with_distance_loss.
    """
    check_reduction(reduction)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    distance = distance_function or pairwise_distance
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = minimum(far, distance(positive, negative))
    return reduced(clamp_min(sub(add(near, margin), far), 0), reduction)


def _check_cosine(first: Shape, second: Shape, target: Shape) -> None:
    """Source: aten/src/ATen/native/Loss.cpp, cosine_embedding_loss."""
    if len(target) > 1:
        raise RuntimeError(
            "0D or 1D target tensor expected, multi-target not supported"
        )
    ndim = len(target) + 1
    if len(first) != ndim or len(second) != ndim:
        raise RuntimeError(
            f"{len(target)}D target tensor expects {ndim}D input tensors, but found "
            f"inputs with sizes {[*first]} and {[*second]}."
        )


PUBLIC = [
    *names("F.f", cosine_embedding_loss, hinge_embedding_loss, margin_ranking_loss),
    *names("F.f", triplet_margin_loss, triplet_margin_with_distance_loss),
]
