"""Output of a replay, against the bare list of events of the same passes.

The list is gone through event by event with no more than lists and dictionaries, and
the printed lines are read back.
"""

import io
import re
from collections import defaultdict

import msgspec
import pytest
from rich.console import Console

from gradviz.analysis.moments.event_replay import NothingToReplayError, Replay
from gradviz.analysis.moments.story import Filter
from gradviz.render.replay.plain import MOST, print_replay
from gradviz.trace.reading.reader import load_trace
from tests.analysis.random_passes import random_trace

SEEDS = [
    *range(5),
    *(pytest.param(seed, marks=pytest.mark.stress) for seed in range(5, 100)),
]

QUEUE = re.compile(r"  Queue (\d+)[^,]*, ([\d,]+) tasks?, the next first: (.*)")
TASK = re.compile(r"(?:#\d+ )?\S+ \((\d+)\) seq (max|\d+)(?:, depth (\d+))?")
THREAD = re.compile(r"  Thread (\d+) .* (?:runs|sleeps|is between nodes)")
RUNS = re.compile(r"runs (?:#\d+ )?\S+ \((\d+)\) of pass (\d+)")
WAITS = re.compile(r"  (?:#\d+ )?\S+ \((\d+)\) waits for (\d+) of (\d+) .*? from (.*)")


@pytest.fixture(params=SEEDS)
def trace(request, tmp_path):
    """Of one to four devices; every third fails, every fifth is cut."""
    seed, path = request.param, tmp_path / "random.gvt"
    options = {"size": 20, "fails": seed % 3 == 2, "path": str(path)}
    trace = random_trace(seed, seed % 4 + 1, **options)
    if seed % 5 == 4:
        contents = path.read_bytes()
        path.write_bytes(contents[: len(contents) * 3 // 4])
        trace = load_trace(path)
    return trace


def printed(trace):
    """The lines of each event."""
    replay = Replay(trace, Filter(tasks=trace.tasks))
    file = io.StringIO()
    print_replay(replay, range(len(replay)), Console(file=file, width=80))
    _, *events = re.split(r"\n(?=Event )", file.getvalue())
    return [one.splitlines() for one in events]


#: Goes before every node.
WAKE_UP = 1_000, 0


def rank(push):
    if push["node"] < 0:
        return WAKE_UP
    return push["reentrant_depth"], push["sequence_nr"]


def told_rank(words):
    """The node, and what it is compared by, of a task in a printed queue."""
    if words == "a wake-up":
        return -1, WAKE_UP
    node, number, depth = TASK.fullmatch(words).groups()
    return int(node), (int(depth or 0), 2**64 - 1 if number == "max" else int(number))


class Walk:
    """Waiting tasks, and running and waiting nodes, after the events so far."""

    def __init__(self, events):
        self.queues, self.running = defaultdict(list), defaultdict(list)
        self.waiting, self.given = {}, defaultdict(list)
        over = {one["task"] for one in events if one["kind"] in ENDS}
        self.last = {one["task"]: one["seq"] for one in events if one["task"] in over}

    def step(self, event):
        kind, key = event["kind"], (event["task"], event["node"])
        for task in [t for t, seq in self.last.items() if seq < event["seq"]]:
            del self.last[task]
            for some in (*self.queues.values(), *self.running.values()):
                some[:] = [one for one in some if one["task"] != task]
            self.waiting = {k: v for k, v in self.waiting.items() if k[0] != task}
        mine = self.running[event["thread"]]
        if kind == "task_pushed":
            self.queues[event["queue"]].append(event)
        elif kind == "task_popped":
            here = self.queues[event["queue"]]
            mine_here = [one for one in here if (one["task"], one["node"]) == key]
            if mine_here:  # of two wake-ups of a pass one leaves
                here.remove(mine_here[0])
        elif kind == "gradient_buffered":
            self.waiting[key] = event["remaining"]
            self.given[key].append(event["producer"])
        elif kind == "node_started":
            mine.append(event)
        if kind in {"node_started", "node_skipped"}:
            self.waiting.pop(key, None)
        if kind in {"node_completed", "node_failed"}:
            mine[:] = [one for one in mine if (one["task"], one["node"]) != key]


ENDS = {"task_completed", "task_failed"}


def test_each_line_says_what_the_events_until_then_say(trace):
    if not trace.tasks:  # a file that was short, and is cut
        with pytest.raises(NothingToReplayError):
            printed(trace)
        return
    events = [msgspec.to_builtins(one) for one in trace.events()]
    walk = Walk(events)
    told = iter(printed(trace))
    for event in events:
        before = {queue: list(tasks) for queue, tasks in walk.queues.items()}
        walk.step(event)
        if event["task"] not in trace.tasks:  # its start was lost, or it has none
            continue
        lines = next(told)
        check_queues(walk, lines)
        check_threads(walk, lines)
        check_countdowns(walk, lines)
        if event["kind"] == "task_popped":
            check_why(event, before.get(event["queue"], []), lines)
    assert next(told, None) is None


def check_queues(walk, lines):
    found = {int(one[1]): one for line in lines if (one := QUEUE.match(line))}
    lying = {queue: tasks for queue, tasks in walk.queues.items() if tasks}
    assert found.keys() == lying.keys()
    for queue, tasks in lying.items():
        assert int(found[queue][2]) == len(tasks)
        words = found[queue][3].partition("; and ")[0].split("; ")
        shown = [told_rank(one) for one in words]
        ranks = sorted(map(rank, tasks), reverse=True)[:MOST]
        assert ranks == [one for _, one in shown]
        assert {node for node, _ in shown} <= {one["node"] for one in tasks}


def check_threads(walk, lines):
    found = {
        int(one[1]): [(int(task), int(node)) for node, task in RUNS.findall(line)]
        for line in lines
        if (one := THREAD.match(line))
    }
    assert {thread: runs for thread, runs in found.items() if runs} == {
        thread: [(one["task"], one["node"]) for one in runs]
        for thread, runs in walk.running.items()
        if runs
    }


def check_countdowns(walk, lines):
    waiting = {key: left for key, left in walk.waiting.items() if left}
    found = [one for line in lines if (one := WAITS.match(line))]
    assert len(found) == min(len(waiting), MOST)
    by_node = {node: (task, left) for (task, node), left in waiting.items()}
    for one in found:
        task, left = by_node[int(one[1])]
        given = walk.given[task, int(one[1])]
        assert (int(one[2]), int(one[3])) == (left, left + len(given))
        by = [int(node) for node in re.findall(r"\((\d+)\)", one[4])]
        assert by == [producer for producer in dict.fromkeys(given) if producer >= 0]


def check_why(event, before, lines):
    why = [line for line in lines if line.startswith("  Why this one: ")]
    key = event["task"], event["node"]
    mine = [one for one in before if (one["task"], one["node"]) == key][:1]
    others = [one for one in before if one not in mine]
    if not mine:  # its push was lost
        assert why == []
    elif not others:
        assert "Nothing else was in the queue" in why[0]
    else:
        (depth, number), best = rank(mine[0]), max(map(rank, others))
        words = (
            "Wake-ups are equal in priority"
            if (depth, number) == best == WAKE_UP
            else "A wake-up goes before"
            if (depth, number) == WAKE_UP
            else "nested deeper"
            if depth > best[0]
            else "another schedule is in force"
            if (depth, number) < best
            else "At equal priority"
            if number == best[1]
            else "sequence_nr"
        )
        assert words in why[0]
