"""PyTorch's live graphs, and their holders: for memory that grows.

Nothing that is returned holds a tensor or a node. Tensors are found by the garbage
collector, their nodes read as before a pass; see Note [What nodes keep] in
`graph_reader`. No class or mode of the program hears of it.
"""

import bisect
import importlib
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from gradviz.live_objects import instances_of
from gradviz.pytorch.nodes.graph_reader import (
    MIN_KEPT,
    functions_below,
    read_graph,
    seen_as,
)
from gradviz.pytorch.nodes.module_calls import Models
from gradviz.pytorch.nodes.places import NOBODYS
from gradviz.pytorch.nodes.saved_tensors import SavedStorages

#: Reading an attribute of a tensor of some subclass raises one of these.
_UNREADABLE: Final = (RuntimeError, AttributeError, NotImplementedError, TypeError)

#: The index of an item, in the text of a holder.
_INDEX: Final = re.compile(r"\[\d+\]")

#: Maximum number of terms of a sum that are counted.
_MAX_TERMS: Final = 10_000


class LiveTorchGraph(NamedTuple):
    """Graphs of PyTorch's that are alive and alike; prints as text.

    They are alike if the same line made them, if that is known, and the same container
    holds them: the items of a list of losses are told together.

    Attributes:
        root: The name of the node at which a backward would begin.
        location: The line that made that node; empty if it is not known, as it is only
            in a recording and in PyTorch's anomaly mode.
        num_graphs: Number of such graphs.
        num_nodes: Nodes of all of them, those that they share counted once.
        saved_bytes: Memory that they save for a backward, likewise; without that of
            parameters, other leaves and buffers, which something else holds.
        holders: Holders of the first of them, a text each.
    """

    root: str
    location: str
    num_graphs: int
    num_nodes: int
    saved_bytes: int
    holders: tuple[str, ...]

    def __str__(self) -> str:
        made = f" made at {self.location}" if self.location else ""
        many = f"{self.num_graphs:,} graphs like it: " if self.num_graphs > 1 else ""
        each = self.saved_bytes // self.num_graphs
        share = f" ({each:,} each)" if self.num_graphs > 1 else ""
        held = ", and by ".join(self.holders) or "nobody that could be found"
        return (
            f"{self.root}{made}: {many}{self.num_nodes:,} nodes, "
            f"{self.saved_bytes:,} bytes saved{share}, held by {held}"
        )


def live_graphs() -> list[LiveTorchGraph]:
    """Find all graphs of PyTorch's that a tensor of the program keeps alive.

    Looks at every object that the garbage collector knows, some ten times: a second
    for a million objects. Where it does not know what holds a tensor, no holder is
    told: a custom Function may keep one in C++, and `gc.freeze` hides objects.

    Returns:
        Those that save most first.
    """
    torch = sys.modules.get("torch")
    if torch is None:
        return []
    with torch._C.DisableTorchFunction(), torch._C._DisableTorchDispatch():
        return _found(torch)


class PiledUp(NamedTuple):
    """Graphs that a program keeps, one more in each of its steps.

    Attributes:
        graphs: All that one line made.
        num_passes: Number of passes that ran between the making of the first and the
            last of them, and the one after; 0 if no pass ran them.
    """

    graphs: LiveTorchGraph
    num_passes: int


def piled_up_graphs(passes: Sequence[int]) -> list[PiledUp]:
    """Find the graphs that a program keeps step after step.

    Those are graphs, or terms of a sum, that one line made and that stand before
    `MIN_KEPT` passes, or as many that no pass ran. Holders, which take long to find,
    are looked for only where there are some. The caller sees to it that no class or
    mode of the program hears of it.

    Args:
        passes: The number that the next node had as each pass began, in order.

    Returns:
        Those that save most first.
    """
    steps: dict[object, int] = {}
    found = _found(sys.modules["torch"], lambda roots: _piled_up(roots, passes, steps))
    every = [PiledUp(one, steps[one.root, one.location]) for one in found]
    return [one for one in every if one.num_passes or one.graphs.saved_bytes]


def _found(
    torch: Any,  # noqa: ANN401 - a module
    piled_up: Callable[[set[Any]], set[Any]] | None = None,
) -> list[LiveTorchGraph]:
    """Find graphs; if a function chooses some, all that one line made are one."""
    every = instances_of(torch.Tensor)
    tensors, functions, paths = _with_graphs(every)
    if not functions:
        return []
    read_graph(
        [(one, 0) for one in functions], (), NOBODYS, Models(), 0, accumulate=True
    )
    inner = {after for one in functions_below(functions) for after in _after(one)}
    roots = {one for one in functions if one not in inner}
    if piled_up is not None:
        roots = piled_up(roots)
    if not roots:
        return []
    outer = [place for place, one in enumerate(functions) if one in roots]
    tensors = [tensors[place] for place in outer]
    functions = [functions[place] for place in outer]
    # Loaded when it is called: it brings our own engine.
    search = importlib.import_module("gradviz.diagnostics.live_graphs")
    holders: list[tuple[str, ...]] = search.holders_of(
        tensors, [paths[place] for place in outer], [every, functions, inner, roots]
    )
    held: dict[Any, dict[str, None]] = {}
    for function, some in zip(functions, holders, strict=True):
        held.setdefault(function, {}).update(dict.fromkeys(some))
    leaves = [one for one in every if _is_leaf(one)]
    return sorted(
        _graphs(held, leaves, by_holder=piled_up is None),
        key=lambda one: (-one.saved_bytes, -one.num_nodes),
    )


