"""The engine's own nodes, one for each end of a pass."""

import itertools
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final

from gradviz.backends.base import device_of
from gradviz.backends.device import CPU, Device
from gradviz.engine.graph.grad_mode import grad_enabled
from gradviz.engine.graph.input_buffer import (
    fits,
    is_sole_reference,
    is_writeable,
    owns_its_memory,
)
from gradviz.engine.graph.node import MAX_SEQUENCE_NR, Edge, InputMetadata, Node, begin
from gradviz.engine.graph.protocols import Gradient, Leaf
from gradviz.engine.graph.sync import LeafLock, out_of_memory
from gradviz.trace.format.strings import one_a_line
from gradviz.trace.probe import How

# when compiled: found
_COPIED: Final = How.COPIED
_IN_PLACE: Final = How.IN_PLACE
_OUT_OF_PLACE: Final = How.OUT_OF_PLACE
_STOLEN: Final = How.STOLEN
_UNDEFINED: Final = How.UNDEFINED


class GraphRoot(Node):
    """First node of a pass with several roots: hands each root its gradient.

    It runs on the first root that is not on the CPU (C5).

    Source: torch/csrc/autograd/functions/basic_ops.h, struct GraphRoot (X6).
    """

    __slots__ = ("gradients",)

    def __init__(self, roots: Sequence[Edge], gradients: Sequence[Gradient]) -> None:
        devices = filter(None, map(device_of, gradients))
        elsewhere = (device for device in devices if device is not CPU)
        super().__init__(roots, input_metadata=(), device=next(elsewhere, CPU))
        self.gradients = gradients

    def apply(self, *grads: Gradient) -> Sequence[Gradient]:
        """Return the gradients of the roots, as the caller gave them."""
        del grads
        return self.gradients


def _in_no_block(index: int, hook: object) -> AbstractContextManager[object]:
    del index, hook
    return nullcontext()


#: Attribute of a leaf with its names in models: a tuple for each model.
NAMES_IN_MODELS: Final = "_names_in_models"


