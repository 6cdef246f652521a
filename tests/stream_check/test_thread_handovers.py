import _thread
import copy
import gc
import pickle
import queue
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor, as_completed, wait
from multiprocessing.pool import ThreadPool

import pytest

import gradviz as gv
from gradviz.stream_check import thread_handovers


class Things:
    """Objects by which two threads may hand over."""

    def __init__(self):
        self.event = threading.Event()
        self.condition = threading.Condition()
        self.semaphore = threading.Semaphore(0)
        self.barrier = threading.Barrier(2)
        self.lock = threading.Lock()
        self.queue = queue.Queue()
        self.simple_queue = queue.SimpleQueue()
        self.is_done = False
        self.lock.acquire()

    def notify(self):
        with self.condition:
            self.is_done = True
            self.condition.notify_all()

    def await_notification(self):
        with self.condition:
            while not self.is_done:
                self.condition.wait()

    def await_predicate(self):
        with self.condition:
            self.condition.wait_for(lambda: self.is_done)


HANDOVERS = {
    "event": (lambda t: t.event.set(), lambda t: t.event.wait()),
    "asked event": (lambda t: t.event.set(), lambda t: until(t.event.is_set)),
    "condition": (Things.notify, Things.await_notification),
    "predicate": (Things.notify, Things.await_predicate),
    "semaphore": (lambda t: t.semaphore.release(), lambda t: t.semaphore.acquire()),
    "barrier": (lambda t: t.barrier.wait(), lambda t: t.barrier.wait()),
    "lock": (lambda t: t.lock.release(), lambda t: t.lock.acquire()),
    "lock, by its former names": (
        lambda t: t.lock.release_lock(),
        lambda t: t.lock.acquire_lock(),
    ),
    "queue": (lambda t: t.queue.put(1), lambda t: t.queue.get()),
    "queue, at once": (
        lambda t: t.queue.put_nowait(1),
        lambda t: until(lambda: not t.queue.empty()) or t.queue.get_nowait(),
    ),
    "simple queue": (lambda t: t.simple_queue.put(1), lambda t: t.simple_queue.get()),
}


def until(is_done):
    while not is_done():
        pass


class Program:
    """Two threads write to a tensor, each on a stream of its own that it waits for."""

    def __init__(self):
        self.x = gv.zeros(8, device="sim:0")
        gv.synchronize("sim:0")
        self.streams = [gv.Stream("sim:0"), gv.Stream("sim:0")]

    def work(self, number):
        with self.streams[number]:
            self.x.add_(1)
        self.streams[number].synchronize()


def num_races(run):
    with gv.check_streams(raise_error=False) as check:
        run(Program())
    return len(check.races)


