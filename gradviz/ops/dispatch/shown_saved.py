"""Saved values that nodes show: ``node._saved_x``, ``node._raw_saved_x``."""

import functools
from collections.abc import Iterable
from typing import Any, Final

import numpy as np

from gradviz.ops.dispatch.op_node import OpNode, output_nr_of
from gradviz.ops.variables.saved_variable import (
    FREED,
    SECOND_BACKWARD,
    SavedVariable,
    checked_hooks,
)
from gradviz.ops.variables.variable import Variable, variable


def shows_saved(cls: type[OpNode], names: Iterable[str]) -> None:
    """Let nodes of a class show their saved values, under PyTorch's names.

    Each has one name: who draws all that a node saved draws nothing twice. Properties,
    for with a ``__getattr__`` every other attribute would be slow.
    """
    for name in names:
        if name.endswith("_columnwise"):  # in place of PyTorch's strides
            continue
        for prefix, read in (("_saved_", _show_saved), ("_raw_saved_", _show_raw)):
            reader = property(functools.partial(read, name=name))
            setattr(cls, f"{prefix}{shown_name(cls.__name__, name)}", reader)


def shown_name(node: str, name: str) -> str:
    """Return the name in PyTorch's nodes of a value that formulas call `name`.

    Args:
        node: The name of the nodes, such as ``AddmmBackward0``.
        name: Such as ``x``.
    """
    return _SPECIAL.get(node, {}).get(name) or _USUAL.get(name, name)


class RawSaved:
    """A place where a node keeps something, for hooks to be registered on.

    Source: torch._C._autograd.SavedTensor.
    """

    def __init__(self, node: OpNode, index: int) -> None:
        self._node = node
        self._index = index

    def register_hooks(self, *hooks: object) -> None:
        """See `SavedVariable.register_hooks`.

        Raises:
            RuntimeError: Nothing is kept any more: a backward pass has freed it.
            TypeError: There are not two hooks, or one cannot be called.
        """
        checked_hooks(*hooks)
        if self._node.saved is None:
            raise RuntimeError(FREED)
        self._node.saved[self._index].register_hooks(*hooks)

    def unpack(self) -> Any:  # noqa: ANN401 - of the class of tensors
        """Return the saved value, as a variable in its place in the graph.

        Raises:
            RuntimeError: As of `register_hooks`.
        """
        if self._node.saved is None:
            raise RuntimeError(SECOND_BACKWARD)
        return self._node.saved[self._index].unpack(self._node)


#: Names of an argument in formulas, and in PyTorch's.
_USUAL: Final = {
    "dims": "dim",
    "input": "self",
    "x": "self",
    "x_shape": "self_sym_sizes",
    "y": "other",
}

_BATCHES: Final = {"x": "batch1", "y": "batch2"}
_NORMALIZED: Final = {"x": "input", "mean": "result1", "rstd": "result2"}
_ON_TARGET: Final = {"y": "target"}
_ITS_DIMS: Final = {"dims": "dims"}

