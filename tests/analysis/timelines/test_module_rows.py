"""Rows of modules in the backward, against the forward that made the nodes."""

import random

import pytest

import gradviz as gv
from gradviz import nn
from gradviz.analysis.timelines.module_rows import with_module_rows
from gradviz.analysis.timelines.timeline_lanes import build_timeline
from gradviz.analysis.training.steps import select_steps
from gradviz.capture.session import record


def nested_model(rng: random.Random, depth: int) -> nn.Module:
    """A model of parts in parts, at random."""
    if not depth:
        return rng.choice([nn.Linear(4, 4), nn.Tanh(), nn.LayerNorm(4)])
    return nn.Sequential(
        *(nested_model(rng, depth - rng.randint(1, depth)) for _ in range(3))
    )


def step_of(model: nn.Module):
    """The timeline of a training step, with the rows of modules."""
    optimizer = gv.optim.SGD(model.parameters(), lr=0.1)
    with record() as recording:
        optimizer.zero_grad()
        model(gv.ones(2, 4, requires_grad=True)).sum().backward()
        optimizer.step()
    trace = recording.trace
    (step,) = select_steps(trace, "last")
    return with_module_rows(trace, build_timeline(trace, step.tasks, step))


def spans_of(timeline, kind):
    return [one for lane in timeline.lanes for one in lane.spans if one.kind == kind]


@pytest.mark.parametrize("seed", range(6))
def test_the_backward_has_the_rows_of_the_forward_backwards(seed) -> None:
    rng = random.Random(seed)
    model = nn.Sequential(
        nn.Linear(4, 4), *(nested_model(rng, 3) for _ in range(3)), nn.Linear(4, 4)
    )

    timeline = step_of(model)

    forward = [one.name for one in spans_of(timeline, "forward")]
    backward = spans_of(timeline, "module")
    names = [one.name for one in backward]
    assert len(names) == len({*names})
    assert {*names} == {*forward}
    ends = sorted(backward, key=lambda one: (one.end_ns, one.start_ns))
    leaves = [one for one in forward if not any(x.startswith(f"{one}.") for x in names)]
    assert [one.name for one in ends if one.name in leaves] == leaves[::-1]


@pytest.mark.parametrize("seed", range(6))
def test_each_node_lies_in_the_rows_of_its_module(seed) -> None:
    model = nn.Sequential(*(nested_model(random.Random(seed), 2) for _ in range(4)))

    timeline = step_of(model)

    rows = spans_of(timeline, "module")
    for node in spans_of(timeline, "node"):
        around = [
            one
            for one in rows
            if one.start_ns <= node.start_ns and node.end_ns <= one.end_ns
        ]
        assert all(
            node.module == one.name or node.module.startswith(f"{one.name}.")
            for one in around
        )
        assert node.row == 1 + len(around)  # the backward is around all


def test_a_module_called_twice_has_two_spans() -> None:
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(4, 4)
            self.act = nn.Tanh()

        def forward(self, x: gv.Tensor) -> gv.Tensor:
            return self.inner(self.act(self.inner(x)))

    timeline = step_of(Twice())

    names = [one.name.rpartition(".")[2] for one in spans_of(timeline, "module")]
    assert names.count("inner") == 2
    assert names.count("act") == 1


def test_a_leaf_of_pytorch_belongs_to_the_module_that_holds_it() -> None:
    torch = pytest.importorskip("torch")
    layers = torch.nn.Linear(4, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1)
    model = torch.nn.Sequential(*layers)
    with gv.pytorch.record() as recording:
        model(torch.ones(2, 4)).sum().backward()
    trace = recording.trace

    timeline = with_module_rows(trace, build_timeline(trace, trace.tasks))

    leaves = [one for one in spans_of(timeline, "node") if one.parameters]
    assert leaves
    assert all(one.module == one.parameters[0].rpartition(".")[0] for one in leaves)
    assert {one.name.rpartition(".")[2] for one in spans_of(timeline, "module")} >= {
        *"012"
    }


def test_a_pass_outside_any_module_has_no_rows() -> None:
    with record() as recording:
        (gv.ones(3, requires_grad=True) * 2.0).sum().backward()
    timeline = build_timeline(recording.trace, recording.trace.tasks)

    assert with_module_rows(recording.trace, timeline) is timeline
