"""Reports of hand-overs that may be left out, by the thread that makes them."""

import threading

import pytest

from gradviz.trace import probe
from gradviz.trace.probe import Probe
from gradviz.trace.reporting import thread_knowledge
from gradviz.trace.reporting.thread_knowledge import MeetingPlace


class Heard(Probe):
    """Keeps what was handed over and taken over."""

    def __init__(self):
        self.reports = []

    def handed_over(self, place):
        self.reports.append(("left", place))

    def taken_over(self, place):
        self.reports.append(("taken", place))


@pytest.fixture
def heard():
    listener = Heard()
    probe.install(listener)
    try:
        yield listener.reports
    finally:
        probe.uninstall(listener)


def in_thread(call):
    thread = threading.Thread(target=call)
    thread.start()
    thread.join()


def known(call):
    def run():
        thread_knowledge.know_thread()
        call()

    return run


def test_a_place_that_a_thread_leaves_twice_is_reported_once(heard):
    place = MeetingPlace()
    in_thread(known(lambda: (place.leave(), place.leave())))
    assert heard == [("left", place.key)]


def test_it_is_told_again_once_the_thread_has_learned_something(heard):
    place = MeetingPlace()
    in_thread(known(lambda: (place.leave(), thread_knowledge.learned(), place.leave())))
    assert heard == [("left", place.key)] * 2


def test_a_place_that_another_thread_left_is_taken_once(heard):
    place = MeetingPlace()
    in_thread(known(place.leave))
    in_thread(known(lambda: (place.take(), place.take())))
    assert heard == [("left", place.key), ("taken", place.key)]


def test_a_thread_that_was_never_heard_of_tells_everything(heard):
    place = MeetingPlace()
    in_thread(lambda: (place.leave(), place.leave()))
    assert heard == [("left", place.key)] * 2


def test_a_thread_is_not_taken_for_one_that_has_ended(heard):
    """The system gives the number of a thread that has ended to another one."""
    place = MeetingPlace()
    numbers = []
    for _ in range(2):
        in_thread(known(lambda: (place.leave(), numbers.append(threading.get_ident()))))
        assert place.left_version.ident == 0
        in_thread(lambda: (place.leave(), numbers.append(threading.get_ident())))
    assert heard == [("left", place.key)] * 4
    if len({*numbers}) == 4:
        pytest.skip("the system gave a new number to each thread")


def test_the_version_of_a_running_thread_holds_its_number(heard):
    place = MeetingPlace()
    numbers = []
    in_thread(known(lambda: (place.leave(), numbers.append(place.left_version.ident))))
    assert numbers != [0]
    assert threading.get_ident() not in numbers
