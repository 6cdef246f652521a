"""Calling a module: its ``forward`` with the hooks around it."""

import warnings
import weakref
from collections.abc import Callable, Sequence
from typing import (
    TYPE_CHECKING,
    Any,
    Final,
    NamedTuple,
    NoReturn,
    ParamSpec,
    Protocol,
    TypeAlias,
    TypeVar,
)

from gradviz.engine.graph.grad_mode import is_grad_enabled
from gradviz.engine.graph.node import MODULE_PATH
from gradviz.nn import naming
from gradviz.nn.backward_hooks import BackwardHook, BackwardPreHook, PassThrough
from gradviz.nn.members import Members
from gradviz.nn.tracking import tracking_of
from gradviz.tensors.hooks import RemovableHandle
from gradviz.trace import probe
from gradviz.trace.probe import Tracking
from gradviz.trace.reporting.hook_names import LINES, RegisteredHook
from gradviz.trace.reporting.ids import next_call_id

#: Takes the module and the arguments (and keyword arguments), if asked for.
ForwardPreHook = Callable[..., Any]

#: Takes the module, the arguments (and keyword arguments) and the result.
ForwardHook = Callable[..., Any]


#: Module -> who listened at its last call, and which parameters required a gradient.
_required: "Final[weakref.WeakKeyDictionary[Calling, _Required]]" = (
    weakref.WeakKeyDictionary()
)

_Required: TypeAlias = "tuple[weakref.ref[probe.Probe], dict[str, bool]]"

P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)


class _Forwarding(Protocol[P, R_co]):
    """An object with a ``forward``, whose signature and type a call has."""

    def forward(self, *args: P.args, **kwargs: P.kwargs) -> R_co: ...


class _Hook(NamedTuple):
    """A hook around ``forward``."""

    call: Callable[..., Any]
    with_kwargs: bool
    always_call: bool = False


