"""docs/reading-a-trace.md says what its commands print."""

import re
from collections import defaultdict
from pathlib import Path

import gradviz as gv
from gradviz.cli.show import Show
from gradviz.trace.model import Trace
from gradviz.trace.reader import load_trace
from tests.docs.reading import (
    EXAMPLE,
    PAGE,
    TRACE,
    figures_without_source,
    written_anew,
)


def test_the_commands_of_the_page_print_what_it_says(tmp_path: Path):
    assert written_anew(PAGE.read_text(), tmp_path) == PAGE.read_text()


def test_the_sentences_of_the_page_repeat_figures_that_it_shows():
    assert list(figures_without_source(PAGE.read_text())) == []


def test_a_figure_that_is_shown_elsewhere_only_has_no_source():
    text = "## One\n5 ms\n\n## Two\n```console\n$ gradviz\nall: 5 ms\n```\n5 ms, 6 ms\n"

    assert list(figures_without_source(text)) == ["One: 5 ms", "Two: 6 ms"]


def test_the_program_does_today_what_its_trace_tells(monkeypatch):
    names: dict[str, object] = {"__name__": "example"}
    exec(compile(EXAMPLE.read_text(), "training.py", "exec"), names)
    # What it does, not how long that takes.
    monkeypatch.setattr("time.sleep", lambda _: None)

    count = gv.sim.device_count()

    with gv.record() as recording:
        names["main"]()
    gv.sim.set_device_count(count)

    assert what_ran(recording.trace) == what_ran(load_trace(TRACE))


def test_every_view_of_a_trace_is_on_the_page():
    commands = re.compile(r"^\$ gradviz ((?:show )?\w+)", re.MULTILINE)
    shown = set(commands.findall(PAGE.read_text()))
    views = {f"show {name}" for name in Show.entries}

    assert views <= shown


def what_ran(trace: Trace) -> dict[str, list[str]]:
    """What each thread ran, in its order, by their names."""
    ran = defaultdict(list)
    for thread, node in trace.columns["node_started"].rows("thread", "node"):
        ran[trace.threads[thread].name].append(trace.nodes[node].name)
    return ran
