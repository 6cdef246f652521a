import functools
import itertools

import numpy as np
import pytest

from gradviz.trace.checking import lifecycle
from gradviz.trace.checking.lifecycle import check_events, judge
from gradviz.trace.checking.textbook import by_the_book
from gradviz.trace.format.model import Losses, Trace
from gradviz.trace.format.table import Table
from gradviz.trace.probe import Hook, How, Role
from gradviz.trace.reporting.hook_names import HookName
from tests.trace.reports import begin_pass


@pytest.fixture(autouse=True)
def look_for_the_book_in_short_traces_too(monkeypatch):
    monkeypatch.setattr(lifecycle, "_FEW", 0)


@pytest.fixture
def trace(bench) -> Trace:
    """Three passes, of which the second one is inside of a call of a module."""
    bench.engine.backward(0, first_id=0)
    bench.recorder.forward_begun(5, "Net", "Net")
    bench.engine.backward(1, first_id=10)
    bench.recorder.forward_ended(5, False)
    bench.recorder.thread_started(0, Role.DEVICE)
    bench.engine.backward(2, first_id=20)
    bench.recorder.thread_exited(0, Role.DEVICE)
    return bench.trace()


def with_columns(trace: Trace, columns) -> Trace:
    return Trace(
        path=None,
        header=trace.header,
        clocks=trace.clocks,
        nodes=trace.nodes,
        threads=trace.threads,
        queues=trace.queues,
        losses=Losses(),
        strings=trace.strings,
        columns=columns,
    )


def changes(trace: Trace):
    """Every trace that differs by one event: it is gone, or has another number.

    Of each, what it is and what makes its columns.
    """
    for kind, table in trace.columns.items():
        if kind == "node_created":
            continue
        for row in range(table.num_rows):
            yield f"{kind} {row} gone", functools.partial(without, trace, kind, row)
            for name in table:
                if name in ("seq", "t_ns", "location", "module", "name"):
                    continue  # a text says nothing of order
                is_enum = name in (
                    *("role", "how", "what", "hook", "failed"),
                    *("arguments", "results"),
                )
                for value in (0, 1) if is_enum else (-1, 0, 1, 2, 10, 77):
                    yield (
                        f"{kind} {row} {name} {value}",
                        functools.partial(changed, trace, kind, row, name, value),
                    )


def without(trace: Trace, kind, row):
    """The columns of a trace without one event."""
    table = trace.columns[kind]
    return {**trace.columns, kind: table.at(np.arange(table.num_rows) != row)}


def changed(trace: Trace, kind, row, name, value):
    """The columns of a trace, with another number in one place."""
    table = trace.columns[kind]
    column = table[name].copy()
    column[row] = value
    columns = {one: table[one] for one in table} | {name: column}
    return {**trace.columns, kind: Table(columns)}


def reordered(trace: Trace, places):
    """The columns of a trace whose events have other places: new ones by old ones."""
    columns = {}
    for kind, table in trace.columns.items():
        numbers = places[table["seq"]]
        order = np.argsort(numbers)
        wide = {name: table[name] for name in table} | {"seq": numbers}
        columns[kind] = Table(wide).at(order)
    return columns


def moved(trace: Trace):
    """Every trace in which one event happened beside another.

    That is the one after it, or one that begins or ends a pass. Of each trace, what it
    is and what makes its columns.
    """
    num_events = trace.num_events
    borders = {
        seq
        for kind in ("task_begun", "dependencies_counted", "task_completed")
        for seq in trace.columns[kind]["seq"].tolist()
    }
    for seq in range(num_events):
        for target in sorted({min(seq + 1, num_events - 1), *borders} - {seq}):
            make = functools.partial(with_event_at, trace, seq, target)
            yield f"{seq} beside {target}", make


def with_event_at(trace: Trace, seq, target):
    """The columns of a trace, with one event in another place."""
    order = [one for one in range(trace.num_events) if one != seq]
    order.insert(target, seq)
    return reordered(trace, np.argsort(order))


def test_passes_as_the_engine_reports_them_are_by_the_book(trace):
    assert by_the_book(trace.columns).tolist() == [0, 1, 2]
    assert judge(trace).num_violations == 0


