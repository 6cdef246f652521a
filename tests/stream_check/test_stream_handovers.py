import queue
import threading

import pytest

import gradviz as gv
from gradviz.analysis.findings.check import check_trace
from gradviz.stream_check import thread_handovers
from gradviz.trace.reporting import made_streams
from tests.replaced import callables, replaced


@pytest.fixture(autouse=True)
def no_stream_yet(monkeypatch):
    """The process has made no stream besides the default ones."""
    monkeypatch.setattr(made_streams, "_waiting_for_first", [])


def all_replaced():
    return {
        f"{getattr(owner, '__module__', '')}.{owner.__qualname__}.{name}"
        if isinstance(owner, type)
        else f"{owner.__name__}.{name}"
        for owner, name in thread_handovers.replaced()
    }


def a_backward():
    x = gv.ones(3, requires_grad=True)
    (x * 2).sum().backward()


class TestWhatIsReplaced:
    def test_a_recording_of_a_program_without_streams_replaces_nothing(self):
        before = callables()
        with gv.record():
            a_backward()
            gv.ones(3, device="sim:0").sum().item()
            assert replaced(before) == set()

    def test_one_of_a_program_with_streams_replaces_what_is_listed(self):
        before = callables()
        with gv.record():
            gv.Stream("sim:0")
            during = replaced(before)
        assert during == all_replaced()
        assert replaced(before) == set()

    def test_one_that_begins_after_the_first_stream_does_so_at_once(self):
        gv.Stream("sim:0")
        with gv.record():
            assert isinstance(threading.Lock(), thread_handovers.HeardLock)
            lock = threading.Lock()
        assert type(lock) is thread_handovers.HeardLock
        assert type(threading.Lock()) is not thread_handovers.HeardLock

    def test_a_check_of_streams_does_so_at_once(self):
        before = callables()
        with gv.check_streams():
            assert replaced(before) == all_replaced()
        assert replaced(before) == set()

    def test_one_of_pytorch_replaces_nothing_of_python(self):
        pytest.importorskip("torch")
        gv.Stream("sim:0")
        with gv.pytorch.record():
            pass
        before = callables()
        with gv.pytorch.record():
            gv.Stream("sim:0")
            during = {one.partition(".")[0] for one in replaced(before)}
        assert during == {"torch"}
        assert replaced(before) == set()


class Program:
    """Two parts write to a tensor, each on a stream of its own that it waits for."""

    def __init__(self):
        self.x = gv.zeros(8, device="sim:0")
        gv.synchronize("sim:0")
        self.streams = []

    def make_streams(self):
        self.streams = [gv.Stream("sim:0"), gv.Stream("sim:0")]

    def work(self, number):
        with self.streams[number]:
            self.x.add_(1)
        self.streams[number].synchronize()


def num_races(run):
    """Number of races found in a recording of a program that begins without streams."""
    with gv.record() as recording:
        run(Program())
    return len(check_trace(recording.trace).streams.races)


def until(is_done):
    while not is_done():
        pass


