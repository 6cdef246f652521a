"""What the page tells of moments, beside `gradviz.analysis.state`."""

import base64
import json
import random

import pytest

from gradviz.analysis.state import History
from gradviz.render.page.document import build_page, pack_page
from gradviz.render.page.extract import Extract
from tests.render.page import programs

pytestmark = pytest.mark.stress

SEED = 5
NUM_MOMENTS = 150


def test_any_moment_is_that_of_the_state_machine(tested, tmp_path) -> None:
    told = tmp_path / "moments.json"
    told.write_text(
        json.dumps(
            [moments_of(name, record()) for name, record in programs.PROGRAMS.items()]
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
