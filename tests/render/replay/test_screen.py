"""The screen of a replay as lines of text, on terminals of many sizes."""

import re
from pathlib import Path

import pytest
from rich.cells import cell_len

from gradviz.analysis.moments.event_replay import Replay
from gradviz.analysis.moments.story import Filter
from gradviz.render.replay.panel_lines import shares
from gradviz.render.replay.player import Player
from gradviz.render.replay.screen import screen
from gradviz.render.replay.words import ReplayWords
from gradviz.trace.reading.reader import load_trace, parse_trace
from tests.render.conftest import HOSTILE
from tests.render.replay.conftest import replay_of

SIZES = [(80, 24), (120, 40), (200, 60), (60, 20), (40, 10), (20, 24), (80, 5), (1, 1)]


def drawn(player, width=80, height=24):
    lines = screen(player, ReplayWords(player.replay), width, height)
    return [line.plain.rstrip() for line in lines]


def at(replay, kind, number=0):
    return Player(replay, int(replay.of_kind(kind)[number]))


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_it_is_as_large_as_the_terminal_at_every_event(busy, width, height):
    player, words = Player(busy), ReplayWords(busy)
    for place in range(len(busy)):
        player.go(place)
        lines = screen(player, words, width, height)
        assert [line.cell_len for line in lines] == [width] * height
        assert not any("\n" in line.plain for line in lines)


def test_a_terminal_without_any_room_shows_nothing(busy):
    assert screen(Player(busy), ReplayWords(busy), 0, 0) == []


@pytest.mark.parametrize(("width", "height"), SIZES[:4])
def test_queues_workers_and_countdowns_are_told_at_once(busy, width, height):
    text = "\n".join(drawn(at(busy, "gradient_buffered"), width, height))

    tasks = [text.index(one) for one in ("a wake-up", "#1 Exp", "#2 AccumulateGrad")]
    assert tasks == sorted(tasks)
    assert "Queues: 4 tasks" in text
    assert "0 MainThread: #0 Mul" in text
    assert "Countdowns: 1 node waiting" in text
    assert "●○" in text
    assert "event 10/21  0.000030 ms" in text


def test_a_pop_says_why(busy):
    text = " ".join(" ".join(drawn(at(busy, "task_popped", 2))).split())

    assert "#1 Exp (4) left queue 1" in text
    assert "Why: Its pass is nested deeper, at depth 1, than that of" in text


def test_a_terminal_of_twenty_columns_says_what_happened(busy):
    lines = drawn(at(busy, "task_popped", 2), 20, 12)

    assert lines[0].startswith("13/21")
    assert "#1 Exp (4) left queue 1" in " ".join(" ".join(lines).split())
    assert lines[-1] == "? keys, q quit"


def test_no_more_is_shown_of_a_long_queue_than_there_is_room_for(story):
    nodes = [story.node(number, name="Mul") for number in range(1, 501)]
    story.begin(0, nodes, at=0)
    for at_, node in enumerate(nodes):
        story.push(0, node, at=10 + at_)
        story.give(0, node, node, at=10_000 + at_, remaining=1)
    replay = replay_of(story)
    lines = drawn(Player(replay, len(replay)), 80, 24)
    (head,) = (n for n, line in enumerate(lines) if line.startswith("─ Queues: 500"))
    queue = [line[:39] for line in lines[head + 1 : head + 9]]
    assert queue[0].startswith("queue 1 queue 1")
    assert queue[0].endswith("500 tasks")
    tasks = [line for line in queue if "Mul" in line]
    assert queue[len(tasks) + 1].split() == ["and", f"{500 - len(tasks)}", "more"]


def test_a_long_queue_is_scrolled_as_far_as_it_goes(story):
    nodes = [story.node(number, name="Mul") for number in range(1, 31)]
    story.begin(0, nodes, at=0)
    for at_, node in enumerate(nodes):
        story.push(0, node, at=10 + at_)
        story.give(0, node, node, at=10_000 + at_, remaining=1)
    replay = replay_of(story)
    player = Player(replay, len(replay))

    def seen():
        lines = [line[:39] for line in drawn(player)]
        rows = [int(line[:4]) for line in lines if re.match(r" *[0-9]+  Mul \(", line)]
        more = [line.split() for line in lines if line.strip().startswith("and ")]
        return rows, more[0] if more else None

    everything = set()
    for first in range(0, 40, 5):
        rows, more = seen()
        everything.update(rows)
        assert rows == list(range(rows[0], rows[0] + len(rows)))
        assert rows[0] == first or rows[-1] == 29
        left = 29 - rows[-1]
        assert more == (["and", str(left), "more"] if left else None)
        player.scroll(5)
    assert everything == set(range(30))
    player.scroll(-1_000)
    assert seen()[0][0] == 0


