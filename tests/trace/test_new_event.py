"""A new kind of event takes three edits: its class, its report, its rule."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import gradviz

PACKAGE = Path(gradviz.__file__).parent

CLASS = """
class NodeParked(Event, frozen=True, kw_only=True):
    \"\"\"A node waits for something else than its gradients.\"\"\"

    code = 37
    queue: int


"""
REPORT = """
    def node_parked(self, task: int, node: int, queue: int) -> None:
        \"\"\"A node waits for something else than its gradients.\"\"\"

"""

#: In which file of `gradviz.trace` what is inserted, and before which text.
CLASS_AND_RULE = [
    ("events.py", "def _by_code(", CLASS),
    ("rules.py", "    NodeFailed,\n", "    NodeParked,\n"),
    ("rules.py", "    NodeFailed: ", "    NodeParked: _DURING,\n"),
]
OF_ANYBODY = ("probe.py", "    def node_failed(", REPORT)
OF_EVERY_NODE = ("node_reports.py", "    def node_completed(", REPORT)
JOINED = ("node_reports.py", '_event("node_started")', '_event("node_parked"), ')

#: Has a recorder, and one that hears of each event by itself, hear something.
PROGRAM = """
    from gradviz.trace.probe import Guard
    from gradviz.trace.reading.reader import parse_trace
    from gradviz.trace.recording.recorder import Recorder
    from gradviz.trace.recording.sink import MemorySink

    for wrap in (lambda recorder: recorder, Guard):
        sink = MemorySink()
        recorder = Recorder(sink, flush_every_s=None)
        probe = wrap(recorder)
        here = probe.for_this_thread()
        REPORTS
        recorder.close()
        for event in parse_trace(sink.contents()).events():
            print(type(event).__name__, event.node, getattr(event, "queue", ""))
"""

#: Prints the new event as people read it.
WORDS = """
    from gradviz.render.words.event_words import EventWords
    from gradviz.trace.reading.reader import parse_trace
    from gradviz.trace.recording.recorder import Recorder
    from gradviz.trace.recording.sink import MemorySink

    sink = MemorySink()
    recorder = Recorder(sink, flush_every_s=None)
    recorder.node_parked(1, 2, 3)
    recorder.close()
    trace = parse_trace(sink.contents())
    (event,) = trace.events()
    print(EventWords(trace, 0).sentence(event))
"""


@pytest.fixture
def run_edited(tmp_path):
    """Runs a program with texts inserted into files of `gradviz.trace`."""

    def run(edits, program):
        edited = {name for name, _, _ in edits}
        for folder in (PACKAGE, PACKAGE / "trace"):
            copy = tmp_path / folder.relative_to(PACKAGE.parent)
            copy.mkdir()
            for path in folder.iterdir():
                if path.name not in {"trace", "__pycache__"} | edited:
                    (copy / path.name).symlink_to(path)
        for name in edited:
            text = (PACKAGE / "trace" / name).read_text(encoding="utf-8")
            for _, before, new in (edit for edit in edits if edit[0] == name):
                assert text.count(before) == 1
                text = text.replace(before, new + before)
            (tmp_path / "gradviz" / "trace" / name).write_text(text, encoding="utf-8")
        return subprocess.run(
            [sys.executable, "-c", textwrap.dedent(program)],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": str(tmp_path), "GRADVIZ_PURE": "1"},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    return run


@pytest.mark.parametrize(
    ("edits", "reports", "heard"),
    [
        ([OF_ANYBODY], "probe.node_parked(1, 2, queue=3)", "NodeParked 2 3\n"),
        (
            [OF_EVERY_NODE],
            "here.node_parked(1, 2, 3); here.node_taken(1, 2, 5, 0)",
            "NodeParked 2 3\nTaskPopped 2 5\nNodeStarted 2 \n",
        ),
        (
            [OF_EVERY_NODE, JOINED],
            "here.node_taken(1, 2, 5, 0)",
            "TaskPopped 2 5\nNodeParked 2 5\nNodeStarted 2 \n",
        ),
    ],
    ids=["of anybody", "of every node", "joined"],
)
def test_a_class_a_report_and_a_rule_make_an_event_that_is_recorded_and_read(
    run_edited, edits, reports, heard
):
    result = run_edited(CLASS_AND_RULE + edits, PROGRAM.replace("REPORTS", reports))

    assert (result.stdout, result.stderr) == (2 * heard, "")


def test_a_joined_report_that_lacks_a_column_fails_at_import(run_edited):
    file, before, new = JOINED
    edit = (file, before, new.replace("node_parked", "task_pushed"))
    result = run_edited([edit], "import gradviz.trace.probe")

    assert "TypeError: node_taken tells task_pushed no reentrant_depth" in result.stderr


def test_an_event_without_a_sentence_of_its_own_is_told_by_its_class(run_edited):
    result = run_edited([*CLASS_AND_RULE, OF_ANYBODY], WORDS)

    assert (result.stdout, result.stderr) == (
        "A node waits for something else than its gradients: ? (2), queue 3.\n",
        "",
    )
