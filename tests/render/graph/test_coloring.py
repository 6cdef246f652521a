import itertools

import msgspec
import pytest

from gradviz.analysis.graphs.backward_graph import LEAF
from gradviz.analysis.graphs.simplification import contract_chains
from gradviz.render import style
from gradviz.render.graph.coloring import coloring


def luminance(color):
    red, green, blue = (int(color[at : at + 2], 16) for at in (1, 3, 5))
    return 0.299 * red + 0.587 * green + 0.114 * blue


@pytest.fixture
def changed(make_graph, make_node):
    """A graph without edges of nodes with some changes each."""

    def make(*changes):
        nodes = tuple(make_node(at, **change) for at, change in enumerate(changes))
        return make_graph(len(nodes), [], nodes=nodes)

    return make


def test_colors_are_of_families_on_one_device_and_else_of_devices(changed):
    one = changed({"name": "AddmmBackward0"}, {"name": "ReluBackward0"}, {"name": LEAF})
    two = changed({}, {"device": "sim:0"})

    assert [name for name, _ in coloring(one, "auto").legend] == [
        "products",
        "activations",
        "leaves",
    ]
    assert [name for name, _ in coloring(two, "auto").legend] == ["cpu", "sim:0"]


def test_several_nodes_have_the_family_that_took_most(changed, make_graph, make_node):
    nodes = (
        make_node(0, name="ReluBackward0", start_ns=0, end_ns=10),
        make_node(1, name="AddmmBackward0", start_ns=10, end_ns=900),
        make_node(2, name="ReluBackward0", start_ns=900, end_ns=1_000),
    )
    chain = contract_chains(make_graph(3, [(0, 1), (1, 2)], nodes=nodes))

    assert coloring(chain, "op").legend == (("products", style.FAMILIES[0]),)


@pytest.mark.parametrize(
    ("color_by", "field", "scale"),
    [
        ("order", "order", ("number: 1", "1000")),
        ("wait", "waited_ns", ("queued for: 1 ns", "1 µs")),
        ("memory", "saved_bytes", ("kept for backward: 1 B", "1000 B")),
    ],
)
def test_a_scale_runs_from_the_least_to_the_most(changed, color_by, field, scale):
    graph = changed(*({field: value} for value in (1, 30, 1_000)))

    found = coloring(graph, color_by)

    colors = [found.colors[node.id] for node in graph.nodes]
    assert found.scale == scale
    assert (colors[0], colors[2]) == (style.RAMP[0], style.RAMP[-1])
    assert luminance(colors[0]) > luminance(colors[1]) > luminance(colors[2])


@pytest.mark.parametrize("color_by", ["wait", "time", "order"])
def test_nodes_with_unknown_values_have_no_color_and_no_scale(changed, color_by):
    unknown = {"waited_ns": None, "start_ns": None, "order": None}

    found = coloring(changed(unknown), color_by)

    assert (set(found.colors.values()), found.scale) == ({style.LINE}, None)


def test_several_nodes_waited_as_long_as_all_of_them(make_graph):
    chain = contract_chains(make_graph(3, [(0, 1), (1, 2)]))

    assert coloring(chain, "wait").texts == {100: "60 ns"}


def test_families_and_scales_can_be_told_apart_without_colors():
    for colors in (style.FAMILIES, style.RAMP[::-1]):
        grays = [luminance(color) for color in colors]
        steps = [pale - dark for dark, pale in itertools.pairwise(grays)]
        assert min(steps) > 12


def test_a_graph_of_no_nodes_has_no_colors(make_graph):
    for color_by in ("auto", "order", "time", "memory", "wait", "device", "op"):
        assert coloring(make_graph(0, []), color_by).colors == {}


def test_every_family_has_a_color_of_its_own(step):
    nodes = tuple(
        msgspec.structs.replace(node, name=name)
        for node, name in zip(
            step.nodes,
            ("Mm", "Sum", "Relu", "Take", "Mul", "MseLoss", "View", "Nobody", LEAF),
            strict=True,
        )
    )

    found = coloring(msgspec.structs.replace(step, nodes=nodes), "op")

    assert len(set(found.colors.values())) == len(nodes)
    assert len(found.legend) == len(nodes)
