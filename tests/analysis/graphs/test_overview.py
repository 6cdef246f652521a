import random

import msgspec
import pytest

from gradviz.analysis.graphs.backward_graph import Graph
from gradviz.analysis.graphs.modules import collapse_modules, max_depth
from gradviz.analysis.graphs.overview import MIN_BOXES, MOST_BOXES, overview
from gradviz.analysis.graphs.simplification import inner_nodes
from tests.analysis.graphs.test_modules import make_graph
from tests.analysis.graphs.test_repetition import line


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

        assert len(graph.nodes) <= MOST_BOXES
        assert graph.num_nodes == 300


def parts(*sizes: int) -> Graph:
    """A model whose parts have so many parts of two nodes each."""
    modules = [
        f"N.{part}.{own}" for part, num in enumerate(sizes) for own in range(num)
    ]
    return line(different(2 * len(modules)), [one for one in modules for _ in "ab"])


@pytest.mark.parametrize(
    ("sizes", "num_boxes"),
    [
        ([90, 2], 2),  # the other depth has 92 boxes
        ([54, 2, 2], 58),
        ([55, 2, 4], 3),
        ([30, 4, 3, 3, 38], 5),
        ([10, 20, 10], 40),
        ([20] * 4, 4),
        ([15] * 4, 60),
    ],
)
def test_few_boxes_are_drawn_only_where_no_other_depth_has_up_to_sixty(
    sizes, num_boxes
):
    assert len(overview(parts(*sizes)).nodes) == num_boxes


@pytest.mark.parametrize("seed", range(40))
def test_of_random_trees_an_overview_is_never_a_few_boxes_for_want_of_care(seed):
    chooser = random.Random(seed)
    modules: list[str] = []
    while len(modules) < 400:
        depth = chooser.randint(0, 4)
        names = [str(chooser.randint(0, 2 + 20 * (depth == 1))) for _ in range(depth)]
        modules += [".".join(["N", *names])] * chooser.randint(1, 6)
    modules.sort()
    graph = line(different(len(modules)), modules)

    num = len(inner_nodes(overview(graph)))

    depths = range(max_depth(graph) + 1)
    sizes = [len(inner_nodes(collapse_modules(graph, one))) for one in depths]
    assert num >= MIN_BOXES or not any(
        MIN_BOXES <= size <= MOST_BOXES for size in sizes
    )


def test_an_overview_of_no_nodes_is_empty():
    graph = msgspec.structs.replace(line([]), nodes=(), edges=())

    assert overview(graph) == graph
