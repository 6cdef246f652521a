"""Discovery of a pass by walking the graph."""

import pytest

from gradviz.backends.stream import Stream
from gradviz.engine import Edge, Node
from gradviz.engine.tasks.discovery import (
    compute_dependencies,
    compute_exec_info,
    cycle_message,
    find_cycle,
    min_topological_nr,
)
from gradviz.engine.tasks.graph_task import Capture
from tests.engine.accelerator import NOTED_0, NOTED_1
from tests.engine.nodes import SIM_0, SIM_1, Pass, Sink


def set_edges(node: Node, *receivers: Node) -> None:
    """Make the cycle that no constructor can make."""
    node.next_edges = tuple(Edge(one, 0) for one in receivers)


def needed(root: Node, *outputs: Edge, accumulate_grad: bool = True) -> set[Node]:
    infos = compute_exec_info(
        root,
        outputs,
        accumulate_grad=accumulate_grad,
        min_topological_nr=min_topological_nr(outputs),
    )
    return {node for node, info in infos.items() if info.is_needed}


class TestDependencies:
    def test_every_edge_counts_once(self):
        """X8."""
        leaf = Sink()
        left, right = Pass(leaf), Pass(leaf)
        root = Pass(left, right)

        counts = compute_dependencies(root, 0).counts

        assert counts == {left: 1, right: 1, leaf: 2}

    def test_two_edges_between_the_same_nodes_count_twice(self):
        """X8: multi-edges."""
        leaf = Sink(inputs=2)
        root = Pass(leaf, Edge(leaf, 1), leaf)

        assert compute_dependencies(root, 0).counts == {leaf: 3}

    def test_edges_that_lead_nowhere_are_no_dependencies(self):
        """X8."""
        assert compute_dependencies(Pass(None, None), 0).counts == {}

    def test_the_root_has_no_entry(self):
        """X8: `nodes_in_graph_` does not hold it either."""
        assert compute_dependencies(Sink(), 0).counts == {}

    def test_nodes_that_cannot_lead_to_an_output_are_not_walked_through(self):
        """X7, X8: a node below the smallest output is counted, not entered."""
        leaf = Sink()
        low = Pass(leaf)
        output = Pass(low)
        root = Pass(output)

        counts = compute_dependencies(root, output.topological_nr).counts

        assert counts == {output: 1, low: 1}

    def test_it_says_which_devices_besides_the_cpu_take_part(self):
        """X8."""
        root = Pass(Pass(Sink(device=SIM_1), device=SIM_0), Sink())

        assert compute_dependencies(root, 0).devices == {SIM_0, SIM_1}
        assert compute_dependencies(Pass(Sink()), 0).devices == set()

    def test_it_says_which_streams_nodes_work_on(self, notebook):
        side, other = Stream(NOTED_0), Stream(NOTED_1)
        with side, other:
            last = Sink(device=NOTED_0)
            root = Pass(Pass(last, device=NOTED_0), device=NOTED_1)

        assert compute_dependencies(root, 0).streams == {side, other}
        assert compute_dependencies(Pass(Sink()), 0).streams == set()

    def test_the_device_of_the_root_counts_as_well(self):
        assert compute_dependencies(Sink(device=SIM_1), 0).devices == {SIM_1}

    def test_a_cycle_through_the_root_is_spelled_out(self):
        inner = Pass()
        root = Pass(inner)
        set_edges(inner, root)

        with pytest.raises(RuntimeError, match="the graph has a cycle") as caught:
            compute_dependencies(root, 0)
        assert f"{root!r} -> {inner!r} -> {root!r}" in str(caught.value)


class TestMinTopologicalNr:
    def test_it_is_the_smallest_among_the_outputs(self):
        """X7."""
        low = Pass(Sink())
        high = Pass(low)

        assert min_topological_nr([Edge(high), Edge(low)]) == 1

    def test_it_is_zero_without_outputs(self):
        """X7."""
        assert min_topological_nr([]) == 0


class TestExecInfo:
    def test_only_what_leads_to_an_output_is_needed(self):
        """I2, I4."""
        wanted, other = Sink(), Sink()
        to_wanted, to_other = Pass(wanted), Pass(other)
        root = Pass(to_wanted, to_other)

        assert needed(root, Edge(wanted)) == {root, to_wanted, wanted}

    def test_a_captured_output_is_not_needed_itself(self):
        """I3."""
        wanted = Sink()
        root = Pass(wanted)

        assert needed(root, Edge(wanted), accumulate_grad=False) == {root}

    def test_an_output_beyond_another_makes_that_one_needed(self):
        """I4: `seen` does not begin with the outputs."""
        far = Sink()
        near = Pass(far)
        root = Pass(near)

        for outputs in ([Edge(near), Edge(far)], [Edge(far), Edge(near)]):
            assert needed(root, *outputs, accumulate_grad=False) == {root, near}

    def test_need_reaches_a_parent_that_finds_its_child_decided(self):
        """I4, case 1: the second path meets a node that was seen on the first."""
        wanted = Sink()
        shared = Pass(wanted)
        first, second = Pass(shared), Pass(shared)
        root = Pass(first, second)

        expected = {root, first, second, shared, wanted}
        assert needed(root, Edge(wanted)) == expected

    def test_one_edge_may_be_captured_several_times(self):
        """I3."""
        wanted = Sink(inputs=2)
        outputs = [Edge(wanted, 1), Edge(wanted, 0), Edge(wanted, 1)]

        infos = compute_exec_info(
            Pass(wanted), outputs, accumulate_grad=False, min_topological_nr=0
        )

        assert infos[wanted].captures == [Capture(1, 0), Capture(0, 1), Capture(1, 2)]

    def test_the_root_has_an_entry_even_if_nothing_leads_anywhere(self):
        """I4."""
        root, unreachable = Pass(Sink()), Sink()

        infos = compute_exec_info(
            root, [Edge(unreachable)], accumulate_grad=False, min_topological_nr=0
        )

        assert not infos[root].should_execute

    def test_a_root_that_is_itself_the_output_is_captured(self):
        """I3."""
        root = Pass(Sink())

        assert needed(root, Edge(root), accumulate_grad=False) == set()
        assert needed(root, Edge(root)) == {root}

    def test_branches_below_every_output_are_pruned(self):
        """I4, case 2: what lies too low is not entered, and not needed."""
        wanted = Pass(Pass(Sink()))
        low = Pass(Sink())
        root = Pass(wanted, low)

        assert needed(root, Edge(wanted)) == {root, wanted}


class TestCycles:
    def test_a_backward_graph_has_none(self):
        leaf = Sink()
        left, right = Pass(leaf), Pass(leaf)

        assert find_cycle([Pass(left, right), left, right, leaf]) == ()

    def test_a_node_that_leads_to_itself_is_one(self):
        node = Pass()
        set_edges(node, node)

        assert find_cycle([node]) == (node,)

    def test_only_cycles_among_the_given_nodes_are_found(self):
        first, second = Pass(), Pass()
        set_edges(first, second)
        set_edges(second, first)

        assert find_cycle([first]) == ()
        assert set(find_cycle([first, second])) == {first, second}

    def test_a_cycle_is_named_in_its_own_order(self):
        a, b, c = Pass(), Pass(), Pass()
        set_edges(a, b)
        set_edges(b, c)
        set_edges(c, a)

        assert f"{a!r} -> {b!r} -> {c!r} -> {a!r}" in cycle_message(a)

    def test_without_a_cycle_the_message_is_pytorchs(self):
        """P2."""
        message = cycle_message(Pass(Sink()))

        assert message == "could not compute gradients for some functions"
