"""Sentences of events on the page, beside those of `gradviz replay`."""

import base64
import json
from itertools import chain

from gradviz.analysis.tables.executions import NodeNumbers
from gradviz.render.page.document import build_page, pack_page
from gradviz.render.page.extract import Extract
from gradviz.render.words.event_words import EventWords, event_facts
from tests.analysis.random_passes import random_trace
from tests.render.page import programs

#: Facts that are places on the page.
NODES = {"node", "producer", "pushed_by"}
PASSES = {"task", "parent"}


def test_the_page_says_of_events_what_a_replay_says(tested, tmp_path) -> None:
    told = tmp_path / "events.json"
    traces = {name: record() for name, record in programs.PROGRAMS.items()}
    traces["random"] = random_trace(0, 2)
    found = [said_of_events(name, trace) for name, trace in traces.items()]
    told.write_text(json.dumps(found))

    every = [event["facts"] for program in found for event in program["events"]]
    assert {*chain.from_iterable(every)} >= {
        *("error", "how", "location", "parent", "producer", "pushed_by", "what"),
    }
    tested("event_words", EVENTS=str(told))


def said_of_events(name, trace):
    """A page's data, and what is known and said of each of its events."""
    page = build_page(trace, trace.tasks)
    numbers = NodeNumbers(trace)
    words = EventWords(trace, 0, numbers)
    by_seq = {event.seq: event for event in trace.events()}
    nodes = {node: place for place, node in enumerate(page.nodes.id.tolist())}
    passes = {one.task: place for place, one in enumerate(page.header.passes)}

    def on_page(fact, value):
        if fact in NODES:
            return nodes.get(value, value)
        return passes[value] if fact in PASSES and value is not None else value

    events = [
        {
            "facts": {
                fact: on_page(fact, value)
                for fact, value in event_facts(event).items()
                if value is not None
            },
            "sentence": words.sentence(event),
        }
        for event in (by_seq[seq] for seq in Extract(trace, trace.tasks).seq.tolist())
    ]
    data = base64.b64encode(pack_page(page)).decode()
    return {"name": name, "data": data, "events": events}
