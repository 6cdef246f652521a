import random

import pytest

import gradviz as gv
from gradviz.analysis.graphs import nested_passes
from gradviz.analysis.graphs.backward_graph import build_graph
from gradviz.analysis.graphs.nested_passes import every_graph, nest_passes
from gradviz.analysis.graphs.simplification import contract_chains, split_shared_leaves
from gradviz.analysis.tables.executions import execution_columns
from tests.sampled import sampled


class Calling(gv.autograd.Function):
    """A copy, whose backward runs passes, each of which calls others in turn."""

    @staticmethod
    def forward(ctx, x, tree):
        ctx.tree = tree
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        with gv.enable_grad():
            for inside in ctx.tree:
                run(inside)
        return grad, None


def run(tree):
    """A pass that calls as many passes as `tree` has parts, which call theirs."""
    x = gv.ones(2, requires_grad=True)
    Calling.apply(x * 2.0, tree).sum().backward()


def recorded(tree):
    with gv.record() as recording:
        run(tree)
    return recording.trace


def nested(tree, max_nodes=1_000, **options):
    trace = recorded(tree)
    graph = build_graph(trace, trace.tasks[0])
    return nest_passes(graph, trace, lambda one: one, max_nodes, **options)


def shape_of(graph):
    """The tree of calls that a graph shows."""
    return [shape_of(one) for node in graph.nodes for one in node.nested]


def some_tree(chooser, depth=0):
    most = 3 if depth < 4 else 0
    return [some_tree(chooser, depth + 1) for _ in range(chooser.randint(0, most))]


def test_a_called_pass_is_inside_of_the_node_that_called_it():
    graph = nested([[]])

    (caller,) = (node for node in graph.nodes if node.nested)
    assert caller.name == "CallingBackward"
    assert [one.task for one in caller.nested] == list(caller.calls)
    assert [node.order for node in caller.nested[0].nodes] == [0, 1, 2, 3]
    assert graph.num_nodes == 4
    assert graph.notes == ()


def test_a_pass_that_called_none_stays_as_it_is():
    trace = recorded([])
    graph = build_graph(trace, trace.tasks[0])

    assert nest_passes(graph, trace, lambda one: one, 100) is graph


@pytest.mark.parametrize("seed", range(6))
def test_each_pass_is_inside_once_with_all_that_ran_in_it(seed):
    """The tree is what the program did, the nodes are those of the list of events."""
    tree = some_tree(random.Random(seed))
    trace = recorded(tree)
    graph = build_graph(trace, trace.tasks[0])

    whole = nest_passes(graph, trace, lambda one: one, 100_000)

    every = every_graph(whole)
    if len(trace.tasks) - 1 <= nested_passes.MAX_NESTED:
        assert shape_of(whole) == tree
        assert sorted(one.task for one in every) == sorted(trace.tasks)
    for one in every:
        ran = execution_columns(trace, [one.task]).node.tolist()
        assert [node.id for node in one.nodes if node.order is not None] == ran


def test_passes_too_many_for_their_nodes_are_a_box_each():
    graph = nested([[[]], []], max_nodes=11)  # three times four

    inside = every_graph(graph)[1:]
    assert [[node.num_nodes for node in one.nodes] for one in inside] == [[4], [4]]
    assert [one.nodes[0].name for one in inside] == [
        f"pass {one.task}" for one in inside
    ]
    assert graph.notes == ("passes inside as boxes", "1 pass inside not drawn")


def test_deeper_passes_are_boxes_if_only_one_depth_has_room():
    graph = nested([[[], []]], max_nodes=10)

    (outer,) = (node.nested[0] for node in graph.nodes if node.nested)
    deeper = [len(one.nodes) for node in outer.nodes for one in node.nested]
    assert deeper == [1, 1]
    assert len(outer.nodes) == 4


@pytest.mark.parametrize("max_nodes", sampled(range(4, 30), 3))
def test_there_are_never_more_nodes_than_are_asked_for(max_nodes):
    graph = nested([[[], []], [[]], []], max_nodes)

    assert sum(len(one.nodes) for one in every_graph(graph)) <= max_nodes
    num_calls = sum(
        "passes inside" in one or "inside not" in one for one in graph.notes
    )
    assert num_calls or max_nodes >= 28


def test_passes_are_boxes_if_that_is_asked_for():
    graph = nested([[]], are_boxes=True)

    assert [len(one.nodes) for one in every_graph(graph)] == [4, 1]


def test_a_box_of_a_pass_says_how_many_parameters_it_leads_to():
    class Checkpointed(gv.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            with gv.enable_grad():
                layer(gv.ones(1, 3)).sum().backward()
            return grad

    layer = gv.nn.Linear(3, 2)
    with gv.record() as recording:
        Checkpointed.apply(gv.ones(2, requires_grad=True)).sum().backward()
    trace = recording.trace
    graph = build_graph(trace, trace.tasks[0])

    whole = nest_passes(graph, trace, lambda one: one, 100, are_boxes=True)

    assert [one.nodes[0].num_parameters for one in every_graph(whole)[1:]] == [8]


def test_more_passes_than_there_is_room_for_are_only_named(monkeypatch):
    monkeypatch.setattr(nested_passes, "MAX_NESTED", 2)

    graph = nested([[], [], []])

    assert every_graph(graph) == (graph,)
    assert graph.notes == ("3 passes inside not drawn",)


def test_passes_of_a_trace_in_which_they_take_long_to_find_are_only_named(monkeypatch):
    trace = recorded([[], []])
    graph = build_graph(trace, trace.tasks[0])

    def num_inside(max_events):
        monkeypatch.setattr(nested_passes, "MAX_EVENTS", max_events)
        return len(every_graph(nest_passes(graph, trace, lambda one: one, 100))) - 1

    assert num_inside(2 * trace.num_events) == 2
    assert num_inside(2 * trace.num_events - 1) == 0


def test_of_a_pass_inside_of_many_only_those_above_are_drawn(monkeypatch):
    monkeypatch.setattr(nested_passes, "MAX_DEPTH", 2)

    graph = nested([[[[]]]])

    assert shape_of(graph) == [[[]]]
    assert graph.notes == ("1 pass inside not drawn",)


def test_a_chain_with_a_caller_in_it_names_the_pass_only():
    trace = recorded([[]])
    graph = contract_chains(build_graph(trace, trace.tasks[0]))

    whole = nest_passes(graph, trace, lambda one: one, 100)

    assert every_graph(whole) == (whole,)
    assert whole.nodes[0].calls == (trace.tasks[1],)
    assert whole.notes[-1] == "1 pass inside not drawn"


def test_a_leaf_whose_hook_called_a_pass_is_drawn_once():
    weight = gv.ones(2, requires_grad=True)

    def again(_):
        with gv.enable_grad():
            run([])

    weight.register_post_accumulate_grad_hook(again)
    with gv.record() as recording:
        x = weight * 1.0
        for _ in range(6):
            x = (x * weight).tanh()
        x.sum().backward()
    trace = recording.trace
    graph = build_graph(trace, trace.tasks[0])

    whole = split_shared_leaves(nest_passes(graph, trace, lambda one: one, 100))

    assert len(every_graph(whole)) == 2
