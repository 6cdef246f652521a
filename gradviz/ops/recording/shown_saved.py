"""What nodes show of what they saved: ``node._saved_x``, ``node._raw_saved_x``."""

import functools
from collections.abc import Iterable
from typing import Any, Final

import numpy as np

from gradviz.ops.recording.op_node import OpNode, output_nr_of
from gradviz.ops.recording.saved_variable import (
    FREED,
    SECOND_BACKWARD,
    SavedVariable,
    checked_hooks,
)
from gradviz.ops.recording.variable import Variable, variable


def shows_saved(cls: type[OpNode], names: Iterable[str]) -> None:
    """Let nodes of a class show what they saved, under PyTorch's names too.

    Properties: with a ``__getattr__`` every other attribute would be slow.
    """
    special = _SPECIAL.get(cls.__name__, {})
    for name in names:
        for known_as in {name, _USUAL.get(name, name), special.get(name, name)}:
            for prefix, read in (("_saved_", _show_saved), ("_raw_saved_", _show_raw)):
                reader = property(functools.partial(read, name=name))
                setattr(cls, f"{prefix}{known_as}", reader)


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
        """What is kept, as a variable in its place in the graph.

        Raises:
            RuntimeError: As of `register_hooks`.
        """
        if self._node.saved is None:
            raise RuntimeError(SECOND_BACKWARD)
        return self._node.saved[self._index].unpack(self._node)


#: What formulas call an argument, and what PyTorch's do.
_USUAL: Final = {
    "dims": "dim",
    "input": "self",
    "x": "self",
    "x_shape": "self_sym_sizes",
    "y": "other",
}

#: Where PyTorch's have names of their own.
_SPECIAL: Final[dict[str, dict[str, str]]] = {
    "AddcmulBackward0": {"y": "tensor1", "z": "tensor2"},
    "AddmmBackward0": {"x": "mat1", "y": "mat2"},
    "BinaryCrossEntropyBackward0": {"y": "target"},
    "BmmBackward0": {"y": "mat2"},
    "ClampBackward1": {"minimum": "min", "maximum": "max"},
    "ConvolutionBackward0": {"x": "input"},
    "DotBackward0": {"y": "tensor"},
    "LinalgVectorNormBackward0": {"p": "ord"},
    "MmBackward0": {"y": "mat2"},
    "MseLossBackward0": {"y": "target"},
    "MvBackward0": {"y": "vec"},
    "NativeBatchNormBackward0": {"x": "input", "mean": "result1", "rstd": "result2"},
    "NativeLayerNormBackward0": {"x": "input", "mean": "result1", "rstd": "result2"},
    "PowBackward1": {"y": "exponent"},
}


def _show_saved(node: OpNode, *, name: str) -> Any:  # noqa: ANN401 - of any type
    if name not in node.plan.names:
        return None  # no wanted gradient needs it
    if node.saved is None:
        raise RuntimeError(SECOND_BACKWARD)
    index = node.plan.names.index(name)
    return _shown(node.variable(index))


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
    """What was saved, for people: arrays as variables."""
    if isinstance(value, tuple):
        return tuple(map(_shown, value))
    return variable(value) if isinstance(value, np.ndarray) else value
