"""Memory that PyTorch's nodes keep for the backward, each storage counted once.

Note [What a node keeps]
~~~~~~~~~~~~~~~~~~~~~~~~
A node's ``_raw_saved_…`` attributes are what it has saved. Their ``data`` is the
tensor, or what a program's pack hook made of it; no unpack hook is called to get it.
Nodes often save the same storage: the result of one is the input of the next, and views
share it. So it counts for the node that was made first. What a leaf holds anyway, such
as a parameter, or a module as its buffer, counts for none. What a pack hook made counts
as far as it is tensors, or tuples, lists and dicts of them; numbers, texts and devices
keep none.

A checkpoint that is not reentrant has a pack hook too. It leaves an empty object in the
place of each tensor, and its unpack hook has the frame with what the checkpoint was
called with. These inputs count for the first node inside of it.
Source: torch/utils/checkpoint.py, _CheckpointFrame, _checkpoint_hook

*Unknown* is what nobody can ask for: what nodes of C++ extensions, `torch.jit` and
changes in place of views (``CopySlices``) keep, a tensor without a storage, and objects
of the program's that a pack hook returned. Tensors that a custom Function keeps on its
`ctx` without `save_for_backward` are not saved tensors, and not counted.
"""

import functools
import sys
from collections.abc import Callable, Iterable, Iterator
from types import FunctionType
from typing import Any, Final, NamedTuple

_SAVED: Final = "_raw_saved_"

#: Reading one that a pass has released raises the first of these; a tensor without a
#: storage, such as a sparse one, the others.
_NOT_THERE: Final = (RuntimeError, NotImplementedError, AttributeError)

#: Module of torch's devices and types.
_KEEPS_NONE: Final = "torch"

#: Module of the stand-ins of a checkpoint for tensors.
_CHECKPOINTS: Final = "torch.utils.checkpoint"

#: Types that a pack hook's result may consist of without keeping a tensor alive.
_PLAIN: Final = (int, float, complex, str, bytes, type(None))

#: Parts of a sparse tensor, by its layout. None of these has a storage itself.
_PARTS: Final = {
    "sparse_coo": ("_indices", "_values"),
    **dict.fromkeys(
        ("sparse_csr", "sparse_bsr"), ("crow_indices", "col_indices", "values")
    ),
    **dict.fromkeys(
        ("sparse_csc", "sparse_bsc"), ("ccol_indices", "row_indices", "values")
    ),
}

#: Tells the parts of a subclass that wraps other tensors. Only PyTorch's own are asked.
_FLATTEN: Final = "__tensor_flatten__"

#: Nodes in C++ whose saved tensors have no names in Python.
_CLOSED: Final = ("CppNode", "CopySlices", "DifferentiableGraphBackward")

#: Of a class of nodes, the attributes that are what it saves. Any thread.
_attributes: Final[dict[type, tuple[str, ...]]] = {}

#: For a type of numbers of Python's, a scalar of a narrower type of the same kind. Any
#: thread.
_narrow: Final[dict[Any, Any]] = {}


class SavedBytes(NamedTuple):
    """The memory of the tensors that a node has saved.

    Attributes:
        size_bytes: Storages that no leaf and no module holds and no earlier node saved.
        parameter_bytes: Storages of parameters, other leaves and buffers of modules
            that no earlier node saved; their leaves and modules hold them anyway.
        shared_bytes: Tensors in storages that count for an earlier node, or for an
            earlier tensor of this one.
        is_known: True if that is all.
    """

    size_bytes: int = 0
    parameter_bytes: int = 0
    shared_bytes: int = 0
    is_known: bool = True


#: Made once, for many nodes save nothing, or as much as others.
_NOTHING: Final = SavedBytes()
_NOT_KNOWN: Final = SavedBytes(is_known=False)
_saved_bytes: Final = functools.lru_cache(maxsize=1 << 12)(SavedBytes)

