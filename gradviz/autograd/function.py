"""Custom functions: a user's own forward and backward.

Source: torch/autograd/function.py, torch/csrc/autograd/python_function.cpp,
torch/csrc/autograd/custom_function.cpp.
"""

import inspect
import warnings
from typing import Any, ClassVar, Final, NoReturn

from gradviz.autograd.function_context import FunctionCtx
from gradviz.autograd.function_node import FunctionNode
from gradviz.autograd.function_outputs import attach
from gradviz.autograd.once_differentiable import once_differentiable
from gradviz.engine.graph.grad_mode import GRAD_ENABLED, grad_enabled
from gradviz.modes import assign, keep_table
from gradviz.ops.variables.variable import Value, Variable
from gradviz.tensors.tensor import Tensor

__all__ = [
    "BackwardCFunction",
    "Function",
    "FunctionCtx",
    "InplaceFunction",
    "once_differentiable",
]


class Function:
    """A user's differentiable function: subclass it, and call ``apply``.

    Either ``forward(ctx, *args)`` does everything, or ``forward(*args)`` computes and
    ``setup_context(ctx, inputs, output)`` keeps what ``backward(ctx, *grads)`` needs::

        class Exp(gv.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                result = x.exp()
                ctx.save_for_backward(result)
                return result

            @staticmethod
            def backward(ctx, grad):
                (result,) = ctx.saved_tensors
                return grad * result

        y = Exp.apply(x)

    Forward runs with gradient mode off. Backward runs on the thread of the outputs'
    device, with gradient mode on if the pass is to be differentiated again.

    With ``boxed_grads_call = True`` backward gets the gradients as one list, which it
    may empty. With ``clear_saved_tensors_on_access = True`` it can read
    ``ctx.saved_tensors`` only once: the result is then the only reference to them.

    Differs: there is no vmap and no forward-mode differentiation; ``vmap``,
    ``generate_vmap_rule`` and ``jvp`` may be defined and are never called.
    """

    generate_vmap_rule = False
    boxed_grads_call = False
    clear_saved_tensors_on_access = False

    _backward_cls: ClassVar[type["BackwardCFunction"]]

    def __init_subclass__(cls, **kwargs: Any) -> None:  # noqa: ANN401 - as any class
        super().__init_subclass__(**kwargs)
        cls._backward_cls = type(
            f"{cls.__name__}Backward",
            (BackwardCFunction,),
            {"_forward_cls": cls, "__module__": cls.__module__},
        )

    def __init__(self, *args: object, **kwargs: object) -> None:
        del args, kwargs
        warnings.warn(
            f"{type(self)} should not be instantiated. Methods on autograd functions "
            f"are all static, so you should invoke them on the class itself. "
            f"Instantiating an autograd function will raise an error in a future "
            f"version of PyTorch.",
            DeprecationWarning,
            stacklevel=2,
        )

    def __call__(self, *args: object, **kwargs: object) -> NoReturn:
        """Refuse the calling convention of PyTorch 0.x.

        Raises:
            RuntimeError: Always.
        """
        del args, kwargs
        raise RuntimeError(
            "Legacy autograd function with non-static forward method is deprecated. "
            "Please use new-style autograd function with static forward method. "
            "(Example: https://pytorch.org/docs/stable/autograd.html"
            "#torch.autograd.Function)"
        )

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - the user's
        """Compute the outputs; with ``ctx`` first unless there is a `setup_context`."""
        raise NotImplementedError(
            "You must implement the forward function for custom autograd.Function."
        )

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:  # noqa: ANN401 - the user's
        """Keep the parts of `inputs` and `output` that ``backward`` needs in `ctx`."""
        raise NotImplementedError("setup_context is not implemented.")

    # ``**_`` makes type checkers accept any arguments of a user's method.

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any, **_: Any) -> Any:  # noqa: ANN401 - the user's
        """Return the gradient of each argument of ``forward``, None for those without.

        Args:
            ctx: The context of the forward.
            *grad_outputs: The gradient of each output.
        """
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom "
            "autograd.Function to use it with backward mode AD."
        )

    #: Another name of `backward`; only one of the two may be defined.
    vjp = backward

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any, **_: Any) -> Any:  # noqa: ANN401 - the user's
        """Return the tangents of the outputs; gradviz never calls it."""
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use "
            "it with forward mode AD."
        )

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:  # noqa: ANN401 - the user's
        """Apply the function to batches; gradviz never calls it."""
        raise NotImplementedError(
            "To use autograd.Function with vmap, you must either override the vmap "
            "staticmethod or set generate_vmap_rule=True."
        )

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - the user's
        """Run the forward, and record its node if a gradient is wanted.

        Returns:
            The results of ``forward``; its tensors are part of the graph.

        Raises:
            RuntimeError: A leaf that needs gradients was changed in place, or a tensor
                marked as dirty was not returned.
        """
        has_setup = cls.setup_context is not Function.setup_context
        if has_setup:
            bound = inspect.signature(cls.forward).bind(*args, **kwargs)
            bound.apply_defaults()
            args, kwargs = bound.args, bound.kwargs
        inputs = (*args, *kwargs.values())
        needs = tuple([isinstance(x, Variable) and x.requires_grad for x in inputs])
        is_recorded = grad_enabled() and True in needs
        ctx = cls._backward_cls(needs, inputs, is_recorded=is_recorded)
        was_enabled = grad_enabled()
        try:  # like `no_grad`, which takes as long as the rest of the call
            assign(GRAD_ENABLED, False)
            if has_setup:
                output = cls.forward(*args, **kwargs)
                cls.setup_context(ctx, args, output)
            else:
                output = cls.forward(ctx, *args, **kwargs)
        finally:
            # Not `assign`, a Python function: see Note [Undone in one call].
            try:
                _table = keep_table()
            finally:
                GRAD_ENABLED.set(was_enabled)
        outputs = output if isinstance(output, tuple) else (output,)
        node = ctx if is_recorded else None
        attached = attach(ctx, node, inputs, outputs, has_setup=has_setup)
        return attached if isinstance(output, tuple) else attached[0]


