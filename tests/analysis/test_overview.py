import msgspec

from gradviz.analysis.overview import MAX_BOXES, overview
from tests.analysis.test_modules import make_graph
from tests.analysis.test_repetition import line


def different(num):
    """Names that do not repeat."""
    return [f"Op{number}" for number in range(num)]


def test_a_small_graph_is_shown_as_it_is():
    graph = line(different(40))

    assert overview(graph) == graph


def test_of_a_big_graph_what_repeats_is_drawn_once():
    graph = overview(line(["begin", *["a", "b", "c"] * 200, "end"]))

    assert len(graph.nodes) == 5
    assert graph.num_nodes == 602
    assert graph.notes == ("what repeats is drawn once",)


def test_a_long_path_is_drawn_as_a_big_graph_is():
    assert len(overview(line(["a"] * 62)).nodes) == 2


def test_modules_are_boxes_as_deep_as_there_is_room():
    """Ten parts of ten parts of two nodes each: a hundred boxes would be too many."""
    modules = [f"N.{i // 20}.{i // 2 % 10}" for i in range(200)]

    graph = overview(line(different(200), modules))

    assert [node.name for node in graph.nodes] == [f"N.{i}" for i in range(10)]
    assert graph.notes == ("parts of models to depth 1 as boxes",)


def test_chains_are_boxes_where_nothing_else_helps():
    graph = overview(line(different(200)))

    assert [node.num_nodes for node in graph.nodes] == [200]
    assert graph.notes == ("chains as boxes",)


def test_a_deeper_collapse_that_shows_nothing_more_is_not_told():
    modules = [f"N.{i // 20}.x.y" for i in range(200)]

    graph = overview(line(different(200), modules))

    assert graph.notes == ("parts of models to depth 1 as boxes",)


def test_an_overview_has_few_boxes_whatever_the_model():
    for width in (1, 3, 7, 30, 50):
        modules = [f"N.{i // width}.{i % width}" for i in range(300)]
        graph = overview(make_graph(modules, [(i, i + 1) for i in range(299)]))

        assert len(graph.nodes) <= MAX_BOXES
        assert graph.num_nodes == 300


def test_an_overview_of_no_nodes_is_empty():
    graph = msgspec.structs.replace(line([]), nodes=(), edges=())

    assert overview(graph) == graph
