"""Output of ``gradviz replay --plain`` for stories."""

import io

import pytest

from gradviz.analysis.moments.event_replay import Replay
from gradviz.analysis.moments.story import Filter
from gradviz.render.replay.plain import MOST, print_replay
from gradviz.render.replay.words import ReplayWords
from gradviz.render.terminal.cells import make_console
from gradviz.trace.reading.reader import parse_trace
from tests.render.conftest import HOSTILE
from tests.render.replay.conftest import replay_of


def printed(replay, places=None):
    file = io.StringIO()
    places = range(len(replay)) if places is None else places
    print_replay(replay, places, make_console(file))
    return file.getvalue()


def told_at(replay, kind, number=0):
    """The lines of an event of a kind, the number-th of them."""
    return printed(replay, [int(replay.of_kind(kind)[number])]).splitlines()[2:]


def test_an_event_is_told_with_the_state_after_it(busy):
    assert told_at(busy, "gradient_buffered") == [
        "Event 10 of 21, 0.000030 ms, pass 0, thread 0 MainThread",
        (
            "  SinBackward0 (1) received a gradient of 8 bytes at input 0 from "
            "#0 Mul (5); 1 more to come."
        ),
        "  Pass 0: 1 of 5 nodes started",
        (
            "  Queue 1 queue 1, 4 tasks, the next first: a wake-up; #1 Exp (4) seq 3, "
            "depth 1; #2 AccumulateGrad (3) seq max; #3 Add (2) seq 8"
        ),
        "  Thread 0 MainThread runs #0 Mul (5) of pass 0, for 18 ns",
        "  SinBackward0 (1) waits for 1 of 2 gradients; 8 B from #0 Mul (5)",
    ]


@pytest.mark.parametrize(
    ("number", "why"),
    [
        (0, "Nothing else was in the queue."),
        (
            1,
            (
                "A wake-up goes before every node: before the best of 3 others, "
                "#1 Exp (4)."
            ),
        ),
        (
            2,
            (
                "Its pass is nested deeper, at depth 1, than that of the best of 2 "
                "others, #2 AccumulateGrad (3): 0."
            ),
        ),
        (
            3,
            (
                "An AccumulateGrad has the largest sequence_nr there is; that of #3 "
                "Add (2) is 8."
            ),
        ),
    ],
)
def test_a_pop_says_why_it_was_this_one(busy, number, why):
    assert f"  Why this one: {why}" in told_at(busy, "task_popped", number)


def test_each_pop_gives_the_reason_its_task_went_first(story):
    nodes = [story.node(number, name="Mul") for number in (1, 2, 3)]
    story.begin(0, nodes, at=0)
    for at, node in enumerate((*nodes, nodes[1]), start=1):
        story.push(0, node, at=10 * at)
    for at, node in enumerate((nodes[2], nodes[1], nodes[0]), start=5):
        story.pop(0, node, at=10 * at)
    replay = replay_of(story)
    whys = [told_at(replay, "task_popped", one)[2].strip() for one in range(3)]

    assert whys == [
        (
            "Why this one: The forward made it later, sequence_nr 3, than the best of "
            "3 others, Mul (2): 2."
        ),
        (
            "Why this one: At equal priority, sequence_nr 2, the heap had it on top: "
            "before the best of 2 others, Mul (2)."
        ),
        (
            "Why this one: In PyTorch's order it would have been Mul (2): another "
            "thread pushed that too late, or another schedule is in force."
        ),
    ]


def test_of_a_long_queue_and_many_waiting_nodes_the_first_are_told(story):
    nodes = [story.node(number, name="Mul") for number in range(MOST + 5)]
    story.begin(0, nodes, at=0)
    for at, node in enumerate(nodes):
        story.push(0, node, at=10 + at)
    for at, node in enumerate(nodes):
        story.give(0, node, nodes[0], at=50 + at, remaining=1)
    replay = replay_of(story)
    told = told_at(replay, "gradient_buffered", MOST + 4)

    assert told[3].endswith("Mul (5) seq 5; and 5 more")
    assert told[-1] == "  5 more nodes wait"


def test_of_nodes_inside_of_each_other_the_innermost_are_told(story):
    nodes = [story.node(number, name="Mul") for number in range(10)]
    story.begin(0, nodes, at=0)
    for at, node in enumerate(nodes):
        story.start(0, node, at=10 + at)
    (*_, thread) = told_at(replay_of(story), "node_started", 9)

    assert thread.startswith(
        "  Thread 0 MainThread runs 2 other nodes, inside of which it runs #2 Mul "
        "(2) of pass 0, for 7 ns, inside of which it runs #3 Mul (3)"
    )
    assert thread.endswith("runs #9 Mul (9) of pass 0, for 0 ns")


def test_it_prints_the_same_each_time(busy):
    assert printed(busy) == printed(busy)


@pytest.mark.parametrize("name", HOSTILE)
def test_no_name_acts_instead_of_being_shown(name, story):
    name = name.encode(errors="replace").decode()  # no file holds half a character
    leaf = story.node(1, name=name)
    root = story.node(2, leaf, name=name)
    story.begin(0, [root, leaf], at=0)
    story.push(0, root, at=10, queue=3)
    story.recorder.queue_defined(3, name, 0)
    story.give(0, leaf, root, at=20, remaining=1)
    story.fail(0, root, name, at=30)
    text = printed(replay_of(story))

    assert all(line.isprintable() for line in text.split("\n"))


def test_losses_of_a_trace_are_reported_first(story):
    node = story.node(1)
    story.begin(0, [node], at=0)
    story.push(0, node, at=10)
    data = story.contents()
    cut = Replay(parse_trace(data[:-8]), Filter(tasks=(0,)))

    (missing,) = ReplayWords(cut).missing()
    assert missing.startswith("The trace is incomplete: its end is cut off")
    assert printed(cut).splitlines()[1] == missing