def _piled_up(
    functions: Iterable[Any], passes: Sequence[int], steps: dict[object, int]
) -> set[Any]:
    """Return the roots of graphs that a program seems to keep in each of its steps.

    Args:
        functions: The roots of all graphs.
        passes: See `piled_up_graphs`.
        steps: Gets the number of passes by the name and the line of the roots.
    """
    alike: dict[tuple[str, str], list[Any]] = {}
    for function in functions:
        alike.setdefault(_made(function), []).append(function)
    found: set[Any] = set()
    for key, same in alike.items():
        terms = [term for one in same for term in _terms(one)]
        has_run = any(map(_has_run, functions_below(same)))
        between = {bisect.bisect(passes, one._sequence_nr()) for one in terms}
        if len(between if has_run else terms) >= MIN_KEPT:
            steps[key] = len(between) if has_run else 0
            found.update(same)
    return found


def _made(function: Any) -> tuple[str, str]:  # noqa: ANN401 - PyTorch's
    """Return the name of a node that has been read, and the line that made it."""
    node = seen_as(function)
    return (function.name(), "") if node is None else (node.text, node.line)


def _has_run(function: Any) -> bool:  # noqa: ANN401 - PyTorch's
    """Return whether a recorded pass had a node; leaves are in any graph."""
    node = seen_as(function)
    return node is not None and node.seen_nr >= 0 and bool(node.told_to)


def _terms(function: Any) -> Iterator[Any]:  # noqa: ANN401 - PyTorch's
    """Yield a root, and the nodes of its name and line that follow one another.

    A sum to which a program adds in each step has one for each.
    """
    one, made = function, _made(function)
    for _ in range(_MAX_TERMS):
        yield one
        one = next((after for after in _after(one) if _made(after) == made), None)
        if one is None:
            return


def _with_graphs(
    every: Iterable[Any],
) -> tuple[list[Any], list[Any], list[tuple[str, ...]]]:
    """Return tensors that hold graphs, the nodes, and the paths from the ones there.

    In three lists, for nothing else shall refer to a tensor: that is found as well.
    """
    tensors, functions = [], []
    paths: list[tuple[str, ...]] = []
    for one in every:
        path: tuple[str, ...] = ()
        try:
            function = one.grad_fn
            if function is None and one.grad is not None:
                # It is a leaf, whose gradient was made with `create_graph`.
                path, function = (".grad",), one.grad.grad_fn
        except _UNREADABLE:
            continue
        if function is not None:
            tensors.append(one)
            functions.append(function)
            paths.append(path)
    return tensors, functions, paths


def _graphs(
    held: dict[Any, dict[str, None]], leaves: list[Any], *, by_holder: bool
) -> Iterator[LiveTorchGraph]:
    """Yield the graphs of some roots, those together that are alike."""
    alike: dict[object, list[Any]] = {}
    for function, holders in held.items():
        node = seen_as(function)
        line = "" if node is None else node.line
        places = tuple(_INDEX.sub("[]", one) for one in holders)
        key = (function.name(), line, (places or id(function)) if by_holder else None)
        alike.setdefault(key, []).append(function)
    for same in alike.values():
        storages = SavedStorages(leaves, Models().buffers)
        nodes = list(functions_below(same))
        usual = _usual([held[one] for one in same])
        first = seen_as(same[0])
        yield LiveTorchGraph(
            root=same[0].name() if first is None else first.text,
            location="" if first is None else first.line,
            num_graphs=len(same),
            num_nodes=len(nodes),
            saved_bytes=sum(storages.take(one).size_bytes for one in nodes),
            holders=usual,
        )


def _usual(holders: Sequence[Iterable[str]]) -> tuple[str, ...]:
    """Return the holders of the first graph that has those that most have."""
    kinds = [tuple(_INDEX.sub("[]", text) for text in some) for some in holders]
    ((most, _),) = Counter(kinds).most_common(1)
    return tuple(holders[kinds.index(most)])


def _after(function: Any) -> Iterator[Any]:  # noqa: ANN401 - PyTorch's
    return (one for one, _ in function.next_functions if one is not None)


def _is_leaf(tensor: Any) -> bool:  # noqa: ANN401 - PyTorch's
    try:
        return bool(tensor.is_leaf and tensor.requires_grad)
    except _UNREADABLE:
        return False
