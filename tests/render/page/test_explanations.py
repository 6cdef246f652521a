"""What the page says of a node, beside what ``gradviz explain`` says."""

import base64
import json

import pytest

from gradviz.analysis.explanation import explain
from gradviz.render.page.document import build_page, pack_page
from gradviz.render.terminal.explanation import sentences
from tests.render.page import programs

pytestmark = pytest.mark.stress

#: How sentences begin that both say: what lies beyond a pass's events `explain` knows.
SAID_BY_BOTH = (
    "The pass began",
    "It was given",
    "Before it left",
    "It ran",
    "It failed",
    "Its gradient was captured",
    "It did not run",
    "Meanwhile it called",
    "It gave the last",
)


def test_the_page_says_of_nodes_what_explain_says(tested, tmp_path) -> None:
    told = tmp_path / "explanations.json"
    found = [explained(name, record()) for name, record in programs.PROGRAMS.items()]
    told.write_text(json.dumps({"begins": SAID_BY_BOTH, "programs": found}))

    said = {one for program in found for node in program["nodes"] for one in node[2]}
    assert all(any(one.startswith(begin) for one in said) for begin in SAID_BY_BOTH[:5])
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
            said = [it for it in sentences(one) if it.startswith(SAID_BY_BOTH)]
            nodes.append((int(task), int(node), said))
    data = base64.b64encode(pack_page(page)).decode()
    return {"name": name, "data": data, "nodes": nodes}
