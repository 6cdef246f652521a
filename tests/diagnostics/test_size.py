import gradviz as gv
from gradviz import nn
from gradviz.diagnostics import Share, graph_size


def test_nodes_and_edges_are_counted():
    x = gv.ones(2, requires_grad=True)

    size = graph_size((x.exp() + x).sum())

    assert (size.nodes, size.edges) == (4, 4)
    assert size.by_op["AccumulateGrad"] == Share(1, 0)


def test_bytes_that_are_kept_are_counted_once():
    x = gv.ones(10, dtype=gv.float64, requires_grad=True)
    y = x.exp()  # keeps its result

    size = graph_size((y * y).sum())  # which the product keeps, too

    assert size.saved_bytes == 80
    assert size.by_op["MulBackward0"].saved_bytes == 80
    assert size.by_op["ExpBackward0"].saved_bytes == 0


def test_after_backward_nothing_is_kept():
    x = gv.ones(10, requires_grad=True)
    loss = x.exp().sum()
    loss.backward()

    assert graph_size(loss).saved_bytes == 0


def test_parts_of_a_model_have_their_share():
    model = nn.name_root(nn.Sequential(nn.Linear(4, 4), nn.Tanh()), "sized")

    size = graph_size(model(gv.ones(2, 4)).sum())

    assert size.by_module["sized.0"].nodes == 4
    assert size.by_module["sized.1"] == Share(1, 32)
    assert size.by_module[""].nodes == 1


def test_several_tensors_have_one_graph():
    x = gv.ones(2, requires_grad=True)
    y = x.exp()

    assert graph_size([y.sum(), y.mean()]).nodes == 4


def test_without_a_graph_there_is_nothing():
    assert graph_size(gv.ones(2)).nodes == 0


def test_the_size_prints_as_a_table():
    x = gv.ones(2, requires_grad=True)

    lines = str(graph_size(x.exp().sum())).splitlines()

    assert lines[0] == "3 nodes, 2 edges, 8 bytes saved"
    assert lines[2].split() == ["ExpBackward0", "1", "8"]
    assert "(none)" in lines[-1]
