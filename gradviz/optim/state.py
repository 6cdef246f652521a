"""The state of an optimizer as a dictionary, and back."""

from collections.abc import Mapping
from typing import Any

from gradviz.ops.variables.variable import raw, variable
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
    groups: list[Group], state_dict: Mapping[str, Any], *, same_shapes: bool
) -> dict[Tensor, dict[str, Any]]:
    """The state in a dictionary, by parameter; takes over the options into the groups.

    Args:
        groups: Those of the optimizer.
        state_dict: State that it or another optimizer kept.
        same_shapes: True if all tensors of a state have the parameter's shape.

    Raises:
        ValueError: Its groups, or the shapes in it, are others. Nothing has changed.

    Differs: PyTorch looks at no shapes here, and fails at the next step.
    """
    saved = state_dict["param_groups"]
    if len(saved) != len(groups):
        raise ValueError("loaded state dict has a different number of parameter groups")
    parameters: dict[Any, Tensor] = {}
    for old, new in zip(groups, saved, strict=True):
        if len(old["params"]) != len(new["params"]):
            raise ValueError(
                "loaded state dict contains a parameter group that doesn't match the "
                "size of optimizer's group"
            )
        parameters.update(zip(new["params"], old["params"], strict=True))
    state = {}
    for number, kept in state_dict["state"].items():
        parameter = parameters.get(number)
        if parameter is None:
            raise ValueError(
                f"loaded state dict contains a state of parameter {number}, which is "
                f"in none of its groups"
            )
        if same_shapes:
            _check_shapes(number, kept, parameter)
        state[parameter] = {
            name: value.clone()
            if name == STEP and isinstance(value, Tensor)
            else _like(value, parameter)
            for name, value in kept.items()
        }
    for old, new in zip(groups, saved, strict=True):
        old.update({key: value for key, value in new.items() if key != "params"})
    return state


def _check_shapes(number: int, kept: Mapping[str, Any], parameter: Tensor) -> None:
    for name, value in kept.items():
        if isinstance(value, Tensor) and value.ndim and value.shape != parameter.shape:
            raise ValueError(
                f"loaded state dict contains {name!r} of shape {list(value.shape)} for "
                f"parameter {number}, whose shape is {list(parameter.shape)}"
            )


def _like(value: object, parameter: Tensor) -> object:
    """A kept value; a tensor as a copy with the dtype and device of its parameter."""
    if not isinstance(value, Tensor):
        return value
    return variable(raw(value.to(parameter)).copy())
