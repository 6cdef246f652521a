import msgspec
import pytest

from gradviz.analysis.graphs.backward_graph import (
    Graph,
    GraphEdge,
    GraphNode,
    build_graph,
)
from gradviz.analysis.graphs.modules import (
    collapse_modules,
    max_depth,
    num_boxes,
    stretches,
)
from gradviz.analysis.graphs.simplification import split_shared_leaves
from gradviz.analysis.tables.passes import select_task
from gradviz.trace.format.model import InputDefinition
from gradviz.trace.reading.reader import load_trace
from tests.docs.gallery import PICTURES


def make_node(place, module, **changes):
    fields = {
        "id": 100 - place,  # the later a node was made, the earlier it runs
        "name": f"Op{place}",
        "device": "cpu",
        "sequence_nr": 100 - place,
        "topological_nr": 0,
        "inputs": (),
        "location": "",
        "order": place,
        "thread": 0,
        "start_ns": 10 * place,
        "end_ns": 10 * place + 5,
        "waited_ns": 1,
        "status": "completed",
        "module": module,
    }
    return GraphNode(**(fields | changes))


def make_graph(modules, pairs):
    nodes = tuple(make_node(place, module) for place, module in enumerate(modules))
    edges = tuple(GraphEdge(one, other, 0) for one, other in pairs)
    return Graph(task=0, nodes=nodes, edges=edges)


def chain(*modules):
    return make_graph(modules, [(i, i + 1) for i in range(len(modules) - 1)])


def pairs_of(graph):
    return [(edge.producer, edge.consumer) for edge in graph.edges]


@pytest.fixture
def model():
    """A loss, two linear layers with an op of the model between, a weight each."""
    modules = ("", "b", "b", "", "a.0", "a.0", "a.0", "b", "a.0")
    ways = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 6), (1, 7), (4, 8)]
    return make_graph(modules, ways)


def test_nodes_that_a_module_made_in_a_row_form_a_stretch(model):
    found = stretches(model)

    assert [stretch.module for stretch in found] == ["b", "a.0"]


def test_a_part_that_has_been_collapsed_belongs_to_no_other():
    collapsed = collapse_modules(chain("", "b", "b", "a", "a"), 1)

    assert pairs_of(collapsed) == [(0, 1), (1, 2)]
    assert stretches(collapsed) == ()


def test_a_leaf_belongs_to_the_stretch_that_alone_uses_it(model):
    assert [stretch.members for stretch in stretches(model)] == [
        (1, 2, 7),
        (4, 5, 6, 8),
    ]


def test_a_leaf_of_two_stretches_belongs_to_none(model):
    shared = msgspec.structs.replace(model, edges=(*model.edges, GraphEdge(1, 8, 0)))

    assert all(8 not in stretch.members for stretch in stretches(shared))


def test_a_module_called_twice_has_a_stretch_for_each_call():
    found = stretches(chain("cell", "cell", "", "cell", "cell", "leaf"))

    assert [(one.module, one.members) for one in found] == [
        ("cell", (0, 1)),
        ("cell", (3, 4, 5)),
    ]


def test_a_single_node_is_no_stretch():
    (stretch,) = stretches(chain("a", "b", "c", "leaf"))

    assert stretch[:2] == ("c", (2, 3))


def test_depth_cuts_the_paths_below_the_models():
    graph = chain("A.0.x", "A.0.y", "A.1", "B", "B", "leaf")

    assert [one.module for one in stretches(graph, depth=0)] == ["A", "B"]
    assert [one.module for one in stretches(graph, depth=1)] == ["A.0", "B"]


def test_parts_of_one_name_of_two_models_are_two():
    """Two models of one class, one called right after the other."""
    graph = chain("Net.0", "Net.0", "Net#2.0", "Net#2.0", "leaf")

    for depth in (None, 1):
        assert [one.module for one in stretches(graph, depth)] == ["Net.0", "Net#2.0"]
    assert [node.name for node in collapse_modules(graph, 0).nodes] == ["Net", "Net#2"]


def test_collapsing_draws_each_stretch_as_one_node(model):
    drawn = collapse_modules(model, 2)

    assert [node.name for node in drawn.nodes] == ["Op0", "b", "Op3", "a.0"]
    assert pairs_of(drawn) == [(0, 1), (1, 2), (2, 3)]


def test_a_collapsed_node_has_the_times_and_members_of_its_stretch(model):
    node = collapse_modules(model, 2).nodes[1]

    assert (node.order, node.start_ns, node.end_ns) == (1, 10, 75)
    assert [one.id for one in node.members] == [99, 98, 93]


