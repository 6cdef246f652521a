"""Nodes, edges and the numbers that order them."""

import pytest

from gradviz.backends.device import CPU
from gradviz.engine import AccumulateGrad, Edge, InputMetadata, Node
from gradviz.engine.graph.node import MAX_SEQUENCE_NR
from gradviz.trace.recording.pending_graph import definition_of
from tests.engine.nodes import SIM_0, Leaf, Pass, Sink, in_thread


def test_sequence_numbers_grow_by_one_on_a_thread():
    """Q8."""
    first, second, third = Sink(), Sink(), Sink()

    assert second.sequence_nr == first.sequence_nr + 1
    assert third.sequence_nr == second.sequence_nr + 1


def test_each_thread_counts_its_own_nodes_from_zero():
    """Q8, G15."""
    mine = Sink().sequence_nr

    def two() -> tuple[int, int]:
        return Sink().sequence_nr, Sink().sequence_nr

    assert in_thread(two) == (0, 1)
    assert Sink().sequence_nr == mine + 1


def test_the_sequence_number_of_a_node_can_be_set():
    """Q8."""
    first = Sink()
    number = first.sequence_nr

    first._set_sequence_nr(number + 100)

    assert (first.sequence_nr, first._sequence_nr()) == (number + 100, number + 100)
    assert Sink().sequence_nr == number + 1


def test_accumulate_grad_has_the_largest_number_and_takes_none():
    """Q4, N1, N2."""

    def numbers() -> tuple[int, int, int]:
        before = Sink().sequence_nr
        leaf = AccumulateGrad(Leaf()).sequence_nr
        return before, leaf, Sink().sequence_nr

    assert in_thread(numbers) == (0, MAX_SEQUENCE_NR, 1)
    assert MAX_SEQUENCE_NR == 18446744073709551615


def test_the_topological_number_is_the_longest_path_to_a_leaf():
    """Q8."""
    leaf = AccumulateGrad(Leaf())
    short = Pass(leaf)
    long = Pass(Pass(short))
    both = Pass(leaf, long, short)

    assert leaf.topological_nr == 0
    assert short.topological_nr == 1
    assert long.topological_nr == 3
    assert both.topological_nr == 4


def test_edges_that_lead_nowhere_do_not_count_for_the_topological_number():
    assert Pass(None, None).topological_nr == 0


def test_every_node_has_its_own_id():
    """Sequence numbers repeat from thread to thread; ids do not."""
    ids = {Sink().id, AccumulateGrad(Leaf()).id, in_thread(lambda: Sink().id)}

    assert len(ids) == 3


def test_edges_may_be_given_as_tuples():
    sink = Sink()

    node = Node([(sink, 0), Edge(None)])

    assert node.next_edges == (Edge(sink, 0), Edge(None, 0))
    assert [one.is_valid for one in node.next_edges] == [True, False]


def test_a_node_takes_one_gradient_unless_told_otherwise():
    node = Node(input_metadata=(InputMetadata((2,), None, SIM_0), None))

    assert node.num_inputs == 2
    assert Node().num_inputs == 1
    assert Node().device is CPU
    assert InputMetadata((), None).device is CPU


def test_a_node_is_called_by_its_class():
    node = Sink()

    assert node.name() == "Sink"
    assert repr(node) == f"<Sink #{node.id}>"


def test_a_node_without_apply_says_which_it_is():
    class Unfinished(Node):
        pass

    with pytest.raises(NotImplementedError, match="Unfinished does not define apply"):
        Unfinished().call([1.0])


def test_a_node_without_hooks_keeps_no_lists_for_them():
    assert Sink().hooks is None


def told_by(tell, *node):
    chunk = []
    tell(*node, chunk)
    assert chunk[0] == len(chunk)
    return chunk


@pytest.mark.parametrize("num_edges", [0, 1, 3])
def test_a_node_says_of_itself_what_a_trace_reads_of_any_node(num_edges):
    leaf = AccumulateGrad(Leaf())
    edges = [Edge(leaf), Edge(None), Edge(leaf)][:num_edges]
    expected = InputMetadata((2, 3), "float64", SIM_0)
    node = Node(edges, (expected, None), SIM_0)
    node.module_path = "Model.layer"

    assert told_by(node.trace_definition) == told_by(definition_of, node)


@pytest.mark.parametrize("name", [None, "weight", "two\nlines"])
def test_a_leafs_node_says_of_itself_what_a_trace_reads_of_any_node(name):
    leaf = Leaf()
    leaf.name = name
    node = AccumulateGrad(leaf, InputMetadata((2,), "float64", CPU))

    definition = told_by(node.trace_definition)

    assert definition == told_by(definition_of, node)
    assert definition[7] == (name or "").replace("\n", " ")
