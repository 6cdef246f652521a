"""The state of a module: its parameters and buffers as a dict, out and in."""

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple, cast

import numpy as np

from gradviz.autograd.grad_mode import no_grad
from gradviz.engine.graph.removable_handle import RemovableHandle, append
from gradviz.nn.members import Members
from gradviz.nn.parameter import Parameter
from gradviz.tensors.creation.from_data import from_numpy
from gradviz.tensors.tensor import Tensor

#: Key of a module's state beside its tensors in `Stateful.load_state_dict`.
EXTRA_STATE = "_extra_state"


class IncompatibleKeys(NamedTuple):
    """Differences between a ``state_dict`` and a module.

    Attributes:
        missing_keys: Of the module only.
        unexpected_keys: Of the dict only.
    """

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return (
            f"_IncompatibleKeys(missing_keys={self.missing_keys}, "
            f"unexpected_keys={self.unexpected_keys})"
        )


class Stateful(Members):
    """A module whose state can be saved and loaded.

    Source: torch/nn/modules/module.py.
    """

    _state_dict_pre_hooks: tuple[Callable[..., None], ...]
    _state_dict_hooks: tuple[Callable[..., None], ...]
    _load_state_dict_pre_hooks: tuple[Callable[..., None], ...]
    _load_state_dict_post_hooks: tuple[Callable[..., None], ...]

    def __init__(self) -> None:
        super().__init__()
        own = self.__dict__
        own["_state_dict_pre_hooks"] = own["_state_dict_hooks"] = ()
        own["_load_state_dict_pre_hooks"] = own["_load_state_dict_post_hooks"] = ()

    def get_extra_state(self) -> object:
        """Return additional state; a subclass defines it, and `set_extra_state`."""
        raise NotImplementedError(f"{type(self).__name__} has no extra state")

    def set_extra_state(self, state: object) -> None:
        """Load the result of `get_extra_state`."""
        raise NotImplementedError(f"{type(self).__name__} has no extra state")

    def register_load_state_dict_post_hook(
        self, hook: Callable[[Any, IncompatibleKeys], None]
    ) -> RemovableHandle:
        """Call ``hook(module, incompatible_keys)`` after each load."""
        return append(self, "_load_state_dict_post_hooks", hook)

    def register_load_state_dict_pre_hook(
        self, hook: Callable[..., None]
    ) -> RemovableHandle:
        """Call a hook before the module's own state is loaded.

        It takes ``(module, state_dict, prefix, local_metadata, strict, missing_keys,
        unexpected_keys, error_msgs)`` and may change the dict and the lists.
        """
        return append(self, "_load_state_dict_pre_hooks", hook)

    def register_state_dict_pre_hook(
        self, hook: Callable[[Any, str, bool], None]
    ) -> RemovableHandle:
        """Call ``hook(module, prefix, keep_vars)`` before the state is taken out."""
        return append(self, "_state_dict_pre_hooks", hook)

    def register_state_dict_post_hook(
        self, hook: Callable[[Any, dict[str, Any], str, dict[str, Any]], None]
    ) -> RemovableHandle:
        """Call ``hook(module, state_dict, prefix, local_metadata)`` afterwards.

        It may change the dict.
        """
        return append(self, "_state_dict_hooks", hook)

    def state_dict(
        self,
        *,
        destination: dict[str, Any] | None = None,
        prefix: str = "",
        keep_vars: bool = False,
    ) -> dict[str, Any]:
        """The parameters and persistent buffers of this module and all below it.

        Args:
            destination: The dict to put them into, a new one if None.
            prefix: Prefix of their names.
            keep_vars: True if they stay part of the graph. They share their memory with
                the module in any case.
        """
        state: dict[str, Any] = OrderedDict() if destination is None else destination
        for before in self._state_dict_pre_hooks:
            before(self, prefix, keep_vars)
        for name, tensor in _own_state(self):
            state[prefix + name] = tensor if keep_vars else tensor.detach()
        if _has_extra_state(self):
            state[prefix + EXTRA_STATE] = self.get_extra_state()
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(
                    destination=state, prefix=f"{prefix}{name}.", keep_vars=keep_vars
                )
        for after in self._state_dict_hooks:
            after(self, state, prefix, _metadata(self))
        return state

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> IncompatibleKeys:
        """Copy parameters and buffers from a dict, as `state_dict` returns it.

        Args:
            state_dict: Tensors by their names.
            strict: True if its names must be exactly those of this module.
            assign: True if the module takes the tensors of the dict for its own,
                instead of copying their elements; make optimizers afterwards.

        Its values may be anything that NumPy can read: arrays, tensors of other
        libraries, numbers in lists.

        Raises:
            TypeError: `state_dict` is not a mapping.
            RuntimeError: Names, where it matters, or shapes are not the same. Nothing
                has been loaded.

        Differs: PyTorch has loaded what fits when it raises, as is done here where
        hooks are called after loading, which may forgive missing names.
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(
                f"Expected state_dict to be dict-like, got {type(state_dict)}."
            )
        keys = IncompatibleKeys([], [])
        problems: list[str] = []
        steps: list[Callable[[], object]] = []
        self._plan(dict(state_dict), "", strict, assign, keys, problems, steps)
        may_forgive = any(one._load_state_dict_post_hooks for one in self.modules())
        if not problems and (may_forgive or not strict or not any(keys)):
            for step in steps:
                step()
        if strict:
            for what, names in (
                ("Missing", keys.missing_keys),
                ("Unexpected", keys.unexpected_keys),
            ):
                if names:
                    quoted = ", ".join(f'"{name}"' for name in names)
                    # PyTorch names the missing ones first, and both before the rest.
                    place = 1 if what == "Unexpected" and keys.missing_keys else 0
                    problems.insert(place, f"{what} key(s) in state_dict: {quoted}. ")
        if problems:
            lines = "\n\t".join(problems)
            raise RuntimeError(
                f"Error(s) in loading state_dict for {type(self).__name__}:\n\t{lines}"
            )
        return keys

    def _plan(
        self,
        state: Mapping[str, Any],
        prefix: str,
        strict: bool,
        assign: bool,
        keys: IncompatibleKeys,
        problems: list[str],
        steps: list[Callable[[], object]],
    ) -> None:
        """Find the steps that load the keys with `prefix`, here and below."""
        for before in self._load_state_dict_pre_hooks:
            before(self, state, prefix, _metadata(self), strict, *keys, problems)
        expected = set()
        for name, tensor in _own_state(self):
            key = prefix + name
            expected.add(key)
            if key not in state:
                keys.missing_keys.append(key)
            else:
                step = self._assign if assign else _copy
                _plan_one(step, name, key, tensor, state[key], problems, steps)
        if _has_extra_state(self):
            key = prefix + EXTRA_STATE
            expected.add(key)
            if key in state:
                steps.append(partial(self.set_extra_state, state[key]))
            else:
                keys.missing_keys.append(key)
        keys.unexpected_keys.extend(
            key for key in state if key not in expected and self._is_alien(key, prefix)
        )
        for name, module in self._modules.items():
            if module is not None:
                inner = f"{prefix}{name}."
                below = {k: v for k, v in state.items() if k.startswith(inner)}
                module._plan(below, inner, strict, assign, keys, problems, steps)
        hooks = self._load_state_dict_post_hooks
        steps.extend(partial(hook, self, keys) for hook in hooks)

    def _is_alien(self, key: str, prefix: str) -> bool:
        """Return whether a key belongs to neither this module nor one below it."""
        name, dot, _ = key[len(prefix) :].partition(".")
        return not dot or name not in self._modules

    def _assign(self, name: str, own: Tensor, new: Tensor) -> None:
        if isinstance(own, Parameter) and not isinstance(new, Parameter):
            new = Parameter(new, requires_grad=own.requires_grad)
        setattr(self, name, new)


def _copy(name: str, own: Tensor, new: Tensor) -> None:
    del name
    with no_grad():
        own.copy_(new)


def _plan_one(
    step: Callable[[str, Tensor, Tensor], None],
    name: str,
    key: str,
    own: Tensor,
    value: object,
    problems: list[str],
    steps: list[Callable[[], object]],
) -> None:
    """Find the step that loads one tensor, or the reason that prevents it."""
    new = _as_tensor(value)
    if new is None:
        problems.append(
            f'While copying the parameter named "{key}", expected gradviz.Tensor or '
            f"Tensor-like object from checkpoint but received {type(value)}"
        )
    elif own.shape != new.shape:
        problems.append(
            f"size mismatch for {key}: copying a param with shape {new.shape} from "
            f"checkpoint, the shape in current model is {own.shape}."
        )
    else:
        steps.append(partial(_telling, problems, key, step, name, own, new))


def _telling(
    problems: list[str],
    key: str,
    step: Callable[[str, Tensor, Tensor], None],
    name: str,
    own: Tensor,
    new: Tensor,
) -> None:
    """Take a step; report its error with other problems."""
    try:
        step(name, own, new)
    except Exception as error:  # noqa: BLE001 - told with the others
        problems.append(
            f'While copying the parameter named "{key}", whose dimensions in the '
            f"model are {own.size()} and whose dimensions in the checkpoint are "
            f"{new.size()}, an exception occurred : {error.args}."
        )


def _as_tensor(value: object) -> Tensor | None:
    """A value of a checkpoint as a tensor; None if NumPy cannot read it.

    Raises:
        TypeError: It is a tensor of PyTorch of a kind that NumPy does not take.
    """
    if isinstance(value, Tensor):
        return value
    if isinstance(value, str | bytes | Mapping | int | float | complex):
        return None
    try:
        if hasattr(value, "__dlpack__") and not hasattr(value, "__array__"):
            array = np.from_dlpack(cast("Any", value))
        else:
            array = np.asarray(value)
    except Exception as error:
        if type(value).__module__.partition(".")[0] != "torch":
            return None
        raise TypeError(
            f"a tensor of PyTorch cannot be read ({error}): give what NumPy takes, "
            f"such as {{name: value.detach().cpu().float().numpy() for name, value in "
            f"state.items()}}"
        ) from error
    return from_numpy(np.array(array)) if array.dtype.kind in "biufc" else None


def _own_state(module: Members) -> Iterator[tuple[str, Tensor]]:
    """The parameters and persistent buffers of the module itself."""
    for name, parameter in module._parameters.items():
        if parameter is not None:
            yield name, parameter
    for name, buffer in module._buffers.items():
        if buffer is not None and name not in module._non_persistent_buffers_set:
            yield name, buffer


def _metadata(module: Members) -> dict[str, Any]:
    """Return PyTorch's metadata of a module for hooks: its version."""
    return {"version": getattr(module, "_version", 1)}


def _has_extra_state(module: Stateful) -> bool:
    return type(module).get_extra_state is not Stateful.get_extra_state
