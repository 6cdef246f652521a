"""Places where nodes were made, by the threads that made them."""

import threading
from collections.abc import Callable

import pytest

from gradviz.pytorch.nodes import places as module
from gradviz.pytorch.nodes.places import (
    NOBODYS,
    ForwardPlace,
    ForwardPlaces,
    ThreadPlaces,
)
from gradviz.pytorch.torch_names import _thread_number
from gradviz.trace.probe import Probe
from tests.pytorch.conftest import Seen, graph, leaf, node

NET, OTHER = ForwardPlace("Net", "model.py:7"), ForwardPlace("Other", "model.py:9")


def in_thread(work: Callable[[], object]) -> None:
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


@pytest.fixture
def places() -> ThreadPlaces:
    """Those of threads that are numbered by the operating system."""
    return ThreadPlaces(threading.get_native_id)


def runs(places: ThreadPlaces, place: ForwardPlace, *numbers: int) -> int:
    """The calling thread makes nodes from one number on, up to another."""
    own = places.of_caller()
    own.move_to(place, numbers[0])
    own.move_to(ForwardPlace("", ""), numbers[1])
    return own.thread


def placed(places: ThreadPlaces, sequence_nr: int, made_by: int) -> tuple[str, str]:
    one = node("Sin", sequence_nr)
    one.made_by = made_by
    places.place_anew([one], [])
    return one.module_path, one.line


def test_the_only_thread_is_supposed_to_have_made_all_nodes(places):
    runs(places, NET, 3, 5)

    own = places.supposed()
    assert [own.of(number).module for number in (2, 3, 4, 5)] == ["", "Net", "Net", ""]


def test_of_several_threads_none_is_supposed_to(places):
    runs(places, NET, 3, 5)
    in_thread(lambda: runs(places, OTHER, 3, 5))

    assert places.supposed() is NOBODYS


def test_a_node_has_the_place_of_the_thread_that_made_it(places):
    found = []
    own = runs(places, NET, 3, 5)
    in_thread(lambda: found.append(runs(places, OTHER, 3, 5)))

    assert placed(places, 3, own) == NET
    assert placed(places, 3, found[0]) == OTHER
    assert placed(places, 3, -7) == ("", "")


def test_a_line_from_anomaly_mode_stays(places):
    one = node("Sin", 3)
    one.line, one.has_own_line = "program.py:1", True
    one.made_by = runs(places, NET, 3, 5)

    assert places.place_anew([one], []) == [one]
    assert (one.module_path, one.line) == ("Net", "program.py:1")


def test_nodes_of_unknown_threads_lose_their_place_with_the_first_that_is_foreign(
    places,
):
    own = runs(places, NET, 3, 5)
    known, unknown, foreign = (node("Sin", number) for number in (3, 4, 4))
    for one in (known, unknown, foreign):
        module.place(one, places.supposed())
    known.made_by, foreign.made_by = own, -7

    told = places.place_anew([foreign], [known, unknown, foreign])
    assert set(told) == {unknown, foreign}
    assert [one.module_path for one in (known, unknown, foreign)] == ["Net", "", ""]
    assert places.supposed() is NOBODYS


def test_steps_of_a_thread_between_two_recordings_have_no_place(places):
    own = places.of_caller()
    own.move_to(OTHER, 1)
    own.move_to(NET, 3)  # and it is there when the recording ends
    places.begin()
    assert [own.of(number).module for number in (2, 3, 9)] == ["Other", "", ""]

    assert places.of_caller() is own
    own.move_to(OTHER, 9)
    assert [own.of(number).module for number in (2, 3, 9)] == ["Other", "", "Other"]


def test_threads_that_ended_first_are_forgotten_first(places, monkeypatch):
    monkeypatch.setattr(module, "_MAX_ENDED", 10)
    monkeypatch.setattr(module, "_LEAST_COUNTED", 4)
    numbers = iter(range(1, 100))
    places = ThreadPlaces(lambda: next(numbers))
    own = runs(places, NET, 3, 5)
    for _ in range(5):
        in_thread(lambda: runs(places, OTHER, 3, 5))
    in_thread(places.of_caller)

    modules = [placed(places, 3, number)[0] for number in range(1, 7)]
    assert modules == ["Net", "", "", "", "Other", "Other"]
    assert own == 1


def test_of_many_changes_the_latest_are_remembered(monkeypatch):
    monkeypatch.setattr(module, "_MAX_CHANGES", 4)
    own = ForwardPlaces(1)
    for number in range(9):
        own.move_to(ForwardPlace(f"Net.{number}", ""), number)

    assert [own.of(number).module for number in (3, 7, 8)] == ["", "Net.7", "Net.8"]


def test_changes_and_the_places_that_they_share_are_bounded(monkeypatch):
    monkeypatch.setattr(module, "_MAX_SHARED", 2)
    own = ForwardPlaces(1)
    for number in range(0, 100, 2):
        own.move_to(ForwardPlace("Net", "model.py:7"), number)
        own.move_to(ForwardPlace("Other", "model.py:9"), number + 1)

    begins, kept = own._changes
    assert (len(begins), len(kept), begins.itemsize) == (100, 100, 8)
    assert len(own._shared) <= 2
    assert own.of(50).module == "Net"


def test_a_few_places_take_one_object_each():
    own = ForwardPlaces(1)
    for number in range(0, 100, 2):
        own.move_to(ForwardPlace("Net", "model.py:7"), number)
        own.move_to(ForwardPlace("", ""), number + 1)

    assert len({id(one) for one in own._changes[1]}) == 2


def test_a_pytorch_that_does_not_number_threads_is_watched_all_the_same():
    number, is_in_nodes = _thread_number(threading)

    assert number() == threading.get_ident()
    assert not is_in_nodes


def test_the_thread_that_made_a_node_is_learned_when_the_node_runs(pytorch):
    end = leaf()
    inner = node("Sin", 5, end)
    root = node("Cos", 6, inner)
    root.placed_by = 3
    pytorch.begin(graph(root), 100, 200)
    replays = pytorch.saw(
        Seen(root, 110, 120, made_by=3),
        Seen(inner, 130, 140, made_by=4),
        Seen(end, 150, 160),
    )

    assert [one.made_by for one in (root, inner, end)] == [3, 4, 0]
    assert [one.misplaced for one in replays] == [[inner]]


def test_of_a_node_that_may_be_another_one_it_is_not_learned(pytorch):
    """Two threads made nodes of one name with one number, and neither is expected."""
    left, right = node("Sin", 5, leaf()), node("Sin", 5, leaf())
    root = node("Add", 6, left, right)
    pytorch.begin(graph(root), 100, 200, listener=Probe())
    pytorch.saw(Seen(left, 110, 120, made_by=4), Seen(root, 130, 140, made_by=3))

    assert [one.made_by for one in (left, right)] == [0, 0]
