"""Optimizer: what holds parameters in groups, and changes them by their gradients."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from gradviz.autograd.grad_mode import enable_grad, no_grad
from gradviz.backends.base import Array
from gradviz.nn import gradients
from gradviz.ops.recording.variable import raw, variable
from gradviz.tensors.creation import zeros_like
from gradviz.tensors.tensor import Tensor

#: Parameters and their options: ``params`` and a value for each option.
Group = dict[str, Any]

#: Parameters one by one, with their names, or in groups.
Parameters = Iterable[Tensor] | Iterable[tuple[str, Tensor]] | Iterable[Group]


class Optimizer:
    """The base class of optimizers.

    A subclass says in `update` how one parameter changes, or defines `step` itself.

    Args:
        params: Parameters, or groups of them with options of their own.
        defaults: Options where a group has none.

    Attributes:
        param_groups: The groups; options may be changed at any time.
        state: What is kept of each parameter from one step to the next.
        defaults: See above.

    Raises:
        TypeError: `params` is not what it should be.
        ValueError: There are none, one is in two groups, or an op made it.

    Source: torch/optim/optimizer.py.
    """

    def __init__(self, params: Parameters, defaults: dict[str, Any]) -> None:
        if isinstance(params, Tensor):
            raise TypeError(
                f"params argument given to the optimizer should be an iterable of "
                f"Tensors or dicts, but got {type(params).__name__}"
            )
        self.defaults = defaults
        self.state: defaultdict[Tensor, dict[str, Any]] = defaultdict(dict)
        self.param_groups: list[Group] = []
        self.num_steps = 0
        groups: list[Any] = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def add_param_group(self, param_group: Group) -> None:
        """Optimize more parameters, with options of their own.

        Raises:
            TypeError: `param_group` is no dict, or something in it no tensor.
            ValueError: An option is missing, a parameter has been given before, or an
                op made it.
        """
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        group = {**self.defaults, **param_group}
        group["params"] = _as_list(param_group["params"])
        for parameter in group["params"]:
            _check_parameter(parameter)
        known = {id(one) for other in self.param_groups for one in other["params"]}
        if not known.isdisjoint(map(id, group["params"])):
            raise ValueError("some parameters appear in more than one parameter group")
        self.param_groups.append(group)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget all gradients, or set them to 0 in place."""
        for group in self.param_groups:
            gradients.clear(group["params"], set_to_none=set_to_none)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:  # noqa: ANN401 - the closure's
        """Change every parameter that has a gradient.

        Args:
            closure: Computes the gradients anew and returns the loss; called first.

        Returns:
            What `closure` returned.
        """
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        self.num_steps += 1
        with no_grad():
            for group in self.param_groups:
                for parameter in group["params"]:
                    grad = parameter.grad
                    if grad is not None:
                        array = grad.array
                        if group.get("maximize"):
                            array = -array
                        update = self.update(
                            parameter.array, array, group, self.state[parameter]
                        )
                        parameter.sub_(variable(update))
        return loss

    def update(
        self, x: Array, grad: Array, group: Group, state: dict[str, Any]
    ) -> Array:
        """What is to be subtracted from a parameter.

        Works on raw arrays: a step is no part of any graph.

        Args:
            x: The parameter.
            grad: Its gradient, not to be changed.
            group: The options.
            state: What is kept of this parameter.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define update()")

    def state_dict(self) -> dict[str, Any]:
        """The options and the state, with parameters as numbers in their order."""
        numbers: dict[int, int] = {}
        for group in self.param_groups:
            for parameter in group["params"]:
                numbers[id(parameter)] = len(numbers)
        return {
            "state": {numbers[id(one)]: dict(kept) for one, kept in self.state.items()},
            "param_groups": [
                {
                    **{key: value for key, value in group.items() if key != "params"},
                    "params": [numbers[id(one)] for one in group["params"]],
                }
                for group in self.param_groups
            ],
        }

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Take back what `state_dict` returned.

        Raises:
            ValueError: Its groups are not those of this optimizer.
        """
        saved = state_dict["param_groups"]
        if len(saved) != len(self.param_groups):
            raise ValueError(
                "loaded state dict has a different number of parameter groups"
            )
        parameters: dict[int, Tensor] = {}
        for old, new in zip(self.param_groups, saved, strict=True):
            if len(old["params"]) != len(new["params"]):
                raise ValueError(
                    "loaded state dict contains a parameter group that doesn't match "
                    "the size of optimizer's group"
                )
            parameters.update(zip(new["params"], old["params"], strict=True))
        self.state = defaultdict(dict)
        for number, kept in state_dict["state"].items():
            parameter = parameters[number]
            self.state[parameter] = {
                name: _like(value, parameter) for name, value in kept.items()
            }
        for old, new in zip(self.param_groups, saved, strict=True):
            old.update({key: value for key, value in new.items() if key != "params"})

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for number, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {number}")
            lines += [
                f"    {key}: {group[key]}" for key in sorted(group) if key != "params"
            ]
        return "\n".join([*lines, ")"])


def kept(state: dict[str, Any], name: str, x: Array) -> Array:
    """The array of this name in a state, zeros like `x` at first."""
    if name not in state:
        state[name] = zeros_like(variable(x))
    array: Array = state[name].array
    return array


def check_not_negative(what: str, value: float) -> None:
    """Refuse a negative option.

    Raises:
        ValueError: It is negative.
    """
    if not value >= 0:
        raise ValueError(f"Invalid {what}: {value}")


def _as_list(params: Any) -> list[Any]:  # noqa: ANN401 - unchecked
    if isinstance(params, Tensor):
        return [params]
    if isinstance(params, set):
        raise TypeError(
            "optimizer parameters need to be organized in ordered collections, but the "
            "ordering of tensors in sets will change between runs. Please use a list "
            "instead."
        )
    return [one[1] if isinstance(one, tuple) else one for one in params]


def _check_parameter(parameter: object) -> None:
    if not isinstance(parameter, Tensor):
        raise TypeError(
            f"optimizer can only optimize Tensors, but one of the params is "
            f"{type(parameter).__name__}"
        )
    if not (parameter.is_leaf or parameter.retains_grad):
        raise ValueError("can't optimize a non-leaf Tensor")


def _like(value: object, parameter: Tensor) -> object:
    """A kept value; a tensor as a copy with the dtype and device of its parameter."""
    if not isinstance(value, Tensor):
        return value
    return variable(raw(value.to(parameter)).copy())
