"""Graphs laid out part by part, against the edges of the trace."""

import base64
import json
from collections import defaultdict

import numpy as np
import pytest

import gradviz as gv
from gradviz import nn
from gradviz.analysis.graphs.backward_graph import LEAF
from gradviz.render.page import drawings
from gradviz.render.page.document import build_page, pack_page
from tests.analysis.conftest import Story
from tests.render.page import programs


def modules():
    """Modules in modules, one that is called twice, and a weight that two share."""

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4))

        def forward(self, x):
            return x + self.fc(x).tanh()

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.block, self.other = Block(), Block()

        def forward(self, x):
            return self.block(self.other(self.block(x))) * x.sum()

    model = Model()
    with gv.record() as recording:
        x = gv.ones(2, 4, requires_grad=True)
        (model(x).sum() + model.block.fc[0].weight.sum()).backward()
    return recording.trace


def many_nodes():
    """More than fit into one part, without modules, with edges of any length."""
    chooser = np.random.default_rng(3)
    with gv.record() as recording:
        made = [gv.ones(2, requires_grad=True)]
        for _ in range(170):
            made.append(made[-1] * made[int(chooser.integers(len(made)))])
        made[-1].sum().backward()
    return recording.trace


PROGRAMS = {"modules": modules, "many nodes": many_nodes, **programs.PROGRAMS}


@pytest.fixture(scope="module", params=["modules", "many nodes", "nested passes"])
def page(request):
    trace = PROGRAMS[request.param]()
    return build_page(trace, trace.tasks)


def homes(page):
    """By pass, of each node the boxes that show it."""
    _, boxes, _, members, *_ = page.drawings
    found = defaultdict(lambda: defaultdict(list))
    for box, node in zip(*members, strict=True):
        found[page.drawings.parts.task[boxes.part[box]]][node].append(int(box))
    return found


def test_each_node_of_a_pass_is_in_a_box(page):
    found = homes(page)
    for task, node in zip(page.runs.task, page.runs.node, strict=True):
        assert found[task][node]


def ends(page, producer, consumer):
    """The ways that lead from one box to another, each in the part that has it."""
    parts, boxes, *_ = page.drawings

    def around(box):
        """By part, the box itself and all around it, from the inside out."""
        found = {}
        while box >= 0:
            part = int(boxes.part[box])
            found[part] = box
            box = int(parts.box[part])
        return found

    one, other = around(producer), around(consumer)
    shared = next(part for part in one if part in other)
    out = list(one)[: list(one).index(shared)]
    into = list(other)[: list(other).index(shared)]
    yield from ((part, one[part], -1) for part in out)
    yield from ((part, -1, other[part]) for part in into)
    yield shared, one[shared], other[shared]


def test_each_edge_is_ways_from_box_to_border_to_box(page):
    ways = page.drawings.ways
    drawn = set(zip(ways.part, ways.producer, ways.consumer, strict=True))

    expected = set()
    for found in homes(page).values():
        for one, other, _ in zip(*page.edges, strict=True):
            is_leaf = page.texts[page.nodes.name[other]] == LEAF
            if found[one] and found[other] and not is_leaf:
                expected.update(ends(page, found[one][0], found[other][0]))
    assert drawn == expected


def test_boxes_of_a_part_lie_in_it_and_not_on_each_other(page):
    parts, boxes, *_ = page.drawings
    for part in range(len(parts.task)):
        own = np.flatnonzero(boxes.part == part)
        left, right = boxes.x - boxes.width / 2, boxes.x + boxes.width / 2
        top, bottom = boxes.y - boxes.height / 2, boxes.y + boxes.height / 2
        assert left[own].min() >= -1
        assert right[own].max() <= parts.width[part] + 1
        assert bottom[own].max() <= parts.height[part] + 1
        for at, one in enumerate(own):
            rest = own[at + 1 :]
            assert not (
                (left[one] + 1 < right[rest])
                & (left[rest] + 1 < right[one])
                & (top[one] + 1 < bottom[rest])
                & (top[rest] + 1 < bottom[one])
            ).any()


def test_a_closed_box_counts_each_node_in_it_once(page):
    parts, boxes, *_ = page.drawings
    ran = {
        (task, node): at
        for at, (node, task) in enumerate(zip(*page.runs[:2], strict=True))
    }
    for task, found in homes(page).items():
        counted = np.zeros(len(boxes.node), np.int64)
        for own in found.values():
            # A leaf counts where the last of those who lead to it ran.
            last = max(own, key=lambda box: ran.get((task, boxes.node[box]), -1))
            counted[last] += 1
        for box in range(len(boxes.node) - 1, -1, -1):
            outer = parts.box[boxes.part[box]]
            if outer >= 0 and parts.task[boxes.part[outer]] == task:
                counted[outer] += counted[box]
        several = (parts.task[boxes.part] == task) & np.isin(
            np.arange(len(boxes.node)), parts.box[parts.task == task]
        )
        assert boxes.num_nodes[several].tolist() == counted[several].tolist()


