"""The methods of `NodeRows` keep what the table of joined reports says."""

import inspect
import itertools

import pytest

from gradviz.trace.events import KINDS, MAX_SEQUENCE_NR, kind_name
from gradviz.trace.format.row_layouts import LAYOUTS, columns_of, joined_columns
from gradviz.trace.node_reports import JOINED, NodeReports
from gradviz.trace.recording.buffer import MANY, WHOLE
from gradviz.trace.recording.node_rows import NodeRows, Origins
from gradviz.trace.recording.processor_time import ThreadTime
from gradviz.trace.recording.recorder import Recorder

REPORTS = sorted(name for name in vars(NodeReports) if not name.startswith("_"))
KIND_OF = {kind_name(kind): kind for kind in KINDS.values()}

#: Reports of which as many rows come with others as by themselves.
NEVER_FIRST = {
    *("node_taken", "node_completed", "gradient_buffered", "gradient_accumulated"),
    "buffer_freed",
}

LINE = 77
NOW = 1000


def key_of(report):
    return report if report in JOINED else KIND_OF[report]


def made_rows(rows, call_writer=lambda _: None):
    origins = Origins(lambda: LINE, None, None)
    return NodeRows(rows, ThreadTime(None), lambda: NOW, call_writer, origins)


def arguments_of(report, make_node, sequence_nr=17):
    """One for each parameter, none of them the same."""
    names = [*inspect.signature(getattr(NodeReports, report)).parameters][1:]
    given = {name: number for number, name in enumerate(names, 3)}
    if "sequence_nr" in given:
        given["sequence_nr"] = sequence_nr
    if report in {"node_created", "node_recorded"}:
        given["node"] = make_node(given["node"], sequence_nr=sequence_nr)
    return given


@pytest.mark.parametrize("report", REPORTS)
def test_a_report_of_every_node_is_kept_without_a_detour(report):
    assert report in vars(NodeRows), (
        f"give NodeRows a method {report} that keeps a row of "
        f"{joined_columns(report) if report in JOINED else columns_of(KIND_OF[report])}"
        f": until then all reports of nodes are recorded one by one"
    )
    assert "for_this_thread" in vars(Recorder)


@pytest.mark.parametrize("sequence_nr", [17, MAX_SEQUENCE_NR])
@pytest.mark.parametrize("report", REPORTS)
def test_a_row_has_the_columns_that_the_table_says(make_node, report, sequence_nr):
    key = key_of(report)
    rows = {one: [] for one in LAYOUTS}
    given = arguments_of(report, make_node, sequence_nr)

    getattr(made_rows(rows), report)(*given.values())

    known = {"t_ns": NOW, "task": -1, "location": LINE, "thread_time_ns": -1} | given
    known["node"] = getattr(known["node"], "id", known["node"])
    known["sequence_nr"] = 17 if sequence_nr == 17 else -1
    columns = joined_columns(report) if report in JOINED else columns_of(key)
    expected = tuple(known.get(one, one) for one in columns)
    assert rows[key] == ([expected] if key in WHOLE else [*expected])
    assert [one for one in rows if rows[one]] == [key]


@pytest.mark.parametrize("report", sorted({*REPORTS} - NEVER_FIRST))
def test_rows_that_have_become_many_call_the_writer(make_node, report):
    key = key_of(report)
    rows = {one: [] for one in LAYOUTS}
    called = []
    here = made_rows(rows, called.append)
    arguments = [*arguments_of(report, make_node).values()]

    num_reports = 0
    while not called:
        getattr(here, report)(*arguments)
        num_reports += 1

    num_numbers = num_reports * LAYOUTS[key].width
    assert num_numbers == pytest.approx(MANY, rel=0.1)
    assert called == pytest.approx([MANY], rel=0.01)
    assert len(rows[key]) == (num_reports if key in WHOLE else num_numbers)


@pytest.mark.parametrize("report", sorted(JOINED))
def test_a_clock_that_stands_still_is_read_once_for_each_event(make_node, report):
    """The events of a row, a nanosecond apart, come before the next row."""
    rows = {one: [] for one in LAYOUTS}
    clock = itertools.count(1000).__next__
    origins = Origins(lambda: LINE, None, None)
    here = NodeRows(rows, ThreadTime(None), clock, lambda _: None, origins)

    getattr(here, report)(*arguments_of(report, make_node).values())

    assert clock() == 1000 + len(JOINED[report])
