"""Views beyond commands: full-screen replays, pictures in notebooks."""

import pytest

import gradviz as gv
from gradviz.analysis.moments.event_replay import Replay
from gradviz.analysis.moments.story import Filter
from gradviz.trace.reading.reader import load_trace
from tests.hostile.markup import active_parts, structure
from tests.hostile.test_commands import SGR, acting
from tests.hostile.texts import HOSTILE, benign
from tests.render.replay.test_app import driven, text_of


@pytest.mark.parametrize(
    "size", [(80, 24), pytest.param((200, 60), marks=pytest.mark.stress)]
)
def test_a_full_screen_replay_shows_nothing_that_acts(traces, size):
    async def drive(app, pilot):
        seen = []
        for key in ["tab", *["right"] * 12, "end", "f", "question_mark"]:
            await pilot.press(key)
            await pilot.pause()
            seen.append(text_of(app))
        return "\n".join(seen)

    trace = load_trace(traces["bare"])
    text = driven(Replay(trace, Filter(tasks=trace.tasks)), drive, size)
    assert "event 9" in text
    assert acting(SGR.sub("", text)) == set()


def drawing(names: list[str]) -> gv.Tensor:
    """A sum whose leaves have these names."""
    leaves = [gv.ones(2, requires_grad=True) for _ in names]
    total = sum(one * 2 for one in leaves).sum()
    return gv.draw(total, params=dict(zip(names, leaves, strict=True)))


def test_names_of_parameters_stay_text_in_a_notebook():
    names = [f"{text}{number}" for number, text in enumerate(HOSTILE)]
    hostile = drawing(names)._repr_svg_().encode()

    assert active_parts(hostile) == []
    assert structure(hostile) == structure(
        drawing([benign(name) for name in names])._repr_svg_().encode()
    )


def test_a_recording_stays_text_in_a_notebook(traces):
    hostile, benign_one = (
        gv.draw(one, task=one.tasks[0])._repr_svg_().encode()
        for one in (load_trace(traces[name]) for name in ("hostile", "benign"))
    )

    assert active_parts(hostile) == []
    assert structure(hostile) == structure(benign_one)
