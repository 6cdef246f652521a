import random

import pytest

import gradviz as gv
from gradviz import nn
from gradviz.analysis.graphs import backward_graph as analysis_graph
from gradviz.analysis.graphs.backward_graph import Graph, build_graph
from gradviz.drawing.tensor_graph import nodes_of, tensor_graph, with_saved_tensors
from gradviz.errors import UserError


def graph_of(outputs, params=()) -> Graph:
    return tensor_graph(nodes_of(outputs), params)


def pairs(graph: Graph) -> list[tuple[int, int, int]]:
    ids = [node.id for node in graph.nodes]
    return [(ids[one.producer], ids[one.consumer], one.input_nr) for one in graph.edges]


def random_loss(seed: int) -> gv.Tensor:
    """Ops on what was made before, of which some is used often and some never."""
    choose = random.Random(seed)
    made = [gv.ones(2, requires_grad=True) for _ in range(4)]
    for _ in range(choose.randrange(3, 40)):
        one, other = choose.choices(made, k=2)
        made.append(choose.choice((one * other, one + other, one.sin(), -other)))
    return sum(choose.sample(made[4:], 2)).sum()


@pytest.mark.parametrize("seed", range(20))
def test_a_graph_drawn_before_a_backward_has_the_nodes_and_order_of_the_pass(
    seed,
) -> None:
    loss = random_loss(seed)
    drawn = graph_of(loss)
    with gv.record() as recording:
        loss.backward()
    ran = build_graph(recording.trace, recording.trace.tasks[0])

    assert [node.id for node in drawn.nodes] == [node.id for node in ran.nodes]
    assert [node.order for node in drawn.nodes] == [node.order for node in ran.nodes]
    assert pairs(drawn) == pairs(ran)
    for one, other in zip(drawn.nodes, ran.nodes, strict=True):
        assert (one.name, one.inputs, one.device) == (
            other.name,
            other.inputs,
            other.device,
        )


def test_drawing_runs_nothing_and_leaves_the_graph_as_it_was() -> None:
    x = gv.ones(2, requires_grad=True)
    loss = (x * x).sum()

    graph_of(loss)

    assert x.grad is None
    loss.backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_outputs_may_be_nested_and_are_drawn_once() -> None:
    x = gv.ones(2, requires_grad=True)
    one, other = x.sin(), x.cos()
    nested = {"a": [one, None], "b": (other, {"again": one})}
    nested["itself"] = nested

    graph = graph_of(nested)

    assert sorted(node.name for node in graph.nodes) == [
        "AccumulateGrad",
        "CosBackward0",
        "SinBackward0",
    ]


def test_a_leaf_is_a_graph_of_one_node() -> None:
    (only,) = graph_of(gv.ones(2, requires_grad=True)).nodes

    assert (only.name, only.order) == ("AccumulateGrad", 0)


@pytest.mark.parametrize("outputs", [gv.ones(2), [], {"a": None}, [gv.ones(1)] * 2])
def test_without_a_graph_it_says_so_and_what_is_expected(outputs) -> None:
    with pytest.raises(UserError, match=r"no graph.*requires_grad=True"):
        nodes_of(outputs)


@pytest.mark.parametrize(
    ("outputs", "told"),
    [
        (3, "got int as outputs"),
        (None, "got NoneType as outputs"),
        ([gv.ones(1), {"x": "loss"}], r"got str as outputs\[1\]\['x'\]"),
    ],
)
def test_an_output_that_is_no_tensor_is_named_with_its_place(outputs, told) -> None:
    with pytest.raises(TypeError, match=told):
        nodes_of(outputs)


def test_leaves_have_the_names_of_params_else_those_of_their_model() -> None:
    model = nn.name_root(nn.Linear(2, 1), "named")
    loss = model(gv.ones(3, 2)).sum()

    own = {node.parameters for node in graph_of(loss).nodes if node.parameters}
    given = graph_of(loss, [("w", model.weight), ("tied", model.weight)])
    shown = {node.parameters for node in given.nodes if node.parameters}

    assert own == {("named.weight",), ("named.bias",)}
    assert shown == {("w", "tied"), ("named.bias",)}


