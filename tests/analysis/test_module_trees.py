"""Collapse by modules, on random trees of modules that are called in many ways."""

import itertools
import random
from graphlib import TopologicalSorter

import pytest

import gradviz as gv
from gradviz import nn
from gradviz.analysis.graphs.backward_graph import Graph, build_graph
from gradviz.analysis.graphs.modules import collapse_modules, max_depth, stretches


class Part(nn.Module):
    """Layers and parts of its own, some in containers, called once or several times."""

    def __init__(self, chooser: random.Random, depth: int = 0) -> None:
        super().__init__()
        self.own = nn.Linear(3, 3) if depth == 2 or chooser.random() < 0.5 else None
        self.times = chooser.choice([1, 1, 2, 3])
        self.skips = chooser.random() < 0.5
        num = chooser.randint(1, 3) if depth < 2 else 0
        parts = [Part(chooser, depth + 1) for _ in range(num)]
        self.parts = parts
        match chooser.choice(["list", "dict", "attributes"]):
            case "list":
                self.inner = nn.ModuleList(parts)
            case "dict":
                self.inner = nn.ModuleDict({f"k{i}": p for i, p in enumerate(parts)})
            case _:
                for number, part in enumerate(parts):
                    setattr(self, f"part{number}", part)

    def forward(self, x: gv.Tensor) -> gv.Tensor:
        for _ in range(self.times):
            if self.own is not None:
                x = self.own(x).tanh()
            for part in self.parts:
                x = part(x) + x if self.skips else part(x)
        return x


def graph_of(seed: int) -> Graph:
    model = Part(random.Random(seed))
    with gv.record() as recording:
        model(gv.ones(1, 3)).sum().backward()
    return build_graph(recording.trace, recording.trace.tasks[0])


def is_acyclic(graph: Graph) -> bool:
    sorter = TopologicalSorter[int]()
    for edge in graph.edges:
        sorter.add(edge.consumer, edge.producer)
    return bool([*sorter.static_order()])


@pytest.mark.parametrize("seed", range(8))
def test_at_each_depth_every_node_is_in_one_box(seed):
    graph = graph_of(seed)

    for depth in range(max_depth(graph) + 1):
        parts = collapse_modules(graph, depth)

        ids = [one.id for box in parts.nodes for one in box.members or (box,)]
        assert sorted(ids) == sorted(node.id for node in graph.nodes)
        assert is_acyclic(parts)
        for box in parts.nodes:
            names = box.name.split(".")
            above = [".".join(names[:end]) for end in range(1, len(names) + 1)]
            levels = [one for one in above if one not in graph.containers]
            assert not box.members or len(levels) - 1 <= depth


@pytest.mark.parametrize("seed", range(8))
def test_stretches_of_all_depths_nest_or_are_apart(seed):
    graph = graph_of(seed)
    depths = range(max_depth(graph) + 1)

    found = [{*one.members} for depth in depths for one in stretches(graph, depth)]

    for one, other in itertools.combinations(found, 2):
        assert one <= other or other <= one or not one & other
