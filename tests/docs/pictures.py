"""The pictures of the pages, drawn from what their programs record.

To draw them anew: ``python -m tests.docs.pictures``. The programs are those of the
pages, and one example; this only says which recording each picture shows.
"""

import contextlib
import io
import runpy
import sys
from pathlib import Path

from msgspec.structs import replace

import gradviz as gv
from gradviz.analysis.graphs.backward_graph import build_graph
from gradviz.analysis.timelines.timeline_lanes import build_timeline
from gradviz.capture.session import Recording
from gradviz.render.graph.graph_picture import render_graph
from gradviz.render.timeline.timeline_colors import TimelineColor
from gradviz.render.timeline.timeline_scene import TimelineView
from gradviz.render.timeline.timeline_svg import render_timeline
from tests.docs.pages import DOCS, ROOT, run

#: Of each page its pictures, and the name of the recording that each shows.
PICTURES = {
    "how-the-engine-works.md": {
        "engine-graph.svg": "sleeping",
        "engine-threads.svg": "sleeping",
        "engine-reentrant.svg": "nested",
    },
    "stream-waits.md": {
        "streams-forward-stream.svg": "own_streams",
        "streams-handover.svg": "handed_over",
        "streams-accumulation.svg": "meeting",
        "streams-devices.svg": "two_devices",
        "streams-end.svg": "the_end",
        "streams-function.svg": "in_a_function",
        "streams-overlap.svg": "overlap",
    },
}


def pictures(page: str) -> dict[str, bytes]:
    """The SVG files of a page by name, from a run of its programs."""
    names = run(DOCS / page)[1]
    if page == "stream-waits.md":
        names["overlap"] = overlap()
    return {
        picture: _drawn(picture, names[name])
        for picture, name in PICTURES[page].items()
    }


def overlap() -> Recording:
    """Example 12, on devices that take 5 ms for each kernel."""
    example = str(ROOT / "examples" / "12_devices_and_streams" / "main.py")
    outer = sys.argv
    sys.argv = [example, "--size", "8", "--layers", "1"]
    gv.sim.set_latency(gv.sim.fixed(5_000_000))
    try:
        with contextlib.redirect_stdout(io.StringIO()), gv.record() as recording:
            runpy.run_path(example, run_name="__main__")
    finally:
        sys.argv = outer
        gv.sim.set_latency(None)
    return recording


def _drawn(picture: str, recording: object) -> bytes:
    assert isinstance(recording, Recording)
    trace = recording.trace
    if picture.endswith("-graph.svg"):
        return _graph(recording)
    color_by: TimelineColor = "device" if "overlap" in picture else "auto"
    timeline = build_timeline(trace, trace.tasks)
    return render_timeline(timeline, TimelineView(color_by=color_by))


def _graph(recording: Recording) -> bytes:
    graph = build_graph(recording.trace, recording.trace.tasks[-1])
    # All nodes of the page are made on one line, which says nothing of them.
    nodes = tuple(replace(node, location="") for node in graph.nodes)
    return render_graph(replace(graph, nodes=nodes), engine="own").data


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if sys.argv[1:] else DOCS / "images"
    for page in PICTURES:
        for name, picture in pictures(page).items():
            (folder / name).write_bytes(picture)
