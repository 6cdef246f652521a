"""Variables that an op saves until backward, and the hooks that may change them.

Note [Saving]
~~~~~~~~~~~~~
As in PyTorch, a node saves an input as the variable itself, and a result as a variable
with the same memory outside the graph, for the result leads back to the node and would
keep it alive. Both share the count of changes of the memory, and backward refuses what
was changed since (G17).

Nearly always the count is 0 when a variable is saved, and nobody wants to hear of it.
Then the variable alone is put among what is saved, which takes no time; a
`SavedVariable` stands for all other cases. So a variable that was saved by itself is
expected at version 0.
"""

import contextlib
import re
import sys
import weakref
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple, TypeAlias

from gradviz.backends.base import Array
from gradviz.backends.device import CPU
from gradviz.engine import default_engine
from gradviz.engine.graph import anomaly
from gradviz.engine.graph.grad_mode import GRAD_ENABLED
from gradviz.engine.graph.node import Edge, Node
from gradviz.engine.graph.protocols import size_bytes
from gradviz.modes import Entered, Mode
from gradviz.ops.conventions.dtype_names import scalar_type_name
from gradviz.ops.variables.variable import (
    Value,
    Variable,
    detached,
    device_of,
    variable,
)
from gradviz.ops.variables.version import INFERENCE, Version
from gradviz.trace import probe

#: Takes the variable to save, returns what to keep in its place.
PackHook: TypeAlias = Callable[[Any], object]

#: Takes what the pack hook returned, returns a variable.
UnpackHook: TypeAlias = Callable[[Any], Any]

#: Source: torch/csrc/autograd/saved_variable.cpp, ERR_BACKWARD_TWICE (N3).
SECOND_BACKWARD: Final = (
    "Trying to backward through the graph a second time (or directly access saved "
    "tensors after they have already been freed). Saved intermediate values of the "
    "graph are freed when you call .backward() or autograd.grad(). Specify "
    "retain_graph=True if you need to backward through the graph a second time or if "
    "you need to access saved tensors after calling backward."
)

#: Source: the same, SavedVariable::register_hooks.
FREED: Final = (
    "Calling register_hooks on a saved tensor after it has been freed. Saved "
    "intermediate values of the graph are freed when you call .backward() or "
    "autograd.grad(). Specify retain_graph=True if you need to backward through the "
    "graph a second time or if you need to access saved variables after calling "
    "backward."
)


class Hooks(NamedTuple):
    """A pair of hooks."""

    pack: PackHook
    unpack: UnpackHook


#: The pairs that any context has: ops ask no further while there are none.
HOOKS_IN_USE: Final[set[weakref.ref[Entered]]] = set()


class _EnteredHooks(Entered):
    """A pair of hooks, which a block inside of those of `outer` was entered with."""

    __slots__ = ("hooks", "outer")

    def __init__(self, hooks: Hooks, outer: "_EnteredHooks | None") -> None:
        super().__init__(HOOKS_IN_USE)
        self.hooks = hooks
        self.outer = outer


class _Saving(NamedTuple):
    """Per-context settings of saving.

    Attributes:
        innermost: The pair of hooks in use.
        refusal: Error for an attempt to add hooks; None allows it.
    """

    innermost: _EnteredHooks | None = None
    refusal: str | None = None


#: The threads of a backward inherit it.
_SAVING: Final = Mode("gradviz.saving", default=_Saving())


def push_hooks(pack: PackHook, unpack: UnpackHook) -> None:
    """Pass tensors saved in this context through `pack`, and back by `unpack`.

    Raises:
        RuntimeError: Hooks are disabled.
    """
    innermost, refusal = _SAVING.get()
    if refusal is not None:
        raise RuntimeError(refusal)
    _SAVING.set(_Saving(_EnteredHooks(Hooks(pack, unpack), innermost)))


def pop_hooks() -> None:
    """Take away the innermost pair of hooks of this context.

    Raises:
        RuntimeError: There is none.
    """
    innermost, refusal = _SAVING.get()
    if innermost is None:
        raise RuntimeError(
            "saved_tensors_hooks: there are no hooks here to take away: the block was "
            "left more often than entered, or entered in a backward, which takes them "
            "away when its node has run"
        )
    _SAVING.set(_Saving(innermost.outer, refusal))


@contextlib.contextmanager
def hooks_on_saving(pack: PackHook, unpack: UnpackHook) -> Iterator[None]:
    """A block for which `push_hooks` holds."""
    outer = _SAVING.get()
    push_hooks(pack, unpack)
    try:
        yield
    finally:
        _SAVING.set(outer)


@contextlib.contextmanager
def no_hooks_on_saving(refusal: str) -> Iterator[None]:
    """Forbid new hooks in this context.

    Args:
        refusal: The message of the error they get.

    Raises:
        RuntimeError: There are hooks already.
    """
    saving = _SAVING.get()
    if saving.innermost is not None:
        raise RuntimeError(refusal)
    _SAVING.set(_Saving(refusal=refusal))
    try:
        yield
    finally:
        _SAVING.set(saving)


