import pytest

from gradviz.distributed.messaging.ids import MAX_WORKER, Ids, worker_of


def test_ids_begin_with_their_worker_and_then_count():
    ids = Ids(3)

    assert [ids.next(), ids.next()] == [3 << 48, (3 << 48) + 1]
    assert worker_of(ids.next()) == 3


def test_no_two_workers_give_out_the_same_id():
    assert Ids(0).max + 1 == Ids(1).next()
    assert Ids(MAX_WORKER).max == 2**64 - 1


def test_a_worker_that_has_given_out_all_ids_says_so():
    ids = Ids(1, first=2**48 - 1)

    assert ids.next() == ids.max
    with pytest.raises(RuntimeError, match="used all the ids"):
        ids.next()


@pytest.mark.parametrize("worker", [-1, 2**16])
def test_a_worker_for_whom_ids_have_no_room_cannot_be(worker):
    with pytest.raises(ValueError, match="0 to 65535"):
        Ids(worker)