class TestWhatIsFound:
    @pytest.mark.races
    def test_threads_of_after_the_first_stream_are_told_apart(self):
        is_done = []

        def run(program):
            program.make_streams()
            threads = (
                threading.Thread(
                    target=lambda: (program.work(0), is_done.append(True))
                ),
                threading.Thread(
                    target=lambda: (until(lambda: is_done), program.work(1))
                ),
            )
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

        assert num_races(run) == 1

    @pytest.mark.parametrize("make", [queue.Queue, queue.SimpleQueue])
    def test_a_thread_that_takes_from_a_queue_comes_after_the_thread_that_put(
        self, make
    ):
        def run(program):
            program.make_streams()
            box = make()
            thread = threading.Thread(target=lambda: (program.work(0), box.put(1)))
            thread.start()
            box.get()
            program.work(1)
            thread.join()

        assert num_races(run) == 0

    def test_a_thread_that_waits_when_the_first_stream_is_made_is_told_of_all(self):
        def run(program):
            box = queue.Queue()
            thread = threading.Thread(target=lambda: (box.get(), program.work(1)))
            thread.start()
            program.make_streams()
            program.work(0)
            box.put(1)
            thread.join()
            program.work(0)

        assert num_races(run) == 0

    def test_a_join_of_a_thread_from_before_the_first_stream_orders_all_its_work(self):
        gate = []

        def run(program):
            thread = threading.Thread(
                target=lambda: (until(lambda: gate), program.work(0))
            )
            thread.start()
            program.make_streams()
            other = threading.Thread(target=lambda: None)
            other.start()  # so this thread has said that it hears
            gate.append(True)
            thread.join()
            program.work(1)
            other.join()

        assert num_races(run) == 0

    def test_a_thread_that_makes_the_first_stream_is_waited_for_as_before(self):
        def run(program):
            thread = threading.Thread(
                target=lambda: (program.make_streams(), program.work(0))
            )
            thread.start()
            thread.join()
            program.work(1)

        assert num_races(run) == 0

    def test_threads_with_a_lock_of_before_the_first_stream_count_as_one(self):
        def run(program):
            lock = threading.Lock()
            lock.acquire()
            program.make_streams()
            thread = threading.Thread(target=lambda: (program.work(0), lock.release()))
            thread.start()
            with lock:
                program.work(1)
            thread.join()

        assert num_races(run) == 0

    def test_threads_with_a_condition_entered_before_the_first_stream_count_as_one(
        self,
    ):
        def run(program):
            condition = threading.Condition()

            def later():
                with condition:
                    program.work(1)

            with condition:
                program.make_streams()
                thread = threading.Thread(target=later)
                thread.start()
                program.work(0)
            thread.join()

        assert num_races(run) == 0

    def test_a_lock_that_only_another_thread_has_counts_too(self):
        gate = threading.Event()

        def holds():
            lock = threading.Lock()
            ready.append(True)
            with lock:
                gate.wait()

        ready = []
        before = callables()
        with gv.record():
            thread = threading.Thread(target=holds)
            thread.start()
            until(lambda: ready)
            gv.Stream("sim:0")
            gate.set()
            thread.join()
            assert replaced(before) == set()

    def test_a_recording_that_ends_before_the_first_stream_hears_nothing_of_it(self):
        with gv.record():
            pass
        before = callables()
        gv.Stream("sim:0")
        assert replaced(before) == set()


class TestHowMuchIsReported:
    def events_of(self, run):
        gv.Stream("sim:0")
        with gv.record() as recording:
            run()
        return recording.trace.events()

    def test_a_thread_that_hands_over_to_itself_reports_it_once(self):
        def run():
            lock, box, event = threading.Lock(), queue.Queue(), threading.Event()
            for _ in range(100):
                with lock:
                    box.put(1)
                    event.set()
                box.get()

        assert len(list(self.events_of(run))) < 10

    def test_a_semaphore_is_left_at_the_end_of_its_block(self):
        def run():
            semaphore = threading.Semaphore(1)
            with semaphore:
                pass

        kinds = [type(one).__name__ for one in self.events_of(run)]
        assert kinds.count("HandedOver") == 1

    def test_a_thread_that_has_waited_for_a_stream_reports_its_lock_again(self):
        def run():
            lock = threading.Lock()
            stream = gv.Stream("sim:0")
            for _ in range(100):
                with lock:
                    pass
                stream.synchronize()

        kinds = [type(one).__name__ for one in self.events_of(run)]
        assert kinds.count("HandedOver") == 100


def test_variables_that_the_program_has_got_itself_stay():
    kept = locals()
    kept["x"] = 1
    with gv.record(), gv.check_streams():
        gv.Stream("sim:0")
    assert kept["x"] == 1


def test_a_class_body_keeps_its_names():
    class Checked:
        value = 1
        with gv.check_streams():
            pass

    assert Checked.value == 1


class TestWhatIsHeardIsWhatItStandsFor:
    def test_a_lock(self):
        before = threading.Lock()
        with gv.check_streams():
            lock, again = threading.Lock(), threading.RLock()
            assert isinstance(before, type(threading.Lock()))
            assert isinstance(lock, type(threading.Lock()))
            assert not isinstance(again, type(threading.Lock()))
            assert repr(lock).startswith("<unlocked _thread.lock")
        # Python 3.13 gives a class `__annotations__` once somebody has asked for them.
        assert set(dir(before)) - set(dir(lock)) <= {"__annotations__"}
        assert not hasattr(lock, "_release_save")

    def test_a_simple_queue_and_what_is_derived_from_it(self):
        before = queue.SimpleQueue()
        plain = type(before)
        with gv.check_streams():
            assert isinstance(before, queue.SimpleQueue)
            assert isinstance(queue.SimpleQueue(), plain)
            assert issubclass(plain, queue.SimpleQueue)

            class Derived(queue.SimpleQueue):
                def __init__(self, name):
                    super().__init__()
                    self.name = name

            derived = Derived("mine")
            derived.put(1)
            assert (derived.get(), derived.name) == (1, "mine")
            assert not isinstance(before, Derived)
        assert isinstance(derived, queue.SimpleQueue)
