"""Hooks on the tensors that ops save, for the length of a block.

`gradviz.ops.variables.saved_variable` has the saving itself.
"""

import abc
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Self

from gradviz.autograd.function_context import SavedNone
from gradviz.backends.base import find_accelerator
from gradviz.backends.device import Device
from gradviz.ops.dispatch.shown_saved import RawSaved
from gradviz.ops.variables.saved_variable import (
    SavedVariable,
    no_hooks_on_saving,
    pop_hooks,
    push_hooks,
)
from gradviz.ops.variables.variable import Value

__all__ = [
    "SavedTensor",
    "disable_saved_tensors_hooks",
    "save_on_cpu",
    "saved_tensors_hooks",
]


class SavedTensor(abc.ABC):  # noqa: B024 - for isinstance only
    """A node's record of a tensor: ``node._raw_saved_self``, for hooks to register on.

    Source: torch._C._autograd.SavedTensor.
    """

    def __init__(self) -> None:
        raise RuntimeError(
            "Trying to create a SavedTensor object from Python is forbidden."
        )


for _kind in (RawSaved, SavedVariable, SavedNone):
    SavedTensor.register(_kind)


class saved_tensors_hooks:  # noqa: N801 - PyTorch's name
    """Pass tensors that ops save in a ``with`` block through `pack_hook`.

    Of nested blocks only the innermost counts. The threads of a backward inherit the
    hooks of the thread that called it.

    Args:
        pack_hook: Takes the tensor to save, returns the object to keep instead.
        unpack_hook: Takes that in the backward, returns a tensor of the same content.

    Raises:
        RuntimeError: On entering the block, if hooks are disabled.

    Source: torch/autograd/graph.py, saved_tensors_hooks.
    """

    def __init__(
        self, pack_hook: Callable[[Any], Any], unpack_hook: Callable[[Any], Any]
    ) -> None:
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self) -> Self:
        push_hooks(self.pack_hook, self.unpack_hook)
        return self

    def __exit__(self, *_: object) -> None:
        pop_hooks()


class save_on_cpu(saved_tensors_hooks):  # noqa: N801 - PyTorch's name
    """Keep tensors saved in a ``with`` block in host memory until backward.

    Args:
        pin_memory: Use pinned memory, so that nobody waits for the copy back; only if
            there is an accelerator.
        device_type: Has no effect: tensors return to their own device.

    Source: torch/autograd/graph.py, save_on_cpu.
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        del device_type
        super().__init__(
            _to_pinned if pin_memory else _to_cpu,
            _from_pinned if pin_memory else _from_cpu,
        )


def disable_saved_tensors_hooks(error_message: str) -> AbstractContextManager[None]:
    """Make it an error to enter a block of `saved_tensors_hooks`.

    Args:
        error_message: The message of the error.

    Raises:
        RuntimeError: On entering the block, if it is inside of one with hooks.
    """
    return no_hooks_on_saving(error_message)


def _to_cpu(tensor: Value) -> tuple[Device, Value]:
    return tensor.device, tensor.cpu()


def _from_cpu(packed: tuple[Device, Value]) -> Value:
    device, tensor = packed
    return tensor.to(device)


def _to_pinned(tensor: Value) -> tuple[Device, Value]:
    kept = tensor.cpu()
    return tensor.device, kept if find_accelerator() is None else kept.pin_memory()


def _from_pinned(packed: tuple[Device, Value]) -> Value:
    device, tensor = packed
    return tensor.to(device, non_blocking=True)
