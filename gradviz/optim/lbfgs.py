"""L-BFGS: steps by the curvature that past steps have shown."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from gradviz.autograd.grad_mode import enable_grad, no_grad
from gradviz.backends.base import Array
from gradviz.ops.variables.variable import variable
from gradviz.optim.line_search import LinePoint, strong_wolfe
from gradviz.optim.optimizer import Optimizer, Parameters
from gradviz.optim.options import check_not_negative
from gradviz.optim.state import Group
from gradviz.tensors.tensor import Tensor

#: Less curvature than this is not remembered.
_LEAST_CURVATURE = 1e-10


class _Memory(NamedTuple):
    """Past steps.

    Attributes:
        grads: Changes of the gradient, step by step.
        steps: The steps themselves.
        inverses: One over the product of the two.
    """

    grads: list[Array]
    steps: list[Array]
    inverses: list[float]

    def remember(self, grad: Array, step: Array, curvature: float, size: int) -> None:
        """Keep a step, and no more than `size`."""
        for values, value in zip(self, (grad, step, 1 / curvature), strict=True):
            if len(values) == size:
                values.pop(0)
            values.append(value)

    def direction(self, grad: Array, scale: float) -> Array:
        """Minus the gradient, times the inverse of the curvature."""
        past = list(zip(self.grads, self.steps, self.inverses, strict=True))
        result = -grad
        shares = []
        for change, step, inverse in reversed(past):
            share = float(np.dot(step, result)) * inverse
            result = result - share * change
            shares.append(share)
        result = result * scale
        for (change, step, inverse), share in zip(past, reversed(shares), strict=True):
            back = float(np.dot(change, result)) * inverse
            result = result + (share - back) * step
        return result


class LBFGS(Optimizer):
    """Limited-memory BFGS (Liu & Nocedal, 1989): `step` takes several steps at once.

    All parameters are in one group and on one device.

    Args:
        params: See `Optimizer`.
        lr: Learning rate: the length of a step, in lengths of the direction.
        max_iter: Maximum number of steps at once.
        max_eval: Maximum number of times to compute the loss; 5/4 of `max_iter` if not
            given.
        tolerance_grad: No gradient larger than this: done.
        tolerance_change: No change larger than this: done.
        history_size: Number of past steps to remember.
        line_search_fn: ``strong_wolfe``, or None to go as far as `lr` says.

    Raises:
        ValueError: `lr` is negative, or there are several groups.

    Source: torch/optim/lbfgs.py.
    """

    _keeps_shapes = False

    def __init__(
        self,
        params: Parameters,
        lr: float = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        check_not_negative("learning rate", lr)
        defaults = {
            "lr": lr,
            "max_iter": max_iter,
            "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad,
            "tolerance_change": tolerance_change,
            "history_size": history_size,
            "line_search_fn": line_search_fn,
        }
        super().__init__(params, defaults)
        if len(self.param_groups) != 1:
            raise ValueError(
                "LBFGS doesn't support per-parameter options (parameter groups)"
            )

    def take_step(self, closure: Callable[[], Any] | None = None) -> Any:  # noqa: ANN401 - the closure's
        """Take several steps.

        Args:
            closure: Clears the gradients, computes the loss and its gradients, and
                returns the loss; called many times.

        Returns:
            The result of the first call of `closure`.

        Raises:
            TypeError: There is no closure.
            RuntimeError: The line search is not known.
        """
        if closure is None:
            raise TypeError("LBFGS.step() missing 1 required argument: 'closure'")
        with no_grad():
            return _Minimization(self.param_groups[0], self.state, closure).run()


class _Minimization:
    """One call of `LBFGS.step`.

    Args:
        group: The only one.
        states: The optimizer's; all is kept with the first parameter.
        closure: See `LBFGS.step`.
    """

    def __init__(
        self, group: Group, states: dict[Tensor, Any], closure: Callable[[], Any]
    ) -> None:
        self.group = group
        self.parameters: list[Tensor] = group["params"]
        self.state = states[self.parameters[0]]
        self.state.setdefault("func_evals", 0)
        self.state.setdefault("n_iter", 0)
        self.closure = closure
        self.num_evaluations = 0

    def run(self) -> Any:  # noqa: ANN401 - the closure's
        first, loss, grad = self._evaluate()
        if self._is_flat(grad):
            return first
        group, state = self.group, self.state
        for number in range(1, group["max_iter"] + 1):
            direction = self._direction(grad)
            before, state["prev_loss"] = loss, loss
            state["prev_flat_grad"] = variable(grad.copy())
            distance = group["lr"]
            if state["n_iter"] == 1:
                distance *= min(1.0, 1.0 / float(np.sum(np.abs(grad))))
            state["d"], state["t"] = variable(direction), distance
            slope = float(np.dot(grad, direction))
            if slope > -group["tolerance_change"]:
                break
            is_last = number == group["max_iter"]
            start = LinePoint(0.0, loss, grad, slope)
            loss, grad, distance = self._move(start, distance, direction, is_last)
            state["t"] = distance
            if (
                is_last
                or self.num_evaluations >= group["max_eval"]
                or self._is_flat(grad)
                or float(np.max(np.abs(direction * distance)))
                <= group["tolerance_change"]
                or abs(loss - before) < group["tolerance_change"]
            ):
                break
        return first

    def _direction(self, grad: Array) -> Array:
        state = self.state
        state["n_iter"] += 1
        if state["n_iter"] == 1:
            state.update(old_dirs=[], old_stps=[], ro=[], H_diag=1.0)
            return -grad
        change = grad - state["prev_flat_grad"].array
        step = state["d"].array * state["t"]
        memory = _Memory(state["old_dirs"], state["old_stps"], state["ro"])
        curvature = float(np.dot(change, step))
        if curvature > _LEAST_CURVATURE:
            memory.remember(change, step, curvature, self.group["history_size"])
            state["H_diag"] = curvature / float(np.dot(change, change))
        return memory.direction(grad, state["H_diag"])

    def _move(
        self, start: LinePoint, distance: float, direction: Array, is_last: bool
    ) -> tuple[float, Array, float]:
        """Go; returns the loss and gradient there, and how far it was."""
        search = self.group["line_search_fn"]
        if search is None:
            self._go(distance, direction)
            if is_last:  # nobody would look at the loss
                return start.loss, start.grad, distance
            _, loss, grad = self._evaluate()
            return loss, grad, distance
        if search != "strong_wolfe":
            raise RuntimeError("only 'strong_wolfe' is supported")
        originals = [one.array.copy() for one in self.parameters]

        def evaluate(distance: float) -> tuple[float, Array]:
            self._go(distance, direction)
            _, loss, grad = self._evaluate()
            for parameter, original in zip(self.parameters, originals, strict=True):
                parameter.copy_(variable(original))
            return loss, grad

        left = self.group["max_eval"] - self.num_evaluations
        point, _ = strong_wolfe(evaluate, distance, direction, start, left)
        self._go(point.distance, direction)
        return point.loss, point.grad, point.distance

    def _evaluate(self) -> tuple[Any, float, Array]:
        """Return the closure's result, and the loss and gradient as numbers."""
        with enable_grad():
            result = self.closure()
        self.num_evaluations += 1
        self.state["func_evals"] += 1
        grads = [
            np.zeros_like(one.array) if one.grad is None else one.grad.array
            for one in self.parameters
        ]
        flat = np.concatenate([np.reshape(one, -1) for one in grads])
        return result, float(result), flat

    def _go(self, distance: float, direction: Array) -> None:
        offset = 0
        for parameter in self.parameters:
            size = parameter.array.size
            part = direction[offset : offset + size] * distance
            parameter.add_(variable(part.reshape(parameter.shape)))
            offset += size

    def _is_flat(self, grad: Array) -> bool:
        return float(np.max(np.abs(grad))) <= float(self.group["tolerance_grad"])
