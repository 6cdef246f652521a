"""Programs whose traces the tests of the page's source look at."""

import numpy as np
import pytest

import gradviz as gv
from gradviz import nn
from gradviz.distributed import autograd as distributed
from gradviz.distributed import rpc
from tests.analysis.conftest import Story
from tests.distributed.called import add_on
from tests.distributed.company import idle
from tests.distributed.connected import Connected

SEED = 5


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


def hooks():
    def doubled(gradient):
        return gradient * 2

    with gv.record() as recording:
        x = gv.ones(4, requires_grad=True)
        y = x * 2
        for _ in range(12):
            y.register_hook(doubled)
        x.register_post_accumulate_grad_hook(lambda leaf: None)
        y.sum().backward()
    return recording.trace


class Fails(gv.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def backward(ctx, gradient):
        raise ValueError("not today")


def failure():
    with gv.record() as recording:
        x = gv.ones(4, requires_grad=True)
        y = x.exp()
        total = Fails.apply(y).sum() + (y * y).sum()
        with pytest.raises(ValueError, match="not today"):
            total.backward()
    return recording.trace


def after_a_failure():
    with gv.record() as recording:
        x = gv.ones(4, requires_grad=True)
        with pytest.raises(ValueError, match="not today"):
            (Fails.apply(x).sum() + (x * x).sum()).backward()
        x.sum().backward()
    return recording.trace


def an_end_that_is_missing():
    """A node is started and left when its pass fails; a backward follows."""
    story = Story()
    one, other, last = (story.node(number) for number in (1, 2, 3))
    story.begin(0, [one, other], at=0)
    story.give(0, other, one, at=1, remaining=1)
    story.take(0, one, at=(2, 3, 4))
    story.recorder.task_failed(0, 1, "interrupted")
    story.begin(1, [last], at=20)
    story.take(1, last, at=(21, 22, 23), until=30)
    story.end(1, at=40)
    return story.trace()


def many_passes():
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    with gv.record() as recording:
        for _ in range(4):
            model(gv.ones(2, 3)).sum().backward()
    return recording.trace


def capture():
    with gv.record() as recording:
        x = gv.ones(4, requires_grad=True)
        y = x.exp()
        gv.autograd.grad((y * y.sin()).sum(), [y])
    return recording.trace


def workers():
    def train():
        x = gv.ones(4, requires_grad=True)
        with distributed.context() as context_id:
            y = rpc.rpc_sync(1, add_on, ([2], x.exp(), x))
            distributed.backward(context_id, [y.sum()], timeout=60)

    with gv.record() as recording:
        Connected("inproc").run(train, idle, idle)
    return recording.trace


PROGRAMS = {
    "a capture": capture,
    "two devices": two_devices,
    "nested passes": nested_passes,
    "a failure": failure,
    "after a failure": after_a_failure,
    "hooks": hooks,
    "an end that is missing": an_end_that_is_missing,
    "many passes": many_passes,
    "workers": workers,
}
