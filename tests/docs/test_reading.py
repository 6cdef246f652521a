"""Pages that ask traces say what their commands print."""

import contextlib
import re
from collections import defaultdict
from pathlib import Path

import pytest

import gradviz as gv
from gradviz.cli.show import Show
from gradviz.trace.format.model import Trace
from gradviz.trace.reading.reader import load_trace
from tests.docs.pages import DOCS
from tests.docs.reading import (
    EXAMPLES,
    PAGES,
    TRACES,
    figures_without_source,
    programs,
    source_of,
    written_anew,
)


@pytest.fixture(params=PAGES)
def page(request: pytest.FixtureRequest) -> str:
    return (DOCS / request.param).read_text()


def test_the_commands_of_a_page_print_what_it_says(page: str, tmp_path: Path):
    assert written_anew(page, tmp_path) == page


def test_the_sentences_of_a_page_repeat_figures_that_it_shows(page: str):
    assert list(figures_without_source(page)) == []


def test_each_trace_of_a_page_has_its_program():
    texts = [(DOCS / page).read_text() for page in PAGES]
    named = set(EXAMPLES) | {name for text in texts for name in programs(text)}

    assert {path.name for path in TRACES.iterdir()} == named


def test_a_figure_that_is_shown_elsewhere_only_has_no_source():
    text = "## One\n5 ms\n\n## Two\n```console\n$ gradviz\nall: 5 ms\n```\n5 ms, 6 ms\n"

    assert list(figures_without_source(text)) == ["One: 5 ms", "Two: 6 ms"]


def test_the_program_does_today_what_its_trace_tells(monkeypatch):
    names: dict[str, object] = {"__name__": "example"}
    source = EXAMPLES["training.gvt"].source
    exec(compile(source, "training.py", "exec"), names)
    # What it does, not how long that takes.
    monkeypatch.setattr("time.sleep", lambda _: None)

    count = gv.sim.device_count()

    with gv.record() as recording:
        names["main"]()
    gv.sim.set_device_count(count)

    assert what_ran(recording.trace) == what_ran(load_trace(TRACES / "training.gvt"))


def programs_of_pytorch() -> list[str]:
    texts = [(DOCS / page).read_text() for page in PAGES]
    return ["slow.gvt", *(name for text in texts for name in programs(text))]


@pytest.mark.parametrize("trace", programs_of_pytorch())
def test_a_program_of_pytorchs_does_today_what_its_trace_tells(trace, monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.setattr("sys.argv", ["program.py"])

    with gv.pytorch.record() as recording, contextlib.suppress(RuntimeError):
        exec(compile(source_of(trace), "program.py", "exec"), {"__name__": "__main__"})

    assert what_ran(recording.trace) == what_ran(load_trace(TRACES / trace))


def test_every_view_of_a_trace_is_on_a_page():
    commands = re.compile(r"^\$ gradviz ((?:show )?\w+)", re.MULTILINE)
    text = "".join((DOCS / page).read_text() for page in PAGES)
    views = {f"show {name}" for name in Show.entries}

    assert views <= set(commands.findall(text))


def what_ran(trace: Trace) -> dict[str, list[str]]:
    """Return the nodes that each thread ran, in order, by name."""
    ran = defaultdict(list)
    for thread, node in trace.columns["node_started"].rows("thread", "node"):
        ran[trace.threads[thread].name].append(trace.nodes[node].name)
    return ran
