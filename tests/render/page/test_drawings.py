"""Graphs laid out part by part, against the edges of the trace."""

import base64
import json
from collections import defaultdict

import numpy as np
import pytest

import gradviz as gv
from gradviz import nn
from gradviz.analysis.graph import LEAF
from gradviz.render.page import drawings
from gradviz.render.page.document import build_page, pack_page
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
            if outer >= 0:
                counted[outer] += counted[box]
        several = (parts.task[boxes.part] == task) & np.isin(
            np.arange(len(boxes.node)), parts.box
        )
        assert boxes.num_nodes[several].tolist() == counted[several].tolist()


def test_what_there_is_no_room_for_stays_in_closed_boxes(monkeypatch):
    monkeypatch.setattr(drawings, "MAX_BOXES", 20)
    trace = many_nodes()

    page = build_page(trace, trace.tasks)

    boxes, members = page.drawings.boxes, page.drawings.members
    assert len(boxes.node) <= 20
    top = boxes.num_nodes[boxes.part == 0]
    assert top.sum() == len(set(members.node.tolist())) > 150


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
