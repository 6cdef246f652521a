"""Weights as a direction and a length, each of which is learned."""

from typing import Any, TypeVar

from gradviz.nn.module import Module
from gradviz.nn.parameter import Parameter
from gradviz.ops.layers.weight_norm import length_of
from gradviz.ops.layers.weight_norm import weight_norm as compute
from gradviz.tensors.tensor import Tensor

M = TypeVar("M", bound=Module)


class WeightNorm:
    """Computes a weight before each call of its module (Salimans & Kingma, 2016).

    Args:
        name: Of the weight.
        dim: The dimension whose slices have lengths of their own; None for one length.
    """

    def __init__(self, name: str, dim: int | None) -> None:
        self.name = name
        self.dim = dim

    def length_of(self, weight: Tensor) -> Tensor:
        """The length of each slice, so that it broadcasts to the weight."""
        return length_of(weight, self._dim_of(weight))

    def weight_of(self, module: Module) -> Tensor:
        """The direction, scaled to the length."""
        direction = getattr(module, f"{self.name}_v")
        length = getattr(module, f"{self.name}_g")
        return compute(direction, length, self._dim_of(direction))

    def _dim_of(self, weight: Tensor) -> int | None:
        return None if self.dim is None else self.dim % weight.ndim

    def __call__(self, module: Module, args: Any) -> None:
        """Compute the weight: called before the module is."""
        del args
        setattr(module, self.name, self.weight_of(module))


def weight_norm(module: M, name: str = "weight", dim: int | None = 0) -> M:
    """Learn a weight's direction ``weight_v`` and length ``weight_g`` instead of it.

    Args:
        module: Module that has the weight; changed.
        name: Of the weight.
        dim: The dimension whose slices have lengths of their own; None for one length.

    Returns:
        The module.

    Raises:
        RuntimeError: The weight is normalized already.

    Source: torch/nn/utils/weight_norm.py.
    """
    if _hook_of(module, name) is not None:
        raise RuntimeError(
            f"Cannot register two weight_norm hooks on the same parameter {name}"
        )
    norm = WeightNorm(name, None if dim in {None, -1} else dim)
    weight = getattr(module, name)
    delattr(module, name)
    length = norm.length_of(weight.detach())
    module.register_parameter(f"{name}_g", Parameter(length))
    module.register_parameter(f"{name}_v", Parameter(weight.detach()))
    setattr(module, name, norm.weight_of(module))
    module.register_forward_pre_hook(norm)
    return module


def remove_weight_norm(module: M, name: str = "weight") -> M:
    """Undo `weight_norm`; the weight keeps its value.

    Raises:
        ValueError: There is nothing to undo.
    """
    norm = _hook_of(module, name)
    if norm is None:
        raise ValueError(f"weight_norm of '{name}' not found in {module}")
    weight = norm.weight_of(module).detach()
    for one in (name, f"{name}_g", f"{name}_v"):
        delattr(module, one)
    module.register_parameter(name, Parameter(weight))
    module._forward_pre_hooks = tuple(
        hook for hook in module._forward_pre_hooks if hook.call is not norm
    )
    return module


def _hook_of(module: Module, name: str) -> WeightNorm | None:
    for hook in module._forward_pre_hooks:
        if isinstance(hook.call, WeightNorm) and hook.call.name == name:
            return hook.call
    return None
