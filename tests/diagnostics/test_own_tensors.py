"""Tensors of PyTorch's where ours are expected."""

import pytest

import gradviz as gv
from gradviz.errors import UserError

torch = pytest.importorskip("torch")


class Own(torch.Tensor):
    """A subclass of a user's."""


def loss():
    return (torch.ones(3, requires_grad=True) * 2).sum()


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: gv.draw(loss()), r"gv.draw\(gv.pytorch.graph\(tensor\)\)"),
        (lambda: gv.draw({"a": [loss()]}), r"gv.draw\(gv.pytorch.graph\(tensor\)\)"),
        (lambda: gv.draw(loss().as_subclass(Own)), "got Own of PyTorch: gv.draw"),
        (
            lambda: gv.draw(
                gv.ones(2, requires_grad=True) * 2, params={"x": torch.ones(2)}
            ),
            r"gv.pytorch.graph\(tensor, params=...\)",
        ),
        (lambda: gv.diagnostics.graph_size(loss()), r"gv.pytorch.graph"),
        (lambda: gv.diagnostics.graph_size([loss()]), r"gv.pytorch.graph"),
        (lambda: gv.diagnostics.find_nan(loss()), r"torch.autograd.detect_anomaly\(\)"),
        (lambda: gv.diagnostics.find_nan(loss), r"torch.autograd.detect_anomaly\(\)"),
        (lambda: gv.diagnostics.why_none(torch.ones(2)), r"gv.pytorch.record"),
        (lambda: gv.diagnostics.why_none(gv.ones(2), loss()), r"gv.pytorch.record"),
        (lambda: gv.diagnostics.why_none(5), r"why_none\(\) takes a tensor, got int"),
        (lambda: gv.diagnostics.graph_size(5), r"takes a tensor, got int"),
        (lambda: gv.pytorch.graph(gv.ones(2)), r"gv.draw\(\) draws the graph of"),
        (lambda: gv.pytorch.graph(5), "got int of builtins"),
    ],
)
def test_errors_for_tensors_of_pytorch_name_the_call_that_helps(call, told):
    with pytest.raises(TypeError, match=told):
        call()


def test_a_graph_of_pytorchs_says_why_it_has_no_saved_tensors():
    graph = gv.pytorch.graph({"loss": loss()})

    assert gv.draw(graph).graph.num_nodes == 3
    with pytest.raises(UserError, match="would call the program's hooks"):
        gv.draw(graph, show_saved=True)


def test_a_recording_says_why_it_has_no_saved_tensors():
    with gv.record() as recording:
        (gv.ones(2, requires_grad=True) * 2).sum().backward()

    with pytest.raises(UserError, match="a recording keeps no tensors"):
        gv.draw(recording, show_saved=True)
