"""Pages that do not hold all of their passes, beside those that do."""

import pytest

import gradviz as gv
from gradviz.render.page import window
from gradviz.render.page.document import build_page
from gradviz.render.page.window import window_on
from tests.render.page import programs


def three_passes():
    with gv.record() as recording:
        for _ in range(3):
            gv.tensor(1.0, requires_grad=True).sin().backward()
    return recording.trace


def num_events(trace, *tasks):
    return sum(event.task in tasks for event in trace.events())


def test_of_too_many_passes_the_first_are_shown(monkeypatch) -> None:
    trace = three_passes()
    monkeypatch.setattr(window, "MAX_PASSES", 2)

    page = build_page(trace, trace.tasks)

    assert [one.task for one in page.header.passes] == list(trace.tasks[:2])
    assert "of 3 passes the first 2 are shown" in page.header.warnings
    assert page.header.num_events == num_events(trace, *trace.tasks[:2])
    assert not page.header.is_cut


def test_of_passes_with_too_many_events_as_many_are_shown_as_fit(monkeypatch) -> None:
    trace = three_passes()
    first, second, _ = trace.tasks
    most = num_events(trace, first, second)

    monkeypatch.setattr(window, "MAX_EVENTS", most)
    assert window_on(trace, trace.tasks).tasks == (first, second)
    monkeypatch.setattr(window, "MAX_EVENTS", most - 1)
    assert window_on(trace, trace.tasks).tasks == (first,)
    assert window_on(trace, (second,)).left_out == ()


def test_passes_that_were_called_go_with_who_called_them(monkeypatch) -> None:
    with gv.record() as recording:
        x = gv.tensor(1.0, requires_grad=True)
        gv.utils.checkpoint.checkpoint(gv.sin, x.exp(), use_reentrant=True).backward()
        x.sin().backward()
    trace = recording.trace
    calls, called, other = trace.tasks

    monkeypatch.setattr(window, "MAX_EVENTS", num_events(trace, *trace.tasks) - 1)
    assert window_on(trace, trace.tasks).tasks == (calls, called)
    assert window_on(trace, (calls,)).left_out == ()
    monkeypatch.setattr(window, "MAX_EVENTS", num_events(trace, other))
    assert window_on(trace, (other,)).last_seq is None
    assert window_on(trace, trace.tasks).last_seq is not None
    assert window_on(trace, trace.tasks).tasks == (calls, called)


CUT = ("nested passes", "two devices", "a failure")


@pytest.mark.parametrize("name", CUT)
@pytest.mark.parametrize("part", [0.1, 0.5, 0.9])
def test_of_a_pass_that_is_too_long_the_beginning_is_shown(
    monkeypatch, name, part
) -> None:
    trace = programs.PROGRAMS[name]()
    whole = build_page(trace, trace.tasks)
    most = int(len(whole.events.kind) * part)
    monkeypatch.setattr(window, "MAX_EVENTS", most)

    page = build_page(trace, trace.tasks)

    assert page.header.is_cut
    assert page.header.passes == whole.header.passes
    assert page.header.num_events == len(whole.events.kind)
    assert told(page) == cut(told(whole), most)
    assert outcomes(page).items() <= outcomes(whole).items()
    assert all(page.memory.at_ns <= page.header.duration_ns)
    assert all(page.segments.begin_ns <= page.header.duration_ns)
    assert set(page.costs.node.tolist()) <= set(range(len(page.nodes.id)))
    (sentence,) = (one for one in page.header.warnings if "events the first" in one)
    assert f"of {len(whole.events.kind):,} events the first {most:,}" in sentence


def told(page):
    """Return the page's tables, with node numbers and moments at the end."""
    ids = dict(enumerate(page.nodes.id.tolist())) | {-1: -1}
    kinds, statuses = page.header.kinds, page.header.statuses

    def rows(table, *names):
        columns = [getattr(table, name).tolist() for name in names]
        nodes = [ids[node] for node in table.node.tolist()]
        return list(zip(nodes, *columns, strict=True))

    return {
        "events": [
            (node, kinds[kind], at_ns)
            for node, kind, at_ns in rows(page.events, "kind", "at_ns")
        ],
        "runs": [
            (node, task, statuses[status], *times, begin, end)
            for node, task, status, *times, begin, end in rows(
                *(page.runs, "task", "status", "start_ns", "end_ns", "begin", "end")
            )
        ],
        "stays": rows(page.stays, "task", "queue", "pushed", "popped"),
        "gradients": rows(page.gradients, "task", "remaining", "at", "until"),
    }


def outcomes(page):
    """The stage of each node of each pass after all events."""
    ids, stages = page.nodes.id.tolist(), page.header.stages
    changes = [
        *zip(page.events.task, page.events.node, page.events.stage, strict=True),
        *zip(page.endings.task, page.endings.node, page.endings.stage, strict=True),
    ]
    return {
        (int(task), ids[node]): stages[stage]
        for task, node, stage in changes
        if stage >= 0
    }


def cut(tables, most):
    """Return the tables cut to the first events."""
    found = {"events": tables["events"][:most]}
    for name in ("runs", "stays", "gradients"):
        found[name] = [
            (*row, begin, end if end < most else -1)
            for *row, begin, end in tables[name]
            if begin < most
        ]
    return found
