"""The contract of a transport, line by line, over each of them."""

import numpy as np
import pytest

from gradviz.distributed.failures import PeerDownError, RemoteError, RpcTimeoutError
from gradviz.distributed.future import Future, completed
from gradviz.distributed.transport.inproc import Network
from gradviz.testing.policy import RandomWalk
from gradviz.testing.scheduler import Scheduler, sleep


class World:
    """Some workers, who answer as a test wants."""

    def __init__(self, scheduler, size=3):
        self.scheduler = scheduler
        self.network = Network(size, scheduler)
        self.transports = self.network.transports
        self.lost = []

    def start(self, rank, handler):
        self.transports[rank].start(
            handler, lambda peer, reason: self.lost.append((rank, peer, reason))
        )

    def run(self, program):
        self.scheduler.run(program=program)
        for transport in self.transports:
            transport.close()


@pytest.fixture(params=range(3))
def world(request):
    with Scheduler(RandomWalk(request.param)) as scheduler:
        yield World(scheduler)


def test_an_answer_comes_from_the_handler_with_its_arrays(world):
    def handler(src, meta, arrays):
        return completed(world.scheduler, ({"from": src, **meta}, [arrays[0] * 2]))

    def program():
        world.start(1, handler)
        asked = world.transports[0].request(1, {"n": 5}, [np.array([1.0, 2.0])])
        meta, arrays = asked.wait()
        assert meta == {"from": 0, "n": 5}
        assert arrays[0].tolist() == [2.0, 4.0]

    world.run(program)


def test_a_worker_may_ask_itself(world):
    def program():
        world.start(
            2, lambda src, _meta, _a: completed(world.scheduler, ({"s": src}, ()))
        )
        assert world.transports[2].request(2, {}).wait()[0] == {"s": 2}

    world.run(program)


def test_what_comes_before_the_start_waits_for_it(world):
    def program():
        asked = world.transports[0].request(1, {"n": 1})
        assert not asked.done()
        world.start(1, lambda _src, meta, _a: completed(world.scheduler, (meta, ())))
        assert asked.wait()[0] == {"n": 1}

    world.run(program)


def test_the_error_of_a_handler_is_that_of_the_answer_wherever_it_comes_from(world):
    late = Future(world.scheduler)

    def handler(_src, meta, _arrays):
        if meta["now"]:
            raise ValueError("no")
        return late

    def program():
        world.start(1, handler)
        with pytest.raises(ValueError, match=r"^no$") as caught:
            world.transports[0].request(1, {"now": True}).wait()
        assert isinstance(caught.value, RemoteError)
        assert (caught.value.node, caught.value.kind) == (1, "ValueError")
        assert "in handler" in caught.value.remote_traceback
        asked = world.transports[0].request(1, {"now": False})
        late.set_error(KeyError("k"))
        with pytest.raises(KeyError):
            asked.wait()

    world.run(program)


def test_what_takes_too_long_is_given_up_and_a_late_answer_is_not_heard(world):
    late = Future(world.scheduler)

    def program():
        world.start(1, lambda *_: late)
        asked = world.transports[0].request(1, {}, timeout=2)
        with pytest.raises(RpcTimeoutError, match="node 1 did not answer within 2 s"):
            asked.wait()
        late.set_result(({}, ()))
        assert isinstance(asked.error, RpcTimeoutError)

    world.run(program)


def test_who_waits_for_a_peer_that_dies_is_told_and_so_is_who_asks_it_then(world):
    def program():
        for rank in range(3):
            world.start(rank, lambda *_: Future(world.scheduler))
        asked = world.transports[0].request(1, {})
        other = world.transports[0].request(2, {})
        world.network.kill(1, "it was killed")
        with pytest.raises(PeerDownError, match="node 1 is down: it was killed"):
            asked.wait()
        with pytest.raises(PeerDownError):
            world.transports[2].request(1, {}).wait()
        assert not other.done()
        assert world.transports[0].alive() == {0: True, 1: False, 2: True}
        assert world.lost == [(0, 1, "it was killed"), (2, 1, "it was killed")]

    world.run(program)


def test_the_first_reason_counts(world):
    assert world.transports[0].peer_is_down(1, "no heartbeat")
    assert not world.transports[0].peer_is_down(1, "end of file")
    with pytest.raises(PeerDownError, match="no heartbeat"):
        world.transports[0].request(1, {}).wait()


def test_a_worker_that_is_closed_waits_for_nobody(world):
    def program():
        world.start(1, lambda *_: Future(world.scheduler))
        asked = world.transports[0].request(1, {})
        world.transports[0].close()
        with pytest.raises(PeerDownError):
            asked.wait()

    world.run(program)


def test_no_thread_is_held_while_an_answer_is_awaited(world):
    def program():
        world.start(1, lambda *_: Future(world.scheduler))
        for _ in range(200):
            world.transports[0].request(1, {})
        assert len(world.scheduler.fibers.alive) == 1

    world.run(program)


def test_there_is_no_worker_beyond_the_last(world):
    with pytest.raises(ValueError, match="no worker has rank 3: there are 3"):
        world.transports[0].request(3, {})


def test_received_arrays_cannot_be_written_to_by_reference(world):
    def handler(_src, _meta, arrays):
        with pytest.raises(ValueError, match="read-only"):
            arrays[0][0] = 5
        return completed(world.scheduler, ({}, arrays))

    def program():
        world.start(1, handler)
        array = np.zeros(2)
        _, (answer,) = world.transports[0].request(1, {}, [array]).wait()
        assert not answer.flags.writeable
        assert array.flags.writeable

    world.run(program)


def test_a_timer_ends_when_nothing_is_left_to_wait_for(world):
    def program():
        world.start(1, lambda _s, meta, _a: completed(world.scheduler, (meta, ())))
        world.transports[0].request(1, {}, timeout=60).wait()
        sleep(1)
        world.transports[0].close()
        sleep(1)
        assert len(world.scheduler.fibers.alive) == 1

    world.run(program)
