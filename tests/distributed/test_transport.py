"""The contract of a transport, line by line, over each of them."""

import threading

import numpy as np
import pytest

from gradviz.distributed.messaging.failures import (
    PeerDownError,
    RemoteError,
    RpcTimeoutError,
)
from gradviz.distributed.messaging.future import Future, completed
from gradviz.distributed.transport.inproc import Network
from gradviz.testing.policy import RandomWalk
from gradviz.testing.scheduler import Scheduler, sleep
from tests.distributed.boxes import RAY, RayNetwork
from tests.distributed.sockets import LocalNetwork


class World:
    """Some workers, who answer as a test wants.

    Attributes:
        transports: Theirs, by rank.
        sync: Where their threads come from.
        lost: Who has been told of whom.
    """

    def __init__(self, network, sync):
        self.network = network
        self.transports = network.transports
        self.sync = sync
        self.lost = sync.mailbox()

    def start(self, rank, handler):
        self.transports[rank].start(
            handler, lambda peer, _reason: self.lost.put((rank, peer))
        )

    def answer(self, meta, arrays=()):
        return completed(self.sync, (meta, arrays))


class Simulated(World):
    """Workers of one process, whose threads run in one of several orders."""

    death = "it was killed"

    def __init__(self, scheduler):
        super().__init__(Network(3, scheduler), scheduler)

    def run(self, program):
        self.sync.run(program=program)
        for transport in self.transports:
            transport.close()

    def let_threads_end(self):
        sleep(1)

    def num_threads(self):
        return len(self.sync.fibers.alive)


class Connected(World):
    """Workers with sockets between them, here all in one process."""

    death = "its connection has ended"
    threads = ("worker 0 / ", "worker 1 / ", "worker 2 / ")  # the engine's own live on

    def __init__(self, network):
        super().__init__(network, network.sync)

    def run(self, program):
        try:
            program()
        finally:
            for transport in self.transports:
                transport.close()
            self.let_threads_end()
        assert not self._threads()

    def let_threads_end(self):
        for thread in self._threads():
            thread.join(10)

    def num_threads(self):
        return len(self._threads())

    def _threads(self):
        return [
            one for one in threading.enumerate() if one.name.startswith(self.threads)
        ]


class InActors(Connected):
    """Workers of this process between which Ray carries what they send."""

    death = r"its actor is gone \(ActorDiedError\)"
    threads = Connected.threads


@pytest.fixture(params=[0, 1, 2, "unix", "tcp", pytest.param("ray", marks=RAY)])
def world(request):
    if isinstance(request.param, int):
        with Scheduler(RandomWalk(request.param)) as scheduler:
            yield Simulated(scheduler)
    elif request.param == "ray":
        request.getfixturevalue("ray_nodes")
        with RayNetwork(3) as network:
            yield InActors(network)
    else:
        with LocalNetwork(3, request.param) as network:
            yield Connected(network)


def test_an_answer_comes_from_the_handler_with_its_arrays(world):
    def handler(src, meta, arrays):
        return world.answer({"from": src, **meta}, [arrays[0] * 2])

    def program():
        world.start(1, handler)
        asked = world.transports[0].request(1, {"n": 5}, [np.array([1.0, 2.0])])
        meta, arrays = asked.wait()
        assert meta == {"from": 0, "n": 5}
        assert arrays[0].tolist() == [2.0, 4.0]

    world.run(program)


def test_a_worker_may_ask_itself(world):
    def program():
        world.start(2, lambda src, _meta, _arrays: world.answer({"s": src}))
        assert world.transports[2].request(2, {}).wait()[0] == {"s": 2}

    world.run(program)


def test_a_request_before_the_start_of_its_peer_waits_for_it(world):
    def program():
        asked = world.transports[0].request(1, {"n": 1})
        assert not asked.done()
        world.start(1, lambda _src, meta, _arrays: world.answer(meta))
        assert asked.wait()[0] == {"n": 1}

    world.run(program)


