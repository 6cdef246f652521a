"""Views that a tensor becomes itself: ``x.t_()`` and its like.

No memory changes. The tensor sees its elements in another way from now on, and has the
place in the graph that the view would have. Other views of it must be made anew.
"""

import math
from collections.abc import Callable
from functools import cache, wraps
from typing import TypeVar

import numpy as np

from gradviz.backends.arrays.pinned_array import assign
from gradviz.ops.conventions.dimensions import Shape
from gradviz.ops.dispatch.differentiable import Op
from gradviz.ops.dispatch.in_place import check_changeable, count_change
from gradviz.ops.variables import inference
from gradviz.ops.variables.node_hooks import move
from gradviz.ops.variables.variable import Value, Variable
from gradviz.ops.variables.view import View

V = TypeVar("V", bound=Variable)


def resize(x: V, shape: Shape) -> V:
    """Give a tensor another shape, with its first elements in C order, and zeros.

    Fewer elements stay where they are; for more there is new memory.

    Raises:
        RuntimeError: It requires gradients, or was made in inference mode. In that
            mode both may be resized.
    """
    if x.requires_grad and not inference.is_on():
        raise RuntimeError("cannot resize variables that require grad")
    check_changeable(x)
    if x.array.shape == tuple(shape):
        return x
    flat = x.array.reshape(-1)
    size = math.prod(shape)
    if size > flat.size:
        flat = np.zeros_like(flat, shape=size)
        assign(flat, slice(x.array.size), x.array.reshape(-1))
    x.replace_array(flat[:size].reshape(shape))
    count_change(x)
    return x


@cache
def becoming(op: Op) -> Callable[..., Value]:
    """The form of a view op that makes its first argument the view, and returns it."""

    @wraps(op)
    def become(input: V, *args: Value, **kwargs: Value) -> V:
        x = input
        check_changeable(x)
        result: Variable = op(x, *args, **kwargs)
        x.replace_array(result.array)
        if result.edge is not None:
            move(x, result.edge)
        if isinstance(x.viewed, View) and isinstance(result.viewed, View):
            # A view that may not be changed stays so.
            result.viewed.creation = x.viewed.creation
            x.viewed = result.viewed
        count_change(x)
        return x

    return become
