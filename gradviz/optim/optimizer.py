"""Optimizer: holds parameters in groups, and changes them by their gradients."""

import functools
import itertools
import warnings
import weakref
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, ClassVar, Final, TypeVar, overload

from gradviz.autograd.grad_mode import enable_grad, no_grad
from gradviz.backends.base import Array
from gradviz.engine.graph.basic_nodes import NAMES_IN_MODELS
from gradviz.engine.graph.removable_handle import RemovableHandle, append
from gradviz.nn import gradients
from gradviz.ops.variables.variable import variable
from gradviz.optim.options import Implementation, all_options
from gradviz.optim.state import Group, loaded, state_dict_of
from gradviz.program_hooks import after_step
from gradviz.tensors.tensor import Tensor
from gradviz.trace import probe
from gradviz.trace.reporting.ids import next_step_id

#: Takes the optimizer, and the arguments of `Optimizer.step`.
StepHook = Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]

#: Parameters one by one, with their names, or in groups.
Parameters = Iterable[Tensor] | Iterable[tuple[str, Tensor]] | Iterable[Group]

R = TypeVar("R")

#: Listener that was told last what an optimizer holds.
_told_to: "Final[weakref.WeakKeyDictionary[Optimizer, weakref.ref[probe.Probe]]]" = (
    weakref.WeakKeyDictionary()
)

#: Names of optimizers in traces, and the number of those with the name of each class.
_names: "Final[weakref.WeakKeyDictionary[Optimizer, str]]" = weakref.WeakKeyDictionary()
_numbers: Final[dict[str, Iterator[int]]] = {}

#: Some ``step`` of an optimizer.
StepMethod = TypeVar("StepMethod", bound=Callable[..., Any])