#: Nodes of PyTorch that have names of their own.
_SPECIAL: Final[dict[str, dict[str, str]]] = {
    "AddbmmBackward0": _BATCHES,
    "AddcdivBackward0": {"y": "tensor1", "z": "tensor2"},
    "AddcmulBackward0": {"y": "tensor1", "z": "tensor2"},
    "AddmmBackward0": {"x": "mat1", "y": "mat2"},
    "AddmvBackward0": {"x": "mat", "y": "vec"},
    "AddrBackward0": {"x": "vec1", "y": "vec2"},
    "AdaptiveMaxPool2DBackward0": {"indices": "result1"},
    "AminmaxBackward0": {"smallest": "min", "largest": "max"},
    "AsStridedBackward0": {"offset": "storage_offset"},
    "BaddbmmBackward0": _BATCHES,
    "BinaryCrossEntropyBackward0": _ON_TARGET,
    "BinaryCrossEntropyWithLogitsBackward0": _ON_TARGET,
    "BmmBackward0": {"y": "mat2"},
    "CdistBackward0": {"x": "x1", "y": "x2"},
    "ClampBackward0": {"minimum": "min", "maximum": "max"},
    "ClampBackward1": {"minimum": "min", "maximum": "max"},
    "Col2ImBackward0": {"kernel": "kernel_size"},
    "ConvolutionBackward0": {"x": "input"},
    "DotBackward0": {"y": "tensor"},
    "EmbeddingBackward0": {"by_frequency": "scale_grad_by_freq"},
    "FlipBackward0": _ITS_DIMS,
    "GridSampler2DBackward0": {"x": "input"},
    "HardshrinkBackward0": {"limit": "lambd"},
    "HardtanhBackward0": {"low": "min_val", "high": "max_val"},
    "HuberLossBackward0": _ON_TARGET,
    "Im2ColBackward0": {"kernel": "kernel_size"},
    "LeakyReluBackward0": {"slope": "negative_slope"},
    "LerpBackward1": {"y": "end"},
    "LinalgCholeskyExBackward0": {"result": "L"},
    "LinalgDetBackward0": {"x": "A"},
    "LinalgEighBackward0": {"values": "eigenvalues", "vectors": "eigenvectors"},
    "LinalgInvExBackward0": {"result": "inverse"},
    "LinalgLstsqBackward0": {"a": "self", "b": "b"},
    "LinalgQrBackward0": {"q": "Q", "r": "R"},
    "LinalgSlogdetBackward0": {"x": "A"},
    "LinalgSolveExBackward0": {"a": "A"},
    "LinalgSvdBackward0": {"u": "U", "s": "S", "vh": "Vh"},
    "LinalgVectorNormBackward0": {"p": "ord"},
    "MaskedScatterBackward0": {"source_shape": "source_sym_sizes"},
    "MaxPool2DWithIndicesBackward0": {"indices": "result1"},
    "MmBackward0": {"y": "mat2"},
    "MseLossBackward0": _ON_TARGET,
    "MulBackward1": {"number": "other"},
    "MvBackward0": {"y": "vec"},
    "NativeBatchNormBackward0": _NORMALIZED,
    "NativeGroupNormBackward0": {**_NORMALIZED, "groups": "group"},
    "NativeLayerNormBackward0": {**_NORMALIZED, "normalized": "normalized_shape"},
    "PermuteBackward0": _ITS_DIMS,
    "PixelShuffleBackward0": {"factor": "upscale_factor"},
    "PowBackward1": {"y": "exponent"},
    "PowBackward2": {"base": "self", "y": "exponent"},
    "RollBackward0": _ITS_DIMS,
    "SmoothL1LossBackward0": _ON_TARGET,
    "SoftplusBackward0": {"limit": "threshold"},
    "SoftshrinkBackward0": {"limit": "lambd"},
    "StdMeanBackward0": {"spread": "result0"},
    "ThresholdBackward0": {"limit": "threshold"},
    "UnfoldBackward0": {"dim": "dimension"},
}

#: Numbers that PyTorch's nodes keep in place of a word.
_REDUCTIONS: Final = {"none": 0, "mean": 1, "sum": 2}


def _show_saved(node: OpNode, *, name: str) -> Any:  # noqa: ANN401 - of any type
    if name not in node.plan.names:
        return None  # no wanted gradient needs it
    if node.saved is None:
        raise RuntimeError(SECOND_BACKWARD)
    value = node.variable(node.plan.names.index(name))
    if name == "reduction":
        return _REDUCTIONS.get(value, value)
    return _shown(value)


def _show_raw(node: OpNode, *, name: str) -> Any:  # noqa: ANN401 - of any type
    if name not in node.plan.names:
        return None
    if node.saved is None:
        raise RuntimeError(SECOND_BACKWARD)
    index = node.plan.names.index(name)
    value, origin = node.saved[index], node.plan.origins[index]
    if isinstance(value, Variable):
        value = SavedVariable(value, output_nr=output_nr_of(origin))
        node.saved = (*node.saved[:index], value, *node.saved[index + 1 :])
    return RawSaved(node, index) if isinstance(value, SavedVariable) else value


def _shown(value: Any) -> Any:  # noqa: ANN401 - of any type
    """Return a saved value as PyTorch's nodes show it: arrays as variables."""
    if isinstance(value, tuple):
        return tuple(map(_shown, value))
    if isinstance(value, slice):  # a whole dimension, among indices
        return None
    return variable(value) if isinstance(value, np.ndarray) else value
