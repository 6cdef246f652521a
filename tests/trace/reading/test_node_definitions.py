"""Definitions of nodes, kept as columns."""

import numpy as np
import pytest

from gradviz.trace.events import MAX_SEQUENCE_NR
from gradviz.trace.format.definitions import InputRow, NodeRow
from gradviz.trace.format.frames import Budget
from gradviz.trace.format.model import LOST_TEXT, InputDefinition
from gradviz.trace.format.table import Table
from gradviz.trace.reading import node_definitions as module
from gradviz.trace.reading.assembly import Texts
from gradviz.trace.reading.node_definitions import GatheredNodes, _Index

CREATED = Table(
    {"node": np.array([4, 9, 4], np.int8), "location": np.array([0, 1, 2], np.int8)}
)
TEXTS = Texts({0: "Mul", 1: "cpu", 2: "f.py:3", 5: "layer", 6: "Mul"})


def row(node, name=0, **fields):
    """A node without edges and inputs, unless it says otherwise."""
    single = {"sequence_nr": 3, "topological_nr": 2, "device": 1} | fields
    lists = {one: tuple(single.pop(one, ())) for one in ("edges", "inputs")}
    return NodeRow(id=node, name=name, **single, **lists)


def gathered(*rows, inputs=()):
    found = GatheredNodes()
    found.add(list(rows), Budget(0))
    return found.nodes({one.index: one for one in inputs}, TEXTS, CREATED)


def test_a_node_is_made_of_all_its_columns():
    inputs = [InputRow(0, (2, 3), 0, 1)]
    nodes = gathered(
        row(8),
        row(9, edges=[8, 0, -1, 5], inputs=[0, -1, 7], module=5, topological_nr=6),
        row(4, sequence_nr=-1, edges=[9, 1], inputs=[-1]),
        inputs=inputs,
    )

    assert list(nodes) == [4, 8, 9]
    assert len(nodes) == 3
    nine, four = nodes[9], nodes[4]
    assert (nine.id, nine.name, nine.device) == (9, "Mul", "cpu")
    assert (nine.sequence_nr, nine.topological_nr) == (3, 6)
    assert nine.edges == ((8, 0), (-1, 5))
    assert nine.inputs == (
        InputDefinition((2, 3), "Mul", "cpu"),
        None,
        InputDefinition((), LOST_TEXT, LOST_TEXT),
    )
    assert (nine.module, nine.location) == ("layer", "cpu")
    assert (four.edges, four.inputs) == (((9, 1),), (None,))
    assert (four.sequence_nr, four.module) == (MAX_SEQUENCE_NR, "")
    assert four.location == "f.py:3"  # where it was made last
    assert (nodes[8].edges, nodes[8].inputs, nodes[8].location) == ((), (), "")


def test_of_several_definitions_the_last_counts():
    nodes = gathered(row(1), row(2), row(1, name=5))

    assert nodes[1].name == "layer"
    assert len(nodes) == 2


@pytest.mark.parametrize("node", [-1, 0, 2, 77])
def test_a_node_that_is_not_there_is_none(node):
    nodes = gathered(row(1), row(3))

    assert node not in nodes
    with pytest.raises(KeyError):
        nodes[node]


def test_a_key_that_is_no_number_finds_no_node():
    assert "1" not in gathered(row(1))
    assert 1 in gathered(row(1))


def test_names_are_told_of_many_nodes_at_once():
    nodes = gathered(row(1), row(2, name=5), row(3, name=6))

    names, places = nodes.names(np.array([3, 1, 77, 2, 0, 1]))

    assert [names[place] for place in places] == [
        "Mul",
        "Mul",
        "?",
        "layer",
        "?",
        "Mul",
    ]
    assert len(names) == 3


def test_modules_and_devices_are_told_of_many_nodes_at_once():
    nodes = gathered(row(1), row(2, module=5))

    modules, of_module = nodes.names(np.array([2, 77, 1]), "module")
    devices, of_device = nodes.names(np.array([2, 77, 1]), "device")

    assert [modules[place] for place in of_module] == ["layer", "?", ""]
    assert [devices[place] for place in of_device] == ["cpu", "?", "cpu"]