def _reported(step: StepMethod) -> StepMethod:
    """Return `step` with reports to the listener."""

    @functools.wraps(step)
    def reported(self: "Optimizer", *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        if after_step and not self._is_stepping:
            return _followed(reported, self, args, kwargs)
        if (listener := probe.current) is None:
            return step(self, *args, **kwargs)
        call, has_failed = next_step_id(), True
        self._tell_held(listener)
        listener.optimizer_begun(call, type(self).__name__)
        try:
            result = step(self, *args, **kwargs)
            has_failed = False
        finally:
            listener.optimizer_ended(call, has_failed)
        return result

    return reported  # type: ignore[return-value]


def _followed(
    step: Callable[..., Any],
    optimizer: "Optimizer",
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:  # noqa: ANN401 - what the step returns
    """Call the outermost step, and the callbacks that follow it."""
    optimizer._is_stepping = True
    try:
        result = step(optimizer, *args, **kwargs)
    finally:
        optimizer._is_stepping = False
    for call in tuple(after_step):
        call(optimizer)
    return result


class Optimizer:
    """The base class of optimizers.

    A subclass says in `update` how one parameter changes, or defines `step` itself.

    Args:
        params: Parameters, or groups of them with options of their own.
        defaults: Options where a group has none.

    Attributes:
        param_groups: The groups; options may be changed at any time.
        state: Values kept of each parameter from one step to the next.
        defaults: See above.

    Raises:
        TypeError: `params` is not what it should be.
        ValueError: There are none, one is in two groups, or an op made it.

    Source: torch/optim/optimizer.py.
    """

    #: True while `step` has been called and has not returned.
    _is_stepping = False

    #: True if all that is kept of a parameter has its shape.
    _keeps_shapes: ClassVar[bool] = True

    #: Options of `Implementation` that there are, in PyTorch's order.
    _implementation: ClassVar[tuple[str, ...]] = (
        "foreach",
        "capturable",
        "differentiable",
    )

    def __init__(self, params: Parameters, defaults: dict[str, Any]) -> None:
        if isinstance(params, Tensor):
            raise TypeError(
                f"params argument given to the optimizer should be an iterable of "
                f"Tensors or dicts, but got {params.type()}"
            )
        self.defaults = defaults
        self.state: defaultdict[Tensor, dict[str, Any]] = defaultdict(dict)
        self.param_groups: list[Group] = []
        self.num_steps = 0
        self._pre_hooks: tuple[StepHook, ...] = ()
        self._post_hooks: tuple[StepHook, ...] = ()
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
            TypeError: `param_group` is not a dict, or something in it is not a tensor.
            ValueError: An option is missing, a parameter has been given before, or an
                op made it.
        """
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        given = _as_list(param_group["params"])
        names = [one[0] for one in given if isinstance(one, tuple)]
        group = {**self.defaults, **param_group}
        group["params"] = [one[1] if isinstance(one, tuple) else one for one in given]
        for parameter in group["params"]:
            _check_parameter(parameter)
        if names:
            group["param_names"] = names
        self._check_group(group)
        self.param_groups.append(group)

    def _tell_held(self, listener: probe.Probe) -> None:
        """Report the parameters to a listener that has not heard them yet."""
        told_to = _told_to.get(self)
        if told_to is not None and told_to() is listener:
            return
        _told_to[self] = weakref.ref(listener)
        name = _names.get(self)
        if name is None:
            kind = type(self).__name__
            number = next(_numbers.setdefault(kind, itertools.count(1)))
            name = _names[self] = kind if number == 1 else f"{kind}#{number}"
        for group in self.param_groups:
            for one in group["params"]:
                of_models = one.__dict__.get(NAMES_IN_MODELS, {}).values()
                path = next((path for paths in of_models for path in paths), "")
                listener.parameter_held(name, path, str(tuple(one.shape)))

    def _check_group(self, group: Group) -> None:
        names, numbers = group.get("param_names"), list(map(id, group["params"]))
        if names is not None and len(names) != len(numbers):
            raise ValueError(
                "all optimizer params should be with/without names. Some param names "
                "are missing"
            )
        if len(set(numbers)) < len(numbers):
            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters; in "
                "future, this will cause an error; see "
                "github.com/pytorch/pytorch/issues/40967 for more information",
                UserWarning,
                stacklevel=4,
            )
        if self.param_groups:
            is_named = "param_names" in self.param_groups[0]
            if is_named != (names is not None):
                how = "without" if names is None else "with"
                raise ValueError(
                    f"all optimizer param groups should be with/without names. cannot "
                    f"add param group {how} names to the optimizer"
                )
        known = {id(one) for other in self.param_groups for one in other["params"]}
        if not known.isdisjoint(numbers):
            raise ValueError("some parameters appear in more than one parameter group")

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget all gradients, or set them to 0 in place."""
        for group in self.param_groups:
            gradients.clear(group["params"], set_to_none=set_to_none)

    def __init_subclass__(cls, **kwargs: Any) -> None:  # noqa: ANN401 - its bases'
        super().__init_subclass__(**kwargs)
        if "step" in vars(cls):
            cls.step = _reported(cls.step)  # type: ignore[method-assign]

    @overload
    def step(self, closure: None = None) -> None: ...
    @overload
    def step(self, closure: Callable[[], R]) -> R: ...
    @_reported
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Change every parameter that has a gradient.

        Args:
            closure: Computes the gradients anew and returns the loss; called first.

        Returns:
            The result of `closure`.
        """
        arguments: tuple[tuple[Any, ...], dict[str, Any]] = ((closure,), {})
        for hook in self._pre_hooks:
            changed = hook(self, *arguments)
            if changed is not None:
                arguments = changed
        self.num_steps += 1
        result = self.take_step(*arguments[0], **arguments[1])
        for hook in self._post_hooks:
            hook(self, *arguments)
        return result

    def take_step(self, closure: Callable[[], Any] | None = None) -> Any:  # noqa: ANN401 - the closure's
        """Run the body of `step` between its hooks."""
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        with no_grad():
            for group in self.param_groups:
                for parameter in group["params"]:
                    if parameter.grad is not None:
                        change = self._change(parameter, parameter.grad, group)
                        parameter.sub_(variable(change))
        return loss

    def _change(self, parameter: Tensor, gradient: Tensor, group: Group) -> Array:
        """Return the result of `update`, with the parts common to all optimizers."""
        x, grad = parameter.array, gradient.array
        if group.get("maximize"):
            grad = -grad
        decay = group.get("weight_decay")
        is_apart = group.get("decoupled_weight_decay")
        if decay and not is_apart:
            grad = grad + decay * x
        change = self.update(x, grad, group, self.state[parameter])
        if decay and is_apart:
            # The parameter decays first, and what `update` says comes on top of that.
            change = change + group["lr"] * decay * x
        return change

    def register_step_pre_hook(self, hook: StepHook) -> RemovableHandle:
        """Call ``hook(optimizer, args, kwargs)`` before each step.

        It may return other arguments: a tuple and a dict.
        """
        return append(self, "_pre_hooks", hook)

    def register_step_post_hook(self, hook: StepHook) -> RemovableHandle:
        """Call ``hook(optimizer, args, kwargs)`` after each step."""
        return append(self, "_post_hooks", hook)

    def options_of(self, implementation: Implementation) -> dict[str, Any]:
        """All options of `Implementation` that there are; see `all_options`."""
        return all_options(type(self).__name__, self._implementation, implementation)

    def update(
        self, x: Array, grad: Array, group: Group, state: dict[str, Any]
    ) -> Array:
        """Return the value to subtract from a parameter.

        Works on raw arrays: a step is no part of any graph.

        Args:
            x: The parameter.
            grad: Its gradient, not to be changed, after ``maximize`` and
                ``weight_decay``.
            group: The options.
            state: The saved state of this parameter.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define update()")

    def state_dict(self) -> dict[str, Any]:
        """The options and the state, with parameters as numbers in their order."""
        return state_dict_of(self.param_groups, self.state)

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Load the result of `state_dict`.

        Raises:
            ValueError: Its groups, or shapes, are not those of this optimizer.
        """
        state = loaded(self.param_groups, state_dict, same_shapes=self._keeps_shapes)
        self.state = defaultdict(dict, state)

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for number, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {number}")
            lines += [
                f"    {key}: {group[key]}" for key in sorted(group) if key != "params"
            ]
            lines.append("")
        return "\n".join([*lines[:-1], ")"])


def _as_list(params: Any) -> list[Any]:  # noqa: ANN401 - unchecked
    if isinstance(params, Tensor):
        return [params]
    if isinstance(params, set):
        raise TypeError(
            "optimizer parameters need to be organized in ordered collections, but the "
            "ordering of tensors in sets will change between runs. Please use a list "
            "instead."
        )
    return list(params)


def _check_parameter(parameter: object) -> None:
    if not isinstance(parameter, Tensor):
        raise TypeError(
            f"optimizer can only optimize Tensors, but one of the params is "
            f"{type(parameter).__name__}"
        )
    if not (parameter.is_leaf or parameter.retains_grad):
        raise ValueError("can't optimize a non-leaf Tensor")
