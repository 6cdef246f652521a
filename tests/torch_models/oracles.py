"""Facts that programs hear of themselves with PyTorch's own hooks."""

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest

from gradviz.pytorch.nodes.graph_reader import ID_KEY

torch = pytest.importorskip("torch")


def nodes_below(root: Any) -> list[Any]:
    found, pending = {}, [root]
    while pending:
        node = pending.pop()
        if node is not None and node not in found:
            found[node] = True
            pending += [after for after, _ in node.next_functions]
    return list(found)


@contextlib.contextmanager
def hearing_nodes(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Hear each node of each `Tensor.backward` run; the trace's ids, in order."""
    order: list[int] = []
    backward = torch.Tensor.backward

    def hooked(loss: Any, *args: Any, **kwargs: Any) -> None:
        ran: list[Any] = []
        for node in nodes_below(loss.grad_fn):
            node.register_prehook(lambda _, node=node: ran.append(node))
        backward(loss, *args, **kwargs)
        order.extend(node.metadata[ID_KEY] for node in ran)

    with monkeypatch.context() as patch:
        patch.setattr(torch.Tensor, "backward", hooked)
        yield order


@contextlib.contextmanager
def hearing_modules(model: Any) -> Iterator[dict[Any, str]]:
    """Hear which part of a model made its result: a path for each node.

    Parts end from the inside out, so the first that returns a tensor has made it, if it
    was not called with it. Of what was made between two calls no path is told.
    """
    made: dict[Any, str] = {}

    def note(values: Any, path: str) -> None:
        for value in torch.utils._pytree.tree_leaves(values):
            if getattr(value, "grad_fn", None) is not None:
                made.setdefault(value.grad_fn, path)

    name = type(model).__name__
    handles = []
    for path, part in model.named_modules():
        full = f"{name}.{path}" if path else name
        handles += [
            part.register_forward_pre_hook(
                lambda _, args, kwargs: note((args, kwargs), ""), with_kwargs=True
            ),
            part.register_forward_hook(
                lambda _, args, result, full=full: note(result, full)
            ),
        ]
    yield made
    for handle in handles:
        handle.remove()


@contextlib.contextmanager
def hearing_saved_tensors(held_anyway: list[Any]) -> Iterator[dict[int, int]]:
    """Hear of what is saved: storages and their bytes, without those held anyway."""
    sizes: dict[int, int] = {}
    kept = []

    def pack(tensor: Any) -> Any:
        storage = tensor.untyped_storage()
        sizes[storage._cdata] = storage.nbytes()
        kept.append(tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        yield sizes
    for one in held_anyway:
        sizes.pop(one.untyped_storage()._cdata, None)
