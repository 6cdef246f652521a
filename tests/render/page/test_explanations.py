"""The page's explanation of a node, compared with ``gradviz explain``."""

import base64
import json
from itertools import chain

from gradviz.analysis.moments.explanation import Mention, Thread, explain
from gradviz.render.page.document import build_page, pack_page
from gradviz.render.words.explanation_text import (
    Listed,
    Overtakers,
    explanation_facts,
    explanation_lines,
)
from gradviz.render.words.hook_text import hook_texts
from gradviz.render.words.rpc_edge_text import RpcEdgeSentence
from tests.analysis.random_passes import random_trace
from tests.render.page import programs

#: Random graphs, each on so many simulated devices besides the caller's thread.
NUM_DEVICES = (1, 3)


def test_the_page_says_of_nodes_what_explain_says(tested, tmp_path) -> None:
    told = tmp_path / "explanations.json"
    traces = {name: record() for name, record in programs.PROGRAMS.items()}
    for seed, num_devices in enumerate(NUM_DEVICES):
        traces[f"random {seed}"] = random_trace(seed, num_devices)
    found = [explained(name, trace) for name, trace in traces.items()]
    told.write_text(json.dumps(found))

    every = [node["facts"] for program in found for node in program["nodes"]]
    assert {*chain.from_iterable(every)} >= {
        *("busy", "slept", "pushing_thread", "calls", "ahead", "stream_waits"),
        *("usual", "num_missing", "giver_before", "came", "went", "hooks"),
        *("line_number", "line_count"),
    }
    assert {one["outcome"] for one in every} >= {
        *("completed", "captured", "failed", "failed before"),
    }
    tested("explanation", EXPLANATIONS=str(told))


#: What only ``explain`` says, above its sentences.
HEAD = (
    *("number", "name", "node", "pass", "called_at"),
    *("parameters", "device", "location", "module"),
)


def explained(name, trace):
    """A page's data, and what is known and said of each of its nodes, by pass."""
    page = build_page(trace, trace.tasks)
    passes = [one.task for one in page.header.passes]
    asked = dict.fromkeys(zip(page.events.task, page.events.node, strict=True))
    nodes = []
    for task, node in asked:
        if node >= 0:
            one = explain(trace, passes[task], int(page.nodes.id[node]))
            _head, *said = explanation_lines(one)
            facts = {
                fact: on_page(page, value, fact)
                for fact, value in explanation_facts(one).items()
                if fact not in HEAD
            }
            nodes.append(
                {
                    "task": int(task),
                    "node": int(node),
                    "facts": facts,
                    "sentences": [one.text for one in said],
                }
            )
    data = base64.b64encode(pack_page(page)).decode()
    return {"name": name, "data": data, "nodes": nodes}


def on_page(page, value, fact=""):
    """A fact as the page has it: nodes and called passes by their places."""
    places = dict(zip(page.nodes.id.tolist(), range(len(page.nodes.id)), strict=True))
    match value:
        case Mention():
            return value.name if value.node < 0 else places[value.node]
        case Thread():
            return value.number
        case Listed() if fact == "hooks":
            return list(hook_texts(value.some, value.more))
        case Listed():
            some = [on_page(page, one, fact) for one in value.some]
            return {"some": some, "more": value.more}
        case Overtakers():
            nodes = [on_page(page, one) for one in value.nodes]
            return {"why": value.why, "nodes": nodes, "tasks": value.tasks}
        case RpcEdgeSentence():
            end = [{"node": places[value.node]}] if value.node >= 0 else []
            return [value.before, *end, value.after]
        case int() if fact == "calls":
            return [one.whole for one in page.header.passes].index(value)
        case _:
            return value