def test_nodes_without_room_stay_in_closed_boxes(monkeypatch):
    monkeypatch.setattr(drawings, "MAX_BOXES", 20)
    trace = many_nodes()

    page = build_page(trace, trace.tasks)

    boxes, members = page.drawings.boxes, page.drawings.members
    assert len(boxes.node) <= 20
    top = boxes.num_nodes[boxes.part == 0]
    assert top.sum() == len(set(members.node.tolist())) > 150


def test_a_page_says_how_much_of_a_long_pass_its_graph_has(monkeypatch):
    monkeypatch.setattr(drawings, "MAX_NODES", 3)
    with gv.record() as recording:
        gv.ones(2, requires_grad=True).exp().sin().exp().sum().backward()

    page = build_page(recording.trace, recording.trace.tasks)

    (ran,) = page.runs.node.shape
    (number,) = recording.trace.tasks
    told = f"the graph of pass {number} has the first 3 of {ran} nodes"
    assert told in page.header.warnings


def test_a_leaf_that_leads_to_another_part_is_a_box_of_its_own():
    story = Story()
    nodes = [story.node(1, name=LEAF)]
    for id_ in range(2, 161):
        nodes.append(story.node(id_, nodes[-1], name=LEAF))
    story.begin(7, nodes, at=0)
    for at, node in enumerate(reversed(nodes)):
        story.ran(7, node, at=2 * at, until=2 * at + 1)
    trace = story.trace()

    page = build_page(trace, [7])

    assert {id_ for found in homes(page).values() for id_ in found} == set(range(160))
    assert set(page.drawings.members.box) <= set(range(len(page.drawings.boxes.node)))


def test_the_graph_of_a_pass_is_in_the_box_of_the_node_that_called_it():
    trace = programs.nested_passes()
    page = build_page(trace, trace.tasks)
    parts, boxes, *_ = page.drawings

    runs = list(zip(page.runs.task, page.runs.node, strict=True))
    first = {task: part for part, task in reversed([*enumerate(parts.task)])}
    for place, pass_ in enumerate(page.header.passes):
        caller = parts.box[first[place]]
        if pass_.parent < 0:
            assert caller == -1
            continue
        run = runs.index((parts.task[boxes.part[caller]], boxes.node[caller]))
        assert page.header.passes[page.runs.task[run]].task == pass_.parent
        assert page.runs.start_ns[run] <= pass_.begin_ns <= page.runs.end_ns[run]
    assert sum(one.parent >= 0 for one in page.header.passes) == 3


def test_of_several_passes_that_a_node_called_the_first_is_in_its_box():
    class Twice(gv.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, gradient):
            for _ in range(2):
                with gv.enable_grad():
                    (gv.ones(2, requires_grad=True) * 2).sum().backward()
            return gradient

    with gv.record() as recording:
        Twice.apply(gv.ones(2, requires_grad=True)).sum().backward()
    parts = build_page(recording.trace, recording.trace.tasks).drawings.parts

    outer, first, second = (parts.box[parts.task == place] for place in range(3))
    assert (outer[0], second[0]) == (-1, -1)
    assert first[0] >= 0


def test_a_module_may_be_called_as_leaves_are():
    model = nn.Sequential()
    setattr(model, LEAF, nn.Sequential(nn.Linear(4, 4), nn.Tanh()))
    model.last = nn.Linear(4, 4)
    with gv.record() as recording:
        model(gv.ones(2, 4)).sum().backward()

    page = build_page(recording.trace, recording.trace.tasks)

    texts, boxes = page.texts, page.drawings.boxes
    opened = {texts[boxes.title[box]] for box in page.drawings.parts.box if box >= 0}
    assert LEAF in opened


@pytest.mark.stress
def test_boxes_open_in_place(tested, tmp_path):
    told = tmp_path / "pages.json"
    pages = {}
    for name, record in PROGRAMS.items():
        trace = record()
        data = pack_page(build_page(trace, trace.tasks))
        pages[name] = base64.b64encode(data).decode()
    told.write_text(json.dumps(pages))

    tested("composition", PAGES=str(told))
