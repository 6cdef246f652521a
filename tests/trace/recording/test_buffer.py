import gc
import threading

import pytest

from gradviz.trace.events import KINDS, NodeStarted, TaskPushed
from gradviz.trace.format.row_layouts import LAYOUTS
from gradviz.trace.node_reports import NodeReports
from gradviz.trace.recording.buffer import WHOLE, Buffers


@pytest.fixture
def buffers():
    return Buffers(
        local=threading.local,
        thread_name=lambda: "me",
        reports=lambda *_: NodeReports(),
    )


def on_a_thread(call):
    thread = threading.Thread(target=call)
    thread.start()
    thread.join()


def test_rows_are_taken_once(buffers):
    buffers.local.rows[NodeStarted].extend((10, 0, 1))
    buffers.local.rows[NodeStarted].extend((20, 0, 2))

    ((thread, rows, num_dropped),) = buffers.take()
    ((_, nothing, _),) = buffers.take()

    assert (thread, num_dropped) == (0, 0)
    assert {kind: list(taken) for kind, taken in rows.items()} == {
        NodeStarted: [10, 0, 1, 20, 0, 2]
    }
    assert nothing == {}


@pytest.mark.parametrize("key", sorted(WHOLE))
def test_rows_that_are_kept_whole_are_taken_as_others_are(buffers, key):
    width = LAYOUTS[key].width
    rows = buffers.local.rows[key]
    rows.append(tuple(range(width)))
    rows.append(tuple(range(width, 2 * width)))

    assert buffers.take()[0].rows == {key: list(range(2 * width))}
    assert buffers.take()[0].rows == {}


def test_no_row_of_three_is_kept_whole():
    """See Note [Whole rows]."""
    assert all(LAYOUTS[key].width > 3 for key in WHOLE)


def test_a_list_fetched_before_a_take_is_still_the_one_that_is_read(buffers):
    rows = buffers.local.rows[NodeStarted]
    buffers.take()
    rows.extend((10, 0, 1))

    assert list(buffers.take()[0].rows[NodeStarted]) == [10, 0, 1]


def test_each_thread_has_its_own_rows(buffers):
    buffers.local.rows[NodeStarted].extend((10, 0, 1))
    on_a_thread(lambda: buffers.local.rows[NodeStarted].extend((20, 0, 2)))

    taken = buffers.take()
    assert [one.thread for one in taken] == [0, 1]
    assert [list(one.rows[NodeStarted]) for one in taken] == [[10, 0, 1], [20, 0, 2]]


def test_a_new_thread_is_announced_once(buffers):
    buffers.local.rows[NodeStarted].extend((10, 0, 1))

    assert buffers.take_new_threads() == [(0, "me")]
    assert buffers.take_new_threads() == []


def test_the_buffer_of_a_thread_that_ended_goes_after_it_was_taken(buffers):
    on_a_thread(lambda: buffers.local.rows[NodeStarted].extend((20, 0, 2)))
    gc.collect()

    assert [one.thread for one in buffers.take()] == [0, 1]
    assert [one.thread for one in buffers.take()] == [0]


def test_dropped_rows_are_counted_until_the_writer_has_come(buffers):
    mine = buffers.local
    mine.rows[NodeStarted].extend((10, 0, 1))
    mine.buffer.drop()
    mine.rows[NodeStarted].extend((20, 0, 2))
    mine.rows[TaskPushed].extend((30, 0, 2, 0, 0, 0, 0, 0, 0, 0))
    (first,) = buffers.take()
    mine.rows[NodeStarted].extend((40, 0, 3))
    (second,) = buffers.take()

    assert (list(first.rows[NodeStarted]), first.num_dropped) == ([10, 0, 1], 2)
    assert (list(second.rows[NodeStarted]), second.num_dropped) == ([40, 0, 3], 0)


def test_a_row_that_was_under_way_when_dropping_ended_is_counted(buffers):
    mine = buffers.local
    mine.buffer.drop()
    fetched = mine.rows[NodeStarted]
    buffers.take()
    fetched.extend((10, 0, 1))

    assert buffers.take()[0].num_dropped == 1


def test_closed_buffers_keep_what_they_had_and_nothing_else(buffers):
    mine = buffers.local
    mine.rows[NodeStarted].extend((10, 0, 1))
    buffers.close()
    mine.rows[NodeStarted].extend((20, 0, 2))
    (taken,) = buffers.take()
    mine.rows[NodeStarted].extend((30, 0, 3))

    assert (list(taken.rows[NodeStarted]), taken.num_dropped) == ([10, 0, 1], 0)
    assert buffers.take()[0].rows == {}


def test_rows_after_the_end_are_not_lost_rows(buffers):
    """A device's thread may outlive the pass that failed, and its recording."""
    buffers.close()
    on_a_thread(lambda: buffers.local.rows[NodeStarted].extend((20, 0, 2)))

    assert [(one.rows, one.num_dropped) for one in buffers.take()] == [({}, 0)] * 2


def test_a_dropped_row_counts_as_many_events_as_it_stands_for(buffers):
    mine = buffers.local
    mine.buffer.drop()
    mine.rows["node_passed_on"].append((10, *range(12)))

    assert buffers.take()[0].num_dropped == 4


def test_every_kind_has_a_place(buffers):
    assert set(buffers.local.rows) == set(LAYOUTS) >= set(KINDS.values())


def test_taking_while_another_thread_adds_loses_and_doubles_nothing(buffers):
    num_rows = 100_000
    own = []

    def add():
        own.append(buffers.local.buffer)
        rows = buffers.local.rows[NodeStarted]
        for number in range(num_rows):
            rows.extend((number, number, number))

    thread = threading.Thread(target=add)
    thread.start()
    got = []
    while thread.is_alive():
        for one in buffers.take():
            got += one.rows.get(NodeStarted, ())
    for one in buffers.take():
        got += one.rows.get(NodeStarted, ())

    assert got == [number for number in range(num_rows) for _ in range(3)]


class Hurried(list):
    """A list to which something is added right after it was copied."""

    def __init__(self, late):
        super().__init__()
        self._late = [late]

    def __getitem__(self, place):
        taken = super().__getitem__(place)
        while self._late:
            self += self._late.pop()
        return taken


def test_rows_added_while_rows_are_taken_are_taken_the_next_time(buffers):
    buffer = buffers.local.buffer
    buffer._kept[NodeStarted] = rows = Hurried((20, 0, 2))
    rows.extend((10, 0, 1))

    assert buffers.take()[0].rows == {NodeStarted: [10, 0, 1]}
    assert buffers.take()[0].rows == {NodeStarted: [20, 0, 2]}


def test_a_thread_that_is_made_while_threads_are_taken_is_announced_later(buffers):
    buffers._new_threads = Hurried([(1, "other")])
    buffers._new_threads.append((0, "me"))

    assert buffers.take_new_threads() == [(0, "me")]
    assert buffers.take_new_threads() == [(1, "other")]
