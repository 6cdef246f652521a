"""Checkpointing by a backward inside the backward.

The forward records nothing; the backward runs the function once more, records it, and
goes back through that at once. Source: torch/utils/checkpoint.py, CheckpointFunction.
"""

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from gradviz.autograd import backward as run_backward
from gradviz.autograd import enable_grad, no_grad
from gradviz.autograd.function import Function
from gradviz.checkpointing.second_run import remembered
from gradviz.engine import default_engine
from gradviz.ops.variables.variable import Value, Variable


class CheckpointFunction(Function):
    """Runs a function, and when its gradients are wanted runs it again."""

    @staticmethod
    def forward(  # noqa: D102 - see Function
        ctx: Any,  # noqa: ANN401 - with attributes of its own
        run_function: Callable[..., Any],
        preserve_rng_state: bool,
        *args: object,
    ) -> object:
        _warn_if_useless(args)
        ctx.run_function = run_function
        ctx.as_then = remembered(preserve_rng_state)
        ctx.arguments = [None if isinstance(x, Variable) else x for x in args]
        ctx.places = [i for i, x in enumerate(args) if isinstance(x, Variable)]
        ctx.save_for_backward(*(x for x in args if isinstance(x, Variable)))
        with no_grad():
            return run_function(*args)

    @staticmethod
    def backward(ctx: Any, *grads: Value) -> tuple[Value, ...]:  # noqa: ANN401, D102 - see Function
        if not default_engine().is_checkpoint_valid():
            raise RuntimeError(
                "When use_reentrant=True, torch.utils.checkpoint is incompatible with "
                ".grad() or passing an `inputs` parameter to .backward(). To resolve "
                "this error, you can either set use_reentrant=False, or call "
                ".backward() without passing the `inputs` argument."
            )
        inputs = _detached_inputs(ctx)
        with ctx.as_then(), enable_grad():
            outputs = ctx.run_function(*inputs)
        outputs = (outputs,) if isinstance(outputs, Variable) else outputs
        pairs = [
            (output, grad)
            for output, grad in zip(outputs, grads, strict=False)
            if isinstance(output, Variable) and output.requires_grad
        ]
        if not pairs:
            raise RuntimeError(
                "none of output has requires_grad=True, this checkpoint() is not "
                "necessary"
            )
        run_backward([output for output, _ in pairs], [grad for _, grad in pairs])
        found = (x.grad if isinstance(x, Variable) else None for x in inputs)
        return (None, None, *found)


def _warn_if_useless(args: Sequence[object]) -> None:
    if not any(isinstance(x, Variable) and x.requires_grad for x in args):
        warnings.warn(
            "None of the inputs have requires_grad=True. Gradients will be None",
            UserWarning,
            stacklevel=5,
        )


def _detached_inputs(ctx: Any) -> list[Any]:  # noqa: ANN401 - as above
    """The arguments of the forward, tensors as leaves of their own."""
    inputs = list(ctx.arguments)
    for place, tensor in zip(ctx.places, ctx.saved_tensors, strict=True):
        leaf = tensor.detach()
        leaf.requires_grad = tensor.requires_grad
        inputs[place] = leaf
    return inputs
