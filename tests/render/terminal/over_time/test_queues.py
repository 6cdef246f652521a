import pytest

from gradviz.analysis.queues.queue_activity import (
    Handover,
    Overtaken,
    Queues,
    QueueSummary,
)
from gradviz.analysis.queues.queue_contents import Contents, NumberedTask
from gradviz.render.terminal.over_time.queues import print_queue_contents, print_queues
from gradviz.trace.probe import Push


def summary(**changes):
    fields = {
        "queue": 3,
        "name": "device 0",
        "num_pushed": 5,
        "num_popped": 5,
        "longest": 4,
        "mean_length": 1.25,
        "asleep_ns": 2_000,
        "num_sleeps": 1,
        "num_overtaken": 2,
        "lengths": ((0, 1), (250, 4), (500, 2), (750, 0)),
    }
    return QueueSummary(**(fields | changes))


def make_queues(*queues, **changes):
    fields = {
        "tasks": (4,),
        "origin_ns": 0,
        "duration_ns": 1_000,
        "queues": queues or (summary(),),
        "handovers": (Handover(0, 1, 7),),
        "threads": {0: "MainThread", 1: "gradviz-sim:0"},
        "overtaken": (
            Overtaken(
                task=4,
                node=9,
                name="MulBackward0",
                queue=3,
                waited_ns=1_500,
                num_by=7,
                by=(8, 5, -1),
                index=3,
                by_index=(2, None, None),
            ),
        ),
    }
    return Queues(**(fields | changes))


def words(lines):
    return [" ".join(line.split()) for line in lines]


def test_each_queue_has_its_figures_and_a_curve_as_wide_as_the_console(shown):
    lines = shown(lambda console: print_queues(make_queues(), console), width=92)

    told = words(lines)
    assert told[0] == "Backward pass 4: 5 tasks in 1 ready queue"
    assert told[2] == "device 0 3 5 - 4 1.2 2 2 µs 1"
    assert told[4] == "Tasks in them over 1 µs"
    assert lines[5] == "  device 0  " + "▂" * 20 + "█" * 20 + "▄" * 20 + " " * 20


def test_hand_overs_name_both_threads(shown):
    lines = shown(lambda console: print_queues(make_queues(), console))

    assert "0 MainThread 1 gradviz-sim:0 7" in words(lines)


def test_an_overtaken_node_is_listed_with_the_first_tasks_that_overtook_it(shown):
    lines = shown(lambda console: print_queues(make_queues(), console))

    assert "3 MulBackward0 9 4 3 1.5 µs 7 #2, 5, wake-up and 4 more" in words(lines)


def test_a_queue_shows_the_number_of_tasks_left_in_it(shown):
    queues = make_queues(summary(num_popped=3))

    lines = shown(lambda console: print_queues(queues, console))

    assert words(lines)[2].startswith("device 0 3 5 2 4")


def test_a_queue_that_was_never_empty_for_long_is_never_drawn_empty(shown):
    queues = make_queues(summary(longest=1_000, lengths=((0, 1),)))

    lines = shown(lambda console: print_queues(queues, console), width=92)

    assert lines[5] == "  device 0  " + "▁" * 80


@pytest.mark.parametrize("width", [80, 200])
def test_no_line_is_wider_than_the_console(shown, width):
    long = "a-very-long-name" * 20
    queues = make_queues(summary(name=long), threads={0: long, 1: long})

    lines = shown(lambda console: print_queues(queues, console), width=width)

    assert max(map(len, lines)) <= width


def test_contents_are_told_in_the_order_in_which_they_would_be_popped(shown):
    def task(node, **changes):
        fields = {
            "task": 4,
            "node": node,
            "what": Push.NODE,
            "reentrant_depth": 0,
            "sequence_nr": 7,
            "pushed_by": 2,
            "thread": 0,
            "pushed_ns": 900,
            "index": None,
            "pushed_by_index": None,
        }
        return NumberedTask(**(fields | changes))

    contents = Contents(
        t_ns=1_000,
        after_ns=500,
        queues={
            3: (
                task(-1, what=Push.WAKE_UP, sequence_nr=0, pushed_by=-1),
                task(8, sequence_nr=-1),
                task(9, index=5, pushed_by_index=4),
            )
        },
        queue_names={3: "device 0\x1b[31m"},
        node_names={8: "AccumulateGrad", 9: "MulBackward0"},
    )

    lines = shown(lambda console: print_queue_contents(contents, console))

    assert words(lines) == [
        "3 tasks queued after 500 ns",
        "",
        "device 0, queue 3",
        "place # name node pass depth seq queued for made ready by",
        "0 - wake-up - 4 0 0 100 ns -",
        "1 - AccumulateGrad 8 4 0 max 100 ns 2",
        "2 5 MulBackward0 9 4 0 7 100 ns #4",
    ]