@pytest.mark.parametrize("every", [17, pytest.param(1, marks=pytest.mark.stress)])
def test_the_book_hides_nothing_that_the_machine_finds(trace, every):
    """Of every trace that differs a little, both find the same."""
    others = itertools.chain(moved(trace), changes(trace))
    num_wrong = 0
    for what, make in itertools.islice(others, 0, None, every):
        other = with_columns(trace, make())
        expected = check_events(other.events())
        found = judge(other).violations
        num_wrong += bool(expected)
        assert [str(one) for one in found] == [str(one) for one in expected], what

    assert num_wrong > 800 // every


def test_a_pass_that_fails_is_not_by_the_book(bench):
    bench.engine.backward(0)
    bench.engine.backward(1, first_id=10)
    bench.recorder.task_failed(1, 10, "boom")

    assert by_the_book(bench.trace().columns).tolist() == [0]


def test_a_pass_whose_caller_left_while_its_nodes_ran_is_not_by_the_book(trace):
    (_, left, _) = trace.columns["thread_exited"]["seq"].tolist()[:3]
    started = trace.columns["node_started"].at(
        trace.columns["node_started"]["task"] == 1
    )
    order = [one for one in range(trace.num_events) if one != left]
    order.insert(int(started["seq"][0]), left)

    columns = reordered(trace, np.argsort(order))

    assert by_the_book(columns).tolist() == [0, 2]


@pytest.mark.parametrize(("leaves_early", "settled"), [(False, [0]), (True, [])])
def test_an_inner_pass_is_by_the_book_only_if_it_ends_before_it_is_left(
    bench, leaves_early, settled
):
    bench.recorder.reentrant_entered(0, 1)
    bench.engine.backward(0)
    bench.recorder.reentrant_left(0, 1)
    trace = bench.trace()
    (left,) = trace.columns["reentrant_left"]["seq"].tolist()
    (completed,) = trace.columns["task_completed"]["seq"].tolist()
    order = list(range(trace.num_events))
    if leaves_early:
        order.insert(completed, order.pop(left))

    columns = reordered(trace, np.argsort(order))
    for kind in ("thread_started", "thread_exited"):  # of another thread
        columns[kind] = columns[kind].at(slice(0))

    assert by_the_book(columns).tolist() == settled


def test_events_between_the_start_and_end_of_a_node_are_by_the_book(bench, make_node):
    probe, node = bench.recorder, make_node(1)
    begin_pass(probe, 0)
    probe.dependencies_counted(0, 1, 0)
    bench.engine._push(0, node, pushed_by=-1)
    probe.task_popped(0, 1, 7, 0)
    probe.node_started(0, 1)
    probe.hook_called(0, 1, Hook.PRE, 0, *HookName())
    probe.gradient_accumulated(0, 1, How.STOLEN)
    probe.capture_taken(0, 1, 0)
    probe.node_completed(0, 1)
    probe.task_completed(0)
    trace = bench.trace()

    assert by_the_book(trace.columns).tolist() == [0]
    assert judge(trace).num_violations == 0


def test_ids_too_far_apart_are_left_to_the_machine(bench):
    bench.engine.backward(0)
    trace = bench.trace()
    started = trace.columns["node_started"]
    far = {name: started[name] for name in started}
    far["node"] = np.array([0, 2**62, -(2**62)])

    columns = {**trace.columns, "node_started": Table(far)}
    assert by_the_book(columns).tolist() == []


def test_violations_are_counted_and_the_first_hundred_told(bench):
    for _ in range(250):
        bench.recorder.kernel_launched(1, "sim:0/0", "mul")

    found = judge(bench.trace())
    assert (len(found.violations), found.num_violations) == (100, 249)


def test_events_that_were_not_checked_are_counted(bench, monkeypatch):
    monkeypatch.setattr(lifecycle, "MAX_SEEN", 100)
    for number in range(250):
        bench.recorder.kernel_launched(number % 125, "sim:0/0", "mul")

    found = judge(bench.trace())
    assert (found.num_violations, found.num_unseen) == (0, 150)
