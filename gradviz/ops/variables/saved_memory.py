"""Memory of a node's saved tensors, each memory counted once.

Note [Memory that counts once]
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
Nodes often save the same memory: the result of one is the input of the next, and views
share it. It counts for the node that saved it first, as a whole, for a view keeps all
of it alive. What a leaf holds anyway counts for no node. `gradviz.pytorch` counts for
the nodes of PyTorch by the same rule.

Memory is known by the `id` of the array that owns it. While its node is alive and has
not released it, no other array can have that `id`. So an entry is valid as long as its
node holds what it saved, and no array need be kept or watched.
"""

import weakref
from typing import Any, Final

from gradviz.engine.graph.node import Node
from gradviz.ops.variables.saved_variable import SavedVariable
from gradviz.ops.variables.variable import Variable
from gradviz.trace.probe import Probe

#: From the `id` of an array to the node that saved it first. Any thread, one operation
#: at a time: what is lost between two is counted twice.
_savers: Final[dict[int, "weakref.ref[Node]"]] = {}

#: Entries of dead nodes are dropped when there are twice as many as were left before.
_FEWEST: Final = 4_096
_limit = _FEWEST


def count_saved(node: Node, saved: tuple[Any, ...]) -> tuple[int, int, int]:
    """Count what a new node has saved, which it holds already.

    Called for every node of a recorded forward, so little is called here in turn.

    Args:
        node: The node.
        saved: Variables, arrays, and what is neither.

    Returns:
        Bytes that only graphs hold and no earlier node saved, those of leaves that no
        earlier node saved, and those of tensors in memory that counted before.
    """
    own = of_leaves = shared = 0
    for value in saved:
        kept = value.held if isinstance(value, SavedVariable) else value
        if isinstance(kept, Variable):
            tensor = kept  # when compiled: typed
            array = tensor.array
        else:
            array = kept
        size = getattr(array, "nbytes", 0)
        if not size:
            continue
        if kept is not value and not isinstance(kept, Variable):
            own += size  # the result of a pack hook, of which only the size is asked
            continue
        whole = _owner_of(array)
        key = id(whole)
        known = _savers.get(key)
        saver = None if known is None else known()
        if saver is node or (saver is not None and saver.holds_saved):
            shared += size
            continue
        _savers[key] = weakref.ref(node)
        if whole is not array and type(all_of_it := getattr(whole, "nbytes", 0)) is int:
            size = all_of_it or size
        if isinstance(kept, Variable) and _is_of_leaf(kept):
            of_leaves += size
        else:
            own += size
    if len(_savers) > _limit:
        _drop_dead()
    return own, of_leaves, shared


def _owner_of(array: Any) -> Any:  # noqa: ANN401 - of any backend
    """Return the object that owns an array's memory.

    A view has the owner itself as its base, or one object between. A base may be any
    object of the program's, so this goes no further.
    """
    for _ in range(2):
        base = getattr(array, "base", None)
        if base is None:
            break
        array = base
    return array


def _is_of_leaf(kept: Variable) -> bool:
    """Tell if a variable is a leaf with a gradient, or a view of one.

    A saved result has no edge either, but no op has led a graph to it.
    """
    whole = kept if kept.viewed is None else kept.viewed.base
    return whole.has_accumulator


def report_saved(listener: Probe, node: Node, saved: tuple[Any, ...]) -> None:
    """Report what a node has saved, once the listener knows of the node."""
    own, of_leaves, shared = count_saved(node, saved)
    if own:
        listener.tensor_saved(node.id, own)
    if of_leaves or shared:
        listener.saved_elsewhere(node.id, of_leaves, shared)


def _drop_dead() -> None:
    global _limit
    for key, saver in list(_savers.items()):
        node = saver()
        if node is None or not node.holds_saved:
            _savers.pop(key, None)
    _limit = max(_FEWEST, 2 * len(_savers))