def test_the_worst_end_is_told(model):
    failed = msgspec.structs.replace(model.nodes[2], status="failed", end_ns=None)
    graph = msgspec.structs.replace(
        model, nodes=(*model.nodes[:2], failed, *model.nodes[3:])
    )

    assert collapse_modules(graph, 2).nodes[1].status == "failed"


def test_collapsing_makes_no_cycle():
    """A module whose op leads around another's: 0 -> 1 -> 2 and 0 -> 2."""
    graph = make_graph(
        ("a", "b", "a", "a", ""), [(0, 1), (1, 2), (0, 2), (2, 3), (3, 4)]
    )

    drawn = collapse_modules(graph, 1)

    assert all(producer < consumer for producer, consumer in pairs_of(drawn))


def test_containers_do_not_count_as_depth():
    graph = chain("N.parts.0", "N.parts.0", "N.parts.1.x", "N.parts.1.y", "N.b.x")
    graph = msgspec.structs.replace(graph, containers=frozenset({"N.parts"}))

    drawn = collapse_modules(graph, 1)

    assert [node.name for node in drawn.nodes] == ["N.parts.0", "N.parts.1"]
    assert [num_boxes(graph, depth) for depth in range(3)] == [1, 2, 3]
    assert max_depth(graph) == 3


def test_leaves_that_all_calls_of_a_module_share_are_in_its_last_box_to_run():
    """Two calls of a cell with one weight, and an op of the model between."""
    modules = ("cell", "cell", "", "cell", "cell", "cell")
    ways = [(0, 1), (0, 5), (1, 2), (2, 3), (3, 4), (3, 5), (4, 5)]
    graph = make_graph(modules, ways)

    drawn = collapse_modules(graph, 0)

    assert [node.num_nodes for node in drawn.nodes] == [2, 1, 3]
    assert pairs_of(drawn) == [(0, 1), (1, 2)]
    assert [[leaf.id for leaf in node.leaves] for node in drawn.nodes] == [
        [95],
        [],
        [95],
    ]


def test_a_call_of_one_node_is_a_box_if_its_leaf_is_in_another():
    graph = make_graph(("w", "", "w", "w"), [(0, 1), (0, 3), (1, 2), (2, 3)])

    drawn = collapse_modules(graph, 0)

    assert [(node.name, node.num_nodes) for node in drawn.nodes] == [
        ("w", 1),
        ("Op1", 1),
        ("w", 2),
    ]


def test_a_leaf_of_two_modules_is_drawn_itself():
    graph = make_graph(
        ("a", "a", "b", "b", ""), [(0, 1), (1, 2), (1, 4), (3, 4), (2, 3)]
    )

    drawn = collapse_modules(graph, 0)

    assert [node.name for node in drawn.nodes] == ["a", "b", "Op4"]


def test_no_collapsed_box_is_drawn_twice():
    """A part at which the graph ends, used from the start and the end of a chain."""
    modules = ("", "", "", "", "", "", "a", "a")
    ways = [*((i, i + 1) for i in range(7)), (0, 6)]
    drawn = collapse_modules(make_graph(modules, ways), 0)

    assert split_shared_leaves(drawn) == drawn


def test_a_box_knows_how_many_parameters_it_leads_to():
    graph = make_graph(("a", "a", "a"), [(0, 1), (0, 2)])
    weight = msgspec.structs.replace(
        graph.nodes[2],
        parameters=("a.weight",),
        inputs=(InputDefinition((4, 3), "float32", "cpu"),),
    )
    graph = msgspec.structs.replace(graph, nodes=(*graph.nodes[:2], weight))

    assert collapse_modules(graph, 0).nodes[0].num_parameters == 12


def test_a_box_knows_its_first_and_last_number_and_what_its_nodes_took(model):
    box = collapse_modules(model, 2).nodes[1]

    assert (box.orders, box.busy_ns, box.took_ns) == ((1, 7), 15, 65)
    assert box.is_part


def test_workers_are_boxes_in_which_a_gradient_never_goes_back():
    trace = load_trace(PICTURES / "pipeline.gvt")
    graph = collapse_modules(build_graph(trace, *select_task(trace)), 0)

    names = [graph.nodes[place].name for place in range(5)]
    assert names == ["worker 0", "worker 1", "worker 2", "worker 1", "worker 0"]
    assert {(edge.producer, edge.consumer) for edge in graph.edges} == {
        (0, 1),
        (1, 2),
        (2, 3),
        (3, 4),
    }


def test_the_models_of_workers_are_their_parts_at_the_next_depth():
    trace = load_trace(PICTURES / "pipeline.gvt")
    graph = build_graph(trace, *select_task(trace))

    assert {one.module for one in stretches(graph, 0)} == {
        "worker 0",
        "worker 1",
        "worker 2",
    }
    assert "worker 2.Stage" in {one.module for one in stretches(graph, 1)}
