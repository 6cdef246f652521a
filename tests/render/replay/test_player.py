"""The position of a player after calls for keys and for time."""

import pytest

import gradviz as gv
from gradviz.analysis.moments.event_replay import Replay
from gradviz.analysis.moments.story import Filter
from gradviz.analysis.nodes.execution_order import execution_order
from gradviz.render.replay.player import SPEEDS, Player


@pytest.fixture
def player(busy):
    return Player(busy)


def test_steps_go_forward_and_back_and_stop_at_both_ends(player):
    last = len(player.replay) - 1
    player.step(3)
    player.step(-1)
    assert (player.place, player.message) == (2, "")

    player.step(-9)
    assert (player.place, player.message) == (0, "there is no event before this one")

    player.step(10_000)
    assert (player.place, player.message) == (last, "there is no event after this one")


def test_time_moves_it_as_fast_as_it_is_told_and_to_the_end(player):
    player.tick(10)
    assert player.place == 0

    player.toggle()
    moved = [player.tick(0.05) for _ in range(8)]
    assert (player.place, sum(moved)) == (2, 2)  # 5 events a second, for 0.4 s

    player.faster(1)
    assert player.speed == 10
    player.tick(60)
    assert (player.place, player.is_playing) == (len(player.replay) - 1, False)

    player.toggle()
    assert (player.place, player.is_playing) == (0, True)


def test_speed_has_a_least_and_a_most(player):
    player.faster(-100)
    assert player.speed == SPEEDS[0]
    player.faster(100)
    assert player.speed == SPEEDS[-1]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        *(("1", 0), ("#3", 2), ("999999999999", 20), ("0", 0)),
        *(("50%", 10), ("100 %", 20), ("300%", 20)),
        *(("0ns", 0), ("11ns", 3), ("29 ns", 8), ("1s", 20)),
    ],
)
def test_a_jump_goes_to_an_event_a_part_or_a_time(text, place, player):
    player.jump(text)

    assert (player.place, player.message) == (place, "")


@pytest.mark.parametrize("text", ["soon", "1e3", "-1", "1.5", "12 bananas", "[red]x"])
def test_an_invalid_jump_is_reported_and_moves_nowhere(text, player):
    player.jump(text)

    assert player.place == 0
    assert player.message.startswith(repr(text))


def test_a_node_is_found_and_what_may_have_been_meant_is_named(player):
    player.find("Exp")
    assert (player.selected, player.place) == ((0, 4), 7)

    player.find("Exq")
    assert player.message == "pass 0 has no node 'Exq'. Did you mean 'Exp'?"
    assert player.selected == (0, 4)


def test_of_several_nodes_the_next_one_is_found_and_again_the_one_after_it():
    x = gv.ones(2, requires_grad=True)
    with gv.record() as recording:
        x.tanh().exp().tanh().tanh().sum().backward()
    trace = recording.trace
    player = Player(Replay(trace, Filter(tasks=trace.tasks)))
    order = execution_order(trace, trace.tasks[0])
    expected = [one.node for one in order if "Tanh" in one.name]

    found = []
    for _ in range(4):
        player.find("Tanh")
        found.append(player.selected[1])
        assert "means 3 nodes" in player.message
        assert player.place in player.replay.about(*player.selected)

    assert found == [*expected, expected[0]]


def test_the_node_of_each_event_is_looked_at_until_one_is_chosen(player):
    player.go(2)
    assert player.selected == (0, 5)
    player.go(5)
    assert player.selected == (0, 2)

    player.choose(0, 1)
    player.step(1)
    assert player.selected == (0, 1)

    player.release()
    assert player.selected == (0, 3)


def test_a_node_that_is_followed_is_stepped_from_event_to_event(player):
    about = player.replay.about(0, 2).tolist()  # Add: its push, pop, start and end
    player.find("Add")
    player.follow()
    places = [player.place]
    for _ in range(4):
        player.step(1)
        places.append(player.place)

    assert places == [*about, about[-1]]
    assert player.message == (
        "there is no event about the node that is followed after this one"
    )
    player.step(-2)
    assert player.place == about[1]

    player.go(0)
    player.step(1)
    assert player.place == about[0]
    player.go(about[1] + 1)
    player.step(-1)
    assert player.place == about[1]

    player.follow()
    player.step(1)
    assert player.place == about[1] + 1


def test_many_steps_on_a_followed_node_never_go_the_other_way(player):
    about = player.replay.about(0, 1).tolist()
    player.find("Sin")
    player.follow()
    player.go(len(player.replay) - 1)
    player.step(5)

    assert about[-1] < len(player.replay) - 1
    assert player.place == len(player.replay) - 1


def test_the_next_event_of_a_kind_and_the_one_before(player):
    pops = player.replay.of_kind("task_popped").tolist()
    found = []
    for _ in pops:
        player.next_of("task_popped", 1)
        found.append(player.place)
    assert found == pops

    player.next_of("task_popped", 1)
    assert player.message == "there is no event of kind task_popped after this one"
    player.next_of("task_popped", -1)
    assert player.place == pops[-2]


def test_neighbors_are_walked_to(player):
    player.choose(0, 5)
    player.walk(1)
    assert player.selected == (0, 2)  # Add, the first that Mul gives to
    player.walk(1)
    assert player.selected == (0, 1)  # Sin
    player.walk(1)
    assert player.message == "nobody gets from this node"
    player.walk(-1)
    player.walk(-1)
    assert player.selected == (0, 5)
    player.walk(-1)
    assert player.message == "nobody gives to this node"