@pytest.mark.parametrize("height", [24, 40, 18])
def test_every_neighbor_can_be_pointed_at_and_is_seen_then(height, story):
    leaves = [story.node(number, name=f"Leaf{number}") for number in range(1, 21)]
    root = story.node(30, *leaves, name="Root")
    story.begin(0, [root, *leaves], at=0)
    story.push(0, root, at=5)
    for at_, leaf in enumerate(leaves):
        story.give(0, leaf, root, at=10 + at_, remaining=0)
    player = Player(replay_of(story))
    player.choose(0, root.id)

    for leaf in leaves:
        player.point(1)
        assert f"▸Leaf{leaf.id} " in "\n".join(drawn(player, 100, height))
    player.enter()
    assert player.selected == (0, 20)
    player.point(-1)
    player.enter()
    assert player.selected == (0, 30)


def test_of_nodes_inside_of_each_other_the_innermost_are_shown(story):
    nodes = [story.node(number, name="Mul") for number in range(10)]
    story.begin(0, nodes, at=0)
    for at_, node in enumerate(nodes):
        story.start(0, node, at=10 + at_)
    replay = replay_of(story)
    lines = drawn(Player(replay, len(replay)), 160, 60)
    workers = [line[53:106].split("│")[0].rstrip() for line in lines]
    workers = [line for line in workers if "Mul" in line or "inside" in line]

    assert workers[0].startswith("0 MainThread: 2 nodes, and inside:")
    assert [line.split()[1] for line in workers[1:9]] == [
        f"#{number}" for number in range(2, 10)
    ]


def test_room_goes_to_the_smallest_first():
    assert shares([3, 100, 2], 12) == [3, 7, 2]
    assert shares([5, 5], 4) == [2, 2]
    assert shares([1, 1], 9) == [1, 1]
    assert shares([], 9) == []


@pytest.mark.parametrize("name", HOSTILE)
def test_no_name_acts_or_breaks_the_lines(name, story):
    name = name.encode(errors="replace").decode()
    leaf = story.node(1, name=name)
    root = story.node(2, leaf, name=name, device=name)
    story.begin(0, [root, leaf], at=0)
    story.recorder.queue_defined(3, name, 0)
    story.push(0, root, at=10, queue=3)
    story.give(0, leaf, root, at=20, remaining=1)
    story.on_thread(name, lambda: story.start(0, root, at=25))
    story.fail(0, root, name, at=30)
    replay = replay_of(story)
    player, words = Player(replay), ReplayWords(replay)
    player.find(name)
    for place in range(4, len(replay)):
        player.go(place)
        for width, height in ((80, 24), (160, 30), (20, 9)):
            lines = screen(player, words, width, height)
            assert all(line.plain.isprintable() for line in lines)
            assert [cell_len(line.plain) for line in lines] == [width] * height


def test_a_node_and_its_neighbors_say_what_has_become_of_them(busy):
    player = at(busy, "node_completed")
    player.choose(0, 1)
    text = "\n".join(drawn(player, 120, 40))

    assert "─ SinBackward0 (1) of pass 0, chosen ─" in text
    assert "waits for 1 more" in text
    assert "gets from #0 Mul (5)  completed" in text
    assert "          #3 Add (2)  in its queue" in text
    assert "gives to nobody" in text


def test_in_one_line_the_first_neighbor_is_told_and_how_many_more(busy):
    player = at(busy, "node_completed")
    player.choose(0, 1)

    (line,) = [line for line in drawn(player, 80, 24) if "gets from" in line]
    assert line.startswith("gets from #0 Mul  completed")
    assert line[:39].endswith("and 1 more")


def test_losses_of_a_trace_appear_on_the_screen(story):
    node = story.node(1)
    story.begin(0, [node], at=0)
    story.push(0, node, at=10)
    cut = parse_trace(story.contents()[:-8])
    player = Player(Replay(cut, Filter(tasks=(0,))))

    assert drawn(player)[2].startswith(" The trace is incomplete: its end is cut off")


@pytest.mark.parametrize("page", ["docs/replay.md"])
def test_the_screen_on_a_page_is_the_one_of_its_trace(page):
    root = Path(__file__).parents[3]
    trace = load_trace(root / "docs" / "traces" / "training.gvt")
    replay = Replay(trace, Filter(tasks=trace.tasks[-1:]))

    shown = "\n".join(drawn(Player(replay, 100)))
    assert f"```\n{shown}\n```" in (root / page).read_text()


def test_a_message_takes_the_place_of_the_keys(busy):
    player = Player(busy)
    assert drawn(player)[-1].startswith("  ?  keys  q  quit")

    player.step(-1)
    assert drawn(player)[-1] == " there is no event before this one"
