"""Words for modules in pictures: their calls, and what one repeat hands to the next."""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from gradviz.analysis.graphs.backward_graph import Graph, GraphNode
from gradviz.analysis.graphs.carried_edges import CarriedWay
from gradviz.render.words.text import count, shape

#: A box names the shapes of so many gradients that come from the repeat before.
MAX_SHAPES: Final = 2


def known_repeats(graph: Graph, module: str, repeats: Collection[int]) -> int:
    """Return how often a module comes, as far as its calls are known.

    What repeats may be a loop inside of one call.

    Args:
        graph: Graph that the module is in.
        module: Its path.
        repeats: Numbers of repeats of the nodes that it made, each number once.
    """
    least = min(repeats, default=1)
    calls = graph.num_calls.get(module)
    if calls is None:
        return least if len(repeats) == 1 else 1
    return least if calls >= least else 1


def box_repeats(graph: Graph, node: GraphNode) -> int:
    """Return how often what a box stands for comes, one after the other."""
    if not node.is_module:
        return node.repeats
    return known_repeats(graph, node.module, {node.repeats})


def calls_told(graph: Graph, module: str, number: int, of: int, repeats: int) -> str:
    """Return which calls of a module a box or a frame shows; empty if it had one.

    Args:
        graph: Graph that the module is in.
        module: Its path.
        number: Position among its stretches, in the order of the forward, from 1.
        of: Number of its stretches; see Note [Stretches].
        repeats: Number of times that it comes by its title.
    """
    calls = graph.num_calls.get(module, 0)
    if of > 1:
        return f"{'call' if calls == of else 'part'} {number} of {of}"
    return count(calls, "call") if calls > 1 and repeats == 1 else ""


def told_of_boxes(graph: Graph, ways: Sequence[CarriedWay]) -> dict[int, list[str]]:
    """Return what is to be said in boxes of their calls, and of what they carry.

    Args:
        graph: The graph.
        ways: From one repeat to the next one.
    """
    told: dict[int, list[str]] = defaultdict(list)
    of = Counter(node.module for node in graph.nodes if node.is_module)
    later: Counter[str] = Counter()
    for index, node in enumerate(graph.nodes):
        if node.is_module:
            number, path = of[node.module] - later[node.module], node.module
            repeats = box_repeats(graph, node)
            calls = calls_told(graph, path, number, of[path], repeats)
            told[index] += [calls] if calls else []
            later[path] += 1
    for index, shapes in _carried(ways).items():
        names = [shape(one) for one in shapes[:MAX_SHAPES]]
        names += ["…"] if len(shapes) > MAX_SHAPES else []
        told[index].append(f"carries {', '.join(names)}".rstrip())
    return told


def _carried(ways: Sequence[CarriedWay]) -> Mapping[int, list[tuple[int, ...]]]:
    """Return the shapes of what each box receives from the repeat before, each once."""
    found: dict[int, list[tuple[int, ...]]] = {}
    for way in ways:
        known = found.setdefault(way.consumer, [])
        known += [one for one in way.shapes if one not in known]
    return found
