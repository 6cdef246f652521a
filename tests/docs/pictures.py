"""The pictures of docs/how-the-engine-works.md, drawn from what its programs record.

To draw them anew: ``python -m tests.docs.pictures``. The programs are those of the
page; this only says which recording each picture shows.
"""

import sys
from collections.abc import Mapping
from pathlib import Path

from msgspec.structs import replace

from gradviz.analysis.graph import build_graph
from gradviz.analysis.timeline import build_timeline
from gradviz.capture import Recording
from gradviz.render.graph import render_graph
from gradviz.render.timeline_svg import render_timeline
from tests.docs.pages import DOCS, run

PAGE = DOCS / "how-the-engine-works.md"


def pictures(names: Mapping[str, object]) -> dict[str, bytes]:
    """SVG files by name, of the recordings among the names that the page defines."""
    sleeping, nested = names["sleeping"], names["nested"]
    assert isinstance(sleeping, Recording)
    assert isinstance(nested, Recording)
    return {
        "engine-graph.svg": _graph(sleeping),
        "engine-threads.svg": _timeline(sleeping),
        "engine-reentrant.svg": _timeline(nested),
    }


def _graph(recording: Recording) -> bytes:
    graph = build_graph(recording.trace, recording.trace.tasks[-1])
    # All nodes of the page are made on one line, which says nothing of them.
    nodes = tuple(replace(node, location="") for node in graph.nodes)
    return render_graph(replace(graph, nodes=nodes), engine="own").data


def _timeline(recording: Recording) -> bytes:
    trace = recording.trace
    return render_timeline(build_timeline(trace, trace.tasks))


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if sys.argv[1:] else DOCS / "images"
    for name, picture in pictures(run(PAGE)[1]).items():
        (folder / name).write_bytes(picture)
