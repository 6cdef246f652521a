"""What the page says of a node, beside what ``gradviz explain`` says."""

import base64
import json

import pytest

from gradviz.analysis.explanation import explain
from gradviz.render.page.document import build_page, pack_page
from gradviz.render.terminal.explanation import sentences
from tests.analysis.random_passes import random_trace
from tests.render.page import programs

pytestmark = pytest.mark.stress

#: Random graphs, each on so many simulated devices besides the caller's thread.
NUM_DEVICES = (1, 3)


def test_the_page_says_of_nodes_what_explain_says(tested, tmp_path) -> None:
    told = tmp_path / "explanations.json"
    traces = {name: record() for name, record in programs.PROGRAMS.items()}
    for seed, num_devices in enumerate(NUM_DEVICES):
        traces[f"random {seed}"] = random_trace(seed, num_devices)
    found = [explained(name, trace) for name, trace in traces.items()]
    told.write_text(json.dumps(found))

    said = " ".join(
        one for program in found for *_, node in program["nodes"] for one in node
    )
    for words in (
        "ran other nodes",
        "woke up",
        "called pass",
        "median",
        "failed",
        "captured",
        "Its gradient came from worker",
        "It sent its gradient to worker",
    ):
        assert words in said
    tested("explanation", EXPLANATIONS=str(told))


def explained(name, trace):
    """A page's data, and the sentences of each of its nodes, by pass."""
    page = build_page(trace, trace.tasks)
    passes = [one.task for one in page.header.passes]
    asked = dict.fromkeys(zip(page.events.task, page.events.node, strict=True))
    nodes = []
    for task, node in asked:
        if node >= 0:
            one = explain(trace, passes[task], int(page.nodes.id[node]))
            _head, *said = sentences(one)
            nodes.append((int(task), int(node), said))
    data = base64.b64encode(pack_page(page)).decode()
    return {"name": name, "data": data, "nodes": nodes}
