"""The state of an optimizer as a dictionary, and back."""

from collections.abc import Mapping
from typing import Any

from gradviz.ops.recording.variable import raw, variable
from gradviz.optim.running import STEP
from gradviz.tensors.tensor import Tensor

#: Parameters and their options: ``params`` and a value for each option.
Group = dict[str, Any]


def state_dict_of(
    groups: list[Group], state: Mapping[Tensor, dict[str, Any]]
) -> dict[str, Any]:
    """The options and the state, with parameters as numbers in their order."""
    numbers: dict[int, int] = {}
    for group in groups:
        for parameter in group["params"]:
            numbers[id(parameter)] = len(numbers)
    return {
        "state": {numbers[id(one)]: dict(kept) for one, kept in state.items()},
        "param_groups": [
            {
                **{key: value for key, value in group.items() if key != "params"},
                "params": [numbers[id(one)] for one in group["params"]],
            }
            for group in groups
        ],
    }


def loaded(
    groups: list[Group], state_dict: Mapping[str, Any]
) -> dict[Tensor, dict[str, Any]]:
    """The state in a dictionary, by parameter; takes over the options into the groups.

    Raises:
        ValueError: Its groups are others.
    """
    saved = state_dict["param_groups"]
    if len(saved) != len(groups):
        raise ValueError("loaded state dict has a different number of parameter groups")
    parameters: dict[int, Tensor] = {}
    for old, new in zip(groups, saved, strict=True):
        if len(old["params"]) != len(new["params"]):
            raise ValueError(
                "loaded state dict contains a parameter group that doesn't match the "
                "size of optimizer's group"
            )
        parameters.update(zip(new["params"], old["params"], strict=True))
    for old, new in zip(groups, saved, strict=True):
        old.update({key: value for key, value in new.items() if key != "params"})
    return {
        parameters[number]: {
            name: value.clone()
            if name == STEP and isinstance(value, Tensor)
            else _like(value, parameters[number])
            for name, value in kept.items()
        }
        for number, kept in state_dict["state"].items()
    }


def _like(value: object, parameter: Tensor) -> object:
    """A kept value; a tensor as a copy with the dtype and device of its parameter."""
    if not isinstance(value, Tensor):
        return value
    return variable(raw(value.to(parameter)).copy())
