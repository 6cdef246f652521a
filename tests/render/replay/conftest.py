"""Replays of short stories."""

import pytest

from gradviz.analysis.moments.event_replay import Replay
from gradviz.analysis.moments.story import Filter
from gradviz.trace.probe import Push
from tests.analysis.conftest import Story


@pytest.fixture
def story() -> Story:
    return Story()


def replay_of(story: Story, *tasks: int) -> Replay:
    return Replay(story.trace(), Filter(tasks=tasks or (0,)))


@pytest.fixture
def busy(story: Story) -> Replay:
    """A Mul that makes an Add, a leaf and a deeper Exp ready; a Sin waits for one."""
    sin = story.node(1, name="SinBackward0")
    add, leaf = story.node(2, sin, name="Add"), story.node(3, name="AccumulateGrad")
    exp = story.node(4, name="Exp")
    mul = story.node(5, add, leaf, sin, name="Mul")
    story.begin(0, [mul, add, leaf, sin, exp], at=0)
    story.take(0, mul, at=(10, 11, 12))
    tell = story.recorder.task_pushed
    story.now += 7
    tell(0, add.id, 1, 0, 8, 1, 1, mul.id, Push.NODE)
    tell(0, leaf.id, 1, 0, 2**64 - 1, 2, 2, mul.id, Push.NODE)
    tell(0, exp.id, 1, 1, 3, 3, 3, mul.id, Push.NODE)
    tell(0, -1, 1, 0, 0, 4, 4, -1, Push.WAKE_UP)
    story.give(0, sin, mul, at=30, remaining=1)
    story.complete(0, mul, at=40)
    story.recorder.task_popped(0, -1, 1, 3)
    for at, one in enumerate((exp, leaf, add), start=5):
        story.pop(0, one, at=10 * at)
        story.ran(0, one, at=10 * at + 2, until=10 * at + 6)
    return replay_of(story)