def in_threads(*calls):
    threads = [threading.Thread(target=call) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@pytest.mark.parametrize(("give", "take"), HANDOVERS.values(), ids=HANDOVERS)
def test_a_thread_that_takes_over_comes_after_the_thread_that_hands_over(give, take):
    def run(program):
        things = Things()
        in_threads(
            lambda: (program.work(0), give(things)),
            lambda: (take(things), program.work(1)),
        )

    assert num_races(run) == 0


def test_threads_that_hand_over_nothing_are_in_no_order():
    """The first has waited for its work before the second begins, as luck has it."""
    is_done = []

    def run(program):
        in_threads(
            lambda: (program.work(0), is_done.append(True)),
            lambda: (until(lambda: is_done), program.work(1)),
        )

    assert num_races(run) == 1


def test_threads_that_have_a_lock_of_before_the_block_count_as_one():
    """Nobody would hear of it if they handed over by that."""
    gate = threading.Lock()
    gate.acquire()
    with gv.check_streams():
        program = Program()
        in_threads(
            lambda: (program.work(0), gate.release()),
            lambda: (gate.acquire(), program.work(1)),
        )


def test_a_thread_comes_after_who_started_it_and_before_who_joined_it():
    def run(program):
        program.work(0)
        in_threads(lambda: program.work(1))
        program.work(0)

    assert num_races(run) == 0


def test_a_thread_that_is_no_longer_alive_has_been_waited_for():
    def run(program):
        thread = threading.Thread(target=program.work, args=(0,))
        thread.start()
        until(lambda: not thread.is_alive())
        program.work(1)

    assert num_races(run) == 0


def by_result(pool, program):
    pool.submit(program.work, 0).result()
    pool.submit(program.work, 1).result()


def by_wait(pool, program):
    wait([pool.submit(program.work, 0)])
    wait([pool.submit(program.work, 1)])


def by_completion(pool, program):
    for number in (0, 1):
        for _ in as_completed([pool.submit(program.work, number)]):
            pass


def by_map(pool, program):
    list(pool.map(program.work, [0]))
    list(pool.map(program.work, [1]))


@pytest.mark.parametrize("call", [by_result, by_wait, by_completion, by_map])
def test_a_pool_hands_over_to_its_threads_and_back(call):
    def run(program):
        with ThreadPoolExecutor(2) as pool:
            call(pool, program)
        program.work(0)

    assert num_races(run) == 0


def test_the_other_pool_of_threads_does_too():
    def run(program):
        with ThreadPool(2) as pool:
            pool.map(program.work, [0])
            pool.apply_async(program.work, (1,)).get()
        program.work(0)

    assert num_races(run) == 0


def test_an_error_is_handed_over_as_well():
    def fail(program):
        program.work(0)
        raise ValueError("boom")

    def run(program):
        with ThreadPoolExecutor(1) as pool:
            future = pool.submit(fail, program)
            with pytest.raises(ValueError, match="boom"):
                future.result()
        program.work(1)

    assert num_races(run) == 0


def test_all_is_as_it_was_when_nobody_listens():
    def found():
        return [getattr(owner, name) for owner, name in replaced]

    replaced = [
        (threading, "Lock"),
        (threading, "RLock"),
        (queue, "SimpleQueue"),
        (queue.Queue, "get"),
        (threading.Thread, "start"),
        (threading.Thread, "join"),
    ]
    before = found()
    thread_handovers.listen()
    thread_handovers.listen()
    thread_handovers.unlisten()
    assert all(new is not old for new, old in zip(found(), before, strict=True))

    thread_handovers.unlisten()
    thread_handovers.unlisten()
    assert found() == before


def test_a_thread_runs_its_own_run_once():
    class Own(threading.Thread):
        """Has a method of its own."""

        def run(self):
            ran.append("run" in vars(self))

    ran = []
    with gv.check_streams():
        thread = Own()
        thread.start()
        thread.join()
        with pytest.raises(RuntimeError, match="once"):
            thread.start()
    assert ran == [False]


def test_a_lock_that_tells_is_a_lock():
    with gv.check_streams():
        lock, reentrant = threading.Lock(), threading.RLock()
        with lock:
            assert lock.locked()
            assert not lock.acquire(blocking=False)
        with reentrant, reentrant:
            pass
        conditions = threading.Condition(lock), threading.Condition(reentrant)
        with conditions[0] as is_ours, conditions[1]:
            assert is_ours

    assert not lock.locked()


@pytest.mark.parametrize("name", ["Lock", "RLock", "SimpleQueue"])
@pytest.mark.parametrize("ask", [pickle.dumps, copy.copy, copy.deepcopy])
def test_locks_and_queues_that_report_cannot_be_copied_either(name, ask):
    module = queue if name == "SimpleQueue" else threading
    with pytest.raises(TypeError) as expected:
        ask(getattr(module, name)())
    with gv.check_streams():
        heard = getattr(module, name)()
    with pytest.raises(TypeError) as found:
        ask(heard)

    assert str(found.value) == str(expected.value)


@pytest.mark.parametrize("name", ["Lock", "RLock", "SimpleQueue"])
def test_locks_and_queues_that_report_are_freed_even_in_a_cycle(name):
    class Owner:
        """Object that is held by what it holds."""

    owner = Owner()
    with gv.check_streams():
        owner.heard = getattr(queue if name == "SimpleQueue" else threading, name)()
    owner.itself = owner
    if name == "SimpleQueue":
        owner.heard.put(owner)
    gone = weakref.ref(owner.heard)
    del owner
    gc.collect()

    assert gone() is None


def test_a_queue_that_tells_is_a_queue():
    with gv.check_streams():
        box = queue.SimpleQueue()
        assert isinstance(box, queue.SimpleQueue)
    assert isinstance(box, queue.SimpleQueue)
    assert isinstance(queue.SimpleQueue(), type(box))

    box.put(1, block=False, timeout=3)
    box.put(item=2)
    box.put_nowait(3)
    assert (box.get(), box.get(True, 1), box.get_nowait()) == (1, 2, 3)
    with pytest.raises(queue.Empty):
        box.get(timeout=0)
    with pytest.raises(ValueError, match="non-negative"):
        box.get(timeout=-1)


def test_a_lock_that_tells_refuses_what_a_lock_refuses():
    plain = threading.Lock()
    with gv.check_streams():
        heard = threading.Lock()

    for ask in (
        lambda lock: lock.release(),
        lambda lock: lock.acquire(False, 1),
        lambda lock: lock.acquire(timeout=-2),
        lambda lock: lock.acquire("no", "number"),
    ):
        with pytest.raises((RuntimeError, ValueError, TypeError)) as expected:
            ask(plain)
        with pytest.raises(expected.type) as found:
            ask(heard)
        assert str(found.value) == str(expected.value)
    assert not heard.locked()


def test_c_code_may_use_what_tells_from_a_thread_that_runs_no_python():
    gv.Stream("sim:0")  # from which on hand-overs are heard
    with gv.record():
        event, items, done = threading.Event(), queue.SimpleQueue(), queue.Queue()
        thread = threading.Thread(target=done.put, args=("started",))
        for call, args in ((event.set, ()), (items.put, (1,)), (thread.start, ())):
            _thread.start_new_thread(call, args)
        assert event.wait(60)
        assert items.get(timeout=60) == 1
        assert done.get(timeout=60) == "started"
        thread.join()