class AccumulateGrad(Node):
    """Last node of a path: adds a gradient to its leaf's ``.grad``.

    Args:
        leaf: Owner of the ``.grad``.
        input_metadata: Expected shape, dtype and device of the gradient, None for any.
        device: The leaf's device, if `input_metadata` does not say.

    Source: torch/csrc/autograd/functions/accumulate_grad.h (N1).
    """

    __slots__ = ("_leaf", "_mutex")

    def __init__(
        self,
        leaf: Leaf,
        input_metadata: InputMetadata | None = None,
        device: Device | None = None,
    ) -> None:
        if device is None:
            device = CPU if input_metadata is None else input_metadata.device
        begin(self, (), (input_metadata,), device, MAX_SEQUENCE_NR)
        self.leaf = leaf
        # Several passes may reach one leaf at once. This is the only lock under which a
        # gradient's own `+` runs. It guards this leaf and nothing of the engine, and it
        # is reentrant because that `+` may be user code that comes back here.
        try:
            self._mutex = LeafLock()
        except RuntimeError as error:
            raise out_of_memory(error) from None

    @property
    def leaf(self) -> Any:  # noqa: ANN401 - whatever has a ``.grad``
        """Owner of the ``.grad``."""
        return self._leaf

    @leaf.setter
    def leaf(self, leaf: Any) -> None:  # noqa: ANN401 - as above
        self._leaf = leaf

    @property
    def variable(self) -> Any:  # noqa: ANN401 - as above
        """PyTorch's name for `leaf`."""
        return self.leaf

    @property
    def post_hooks(self) -> tuple[Callable[[Leaf], object], ...]:
        """Hooks called with the leaf after each update; they must return None.

        Replaced as a whole, never changed in place.
        """
        return () if self.hooks is None else self.hooks.of_tensors.post_accumulate

    @post_hooks.setter
    def post_hooks(self, hooks: tuple[Callable[[Leaf], object], ...]) -> None:
        self.hooks_to_add_to().of_tensors.post_accumulate = hooks

    def trace_definition(self, chunk: list[Any]) -> None:
        """Append a definition as `Node` does, with the names of the leaf."""
        self._add_definition(chunk, one_a_line(self.leaf_names()))

    def leaf_names(self) -> tuple[str, ...]:
        """Return the leaf's names in models, else the ``name`` that the user set."""
        own = getattr(self.leaf, "__dict__", None)
        if not own:
            return ()
        # One call into C, because another thread may be naming a model.
        names = tuple(own.get(NAMES_IN_MODELS, {}).values())
        if names:
            return tuple(itertools.chain.from_iterable(names))
        name = own.get("name")
        return (name,) if isinstance(name, str) and name else ()

    def call(self, inputs: list[Gradient]) -> Sequence[Gradient]:
        """Accumulate; return nothing, because the path ends here."""
        self.accumulate(inputs)
        if self.hooks is not None:
            self.call_post_hooks()
        return ()

    def accumulate(self, inputs: list[Gradient]) -> How:
        """Add ``inputs[0]`` to the leaf's ``.grad``.

        With gradient mode off an existing ``.grad`` is changed in place, so that every
        holder sees the sum; with it on (``create_graph``) it is replaced.

        Raises:
            RuntimeError: The leaf is not a leaf any more.
        """
        leaf = self.leaf
        if inputs[0] is not None and leaf is not None and leaf.requires_grad:
            # Post hooks see the inputs (E4), so the engine keeps one more reference to
            # them.
            others = 1 if self.hooks is not None and self.hooks.post else 0
            with self._mutex:
                return self._update(leaf, inputs, others)
        return _UNDEFINED

    def call_post_hooks(
        self,
        around: Callable[[int, object], AbstractContextManager[object]] = _in_no_block,
    ) -> None:
        """Call all of them, even if no gradient arrived, before blaming any.

        Args:
            around: Wraps the call of hook number `index` in the block
                ``around(index, hook)``.

        Raises:
            RuntimeError: One of them returned something.
        """
        results = []
        for index, hook in enumerate(self.post_hooks):
            with around(index, hook):
                results.append(hook(self.leaf))
        if any(result is not None and result is not self.leaf for result in results):
            raise RuntimeError("Tensor post accumulate grad hooks should return None.")

    def _update(self, leaf: Leaf, inputs: list[Gradient], others: int) -> How:
        stored = self.stored(leaf)
        if grad_enabled():
            if stored is None:
                self.store(leaf, self.copied(leaf, inputs[0]))
                return _COPIED
            self.store(leaf, stored + self.wrapped(inputs[0]))
            return _OUT_OF_PLACE
        if stored is None:
            if is_sole_reference(inputs, 0, others=others) and self.may_keep(
                leaf, inputs[0]
            ):
                self.store(leaf, self.wrapped(inputs[0]))
                return _STOLEN
            self.store(leaf, self.copied(leaf, inputs[0]))
            return _COPIED
        if self.may_increase(stored, inputs[0]):
            increased = self.increased(stored, inputs[0])
            self.store(leaf, increased)
            # `+=` on a NumPy scalar makes a new one.
            return _IN_PLACE if increased is stored else _OUT_OF_PLACE
        self.store(leaf, stored + self.wrapped(inputs[0]))
        return _OUT_OF_PLACE

    def stored(self, leaf: Leaf) -> Gradient:
        """Return the leaf's ``.grad``."""
        return leaf.grad

    def store(self, leaf: Leaf, gradient: Gradient) -> None:
        """Set the leaf's ``.grad``."""
        leaf.grad = gradient

    def wrapped(self, gradient: Gradient) -> Gradient:
        """Return a gradient as the leaf stores it; a subclass may wrap it."""
        return gradient

    def may_increase(self, stored: Gradient, gradient: Gradient) -> bool:
        """Return whether `gradient` may be added in place with gradient mode off."""
        return fits(stored, gradient) and is_writeable(stored)

    def increased(self, stored: Gradient, gradient: Gradient) -> Gradient:
        """Add `gradient` in place to the stored one, and return that."""
        stored += gradient
        return stored

    def may_keep(self, leaf: Leaf, gradient: Gradient) -> bool:
        """Return whether the leaf may store a `gradient` that nobody else holds."""
        del leaf
        return owns_its_memory(gradient)

    def copied(self, leaf: Leaf, gradient: Gradient) -> Gradient:
        """Return a copy of a shared gradient for `leaf` to store."""
        del leaf
        # Copying a tensor is an op, and so part of the graph under ``create_graph``.
        copy = getattr(gradient, "clone", None) or getattr(gradient, "copy", None)
        return self.wrapped(gradient if copy is None else copy())
