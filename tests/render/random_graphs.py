"""Graphs of every form at random, as plain values: what a layout may be given."""

import random
from collections.abc import Sequence
from typing import Final

from gradviz.analysis.graphs.backward_graph import LEAF, Graph, GraphEdge, GraphNode
from gradviz.analysis.graphs.modules import collapse_modules
from gradviz.analysis.graphs.repetition import fold_repeats
from gradviz.analysis.graphs.simplification import contract_chains, split_shared_leaves
from gradviz.trace.format.model import InputDefinition

OPS: Final = ("Mul", "Add", "Addmm", "T", "View", "Relu", "NativeLayerNorm", "Stack")
ERROR: Final = "ValueError: the size of tensor a (3) must match that of tensor b (4)"


def random_graph(seed: int, most: int) -> Graph:
    """A graph of at most so many nodes besides leaves, in parts or not.

    Chains with edges past many nodes, hubs, several components, layers that repeat in
    modules within modules, shared leaves, failed nodes and such that did not run; at
    times one node or none. Some are folded, contracted or collapsed.
    """
    chooser = random.Random(seed)
    num_nodes = chooser.choice([0, 1, 2, *[chooser.randint(3, most)] * 12])
    reach = chooser.choice([1, 2, 5, num_nodes + 1])
    hub, cut = chooser.randint(0, num_nodes), chooser.random() < 0.2
    pairs = []
    for at in range(1, num_nodes):
        if cut and at == num_nodes // 2:
            continue  # another component begins
        above = {
            max(0, at - 1) if chooser.random() < 0.7 else _near(chooser, at, reach)
        }
        if chooser.random() < 0.25:
            above.add(_near(chooser, at, reach))
        if chooser.random() < 0.1 and hub < at:
            above.add(hub)
        if chooser.random() < 0.06:
            above.add(0)
        pairs += [(one, at) for one in sorted(above)]
    num_leaves = chooser.randint(0, num_nodes)
    users = [chooser.randrange(num_nodes) for _ in range(2 * num_leaves)]
    pairs += [
        (user, num_nodes + chooser.randrange(num_leaves)) for user in sorted(users)
    ]
    used = sorted({leaf for _, leaf in pairs if leaf >= num_nodes})
    place = {leaf: num_nodes + at for at, leaf in enumerate(used)}
    modules = _modules(chooser, num_nodes)
    graph = Graph(
        task=0,
        nodes=(
            *(_node(chooser, at, modules[at]) for at in range(num_nodes)),
            *(_leaf(chooser, num_nodes + at) for at in range(len(used))),
        ),
        edges=tuple(
            GraphEdge(one, place.get(other, other), number % 2)
            for number, (one, other) in enumerate(sorted(pairs))
        ),
    )
    match chooser.randint(0, 6):
        case 0:
            graph = fold_repeats(graph)
        case 1:
            graph = contract_chains(graph)
        case 2:
            graph = collapse_modules(graph, chooser.randint(0, 2))
    return split_shared_leaves(graph)


def _near(chooser: random.Random, at: int, reach: int) -> int:
    return max(0, at - chooser.randint(1, reach))


def _modules(chooser: random.Random, num_nodes: int) -> Sequence[str]:
    """Stretches of nodes of one module, some of them in others."""
    found: list[str] = []
    while len(found) < num_nodes:
        depth = chooser.randint(0, 3)
        names = ["Net", "blocks", "0", "a_module_with_a_long_name", "attention"]
        path = ".".join(["Net", *(chooser.choice(names) for _ in range(depth))])
        found += [path if depth else ""] * chooser.randint(1, 5)
    return found[:num_nodes]


def _node(chooser: random.Random, at: int, module: str) -> GraphNode:
    status = chooser.choices(["completed", "failed", None], [40, 1, 2])[0]
    return GraphNode(
        id=10_000 - at,
        name=f"{chooser.choice(OPS)}Backward0",
        device="cpu",
        sequence_nr=10_000 - at,
        topological_nr=1,
        inputs=(InputDefinition((chooser.choice([2, 4_096]), 8), "float32", "cpu"),),
        location=f"/home/u/{chooser.choice(['main', 'a_long_name_of_a_file'])}.py:7",
        order=at if status else None,
        thread=0 if status else None,
        start_ns=10 * at if status else None,
        end_ns=10 * at + 5 if status else None,
        waited_ns=1,
        status=status,
        module=module,
        error=ERROR if status == "failed" else "",
    )


def _leaf(chooser: random.Random, at: int) -> GraphNode:
    return GraphNode(
        id=20_000 + at,
        name=LEAF,
        device="cpu",
        sequence_nr=1 << 40,
        topological_nr=0,
        inputs=(InputDefinition((64, 8), "float32", "cpu"),),
        location="",
        order=at,
        thread=0,
        start_ns=10 * at,
        end_ns=10 * at + 5,
        waited_ns=1,
        status=chooser.choice(["completed", "captured"]),
        parameters=(f"Net.{chooser.choice(['weight', 'in_proj_bias'])}",),
    )