#: Saved by a node under one name.
_SEVERAL: Final = (tuple, list)


class SavedStorages:
    """The storages that were counted so far.

    Args:
        leaves: Tensors whose storages count for no node.
        buffers: Returns those of modules, which count for none either.
    """

    def __init__(
        self, leaves: Iterable[Any], buffers: Callable[[], Iterable[Any]]
    ) -> None:
        self._torch = torch = sys.modules["torch"]
        self._plain = (torch.Tensor, torch.nn.Parameter)
        self._strided = torch.strided
        self._leaves = {self._storage_of(leaf) for leaf in leaves}
        self._buffers_of_modules = buffers
        #: Those whose inputs were counted.
        self._checkpoints: set[int] = set()
        self._counted: set[int] = set()

    @functools.cached_property
    def _buffers(self) -> set[int]:
        """The storages of buffers. Few graphs have nodes that save some."""
        return {self._storage_of(one) for one in self._buffers_of_modules()}

    def take(self, node: Any) -> SavedBytes:  # noqa: ANN401 - PyTorch's
        """Count the saved bytes of a node."""
        kind = type(node)
        names = _attributes.get(kind)
        if names is None:
            names = tuple(name for name in dir(kind) if name.startswith(_SAVED))
            _attributes[kind] = names
        if not names:
            return _NOT_KNOWN if _is_closed(node.name()) else _NOTHING
        own = of_leaves = shared = 0
        is_known, counted = True, self._counted
        for tensor in self._saved_by(node, names):
            try:
                storage = tensor.untyped_storage()
                address = storage._cdata
            except _NOT_THERE:  # None has no storage either
                is_known = False
                continue
            if address in counted:
                shared += int(tensor.nbytes)
                continue
            counted.add(address)
            if address in self._leaves or self._is_held(tensor, address):
                of_leaves += int(storage.nbytes())
            else:
                own += int(storage.nbytes())
        return _saved_bytes(own, of_leaves, shared, is_known)

    def _saved_by(self, node: Any, names: Iterable[str]) -> list[Any]:  # noqa: ANN401
        """Return the tensors of a node, with None for inaccessible ones.

        Called for every node, so the usual case, a plain tensor, calls nothing else.
        """
        plain, strided = self._plain, self._strided
        tensors: list[Any] = []
        for name in names:
            try:
                saved = getattr(node, name)
                if saved is None:
                    continue
                if isinstance(saved, _SEVERAL):
                    kept = [(one.data, one) for one in saved if one is not None]
                    for one, variable in kept:
                        tensors += self._unusual(one, variable)
                    continue
                one = saved.data
            except _NOT_THERE:
                continue  # released
            if type(one) not in plain or one.layout is not strided:
                tensors += self._unusual(one, saved)
            elif one.dim() or self._is_counted(one):
                tensors.append(one)
        return tensors

    def _unusual(
        self,
        one: Any,  # noqa: ANN401 - PyTorch's
        variable: Any,  # noqa: ANN401 - PyTorch's
    ) -> Iterator[Any]:
        """Yield the tensors in an unusual object; see `_packed`."""
        if not isinstance(one, self._torch.Tensor):
            yield from self._packed(one, variable)
        elif one.dim() or self._is_counted(one):
            yield from self._with_storages(one)

    def _packed(
        self,
        one: Any,  # noqa: ANN401 - the program's
        variable: Any,  # noqa: ANN401 - PyTorch's
    ) -> Iterator[Any]:
        """Yield the tensors in a pack hook's result; None for unknown objects.

        Args:
            one: Object that it returned, or a part of that.
            variable: Variable that has saved it.
        """
        kind = type(one)
        if isinstance(one, self._torch.Tensor):
            yield from self._with_storages(one)
        elif kind is tuple or kind is list:
            for part in one:
                yield from self._packed(part, variable)
        elif kind is dict:
            yield from self._packed([*one.values()], variable)
        elif kind.__module__ == _CHECKPOINTS:
            yield from self._checkpointed(variable)
        elif not (kind in _PLAIN or kind.__module__ == _KEEPS_NONE):
            yield None

    def _checkpointed(self, variable: Any) -> Iterator[Any]:  # noqa: ANN401 - PyTorch's
        """Yield the inputs of the checkpoint that has a variable, the first time."""
        frame = _frame_of(variable)
        inputs = getattr(frame, "saved_args", None)
        if inputs is None:
            yield None
        elif id(frame) not in self._checkpoints:
            self._checkpoints.add(id(frame))
            for one in inputs:
                if type(one) is type(variable):
                    yield from self._packed(one.data, one)

    def _with_storages(self, tensor: Any) -> Iterator[Any]:  # noqa: ANN401 - PyTorch's
        """Yield a tensor, or the parts of one without a storage of its own."""
        kind = type(tensor)
        layout = str(tensor.layout).removeprefix("torch.")
        if layout in _PARTS:
            yield from (getattr(tensor, name)() for name in _PARTS[layout])
        elif kind in self._plain or _has_data(tensor):
            yield tensor
        elif kind.__module__.startswith("torch.") and hasattr(kind, _FLATTEN):
            names, _ = getattr(tensor, _FLATTEN)()
            for name in names:
                yield from self._with_storages(getattr(tensor, name))
        else:
            yield None

    def _is_held(self, tensor: Any, storage: int) -> bool:  # noqa: ANN401 - PyTorch's
        """Check whether a leaf or a module holds a tensor, or what it views, anyway."""
        base = tensor._base
        whole = tensor if base is None else base
        if not whole.is_leaf:
            return False
        # Asked in this order: a class that says what its instances are is slow.
        return bool(
            whole.requires_grad
            or isinstance(whole, self._torch.nn.Parameter)
            or storage in self._buffers
        )

    def _is_counted(self, one: Any) -> bool:  # noqa: ANN401 - PyTorch's
        """Tell if one without dimensions is not a number that an operator was given."""
        # A number of Python's gives way to any type of a tensor of its kind.
        kind, torch = one.dtype, self._torch
        narrow = _narrow.get(kind)
        if narrow is None:
            if kind is torch.float64:
                other = torch.float32
            elif kind is torch.int64:
                other = torch.int32
            else:
                return kind not in (torch.bool, torch.complex128)
            # Once: to make one takes longer than to count what a node keeps.
            narrow = _narrow[kind] = torch.empty((), dtype=other, device="cpu")
        return bool(torch.result_type(one, narrow) == kind)

    def _storage_of(self, tensor: Any) -> int:  # noqa: ANN401 - PyTorch's
        """The address of a tensor's storage, 0 if it has none."""
        try:
            return int(tensor.untyped_storage()._cdata)
        except _NOT_THERE:
            return 0


def _frame_of(variable: Any) -> Any:  # noqa: ANN401 - PyTorch's
    """Return the frame of the checkpoint that saved a variable; None if unknown.

    No hook is called.
    """
    hook = getattr(variable, "unpack_hook", None)  # not in all versions
    if not isinstance(hook, FunctionType):
        return None
    cells = zip(hook.__code__.co_freevars, hook.__closure__ or (), strict=True)
    frames = [cell.cell_contents for name, cell in cells if name == "frame"]
    return frames[0] if frames else None


@functools.lru_cache(maxsize=1024)
def _is_closed(name: str) -> bool:
    """Return whether nodes of this name have saved tensors without names in Python."""
    return any(part in name for part in _CLOSED)


def _has_data(tensor: Any) -> bool:  # noqa: ANN401 - PyTorch's
    """Tell if a tensor of a subclass has memory itself, and does not wrap others."""
    try:
        return bool(tensor.untyped_storage().data_ptr()) or not tensor.numel()
    except _NOT_THERE:
        return False