def current_hooks() -> Hooks | None:
    """Return the hooks on tensors saved here."""
    innermost = _SAVING.get().innermost
    return None if innermost is None else innermost.hooks


def save(x: Variable, *, output_nr: int | None = None) -> "Variable | SavedVariable":
    """Return the form of `x` to save; see Note [Saving].

    Args:
        x: An input, or a result outside the graph.
        output_nr: Index of the result; None for an input.
    """
    if not HOOKS_IN_USE and (x.version is None or not x.version.value):
        return x
    return SavedVariable(x, output_nr=output_nr)


class SavedVariable:
    """A variable that was saved, at any version, perhaps through hooks.

    Args:
        x: The variable: an input of the op, or a result outside the graph.
        output_nr: Index of the result; None for an input.
        place: Place of a result in the graph, if not at its node's output.

    Raises:
        RuntimeError: `x` is an inference tensor, or a pack hook changes it.

    Source: torch/csrc/autograd/saved_variable.h.
    """

    __slots__ = (
        "_data",
        "_edge",
        "_hooks",
        "_leaf",
        "_needs_grad",
        "_output_nr",
        "_packed",
        "_place",
        "_version",
        "_was_leaf",
    )

    def __init__(
        self,
        x: Variable,
        *,
        output_nr: int | None = None,
        place: Callable[[], Edge] | None = None,
    ) -> None:
        if x.version is INFERENCE:
            raise RuntimeError(_INFERENCE_SAVED)
        self._data: Variable | None = x
        self._version = 0 if x.version is None else x.version.value
        self._output_nr = output_nr
        self._place = place
        self._was_leaf = output_nr is None and x.is_leaf
        self._hooks: Hooks | None = None
        self._packed: object = None
        if (
            output_nr is None
            and HOOKS_IN_USE
            and (hooks := current_hooks()) is not None
        ):
            self._pack(hooks, x, like=x)

    @property
    def nbytes(self) -> int:
        """Bytes held; after a pack hook those that its result reports."""
        return size_bytes(self.held)

    @property
    def held(self) -> object:
        """The variable, or the result of a pack hook; None once it was released."""
        return self._data if self._hooks is None else self._packed

    @property
    def is_begun(self) -> bool:
        """Return whether its class made it, and not `__new__` alone."""
        return getattr(self, "_was_leaf", None) is not None

    def pack_result(self, node: Node) -> None:
        """Put a saved result through the hooks, now that its node is there."""
        hooks = current_hooks()
        if self._output_nr is not None and self._data is not None and hooks is not None:
            x = self._attached(self._data, node)
            self._pack(hooks, x, like=self._data)

    def register_hooks(self, *hooks: object) -> None:
        """Put the saved tensor through a pack hook now, an unpack hook in backward.

        Args:
            *hooks: These two.

        Raises:
            RuntimeError: It was freed, or has hooks.
            TypeError: There are not two, or one cannot be called.
        """
        pair = checked_hooks(*hooks)
        if self._hooks is not None:
            raise RuntimeError(
                "Calling register_hooks on a saved tensor whose hooks have already "
                "been set. Hint: only one pair of hooks is allowed at a time."
            )
        if self._data is None:
            raise RuntimeError(FREED)
        self._pack(pair, detached(self._data), like=self._data)

    def unpack(self, node: Node | None = None) -> Value:
        """The variable, in its place in the graph.

        Args:
            node: Node that saved it.

        Raises:
            RuntimeError: It was freed, or changed since it was saved; a hook returned
                something else.
        """
        if self._hooks is not None:
            return self._unpacked(self._hooks, node)
        if self._data is None:
            raise RuntimeError(SECOND_BACKWARD)
        check_unchanged(
            self._data,
            self._version,
            node,
            output_nr=self._output_nr,
            was_leaf=self._was_leaf,
        )
        return self._attached(self._data, node)

    def release(self) -> None:
        """Release it."""
        self._data = self._packed = self._hooks = None

    def _attached(self, data: Variable, node: Node | None) -> Value:
        if self._place is None or not GRAD_ENABLED.get():
            return attached(data, node, self._output_nr)
        result: Variable = variable(data.array, self._place())
        result.version = data.version
        return result

    def _pack(self, hooks: Hooks, x: Variable, *, like: Variable) -> None:
        """Put `x` through the pack hook; `like` has the place in the graph to keep."""
        self._needs_grad, self._edge = like.requires_grad, like.edge
        self._leaf = like if self._needs_grad and self._edge is None else None
        was_enabled = GRAD_ENABLED.get()
        before = x.version.value if x.version else 0
        try:  # without a token: see Note [Silence]
            GRAD_ENABLED.set(False)
            self._packed = hooks.pack(x)
        finally:
            GRAD_ENABLED.set(was_enabled)
        if (x.version.value if x.version else 0) != before:
            raise RuntimeError(
                "A saved tensor pack hook is modifying its input in place. Tensors "
                "provided as input to pack hook cannot be modified by in-place "
                "operations as this can lead to unexpected side-effects. Please open "
                "an issue if you need to perform in-place operations on the input to "
                "a pack hook."
            )
        self._hooks = hooks
        self._data = None

    def _unpacked(self, hooks: Hooks, node: Node | None) -> Value:
        result = hooks.unpack(self._packed)
        if not isinstance(result, Variable):
            raise TypeError(
                f"Output of saved tensor unpack_hook expected to be a Tensor but got "
                f"result of type {type(result).__name__}"
            )
        if self._output_nr is not None:
            return self._attached(result, node)
        if not (self._needs_grad or result.requires_grad):
            return result
        x: Variable = variable(result.array, self._edge)
        x.version = result.shared_version()
        if self._leaf is not None:  # its gradient goes where it went
            x.needs_grad = True
            x._accumulator = self._leaf.accumulator()
        return x


