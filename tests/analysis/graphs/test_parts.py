"""Graphs in parts: modules, and shares where there are none."""

from itertools import pairwise

import pytest

from gradviz.analysis.graphs import parts
from gradviz.analysis.graphs.backward_graph import Graph, GraphNode
from gradviz.analysis.graphs.parts import GraphPart, divide, nodes_of


def node(id_: int, module: str = "") -> GraphNode:
    return GraphNode(
        id=id_,
        name=f"Op{id_}Backward0",
        device="cpu",
        sequence_nr=id_,
        topological_nr=1,
        inputs=(),
        location="",
        order=None,
        thread=None,
        start_ns=None,
        end_ns=None,
        waited_ns=None,
        status=None,
        module=module,
    )


def graph(*modules: str) -> Graph:
    """A chain; the first module's node was made last."""
    made = [node(len(modules) - at, module) for at, module in enumerate(modules)]
    return Graph(task=0, nodes=tuple(made), edges=())


def shape(inside):
    """Names and positions, nested."""
    if isinstance(inside, int):
        return inside
    return (inside.name, [shape(one) for one in inside.inside])


def test_modules_are_parts_and_so_are_modules_in_them():
    found = divide(
        graph("", "M.out", "M.out", "M.block", "M.block.fc", "M.block.fc", "M.block"),
        range(7),
    )

    assert shape(found) == (
        "",
        [0, ("M", [("M.out", [1, 2]), ("M.block", [3, ("M.block.fc", [4, 5]), 6])])],
    )


def test_a_model_that_is_everything_is_no_part_of_itself():
    found = divide(graph("M.a", "M.a", "M", "M.b", "M.b"), range(5))

    assert shape(found) == ("", [("M.a", [0, 1]), 2, ("M.b", [3, 4])])


def test_a_module_that_made_one_node_is_that_node():
    found = divide(graph("", "M.a", "M.b", "M.b"), range(4))

    assert shape(found) == ("", [0, ("M", [1, ("M.b", [2, 3])])])


def test_a_module_that_is_called_again_is_a_part_for_each_call():
    found = divide(graph("M.a", "M.a", "M", "M.a", "M.a"), range(5))

    assert shape(found) == ("", [("M.a", [0, 1]), 2, ("M.a", [3, 4])])


@pytest.mark.parametrize("number", [151, 400, 3_600, 3_601, 10_427])
def test_many_nodes_without_modules_are_shares_of_shares(number):
    whole = divide(graph(*[""] * number), range(number))

    assert nodes_of(whole) == list(range(number))
    pending = [whole]
    while pending:
        part = pending.pop()
        assert 1 < len(part.inside) <= parts.MAX_INSIDE
        inner = [one for one in part.inside if isinstance(one, GraphPart)]
        sizes = [len(nodes_of(one)) for one in inner]
        assert max(sizes[:-1], default=0) == min(sizes[:-1], default=0)
        assert [one.name for one in inner] == [
            f"part {at} of {len(inner)}" for at in range(1, len(inner) + 1)
        ]
        pending += inner
    assert len(whole.inside) <= parts.NUM_SHARES


def test_nodes_of_a_part_were_made_without_a_break():
    modules = ["M.a", "M.b.c", "M.b.c", "M.b", "", "M.a.x", "M.a", "M.b.c", "M.b.d"]
    whole = divide(graph(*modules * 3), range(27))

    pending = [whole]
    while pending:
        part = pending.pop()
        own = nodes_of(part)
        assert all(after == before + 1 for before, after in pairwise(own))
        pending += [one for one in part.inside if isinstance(one, GraphPart)]
    assert nodes_of(whole) == list(range(27))


def test_of_very_deep_modules_those_outside_are_parts():
    deep = ".".join("m" * 500)
    found = divide(graph("", deep, deep), range(3))

    assert nodes_of(found) == [0, 1, 2]
