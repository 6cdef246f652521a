"""Changes in place of tensors that a graph has saved and still needs.

Source: torch/autograd/graph.py, allow_mutation_on_saved_tensors.
"""

import contextlib
import weakref
from collections.abc import Iterator, MutableMapping
from typing import Final

from gradviz.modes import Mode
from gradviz.ops.dispatch.in_place import watching_changes
from gradviz.ops.variables.saved_variable import hooks_on_saving
from gradviz.ops.variables.variable import Value, Variable, detached, variable

_OUTSIDE: Final = (
    "Trying to backward outside of the 'allow_mutation_on_saved_tensors' context in "
    "which the graph was originally recorded."
)


class _Handle:
    """Stands for a saved tensor in a node, and ends with it."""


class SavedCopies:
    """Saved tensors of one block of `allow_mutation_on_saved_tensors`.

    Attributes:
        original: Saved tensors that have not changed.
        cloned: Copies of those that have.
        tid_to_weakhandle: Handles by array and version, for a tensor that is saved
            more than once.
    """

    def __init__(self) -> None:
        self.original: MutableMapping[_Handle, Variable] = weakref.WeakKeyDictionary()
        self.cloned: MutableMapping[_Handle, Variable] = weakref.WeakKeyDictionary()
        self.tid_to_weakhandle: MutableMapping[tuple[int, int], _Handle] = (
            weakref.WeakValueDictionary()
        )
        #: By the count of changes that tensors on the same memory share.
        self._sharing: dict[int, list[weakref.ref[_Handle]]] = {}

    def pack(self, tensor: Variable) -> _Handle:
        """Note that `tensor` was saved."""
        version = tensor.shared_version()
        key = (id(tensor.array), version.value)
        known = self.tid_to_weakhandle.get(key)
        if known is not None and known in self.original:
            return known
        handle = self.tid_to_weakhandle[key] = _Handle()
        # Without its place in the graph, which may lead to the handle's holder.
        self.original[handle] = detached(tensor)
        self._sharing.setdefault(id(version), []).append(weakref.ref(handle))
        return handle

    def unpack(self, handle: _Handle) -> Value:
        """Return the saved tensor.

        Raises:
            AssertionError: The block has ended.
        """
        if _CURRENT.get() is not self:
            raise AssertionError(_OUTSIDE)
        kept = self.cloned if handle in self.cloned else self.original
        return kept[handle]

    def before_change(self, x: Variable) -> None:
        """Copy the saved tensors on the memory of `x`, which is about to change."""
        version = x.shared_version()
        for reference in self._sharing.pop(id(version), ()):
            handle = reference()
            if handle is None or handle not in self.original:
                continue
            original = self.original[handle]
            if original.version is version:
                self.cloned[handle] = variable(original.array.copy())
                del self.original[handle]

    def clear(self) -> None:
        """Forget everything."""
        self.original.clear()
        self.cloned.clear()
        self.tid_to_weakhandle.clear()
        self._sharing.clear()


_CURRENT: Final[Mode[SavedCopies | None]] = Mode("gradviz.saved_copies", default=None)


@contextlib.contextmanager
def allow_mutation_on_saved_tensors() -> Iterator[SavedCopies]:
    """Allow changes in place of saved tensors in a block.

    A saved tensor is copied just before it changes. The backward must run in the block
    as well.

    Yields:
        The copies, to inspect.

    Raises:
        RuntimeError: On entering the block, if it is inside of another one; in a
            backward outside of the block.
    """
    if _CURRENT.get() is not None:
        raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
    copies = SavedCopies()
    _CURRENT.set(copies)
    try:
        with (
            hooks_on_saving(copies.pack, copies.unpack),
            watching_changes(copies.before_change),
        ):
            yield copies
    finally:
        _CURRENT.set(None)
        copies.clear()
