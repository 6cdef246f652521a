"""Walks over a graph of nodes, and the tensors that nodes hold."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from gradviz.backends.base import Array, backend_of, device_of
from gradviz.engine.graph import anomaly
from gradviz.engine.graph.node import Node
from gradviz.ops.dispatch.op_node import OpNode
from gradviz.ops.dispatch.plan import CONSTANT, RESULT
from gradviz.ops.dispatch.shown_saved import shown_name
from gradviz.ops.variables.variable import raw


def nodes_from(roots: Iterable[Node | None]) -> list[Node]:
    """All nodes that gradients can get to from `roots`, each once, nearest first."""
    found: dict[Node, None] = {root: None for root in roots if root is not None}
    pending = list(found)
    for node in pending:  # grows while it is walked
        for edge in node.next_edges:
            after = edge.node
            if after is not None and after not in found:
                found[after] = None
                pending.append(after)
    return pending


class Saved(NamedTuple):
    """An array that a node keeps for its backward.

    Attributes:
        array: The array.
        maker: The node of the op that computed it; None if that is a leaf, no tensor
            of the graph, or not known.
        name: Name that PyTorch's node of that op has for it, such as ``mat1``; empty
            where it has no name.
    """

    array: Array
    maker: Node | None
    name: str = ""


def saved_by(node: Node) -> Iterator[Saved]:
    """Yield the values that a node keeps for its backward; none once freed.

    Values packed by saved-tensor hooks belong to those hooks.
    """
    for name, value, origin in _kept(node):
        kept = getattr(value, "_data", value)
        maker = node if origin <= RESULT else getattr(kept, "grad_fn", None)
        array = raw(kept)
        if hasattr(array, "__array_function__"):
            yield Saved(array, maker, name)


def is_freed(node: Node) -> bool:
    """Return whether a node had saved tensors and has released them."""
    if isinstance(node, OpNode):
        return node.saved is None
    return getattr(node, "_saved", ()) is None


def _kept(node: Node) -> Iterator[tuple[str, Any, int]]:
    """Yield name, value and origin (as in a `Plan`) of all that a node keeps."""
    if isinstance(node, OpNode):
        if node.saved is not None:
            cls = type(node).name(node)
            for name, value, origin in zip(
                node.plan.names, node.saved, node.plan.origins, strict=True
            ):
                yield shown_name(cls, name), value, origin
        return
    attributes: Any = getattr(node, "__dict__", {})
    for name, value in tuple(attributes.items()):
        if name in {"saved", "_saved"} and isinstance(value, tuple | list):
            called = "saved_tensors" if name == "_saved" else name
            for index, one in enumerate(value):
                yield f"{called}[{index}]", one, CONSTANT
        else:
            yield name, value, CONSTANT


def not_finite(value: object) -> str:
    """``NaN`` or ``infinity`` if there is one in an array or tensor, else empty."""
    array = raw(value)
    dtype = getattr(array, "dtype", None)
    device = device_of(array)  # also of the scalars that NumPy makes of 0-d arrays
    if dtype is None or device is None or dtype.kind not in "fc":
        return ""
    host = backend_of(device).to_host(array)
    if np.isfinite(host).all():
        return ""
    return "NaN" if np.isnan(host).any() else "infinity"


def describe(node: Node) -> str:
    """A node in a few words: name, id, and which part of a model made it."""
    part = f" in {node.module}" if node.module else ""
    return f"{type(node).name(node)} #{node.id}{part}"


def stack_of(node: Node) -> str:
    """The stack that made a node; empty if that was not remembered then."""
    return "".join(node.metadata.get(anomaly.STACK, ()))


def made_at(node: Node) -> str:
    """The line that made a node, as `` at file:line``; empty if not remembered."""
    lines = [one for one in stack_of(node).splitlines() if one.startswith("  File")]
    if not lines:
        return ""
    path, line = lines[-1].split('"')[1], lines[-1].split("line ")[1].split(",")[0]
    return f" at {path}:{line}"
