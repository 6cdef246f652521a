import msgspec
import pytest

from gradviz.analysis.training.steps import StepParts, Steps, TrainingStep
from gradviz.analysis.training.summary import (
    NameSummary,
    NodeSummary,
    PassSummary,
    Summary,
    ThreadSummary,
)
from gradviz.render.terminal.summary import print_summary
from gradviz.trace.format.model import Losses, ProcessDefinition


def one_pass(task, **changes):
    fields = {
        "task": task,
        "parent": -1,
        "duration_ns": 1_500,
        "runs": 3,
        "edges": 2,
        "status": "completed",
        "error": "",
    }
    return PassSummary(**(fields | changes))


def make_summary(text="MulBackward0", **changes):
    fields = {
        "path": "runs/x.gvt",
        "duration_ns": 2_000,
        "num_events": 1_234,
        "events": {"node_started": 3},
        "num_runs": 3,
        "num_nodes": 3,
        "num_edges": 2,
        "passes": (one_pass(4),),
        "threads": (ThreadSummary(thread=0, name=text, runs=3, busy_ns=1_000),),
        "names": (NameSummary(name=text, runs=3, total_ns=900, longest_ns=400),),
        "longest": (
            NodeSummary(
                task=4,
                node=1,
                name=text,
                device="cpu",
                location="/home/u/main.py:7",
                duration_ns=400,
                status="completed",
                error="",
                index=6,
            ),
        ),
        "failed": (),
        "losses": Losses(),
    }
    return Summary(**(fields | changes))


def lines_with(lines, word):
    return [" ".join(line.split()) for line in lines if word in line]


def test_totals_come_first(shown):
    lines = shown(lambda console: print_summary(make_summary(), console))

    assert [" ".join(line.split()) for line in lines[:4]] == [
        "trace runs/x.gvt",
        "recorded 1,234 events in 2 µs",
        "passes 1",
        "graph 3 nodes, 2 edges",
    ]


def test_processes_are_counted_and_clocks_that_may_be_off_are_named(shown):
    processes = (
        ProcessDefinition(11, 0, "a", (), ()),
        ProcessDefinition(12, 1, "b", (), (), 12_000),
        ProcessDefinition(13, -1, "c\x1b[2J", (), (), 2_000_000),
    )
    summary = make_summary(processes=processes)

    lines = shown(lambda console: print_summary(summary, console), width=200)

    (told,) = lines_with(lines, "processes")
    assert told.startswith(
        "processes 3; the clock of rank 1 on b within 12 µs; the clock of pid 13 on c"
    )
    assert told.endswith(" within 2 ms")
    assert "\x1b" not in told


def test_shares_are_shown_as_bars(shown):
    lines = shown(
        lambda console: print_summary(make_summary(text="Mul"), console), width=100
    )

    assert lines_with(lines, "Mul") == [
        "Mul 3 900 ns 400 ns ██████████ 100%",
        "6 Mul 1 4 cpu 400 ns main.py:7",
        "0 Mul 3 1 µs █████ 50%",
    ]


def test_only_the_last_passes_are_listed_and_that_is_said(shown):
    summary = make_summary(passes=tuple(map(one_pass, range(100, 150))))

    lines = shown(lambda console: print_summary(summary, console))

    assert "Backward passes (12 of 50)" in lines
    assert lines[-1].split()[0] == "149"
    assert lines[-12].split()[0] == "138"


def test_errors_and_inner_passes_are_told(shown):
    failed = one_pass(4, status="failed", error="ValueError: no", duration_ns=None)
    inner = one_pass(5, parent=4)
    summary = make_summary(passes=(failed, inner))

    lines = shown(lambda console: print_summary(summary, console))

    assert "passes 2, 1 failed" in lines_with(lines, "passes")
    assert lines_with(lines, "ValueError") == ["4 3 2 - - failed: ValueError: no"]
    assert lines_with(lines, "inside") == ["5 3 2 1.5 µs - completed (inside 4)"]