class Calling(Members):
    """A module as a function."""

    _forward_pre_hooks: tuple[_Hook, ...]
    _forward_hooks: tuple[_Hook, ...]
    _backward_pre_hooks: tuple[RegisteredHook, ...]
    _backward_hooks: tuple[RegisteredHook, ...]

    def __init__(self) -> None:
        super().__init__()
        own = self.__dict__
        own["_forward_pre_hooks"] = own["_forward_hooks"] = ()
        own["_backward_pre_hooks"] = own["_backward_hooks"] = ()

    if TYPE_CHECKING:
        forward: Callable[..., Any]  # which a subclass may narrow as it likes
    else:

        def forward(self, *_: Any) -> Any:
            """Compute the module's output; a subclass defines it.

            Raises:
                NotImplementedError: The subclass does not.
            """
            _refuse(self)

    def __call__(self: _Forwarding[P, R_co], *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Call `forward` between the hooks, and return its result."""
        module: Any = self
        leave = naming.leaving()
        try:
            is_outermost = naming.enter(module)
            if (listener := probe.current) is not None:
                if is_outermost:
                    listener.model_defined(naming.described(module))
                return module._call_heard(listener, args, kwargs)
            if (
                module._forward_hooks
                or module._forward_pre_hooks
                or module._backward_hooks
                or module._backward_pre_hooks
            ):
                return module._call_with_hooks(args, kwargs)
            return self.forward(*args, **kwargs)
        finally:
            leave()

    def _call_heard(
        self, listener: probe.Probe, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Call the module and report it to `listener`."""
        call, has_failed = next_call_id(), True
        path, results = MODULE_PATH.get(), Tracking.UNKNOWN
        self._tell_required(listener, path)
        arguments = Tracking.DISABLED
        if is_grad_enabled():
            arguments = tracking_of((*args, *kwargs.values()))
        line = "" if arguments is Tracking.TRACKED else LINES.of_caller()
        listener.forward_begun(call, path, type(self).__name__, arguments, line)
        try:
            result = self._call_with_hooks(args, kwargs)
            has_failed, results = False, tracking_of((result,))
        finally:
            listener.forward_ended(call, has_failed, results)
        return result

    def _tell_required(self, listener: probe.Probe, path: str) -> None:
        """Report parameters whose ``requires_grad`` changed since the last call.

        Whoever did not listen then is told of all that require none.
        """
        required = {
            name: one.requires_grad
            for name, one in self._parameters.items()
            if one is not None
        }
        told_to, before = _required.get(self, (None, {}))
        if told_to is None or told_to() is not listener:
            before = {}
        if required != before:
            _required[self] = weakref.ref(listener), required
            for name, now in required.items():
                if before.get(name, True) is not now:
                    listener.requires_grad_set(f"{path}.{name}", now)

    def _call_with_hooks(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        called: list[_Hook] = []
        result = None
        try:
            args, kwargs = self._run_pre_hooks(args, kwargs)
            around = None
            if self._backward_hooks or self._backward_pre_hooks:
                around = PassThrough(
                    self, self._backward_hooks, self._backward_pre_hooks
                )
                args = around.of_inputs(args)
            result = self.forward(*args, **kwargs)
            for hook in self._forward_hooks:
                called.append(hook)
                result = _replaced(result, self._run(hook, args, kwargs, result))
            return around.of_outputs(result) if around else result
        except Exception:
            self._run_always(called, args, kwargs, result)
            raise

    def _run_pre_hooks(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        for hook in self._forward_pre_hooks:
            if not hook.with_kwargs:
                changed = hook.call(self, args)
                if changed is not None:
                    args = changed if isinstance(changed, tuple) else (changed,)
                continue
            changed = hook.call(self, args, kwargs)
            if changed is None:
                continue
            if not (isinstance(changed, tuple) and len(changed) == 2):
                raise RuntimeError(
                    f"forward pre-hook must return None or a tuple of (new_args, "
                    f"new_kwargs), but got {changed}."
                )
            args, kwargs = changed
        return args, kwargs

    def _run(
        self, hook: _Hook, args: tuple[Any, ...], kwargs: dict[str, Any], result: object
    ) -> object:
        if hook.with_kwargs:
            return hook.call(self, args, kwargs, result)
        return hook.call(self, args, result)

    def _run_always(
        self,
        called: Sequence[_Hook],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        result: object,
    ) -> None:
        """After an error: the hooks that want to be called in any case."""
        for hook in self._forward_hooks:
            if not hook.always_call or hook in called:
                continue
            try:
                result = _replaced(result, self._run(hook, args, kwargs, result))
            except Exception as error:  # noqa: BLE001 - the first error is on its way
                warnings.warn(
                    f"module forward hook with ``always_call=True`` raised an "
                    f"exception that was silenced as another error was raised in "
                    f"forward: {error}",
                    stacklevel=4,
                )

    # --- hooks ------------------------------------------------------------------------

    def register_forward_pre_hook(
        self,
        hook: ForwardPreHook,
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
    ) -> RemovableHandle:
        """Call ``hook(module, args)`` before each call; it may return other arguments.

        Args:
            hook: The function.
            prepend: True if it is called before the hooks there are.
            with_kwargs: True if it is called ``hook(module, args, kwargs)``, and
                returns None or both.
        """
        return self._add("_forward_pre_hooks", _Hook(hook, with_kwargs), prepend)

    def register_forward_hook(
        self,
        hook: ForwardHook,
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> RemovableHandle:
        """Call ``hook(module, args, result)`` after each call; it may return another.

        Args:
            hook: The function.
            prepend: True if it is called before the hooks there are.
            with_kwargs: True if it is called ``hook(module, args, kwargs, result)``.
            always_call: True if it is called after an error, too.
        """
        entry = _Hook(hook, with_kwargs, always_call)
        return self._add("_forward_hooks", entry, prepend)

    def register_full_backward_hook(
        self, hook: BackwardHook, prepend: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, grad_input, grad_output)`` in each backward.

        Once the gradients of the module's positional tensor arguments are there; it may
        return others in their place.
        """
        entry = RegisteredHook(hook, LINES.of_caller())
        return self._add("_backward_hooks", entry, prepend)

    def register_full_backward_pre_hook(
        self, hook: BackwardPreHook, prepend: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, grad_output)`` before each backward through the module.

        It may return other gradients of the module's results.
        """
        entry = RegisteredHook(hook, LINES.of_caller())
        return self._add("_backward_pre_hooks", entry, prepend)

    def _add(self, kind: str, entry: object, prepend: bool) -> RemovableHandle:
        own = self.__dict__
        own[kind] = (entry, *own[kind]) if prepend else (*own[kind], entry)

        def remove() -> None:
            own[kind] = tuple(one for one in own[kind] if one is not entry)

        return RemovableHandle(remove)


def _replaced(result: object, by: object) -> object:
    return result if by is None else by


def _refuse(module: object) -> NoReturn:
    raise NotImplementedError(
        f'Module [{type(module).__name__}] is missing the required "forward" function'
    )
