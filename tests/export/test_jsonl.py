"""JSON Lines, read back by others than those who wrote it."""

import json

import jsonschema
import msgspec

from gradviz.export.jsonl import parts
from gradviz.trace.events import KINDS, AnyEvent, kind_name
from gradviz.trace.format.model import Header
from gradviz.trace.reading.reader import parse_trace
from tests.docs.pages import DOCS
from tests.docs.trace_format import event_schema
from tests.export.recordings import of_every_kind

SCHEMA = DOCS / "trace-events.schema.json"


def lines(trace):
    return b"".join(parts(trace)).splitlines()


def test_each_line_but_the_first_is_an_event_equal_to_that_of_the_trace(trace):
    decoder = msgspec.json.Decoder(AnyEvent)

    assert [*map(decoder.decode, lines(trace)[1:])] == [*trace.events()]


def test_a_size_that_is_not_known_is_null(story):
    story.recorder.tensor_saved(story.node(1).id, -1)

    (line,) = [
        json.loads(one) for one in lines(story.trace()) if b"tensor_saved" in one
    ]

    assert line["size_bytes"] is None
    jsonschema.validate(line, json.loads(SCHEMA.read_text()))


def test_every_kind_of_event_with_the_largest_numbers_comes_back():
    trace = parse_trace(of_every_kind())
    back = [msgspec.json.decode(line, type=AnyEvent) for line in lines(trace)[1:]]

    assert {kind_name(type(one)) for one in back} == {*map(kind_name, KINDS.values())}
    assert back == [*trace.events()]


def test_the_first_line_says_what_is_there_and_what_is_missing(pair):
    story, *_ = pair
    first = json.loads(lines(story.trace())[0])

    assert (first["schema"], first["version"]) == ("gradviz.events", 1)
    assert first["is_complete"]
    assert [one["name"] for one in first["threads"]] == ["MainThread"]
    assert msgspec.convert(first["header"], Header) == story.trace().header

    cut = parse_trace(story.contents()[:-7])
    assert not json.loads(lines(cut)[0])["is_complete"]
    assert json.loads(lines(cut)[0])["losses"]["truncated"]


def test_every_line_is_as_the_schema_of_the_documentation_says():
    validator = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text()))
    events = [json.loads(line) for line in lines(parse_trace(of_every_kind()))[1:]]

    for event in events:
        validator.validate(event)
    wrong = {**events[0], "t_ns": "soon"}
    assert not validator.is_valid(wrong)
    assert not validator.is_valid({**events[0], "kind": "never_heard_of"})


def test_the_schema_of_the_documentation_is_that_of_the_events():
    told = "run python -m tests.docs.trace_format"

    def words(text: str) -> list[str]:
        return text.replace("\\n", " ").split()  # Python 3.13 takes indents away

    assert words(SCHEMA.read_text()) == words(json.dumps(event_schema(), indent=1)), (
        told
    )
