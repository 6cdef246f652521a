"""Stretches of runs that are gone through at once, against one run at a time."""

import random
import threading

import pytest

from gradviz.pytorch.nodes.needs import graph_towards, number_topologically
from gradviz.pytorch.nodes.seen_node import SeenNode
from gradviz.pytorch.reconstruction import pass_events
from gradviz.pytorch.reconstruction.session import SeenRun
from gradviz.pytorch.reconstruction.watched_pass import WatchedPass
from gradviz.ready_order import PyTorchSchedule, in_order
from gradviz.trace.probe import Probe
from tests.pytorch.conftest import leaf, node

CALLED, STEP = 1_000, 100

#: The operating system's number of no thread that there is.
ELSEWHERE = -7

#: Columns of a row of what was popped and pushed, and which of them is the queue.
POPPED, PUSHED, QUEUE = 5, 10, 3


def random_graph(rng: random.Random) -> SeenNode:
    """A root over nodes that share some of what is below them."""
    below = [leaf() for _ in range(3)]
    for number in range(rng.randrange(4, 30)):
        device = "cuda:0" if rng.random() < 0.05 else "cpu"
        edges = rng.sample(below[-6:], rng.randrange(1, 3))
        below.append(node(rng.choice(("Sin", "Mul")), number, *edges, device=device))
    return node("Sum", 100, *below[3:])


def pass_from(root: SeenNode, num_runs: int) -> WatchedPass:
    one = WatchedPass(1, None, Probe(), threading.get_native_id(), "main")
    one.called_ns, one.returned_ns = CALLED, CALLED + STEP * (num_runs + 2)
    one.take(graph_towards(root, [], accumulate=True), accumulates=True)
    return one


def runs_in_order(root: SeenNode) -> list[SeenRun]:
    graph = graph_towards(root, [], accumulate=True)
    order = in_order(
        root,
        dict(graph.dependencies),
        lambda one: [edge.node for edge in one.next_edges if edge.node],
        lambda one: one.sequence_nr,
        PyTorchSchedule(),
    )
    thread = threading.get_native_id()
    begins = range(CALLED + STEP, 1_000_000, STEP)
    return [
        (begin, begin + STEP // 2, one.raw_name, one.seen_nr, thread, 1)
        for begin, one in zip(begins, order, strict=False)
    ]


def disturbed(rng: random.Random, runs: list[SeenRun]) -> list[SeenRun]:
    """Runs as a clock, an engine or a profiler might have them that is off."""
    runs = list(runs)
    at = rng.randrange(len(runs))
    begin, end, name, number, thread, made_by = runs[at]
    match rng.randrange(7):
        case 0:  # it is not seen
            del runs[at]
        case 1:  # it ends with the next one's begin, or after it
            end += rng.choice((STEP // 2, STEP))
            runs[at] = begin, end, name, number, thread, made_by
        case 2:  # it has no duration
            runs[at] = begin, begin, name, number, thread, made_by
        case 3:  # another thread ran it
            runs[at] = begin, end, name, number, ELSEWHERE, made_by
        case 4:  # it is of no node
            runs[at] = begin, end, "Unknown", number, thread, made_by
        case 5:  # another thread made its node
            runs[at] = begin, end, name, number, thread, 2
        case 6:  # it ran when another one's turn was
            other = rng.randrange(len(runs))
            names = [(one[2], one[3]) for one in runs]
            names[at], names[other] = names[other], names[at]
            runs = [
                (*one[:2], *called, *one[4:])
                for one, called in zip(runs, names, strict=True)
            ]
    return sorted(runs)


def gone_through(root: SeenNode, runs: list[SeenRun], error: str) -> object:
    """Return the findings, without the numbers of queues, which are new each time."""
    one = pass_from(root, len(runs))
    one.error, one.fails_in_node = error, bool(error)
    (replay,) = pass_events.Inference().go_through([one], runs, 0)
    rows = {}
    for thread, of_thread in replay.rows.items():
        del of_thread.popped[QUEUE::POPPED], of_thread.pushed[QUEUE::PUSHED]
        rows[thread.number] = dict(of_thread.by_kind())
    misplaced = [(one.id, one.made_by) for one in replay.misplaced]
    for each in one.graph.nodes:
        each.made_by = 0
    return rows, misplaced, replay.outstanding, {each.id for each in replay.ran}


@pytest.mark.parametrize("seed", range(200))
def test_a_stretch_is_gone_through_as_one_run_at_a_time(seed, monkeypatch):
    rng = random.Random(seed)
    root = random_graph(rng)
    nodes = graph_towards(root, [], accumulate=True).nodes
    number_topologically(nodes, in_order=False)
    runs = runs_in_order(root)
    for _ in range(rng.randrange(4)):
        runs = disturbed(rng, runs)
    error = rng.choice(("", "", "ValueError"))

    at_once = gone_through(root, runs, error)
    monkeypatch.setattr(pass_events, "plain_pass", lambda *_: None)
    assert at_once == gone_through(root, runs, error)