def test_params_that_no_gradient_reaches_are_told() -> None:
    x = gv.ones(2, requires_grad=True)
    others = {f"p{index}": gv.ones(1, requires_grad=True) for index in range(5)}

    graph = graph_of(x.sum(), {"x": x, **others})

    assert graph.notes == ("not reached: p0, p1, p2 and 2 more",)


@pytest.mark.parametrize("params", [[gv.ones(1)], {"x": 3}, ["ab"], {1: gv.ones(1)}])
def test_params_that_are_no_names_and_tensors_are_refused(params) -> None:
    with pytest.raises(TypeError, match=r"named_parameters"):
        graph_of(gv.ones(2, requires_grad=True).sum(), params)


def test_a_graph_of_too_many_nodes_says_how_many_are_left_out(monkeypatch) -> None:
    y = gv.ones(1, requires_grad=True)
    for _ in range(30):
        y = y.sin()
    monkeypatch.setattr("gradviz.drawing.tensor_graph.MAX_NODES", 10)

    graph = graph_of(y)

    assert (len(graph.nodes), graph.omitted) == (10, 21)
    assert (len(graph.edges), graph.omitted_edges) == (9, 1)
    assert graph.nodes[9].omitted_edges == 1


def test_a_deep_graph_needs_no_deep_stack() -> None:
    y = gv.ones(1, requires_grad=True)
    for _ in range(analysis_graph.MAX_NODES + 5):
        y = y.sin()

    graph = graph_of(y)

    assert (len(graph.nodes), graph.omitted) == (analysis_graph.MAX_NODES, 6)


# --- saved tensors ------------------------------------------------------------------


def saved(outputs) -> list[tuple[str, str, tuple[int, ...], str]]:
    """Of each saved tensor who saved it, its name, shape and dtype."""
    nodes = nodes_of(outputs)
    graph = with_saved_tensors(tensor_graph(nodes), nodes)
    by_id = {node.id: node for node in graph.nodes}
    found = []
    for edge in graph.edges:
        one = graph.nodes[edge.consumer]
        if one.saved_by is not None:
            assert graph.nodes[edge.producer].id == one.saved_by
            (what,) = one.inputs
            name = by_id[one.saved_by].name
            found.append((name, one.name, what.shape, what.dtype))
    return found


def test_saved_tensors_are_drawn_under_the_names_of_pytorch() -> None:
    model = nn.Linear(4, 3)

    assert sorted(saved((model(gv.ones(2, 4)).relu() * gv.ones(3)).sum())) == [
        ("AddmmBackward0", "saved mat1", (2, 4), "float32"),
        ("MulBackward0", "saved other", (3,), "float32"),
        ("ReluBackward0", "saved result", (2, 3), "float32"),
    ]


def test_a_tensor_that_a_function_saves_is_drawn() -> None:
    class Twice(gv.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

    y = Twice.apply(gv.ones(5, requires_grad=True))

    assert saved(y) == [("TwiceBackward", "saved_tensors[0]", (5,), "float32")]


def test_a_value_that_hooks_have_packed_is_not_drawn() -> None:
    x = gv.ones(2, requires_grad=True)
    with gv.autograd.graph.saved_tensors_hooks(lambda _: "packed", gv.ones):
        y = x * x

    assert saved(y) == []


def test_of_a_freed_graph_it_is_said_that_saved_tensors_are_gone() -> None:
    loss = gv.ones(2, requires_grad=True).exp().sum()
    loss.backward()

    nodes = nodes_of(loss)
    graph = with_saved_tensors(tensor_graph(nodes), nodes)

    assert graph.num_nodes == len(graph.nodes) == 3
    assert graph.notes == ("saved tensors of 1 node are freed",)