def checked_hooks(*hooks: Any) -> Hooks:  # noqa: ANN401 - that is the question
    """The hooks to be registered on something saved.

    Raises:
        TypeError: There are not two, or one cannot be called.
    """
    if len(hooks) != 2 or not all(map(callable, hooks)):
        given = ", ".join(type(hook).__name__ for hook in hooks)
        raise TypeError(
            f"register_hooks(): incompatible function arguments. Expected two "
            f"functions (pack_hook, unpack_hook), got ({given})"
        )
    return Hooks(*hooks)


def attached(data: Variable, node: Node | None, output_nr: int | None) -> Value:
    """Return a saved value in its place in the graph: results get back their edge."""
    if output_nr is None:
        return data
    result: Variable = variable(data.array, Edge(node, output_nr))
    result.version = data.version
    return result


def check_unchanged(
    data: Variable,
    expected: int,
    node: Node | None,
    *,
    output_nr: int | None,
    was_leaf: bool,
) -> None:
    """Raise PyTorch's error if a variable was changed since it was saved (G17).

    Args:
        data: Variable that was saved.
        expected: Its version then.
        node: Node that saved it.
        output_nr: Index among the results of `node`; None for an input.
        was_leaf: True if it was a leaf then.

    Source: torch/csrc/autograd/saved_variable.cpp, SavedVariable::unpack.
    """
    source, number = data.grad_fn, data.output_nr
    if output_nr is not None:
        source, number = node, output_nr
    elif source is None and not was_leaf:
        raise RuntimeError(
            "Trying to use a saved tensor that has been detached in-place, i.e. with "
            ".detach_().This is not supported, please use out-of-place `.detach()` "
            "instead"
        )
    version = 0 if data.version is None else data.version.value
    if version == expected:
        return
    if data.version is not None and (listener := probe.current) is not None:
        _report_changes(listener, data.version, expected)
    origin = f", which is output {number} of {op_name(source)}," if source else ""
    hint = (
        "enable anomaly detection to find the operation that failed to compute its "
        "gradient, with gradviz.autograd.set_detect_anomaly(True, check_nan=False)."
        if not anomaly.SWITCHED_ON
        else "the backtrace further above shows the operation that failed to compute "
        "its gradient. The variable in question was changed in there or anywhere "
        "later. Good luck!"
    )
    raise RuntimeError(
        f"one of the variables needed for gradient computation has been modified by an "
        f"inplace operation: [{_type_name(data.array)} "
        f"{list(data.array.shape)}]{origin} is at version {version}; expected version "
        f"{expected} instead. Hint: {hint}"
    )


def _report_changes(listener: probe.Probe, version: Version, expected: int) -> None:
    """Report the lines that changed a variable since it was saved."""
    graph_task = default_engine().current_graph_task
    for value, line in version.changes:
        if value > expected and graph_task is not None:
            listener.tensor_changed(graph_task.id, "", line, sys.maxsize)


def _type_name(array: Array) -> str:
    """Return PyTorch's name for the class of such a tensor, in this package."""
    device = device_of(array)
    place = "" if device is CPU else f"{device.type}."
    return f"gradviz.{place}{scalar_type_name(array.dtype)}Tensor"


def op_name(node: Node) -> str:
    """Return the op of a node: Mul for MulBackward0, Sum1 for SumBackward1."""
    return _BACKWARD.sub("", type(node).__name__)


_BACKWARD: Final = re.compile(r"Backward(0?$|(?=\d+$))")

_INFERENCE_SAVED: Final = (
    "Inference tensors cannot be saved for backward. Please do not use Tensors created "
    "in inference mode in computation tracked by autograd. To work around this, you "
    "can make a clone to get a normal tensor and use it in autograd, or use "
    "`gradviz.no_grad()` instead of `gradviz.inference_mode()`."
)
