"""What the page tells of moments, beside `gradviz.analysis.state`."""

import base64
import json
import random

import numpy as np
import pytest

import gradviz as gv
from gradviz import nn
from gradviz.analysis.state import History
from gradviz.render.page.document import build_page, pack_page
from gradviz.render.page.extraction import Extract

pytestmark = pytest.mark.stress

SEED = 5
NUM_MOMENTS = 150


def test_any_moment_is_that_of_the_state_machine(tested, tmp_path) -> None:
    told = tmp_path / "moments.json"
    told.write_text(
        json.dumps(
            [
                moments_of(name, record())
                for name, record in (
                    ("two devices", two_devices),
                    ("nested passes", nested_passes),
                    ("a failure", failure),
                    ("many passes", many_passes),
                )
            ]
        )
    )

    tested("moment", MOMENTS=str(told))


def moments_of(name, trace):
    """A page's data, and what the state machine says of some of its moments."""
    page = build_page(trace, trace.tasks)
    extract, history = Extract(trace, trace.tasks), History(trace)
    passes = {one.task: place for place, one in enumerate(page.header.passes)}
    nodes = {node: place for place, node in enumerate(page.nodes.id.tolist())} | {
        -1: -1
    }
    waking = set(page.sleeps.end_ns.tolist()) | set(page.sleeps.begin_ns.tolist())
    chooser = random.Random(SEED)
    places = sorted(
        chooser.sample(range(len(extract.seq)), min(NUM_MOMENTS, len(extract.seq)))
    )
    moments = []
    for place in places:
        if page.events.at_ns[place] in waking:
            continue  # whether a thread sleeps at that very nanosecond is not known
        found = history.at(int(extract.seq[place]))
        moments.append(
            {
                "at": place,
                "queues": {
                    queue: [(passes[one.task], nodes[one.node]) for one in tasks]
                    for queue, tasks in found.queues.items()
                    if tasks
                },
                "running": {
                    one.thread: [
                        (passes[it.task], nodes[it.node]) for it in one.running
                    ]
                    for one in found.workers
                    if one.running
                },
                "asleep": {
                    one.thread: one.asleep_on
                    for one in found.workers
                    if one.asleep_on is not None
                },
                "countdowns": [
                    (
                        passes[one.task],
                        nodes[one.node],
                        one.remaining,
                        [nodes[it.producer] for it in one.gradients],
                    )
                    for one in found.countdowns
                ],
            }
        )
    assert any(one["queues"] for one in moments)
    assert any(one["running"] for one in moments)
    assert any(one["countdowns"] for one in moments)
    data = base64.b64encode(pack_page(page)).decode()
    return {"name": name, "data": data, "moments": moments}


def two_devices():
    devices = ("cpu", "sim:0", "sim:1")
    chooser = np.random.default_rng(SEED)
    with gv.record() as recording:
        made = [gv.ones(3, requires_grad=True).to(one) for one in devices]
        for _ in range(60):
            one, other = chooser.integers(len(made), size=2).tolist()
            device = devices[int(chooser.integers(3))]
            made.append(made[one].to(device) * made[other].to(device))
        sum(one.to("cpu").sum() for one in made[-9:]).backward()
    return recording.trace


def nested_passes():
    def block(x):
        return gv.utils.checkpoint.checkpoint(
            lambda y: (y * y).tanh(), x, use_reentrant=True
        )

    with gv.record() as recording:
        x = gv.ones(4, requires_grad=True)
        (block(block(x)) + block(x)).sum().backward()
    return recording.trace


def failure():
    class Fails(gv.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, gradient):
            raise ValueError("not today")

    with gv.record() as recording:
        x = gv.ones(4, requires_grad=True)
        y = x.exp()
        total = Fails.apply(y).sum() + (y * y).sum()
        with pytest.raises(ValueError, match="not today"):
            total.backward()
    return recording.trace


def many_passes():
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    with gv.record() as recording:
        for _ in range(4):
            model(gv.ones(2, 3)).sum().backward()
    return recording.trace
