import io

import pytest
from rich.console import Console

from gradviz.analysis.moments.subjects import Subject
from gradviz.analysis.tables.executions import NodeNumbers
from gradviz.render.terminal.over_time.events import (
    print_events,
    print_events_head,
    story_title,
)
from gradviz.render.words.event_words import EventWords
from tests.analysis.conftest import Story


@pytest.fixture
def trace():
    story = Story()
    leaf = story.node(1, name="AccumulateGrad")
    story.begin(7, [leaf], at=0)
    story.take(7, leaf, at=(10, 15, 20), until=80)
    story.end(7, at=100)
    return story.trace()


def printed(trace, *, is_terminal, width=60):
    console = Console(file=io.StringIO(), width=width, force_terminal=is_terminal)
    print_events(trace.events(task=7), EventWords(trace, 1_000), 10, console)
    return console.file.getvalue().splitlines()


def test_an_event_is_a_line_where_nobody_looks(trace):
    lines = printed(trace, is_terminal=False)

    assert len(lines) == len(list(trace.events(task=7)))
    assert lines[1].split()[:3] == ["0.000001", "0", "7"]
    assert lines[1].endswith("  Pass 7 has 1 node and 0 edges.")


def test_a_terminal_gets_no_line_that_is_wider(trace):
    lines = printed(trace, is_terminal=True)
    words = " ".join(" ".join(lines).split())

    assert max(map(len, lines)) <= 60
    assert len(lines) > len(list(trace.events(task=7)))
    assert "AccumulateGrad (1) left queue 1 (queue 1); 0 tasks there." in words


def test_nodes_have_their_numbers_in_the_pass_of_the_event(trace):
    words = EventWords(trace, 1_000, NodeNumbers(trace))

    said = [words.sentence(event) for event in trace.events() if event.node == 1]

    assert said[-1].startswith("#0 AccumulateGrad (1) completed")
    assert "made AccumulateGrad (1)" in said[0]  # in no pass yet


def test_the_head_names_the_threads(capsys):
    console = Console(width=80)
    print_events_head("3 events", 8, {0: "MainThread", 2: "\x1b[31mdevice"}, console)

    said = capsys.readouterr().out
    assert "threads: 0 MainThread, 2 device" in said
    assert said.splitlines()[-1].split() == ["ms", "thread", "pass", "what", "happened"]


@pytest.mark.parametrize(
    ("subject", "title"),
    [
        (None, "3 events, times from when pass 7 began"),
        (
            Subject("node", 2, "MulBackward0"),
            "3 events of node 2 MulBackward0, times from when pass 7 began",
        ),
        (
            Subject("pass", 7, "pass 7"),
            "3 events of pass 7, times from when pass 7 began",
        ),
    ],
)
def test_the_title_says_whose_story_it_is(subject, title):
    assert story_title(subject, 3, "pass 7 began") == title
