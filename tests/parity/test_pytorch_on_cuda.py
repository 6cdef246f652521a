"""Backward passes of PyTorch on a real GPU: what its profiler tells of the device.

What `tests/pytorch/reconstruction` checks with records written by hand, here with the
profiler's own.
"""

from typing import Any

import pytest

from gradviz.analysis.findings.check import check_trace
from gradviz.analysis.tables.kernels import kernels
from gradviz.trace import events as e
from tests.parity.pytorch_recordings import of_kind, recorded

torch = pytest.importorskip("torch")

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.parity,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU"),
]


def weights(*shape: int) -> Any:
    return torch.ones(*shape, device="cuda", requires_grad=True)


def names(recording: Any) -> dict[int, str]:
    return {id_: one.name for id_, one in recording.trace.nodes.items()}


def test_kernels_are_launched_by_nodes_and_run_after_that():
    w = weights(256, 256)
    loss = (w @ w).exp().sum()
    torch.cuda.synchronize()

    recording = recorded(loss.backward)

    found = kernels(recording.trace)
    assert found
    assert all(one.stream.startswith("cuda:0/") for one in found)
    assert all(one.launched_ns <= one.start_ns <= one.end_ns for one in found)
    launched = of_kind(recording, e.KernelLaunched)
    by_name = {names(recording).get(one.node) for one in launched}
    assert {"ExpBackward0", "MmBackward0"} <= by_name
    assert not check_trace(recording.trace).violations


def test_a_backward_on_two_streams_has_the_waits_between_them():
    w = weights(256, 256)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        y = w.exp()
    torch.cuda.current_stream().wait_stream(side)
    loss = (y @ y).sum()

    recording = recorded(loss.backward)

    assert len({one.stream for one in of_kind(recording, e.KernelLaunched)}) > 1
    waits = of_kind(recording, e.StreamWaited)
    marks = {one.event: one.stream for one in of_kind(recording, e.EventRecorded)}
    assert any(marks[one.event] != one.stream for one in waits)
    assert not check_trace(recording.trace).violations


def test_a_host_that_waits_inside_of_a_node_is_seen_there():
    class Reads(torch.autograd.Function):
        @staticmethod
        def forward(_: Any, x: Any) -> Any:
            return x.clone()

        @staticmethod
        def backward(_: Any, grad: Any) -> Any:
            return grad * grad.sum().item()

    loss = Reads.apply(weights(64)).sum()

    recording = recorded(loss.backward)

    waits = of_kind(recording, e.StreamSynchronized)
    assert "ReadsBackward" in {names(recording).get(one.node) for one in waits}
    copies = [one.name for one in of_kind(recording, e.KernelLaunched)]
    assert any("DtoH" in one for one in copies)


def test_gradients_are_equal_bit_by_bit_with_and_without_a_recording():
    def gradient() -> Any:
        torch.manual_seed(0)
        model = torch.nn.Linear(64, 64, device="cuda")
        return model, model(torch.ones(8, 64, device="cuda")).square().sum()

    watched, loss = gradient()
    recorded(loss.backward)
    other, loss = gradient()
    loss.backward()

    pairs = zip(watched.parameters(), other.parameters(), strict=True)
    assert all(torch.equal(one.grad, two.grad) for one, two in pairs)


def test_a_graph_that_is_captured_is_left_alone():
    w = weights(64)
    (w * 2).sum().backward()  # kernels are loaded before they are captured
    graph = torch.cuda.CUDAGraph()

    def program() -> None:
        with torch.cuda.graph(graph):
            (w * 2).sum().backward()
        graph.replay()
        torch.cuda.synchronize()

    recorded(program)

    assert w.grad is not None
