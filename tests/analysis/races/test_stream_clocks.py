"""The order itself; what it is good for is in test_happens_before.py."""

import pytest

from gradviz.analysis.races.stream_clocks import StreamClocks

A, B, C = "sim:0/0", "sim:0/1", "sim:1/0"


@pytest.fixture
def clocks():
    return StreamClocks()


def test_work_is_after_earlier_work_of_its_stream(clocks):
    first, second = clocks.launch(A), clocks.launch(A)

    assert second.is_after(first)
    assert (first.number, second.number) == (1, 2)


def test_work_of_two_streams_is_in_no_order(clocks):
    first, second = clocks.launch(A), clocks.launch(B)

    assert not second.is_after(first)


def test_a_wait_says_whether_it_changed_anything(clocks):
    clocks.launch(A)
    clocks.record(A, 1)

    assert clocks.wait(B, 1)
    assert not clocks.wait(B, 1)
    assert not clocks.wait(A, 1)


def test_an_event_is_a_point_of_its_stream(clocks):
    clocks.launch(A)
    clocks.record(A, 1)
    clocks.launch(A)

    marked = clocks.marked_by(1)
    assert (marked.stream, marked.number) == (A, 1)
    assert clocks.marked_by(2) is None


def test_a_wait_can_be_put_in_afterwards(clocks):
    first, second = clocks.launch(A), clocks.launch(B)

    second = clocks.wait_for_now(second, A)

    assert second.is_after(first)
    assert clocks.launch(B).is_after(first)
    assert not clocks.launch(C).is_after(first)


def test_work_that_the_host_waited_for_comes_before_all_later_launches(clocks):
    first = clocks.launch(A)
    clocks.record(A, 1)
    clocks.wait(B, 1)
    clocks.synchronize_stream(B)
    second = clocks.launch(A)

    third = clocks.launch(C)
    assert third.is_after(first)
    assert not third.is_after(second)


def test_an_event_recorded_again_under_another_id_leaves_the_first_as_it_was(clocks):
    clocks.launch(A)
    clocks.record(A, 1)
    late = clocks.launch(A)
    clocks.record(A, 2)
    clocks.wait(B, 1)

    assert not clocks.launch(B).is_after(late)
