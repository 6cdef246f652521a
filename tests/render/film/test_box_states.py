"""The states of boxes, against those of their nodes one by one."""

import pytest

from gradviz.analysis.moments.event_replay import Replay
from gradviz.analysis.moments.node_stages import OVER, NodeStages
from gradviz.analysis.moments.story import Filter
from gradviz.render.film.box_states import box_states
from gradviz.render.film.filmed_graph import MAX_BOXES, filmed_graph
from tests.analysis.conftest import Story
from tests.analysis.random_passes import random_trace


@pytest.mark.parametrize("room", [(3_000.0, 3_000.0), (300.0, 200.0)])
@pytest.mark.parametrize(
    ("seed", "num_devices", "fails"),
    [(1, 0, False), (2, 2, False), (3, 1, True), (4, 0, True), (11, 3, False)],
)
def test_each_box_has_the_stage_of_its_nodes_at_each_event(
    seed, num_devices, fails, room
):
    trace = random_trace(seed, num_devices, size=14, fails=fails)
    task = trace.tasks[0]
    replay = Replay(trace, Filter(tasks=(task,)))
    seqs = [replay.event(place).seq for place in range(0, len(replay), 3)]
    filmed = filmed_graph(trace, task, room)
    stages = NodeStages(trace)

    states = box_states(trace, filmed, seqs)

    for box, own in zip(filmed.boxes, states, strict=True):
        assert len(own) == len(seqs)
        (task,) = filmed.groups[box.group]
        for seq, state in zip(seqs, own, strict=True):
            nodes = [stages.at(task, node, seq) for node in box.nodes]
            over = [one for one in nodes if one.stage in OVER - {"not reached"}]
            assert (state.num_over, state.num_nodes) == (len(over), len(nodes))
            if len(nodes) == 1:
                assert state.stage == nodes[0].stage
                if state.has:
                    assert state.remaining == nodes[0].remaining
            elif nodes and len(over) == len(nodes):
                assert state.stage in {"completed", "captured", "failed", "skipped"}


def test_every_node_of_the_pass_and_of_those_inside_is_in_a_box():
    trace = random_trace(32, 0, size=14)
    filmed = filmed_graph(trace, trace.tasks[0], (3_000.0, 3_000.0))

    for group, (task,) in enumerate(filmed.groups):
        started = trace.columns["node_started"]
        ran = {*started["node"][started["task"] == task].tolist()}
        drawn = {
            node for box in filmed.boxes if box.group == group for node in box.nodes
        }
        assert ran <= drawn
    assert len(filmed.groups) > 1


def test_of_very_many_nodes_that_nothing_joins_the_first_are_drawn():
    story = Story()
    nodes = [story.node(id_) for id_ in range(1, 3 * MAX_BOXES)]
    story.begin(0, nodes, at=0)
    for at, node in enumerate(nodes):
        story.take(0, node, at=(100 * at + 10, 100 * at + 20, 100 * at + 30))
        story.complete(0, node, at=100 * at + 40)

    filmed = filmed_graph(story.trace(), 0, (540.0, 544.0))

    assert len(filmed.boxes) == MAX_BOXES
    assert filmed.graph.omitted == len(nodes) - MAX_BOXES