#: The value of `Function.vjp` and `Function.backward` if the user defines neither.
_NOT_DEFINED: Final = Function.vjp


class BackwardCFunction(FunctionNode):
    """The node of a `Function`; its class is named after the function's."""

    _forward_cls: ClassVar[type[Function]] = Function
    _is_cleared = False

    @property
    def saved_tensors(self) -> tuple[Tensor, ...]:
        """Saved tensors, as in `FunctionCtx`.

        Raises:
            RuntimeError: As there; or the function clears them, and they were read.
        """
        if not self._forward_cls.clear_saved_tensors_on_access:
            return super().saved_tensors
        if self._is_cleared:
            raise RuntimeError(
                "saved_tensors can only be accessed once when "
                "clear_saved_tensors_on_access=True is set on the autograd.Function. "
                "Either access saved_tensors only once, or set "
                "clear_saved_tensors_on_access=False."
            )
        tensors = super().saved_tensors
        self._saved, self._is_cleared = (), True
        return tensors

    def apply(self, *grads: Value) -> Any:  # noqa: ANN401 - the user's
        """Call the user's ``backward`` and return its result.

        Raises:
            RuntimeError: There are both a ``backward`` and a ``vjp``.
        """
        cls = type(self)._forward_cls
        function, vjp = cls.backward, cls.vjp
        if vjp is not _NOT_DEFINED:
            if function is not _NOT_DEFINED:
                raise RuntimeError(
                    "Implementing both 'backward' and 'vjp' for a custom Function is "
                    "not allowed. You should only implement one of them."
                )
            function = vjp
        if cls.boxed_grads_call:
            return function(self, list(grads))
        if len(grads) == 1:  # nearly always, and in half the time of the general way
            return function(self, grads[0])
        return function(self, *grads)


class InplaceFunction(Function):
    """PyTorch's old base class of functions that may work in place."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace
