"""Recordings that are opened and closed at any point of a loop that trains."""

from collections.abc import Callable
from typing import Any

import pytest

import gradviz as gv
from gradviz.trace import events as e
from tests.parity.pytorch_recordings import faults, of_kind
from tests.torch_models.language_models import gpt2
from tests.torch_models.programs import Program, seed

torch = pytest.importorskip("torch")

pytestmark = [pytest.mark.torch_models, pytest.mark.filterwarnings("ignore")]

#: Points of a step, in order.
POINTS = [
    "before the forward",
    "in the forward",
    "before the backward",
    "in the backward",
    "after the backward",
]
BEFORE, AFTER = 2, 4  # the backward, among these

OPEN, CLOSE, NUM_STEPS = 1, 2, 4


def train(passes: Callable[[int, str], None]) -> tuple[list[Any], Any]:
    """Train GPT-2.

    Args:
        passes: Called at each point, with the number of the step.
    """
    model = Program("GPT-2", "transformers", gpt2).start().model
    optimizer = torch.optim.AdamW(model.parameters())
    blocks, norm = model.transformer.h, model.transformer.ln_f
    now = 0
    blocks[2].register_forward_pre_hook(lambda *_: passes(now, "in the forward"))
    norm.weight.register_hook(lambda _: passes(now, "in the backward"))
    tokens, losses = torch.randint(1, 50, (2, 8)), []
    seed()
    for now in range(NUM_STEPS):
        optimizer.zero_grad()
        passes(now, "before the forward")
        loss = model(tokens, labels=tokens).loss
        passes(now, "before the backward")
        loss.backward()
        passes(now, "after the backward")
        optimizer.step()
        losses.append(loss.detach())
    return losses, model.state_dict()


@pytest.mark.parametrize("closed", POINTS)
@pytest.mark.parametrize("opened", POINTS)
def test_a_recording_of_a_part_of_a_loop_changes_nothing_and_has_its_whole_passes(
    opened, closed
):
    recordings = []

    def record_a_part(step: int, point: str) -> None:
        if (step, point) == (OPEN, opened):
            recordings.append(gv.pytorch.record())
            recordings[0].__enter__()
        elif (step, point) == (CLOSE, closed):
            recordings[0].__exit__(None, None, None)

    expected = train(lambda step, point: None)
    got = train(record_a_part)

    torch.testing.assert_close(got, expected, rtol=0, atol=0)
    (recording,) = recordings
    assert not faults(recording)
    ended = len(of_kind(recording, e.TaskCompleted))
    assert ended == (POINTS.index(opened) <= BEFORE) + (POINTS.index(closed) >= AFTER)
