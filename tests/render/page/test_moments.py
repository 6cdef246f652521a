"""The page's moments, compared with `gradviz.analysis.moments`."""

import base64
import json
import random

from gradviz.analysis.moments.engine_state import History
from gradviz.analysis.moments.event_replay import Replay
from gradviz.analysis.moments.node_stages import NodeStages
from gradviz.analysis.moments.story import Filter
from gradviz.render.page.document import build_page, pack_page
from gradviz.render.page.extract import Extract
from gradviz.render.replay.words import ReplayWords
from gradviz.render.words.moment_text import stage_text
from tests.render.page import programs

SEED = 5
NUM_MOMENTS = 60


def test_any_moment_is_that_of_the_state_machine(tested, tmp_path) -> None:
    told = tmp_path / "moments.json"
    found = [moments_of(name, record()) for name, record in programs.PROGRAMS.items()]
    told.write_text(json.dumps(found))

    seen = {
        stage
        for program in found
        for moment in program["moments"]
        for nodes in moment["stages"]
        for stage, *_ in nodes
    }
    assert seen >= {"waiting", "queued", "completed", "captured", "failed", "left over"}
    tested("moment", MOMENTS=str(told))


def moments_of(name, trace):
    """A page's data, and what the state machine says of some of its moments."""
    page = build_page(trace, trace.tasks)
    extract, history = Extract(trace, trace.tasks), History(trace)
    stages, words = NodeStages(trace), ReplayWords(Replay(trace, Filter()))
    passes = {one.task: place for place, one in enumerate(page.header.passes)}
    nodes = {node: place for place, node in enumerate(page.nodes.id.tolist())} | {
        -1: -1
    }
    chooser = random.Random(SEED)
    places = sorted(
        chooser.sample(range(len(extract.seq)), min(NUM_MOMENTS, len(extract.seq)))
    )
    moments = []
    for place in places:
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
                        words.countdown(one),
                    )
                    for one in found.countdowns
                ],
                "stages": [
                    [
                        (one.stage, one.remaining, stage_text(one))
                        for node in page.nodes.id.tolist()
                        for one in [stages.at(task, node, found.seq)]
                    ]
                    for task in passes
                ],
            }
        )
    assert any(one["queues"] for one in moments)
    assert any(one["running"] for one in moments)
    assert any(one["countdowns"] for one in moments)
    data = base64.b64encode(pack_page(page)).decode()
    return {"name": name, "data": data, "moments": moments}
