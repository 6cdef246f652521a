"""``gradviz render timeline`` of several workers and ranks."""

import itertools
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from gradviz.analysis.tables.passes import select_task
from gradviz.analysis.timelines.micro_batches import micro_batches
from gradviz.analysis.timelines.timeline_lanes import build_timeline
from gradviz.analysis.timelines.worker_lanes import with_worker_lanes
from gradviz.render.timeline.span_text import BAR_TEXT
from gradviz.render.words.text import width
from gradviz.trace.reading.reader import load_trace
from tests.cli.render.test_graph_difference import texts
from tests.render.svg_geometry import SVG

DOCS = Path(__file__).parents[3] / "docs"
PIPELINE = DOCS / "gallery" / "pipeline.gvt"
SERVER = DOCS / "gallery" / "server.gvt"
RANKS = DOCS / "traces" / "late-rank.gvt"


def drawn(call, *words) -> bytes:
    result = call("render", "timeline", *words, "-o", "-")
    assert result.exit_code == 0, result.stderr
    return result.stdout_bytes


def bars(svg: bytes) -> list[tuple[float, float, float, float]]:
    """The left, upper, right and lower edge of each bar."""
    found = []
    for group in ET.fromstring(svg).iter(f"{SVG}g"):
        for rect in group.findall(f"{SVG}rect"):
            x, y, wide, high = (
                float(rect.get(name)) for name in ("x", "y", "width", "height")
            )
            found.append((x, y, x + wide, y + high))
    return found


def labels(svg: bytes) -> list[tuple[float, float, float, float]]:
    """Return the rectangles of the labels on bars."""
    found = []
    for text in ET.fromstring(svg).iter(f"{SVG}text"):
        if "label" in text.get("class", "").split():
            half = width(text.text or "", BAR_TEXT) / 2
            x, y = float(text.get("x")), float(text.get("y"))
            found.append((x - half, y - 0.7 * BAR_TEXT, x + half, y))
    return found


def arrows(svg: bytes, *kinds: str) -> list[list[tuple[float, float]]]:
    """The stops of each arrow."""
    return [
        [
            (float(x), float(y))
            for x, y in re.findall(r"([-0-9.]+) ([-0-9.]+)", path.get("d"))
        ]
        for group in ET.fromstring(svg).iter(f"{SVG}g")
        for path in group.findall(f"{SVG}path")
        if path.get("class") in kinds
    ]


def crosses(stops, place, steps=400) -> bool:
    left, top, right, bottom = place
    for (x, y), (to_x, to_y) in itertools.pairwise(stops):
        for step in range(steps + 1):
            part = step / steps
            at_x, at_y = x + part * (to_x - x), y + part * (to_y - y)
            if left < at_x < right and top < at_y < bottom:
                return True
    return False


@pytest.mark.parametrize("trace", [PIPELINE, SERVER])
@pytest.mark.parametrize("wide", [960, 1440, 2400])
@pytest.mark.parametrize("more", [[], ["--threads"]])
def test_no_arrow_crosses_a_label(trace, wide, more, call) -> None:
    svg = drawn(call, trace, "--width", wide, *more)

    written = labels(svg)
    found = arrows(svg, "send", "push")
    assert found
    assert not [
        (stops, place) for stops in found for place in written if crosses(stops, place)
    ]


@pytest.mark.parametrize("trace", [PIPELINE, SERVER, RANKS])
def test_no_bars_overlap(trace, call) -> None:
    places = sorted(bars(drawn(call, trace)))

    assert places
    for at, (_, top, right, _) in enumerate(places):
        for left, other_top, _, _ in places[at + 1 :]:
            assert left >= right - 0.2 or other_top != top


def test_each_worker_has_a_lane_and_its_bubble(call) -> None:
    shown = texts(drawn(call, PIPELINE))

    assert [one for one in shown if re.fullmatch(r"worker \d+", one)] == [
        *("worker 0", "worker 1", "worker 2")
    ]
    assert sum(bool(re.search(r"bubble \d+ %$", one)) for one in shown) == 3
    assert re.search(r"3 workers .* bubble: workers idle for \d+ % of", shown[1])


def test_threads_are_shown_if_asked_for(call) -> None:
    shown = texts(drawn(call, PIPELINE, "--threads"))

    assert [one for one in shown if one.startswith("worker 0 / call")]
    assert not [one for one in shown if "bubble" in one]


def test_a_bubble_is_the_time_in_which_no_thread_of_a_worker_ran_a_node() -> None:
    trace = load_trace(PIPELINE)
    timeline = build_timeline(trace, select_task(trace, "last"))

    for lane in with_worker_lanes(timeline).lanes:
        own = [one for one in timeline.lanes if one.name.startswith(f"{lane.name} /")]
        nodes = [
            (one.start_ns, one.end_ns)
            for thread in own
            for one in thread.spans
            if one.kind == "node"
        ]
        assert lane.num_runs == len(nodes)
        steps = sorted([(at, 1) for at, _ in nodes] + [(at, -1) for _, at in nodes])
        busy, open_ones, last = 0, 0, 0
        for at, change in steps:
            busy += (at - last) * (open_ones > 0)
            open_ones, last = open_ones + change, at
        assert lane.busy_ns == busy


def test_micro_batches_of_a_pipeline_are_told_by_its_messages(call) -> None:
    trace = load_trace(PIPELINE)
    timeline = build_timeline(trace, select_task(trace, "last"))

    found = micro_batches(trace, timeline)

    assert {*found.values()} == {0, 1, 2, 3}
    for one in timeline.messages:
        assert found[one.node] == found[one.to_node]
    assert {f"micro-batch {number}" for number in range(4)} <= {
        *texts(drawn(call, PIPELINE))
    }


def test_the_parameters_of_a_server_are_no_micro_batches(call) -> None:
    assert not [one for one in texts(drawn(call, SERVER)) if "micro-batch" in one]


def test_passes_may_have_colors(call) -> None:
    shown = texts(drawn(call, RANKS, "--pass", "all", "--color", "pass"))

    assert {f"pass {number}" for number in range(6)} <= {*shown}


def test_ranks_stand_beside_those_they_have_collectives_with(call) -> None:
    trace = load_trace(RANKS)
    owners = {one.name.partition(" /")[0] for one in trace.threads.values()}

    svg = drawn(call, RANKS, "--pass", "last")

    shown = texts(svg)
    assert owners <= {*shown}
    assert shown[0].startswith("2 backward passes")
    assert sum(one.startswith("gloo:all_reduce") for one in shown) >= 2