def test_inputs_depths_and_lines_are_told_of_many_nodes_at_once():
    nodes = gathered(row(1), row(2, inputs=[0, -1], topological_nr=7))

    assert nodes.inputs(np.array([2, 77, 1, 2])) == [
        nodes[2].inputs,
        (),
        nodes[1].inputs,
        nodes[2].inputs,
    ]
    assert nodes.topological_nrs(np.array([2, 77])).tolist() == [7, 0]
    lines, place = nodes.names(np.array([2, 77]), "location")
    assert [lines[one] for one in place] == ["", "?"]


def test_edges_and_sequence_numbers_are_told_of_many_nodes_at_once():
    nodes = gathered(
        row(8, sequence_nr=-1), row(9, edges=[8, 0, -1, 5]), row(4, edges=[9, 1])
    )

    edges = nodes.edges(np.array([4, 77, 8, 9, 4]))

    assert edges.ends.tolist() == [1, 1, 1, 3, 4]
    assert edges.consumer.tolist() == [9, 8, -1, 9]
    assert edges.input_nr.tolist() == [1, 0, 5, 1]
    assert nodes.sequence_nrs(np.array([4, 77, 8])).tolist() == [3, 0, -1]


def test_without_definitions_no_node_has_a_name_or_an_edge():
    names, places = gathered().names(np.array([3, 1]))

    assert [names[place] for place in places] == ["?", "?"]
    assert gathered().edges(np.array([3, 1])).ends.tolist() == [0, 0]
    assert gathered().sequence_nrs(np.array([3, 1])).tolist() == [0, 0]
    assert gathered().inputs(np.array([3, 1])) == [(), ()]


def test_a_made_definition_is_remembered_within_limits(monkeypatch):
    monkeypatch.setattr(module, "_MAX_MADE", 25)
    nodes = gathered(*(row(node) for node in range(3)))

    first = nodes[0]
    assert nodes[1] is nodes[1]
    assert nodes[0] is first
    assert nodes[2].id == 2  # 30 by now: all are forgotten but the last
    assert nodes[0] is not first
    assert nodes[0] == first


def test_a_definition_with_many_edges_weighs_more(monkeypatch):
    monkeypatch.setattr(module, "_MAX_MADE", 25)
    nodes = gathered(row(0, edges=[1, 0] * 20), row(1))

    light = nodes[1]
    assert len(nodes[0].edges) == 20

    assert nodes[1] is not light


def test_rows_become_columns_when_many_wait(monkeypatch):
    monkeypatch.setattr(module, "_MAX_WAITING", 2)
    found = GatheredNodes()
    for node in range(5):
        found.add([row(node, edges=[node, 1])], Budget(0))
        assert len(found._waiting["id"]) == (node + 1) % 2

    nodes = found.nodes({}, TEXTS, CREATED)

    assert found.num_rows == 5
    assert [nodes[node].edges for node in range(5)] == [((n, 1),) for n in range(5)]


@pytest.mark.parametrize("lists", [{}, {"edges": [1, 0], "inputs": [-1]}])
def test_rows_are_taken_from_what_the_file_may_cost(lists):
    kept = []

    class Watching(Budget):
        def keep(self, size):
            kept.append(size)

    GatheredNodes().add([row(1, **lists), row(2)], Watching(0))

    assert kept == [2 * 80 + 8 * (3 if lists else 0)]


@pytest.mark.parametrize("column", [[], [5], [5, 3, 5, -2, 3]])
def test_an_index_finds_where_each_number_stands_last(column):
    index = _Index(np.array(column, np.int8))
    asked = [-3, -2, 0, 3, 4, 5, 100]
    last = {number: place for place, number in enumerate(column)}
    expected = [last.get(number, -1) for number in asked]

    assert [index.find(number) for number in asked] == expected
    assert index.find_all(np.array(asked)).tolist() == expected
    assert index.numbers.tolist() == sorted(last)
