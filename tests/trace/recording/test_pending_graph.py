import numpy as np
import pytest

from gradviz.trace.events import MAX_SEQUENCE_NR
from gradviz.trace.format.strings import Strings
from gradviz.trace.recording.pending_graph import PendingGraph
from tests.trace.watched_list import Watched


class Desk:
    """A pending graph whose definitions are put into words again."""

    def __init__(self):
        self.strings = Strings()
        self.graph = PendingGraph(self.strings)
        self.texts = {}
        self.inputs = {}

    def take(self):
        rows, inputs, self.queues = self.graph.take()
        self.texts.update(self.strings.take())
        self.inputs.update((row.index, row) for row in inputs)
        return rows


@pytest.fixture
def desk():
    return Desk()


@pytest.mark.parametrize("has_edges", [False, True])
def test_a_node_is_defined_once(desk, make_node, make_edge, has_edges):
    def define(*numbers):
        edges = [make_edge(None)] * has_edges
        desk.graph.define_nodes(make_node(one, next_edges=edges) for one in numbers)

    define(1, 4)
    define(4, 3, 5)
    define(2, 3, 6)

    assert [row.id for row in desk.take()] == [1, 4, 3, 5, 2, 6]
    define(6, 5, 4, 3, 2, 1)
    assert desk.take() == []


def test_a_leaf_is_defined_anew_whenever_its_names_change(desk, make_node):
    def defined_as(*names):
        class Named(type(make_node(1))):
            def leaf_names(self):
                return names

        node = Named(1, sequence_nr=MAX_SEQUENCE_NR)
        desk.graph.define_nodes([node])
        return [desk.texts.get(row.parameter, "") for row in desk.take()]

    assert defined_as() == [""]
    assert defined_as() == []
    assert defined_as("weight") == ["weight"]
    assert defined_as("weight") == []
    assert defined_as() == [""]
    assert defined_as() == []


def test_a_node_is_read_when_it_is_defined(desk, make_node):
    class Changing:
        id, sequence_nr, topological_nr, runs_on, module_path = 1, 0, 0, "cpu", ""
        next_edges = input_metadata = ()

        def name(self):
            return "Before"

    node = Changing()
    desk.graph.define_nodes([node])
    node.name = lambda: "After"

    (row,) = desk.take()
    assert desk.texts[row.name] == "Before"


def test_edges_are_written_flat(desk, make_node, make_edge):
    edges = (make_edge(make_node(7), 2), make_edge(None), make_edge(make_node(7)))
    desk.graph.define_nodes([make_node(1, next_edges=edges)])

    assert desk.take()[0].edges == (7, 2, -1, 0, 7, 0)


def test_equal_inputs_share_a_definition(desk, make_node, make_metadata):
    one, other = make_metadata(), make_metadata((4,), np.dtype("f4"), "sim:0")
    desk.graph.define_nodes(
        [
            make_node(1, input_metadata=(one, other)),
            make_node(2, input_metadata=(other, None)),
        ]
    )

    first, second = desk.take()
    assert first.inputs == (0, 1)
    assert second.inputs == (1, -1)
    assert desk.inputs[1].shape == (4,)
    assert desk.texts[desk.inputs[1].dtype] == "float32"


def test_an_accumulate_grad_is_numbered_minus_one(desk, make_node):
    desk.graph.define_nodes([make_node(1, sequence_nr=MAX_SEQUENCE_NR)])

    assert desk.take()[0].sequence_nr == -1


class Rude:
    id, sequence_nr, topological_nr, runs_on, module_path = 1, 0, 0, "cpu", ""
    next_edges = input_metadata = ()

    def name(self):
        raise ValueError("no name for you")


class Nameless:
    """A dtype that has no text."""

    def __str__(self):
        raise ValueError("no text")


def test_a_node_that_cannot_be_read_costs_only_itself(desk, make_node, make_metadata):
    nameless = make_node(2, input_metadata=(make_metadata(dtype=Nameless()),))
    desk.graph.define_nodes([Rude(), nameless, make_node(3)])

    assert [row.id for row in desk.take()] == [3]


def test_a_node_that_could_not_be_read_is_tried_again(desk):
    class Late:
        id, sequence_nr, topological_nr, runs_on, module_path = 1, 0, 0, "cpu", ""
        next_edges = input_metadata = ()
        has_name = False

        def name(self):
            if not self.has_name:
                raise ValueError("not yet")
            return "Late"

    node = Late()
    desk.graph.define_nodes([node])
    node.has_name = True
    desk.graph.define_nodes([node])

    assert [row.id for row in desk.take()] == [1]