def test_losses_of_a_trace_are_reported_in_one_line(shown):
    losses = Losses(dropped=12, damaged_bytes=3, truncated=True, closed=False)
    summary = make_summary(losses=losses)

    lines = shown(lambda console: print_summary(summary, console), width=100)

    (line,) = lines_with(lines, "incomplete")
    assert line == (
        "incomplete 12 events dropped; 3 bytes damaged; its end is cut off; "
        "it goes on or was broken off"
    )


def test_a_trace_in_which_nothing_ran_has_totals_only(shown):
    nothing = {"passes": (), "threads": (), "names": (), "longest": ()}
    empty = msgspec.structs.replace(make_summary(), path="", num_runs=0, **nothing)

    lines = shown(lambda console: print_summary(empty, console))

    assert len(lines) == 4
    assert lines[0].split() == ["trace", "in", "memory"]


@pytest.mark.parametrize("width", [80, 200])
def test_no_line_is_wider_than_the_console(shown, width):
    summary = make_summary(text="VeryLong" * 30)

    lines = shown(lambda console: print_summary(summary, console), width=width)

    assert max(map(len, lines)) <= width


def test_hostile_names_are_shown_and_do_nothing(shown, hostile):
    bad = one_pass(4, status="failed", error=hostile)
    summary = make_summary(text=hostile, path=hostile, passes=(bad,))

    lines = shown(lambda console: print_summary(summary, console), width=200)

    assert all(line.isprintable() for line in lines)


def test_failed_nodes_are_listed_with_what_they_raised(shown):
    (node,) = make_summary(text="Boom").longest
    failed = msgspec.structs.replace(
        node, duration_ns=24_500, status="failed", error="ValueError: no"
    )

    lines = shown(
        lambda console: print_summary(make_summary(failed=(failed,)), console)
    )

    assert lines_with(lines, "Boom") == ["6 Boom 1 4 24.5 µs main.py:7 ValueError: no"]


def steps_of(number):
    part = StepParts(
        duration_ns=7, forward_ns=0, backward_ns=5, optimizer_ns=0, other_ns=2
    )
    steps = tuple(
        TrainingStep(
            number=one,
            thread=0,
            begin_ns=0,
            parts=part,
            tasks=(one,),
            status="completed",
        )
        for one in range(number)
    )
    return Steps(
        found_by="step_begun",
        steps=steps,
        median=part,
        slowest=0,
        odd=(),
        num_outside=0,
    )


@pytest.mark.parametrize(
    ("number", "told"),
    [
        (1, ["Backward passes"]),
        (12, ["12 steps, as the program counts them", "Backward passes"]),
        (13, ["13 steps, as the program counts them"]),
    ],
)
def test_of_many_steps_the_passes_are_not_listed(shown, number, told):
    summary = make_summary(
        passes=tuple(map(one_pass, range(number))), steps=steps_of(number)
    )

    lines = shown(lambda console: print_summary(summary, console))

    assert [
        line for line in lines if "steps" in line or "Backward passes" in line
    ] == told


def test_processor_time_is_beside_the_time_that_passed_where_it_is_known(shown):
    old = make_summary()
    (node,) = old.longest
    told = msgspec.structs.replace(
        node,
        duration_ns=49_000_000,
        thread_time_ns=200_000,
        processor_wait_ns=48_000_000,
        parameters=("Net.a.weight",),
    )
    line = msgspec.structs.replace(old.passes[0], location="/home/u/main.py:9")
    new = make_summary(longest=(told,), passes=(line,))

    before, after = (
        shown(lambda console, one=one: print_summary(one, console), width=120)
        for one in (old, new)
    )

    assert not lines_with(before, "running")
    assert lines_with(after, "running") == [
        "# name parameter node pass device took running lost created at"
    ]
    assert lines_with(after, "weight") == [
        "6 MulBackward0 Net.a.weight 1 4 cpu 49 ms 200 µs 48 ms main.py:7"
    ]
    assert lines_with(after, "main.py:9") == ["4 3 2 1.5 µs main.py:9 completed"]