def test_the_error_of_a_handler_is_that_of_the_answer_wherever_it_comes_from(world):
    late = Future(world.sync)

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


def test_a_request_times_out_and_ignores_a_late_answer(world):
    late = Future(world.sync)

    def program():
        world.start(1, lambda *_: late)
        asked = world.transports[0].request(1, {}, timeout=0.2)
        with pytest.raises(RpcTimeoutError, match=r"did not answer within 0\.2 s"):
            asked.wait()
        late.set_result(({}, ()))
        assert isinstance(asked.error, RpcTimeoutError)

    world.run(program)


def test_the_death_of_a_peer_fails_waiting_and_later_requests(world):
    def program():
        for rank in range(3):
            world.start(rank, lambda *_: Future(world.sync))
        asked = world.transports[0].request(1, {})
        other = world.transports[0].request(2, {})
        world.network.kill(1)
        with pytest.raises(PeerDownError, match=f"node 1 is down: {world.death}"):
            asked.wait()
        with pytest.raises(PeerDownError):
            world.transports[2].request(1, {}).wait()
        assert not other.done()
        told = set()
        while len(told) < 2:
            rank, peer = world.lost.get(timeout=60)
            if rank != 1:  # a killed peer hears nothing, unless it is in this process
                told.add((rank, peer))
        assert told == {(0, 1), (2, 1)}
        assert world.transports[0].alive() == {0: True, 1: False, 2: True}

    world.run(program)


def test_the_first_reason_counts(world):
    assert world.transports[0].peer_is_down(1, "no heartbeat")
    assert not world.transports[0].peer_is_down(1, "end of file")
    with pytest.raises(PeerDownError, match="no heartbeat"):
        world.transports[0].request(1, {}).wait()


def test_a_worker_that_is_closed_waits_for_nobody(world):
    def program():
        world.start(1, lambda *_: Future(world.sync))
        asked = world.transports[0].request(1, {})
        world.transports[0].close()
        with pytest.raises(PeerDownError):
            asked.wait()

    world.run(program)


def test_no_thread_is_held_while_an_answer_is_awaited(world):
    def handler(_src, meta, _arrays):
        return world.answer(meta) if meta else Future(world.sync)

    def program():
        for rank in range(3):
            world.start(rank, handler)
        for rank in range(3):
            for peer in range(3):
                world.transports[rank].request(peer, {"answer": "now"}).wait()
        before = world.num_threads()
        for _ in range(200):
            world.transports[0].request(1, {})
        assert world.num_threads() <= before

    world.run(program)


def test_there_is_no_worker_beyond_the_last(world):
    with pytest.raises(ValueError, match="no worker has rank 3: there are 3"):
        world.transports[0].request(3, {})


def test_received_arrays_share_no_memory_with_sent_arrays(world):
    def handler(_src, _meta, arrays):
        (array,) = arrays
        if array.flags.writeable:
            array[0] = 5
        return world.answer({}, [kept])

    def program():
        world.start(1, handler)
        world.start(0, handler)
        array = np.zeros(2)
        for rank in (1, 0):  # another worker, and oneself
            _, (answer,) = world.transports[0].request(rank, {}, [array]).wait()
            if answer.flags.writeable:
                answer[0] = 7
            else:
                with pytest.raises(ValueError, match="read-only"):
                    answer[0] = 7
        assert array.tolist() == kept.tolist() == [0.0, 0.0]
        assert array.flags.writeable

    kept = np.zeros(2)
    world.run(program)


def test_no_thread_is_left_when_all_are_closed(world):
    def program():
        before = world.num_threads() if isinstance(world, Simulated) else 0
        world.start(1, lambda _src, meta, _arrays: world.answer(meta))
        world.transports[0].request(1, {}, timeout=60).wait()
        for transport in world.transports:
            transport.close()
        world.let_threads_end()
        assert world.num_threads() == before

    world.run(program)