def test_a_queue_is_defined_once(desk):
    desk.graph.define_queue(4, "sim:0", 0)
    desk.graph.define_queue(4, "sim:0", 0)
    desk.take()
    assert [(row.id, row.name, row.device) for row in desk.queues] == [(4, "sim:0", 0)]

    desk.graph.define_queue(4, "sim:0", 0)
    desk.take()
    assert desk.queues == []


@pytest.mark.parametrize("num_edges", [0, 2])
def test_the_number_of_known_nodes_is_bounded(
    desk, make_node, make_edge, num_edges, monkeypatch
):
    monkeypatch.setattr("gradviz.trace.recording.pending_graph._MAX_KNOWN", 2)
    edges = [make_edge(None)] * num_edges
    for _ in range(2):
        desk.graph.define_nodes(
            make_node(number, f"N{number}", next_edges=edges) for number in range(4)
        )

    ids = [row.id for row in desk.take()]
    assert ids == [0, 1, 2, 3, 0, 1, 2, 3]


def test_lines_of_nodes_that_are_defined_already_are_not_kept(desk, make_node):
    nodes = [make_node(number) for number in range(3)]
    for _ in range(2):
        desk.graph.define_nodes(nodes, {1: "a.py:1", 2: "a.py:2", 9: "not.py:1"})

    assert [desk.texts.get(row.location, "") for row in desk.take()] == [
        *("", "a.py:1", "a.py:2")
    ]
    assert not desk.graph._chunks


def test_the_number_of_waiting_nodes_is_bounded(desk, make_node, monkeypatch):
    monkeypatch.setattr("gradviz.trace.recording.pending_graph._MAX_PENDING", 2)
    for number in range(4):
        desk.graph.define_nodes([make_node(number)])
    assert [row.id for row in desk.take()] == [0, 1]

    desk.graph.define_nodes(map(make_node, range(4)))
    assert [row.id for row in desk.take()] == [2, 3]


@pytest.mark.parametrize("num_edges", [0, 2])
def test_many_nodes_are_defined_in_several_chunks(
    desk, make_node, make_edge, num_edges, monkeypatch
):
    monkeypatch.setattr("gradviz.trace.recording.pending_graph._CHUNK", 20)
    edges = [make_edge(None)] * num_edges
    nodes = [make_node(number, next_edges=edges) for number in range(10)]
    desk.graph.define_nodes(nodes)
    assert len(desk.graph._chunks) > 2

    assert [row.id for row in desk.take()] == [*range(10)]
    desk.graph.define_nodes(nodes)
    assert desk.take() == []


def test_a_graph_may_have_more_texts_than_wait_for_a_writer(
    desk, make_node, monkeypatch
):
    monkeypatch.setattr("gradviz.trace.format.strings._MAX_PENDING", 3)
    desk.graph.define_nodes([make_node(id_, text=f"Mul{id_}") for id_ in range(9)])

    rows = desk.take()

    assert [desk.texts[row.name] for row in rows] == [f"Mul{id_}" for id_ in range(9)]


def test_nodes_and_queues_defined_while_others_are_taken_are_taken_later(
    desk, make_node
):
    graph = desk.graph
    graph._chunks = Watched(after_copy=lambda: graph.define_nodes([make_node(2)]))
    graph._queues = Watched(after_copy=lambda: graph.define_queue(8, "later", 0))
    graph.define_nodes([make_node(1)])
    graph.define_queue(7, "caller 0", -1)

    assert [row.id for row in desk.take()] == [1]
    assert [row.id for row in desk.queues] == [7]
    assert [row.id for row in desk.take()] == [2]
    assert [row.id for row in desk.queues] == [8]


def test_nothing_counts_as_defined_before_the_writer_finds_it(
    desk, make_node, make_edge
):
    graph, told = desk.graph, []
    graph._chunks = Watched(at_append=lambda: told.append(graph._num_defined()))
    graph._queues = Watched(at_append=lambda: told.append(7 in graph._known_queues))
    graph.define_nodes([make_node(1)])
    graph.define_nodes([make_node(2, next_edges=[make_edge(None)])])
    graph.define_queue(7, "caller 0", -1)

    assert told == [0, 1, False]
