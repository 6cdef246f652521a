"""Threads that cannot be started, and threads that others throw errors into (F11)."""

import pytest

from gradviz.engine.graph.sync import Threads
from tests.faults.programs import Ended, run_program
from tests.faults.scene import (
    DEVICES,
    Call,
    assert_works,
    new_engine,
    nothing,
    run,
    run_at,
)


class FewThreads(Threads):
    """A system that refuses a thread after the first `num_allowed`."""

    def __init__(self, num_allowed: int) -> None:
        self.num_allowed = num_allowed

    def spawn(self, target, name):
        if not self.num_allowed:
            raise RuntimeError("can't start new thread")
        self.num_allowed -= 1
        super().spawn(target, name)


@pytest.mark.parametrize("num_allowed", [0, 1])
def test_a_device_thread_that_cannot_start_is_an_error_and_may_start_later(
    num_allowed: int,
):
    """F11: with one of two threads running already, too."""
    system = FewThreads(num_allowed)
    engine = new_engine(sync=system)

    with pytest.raises(RuntimeError, match="can't start new thread"):
        run(engine, Call(nothing, Call(nothing, device=DEVICES[1])))
    run(engine, Call(nothing))
    system.num_allowed = 100

    assert_works(engine)
    engine.stop()


def test_a_pool_thread_that_cannot_start_is_an_error_and_may_start_later():
    """F11: raised by the innermost backward, through all that wait for it."""
    system = FewThreads(0)
    engine = new_engine(sync=system)

    with pytest.raises(RuntimeError, match="can't start new thread"):
        run_at(engine, "pool", nothing)
    run(engine, Call(nothing))
    system.num_allowed = 100

    assert_works(engine)
    engine.stop()


@pytest.mark.parametrize("place", ["device", "pool"])
def test_an_error_thrown_into_a_node_is_the_nodes_error(place: str):
    """F11: it fails its pass, as one that the node raises, and the thread lives on."""
    ended = run_program(
        f"""
        from tests.faults.striking import throw_here
        engine = new_engine()
        threads = []
        def struck():
            threads.append(threading.current_thread())
            throw_here(KeyError)
        try:
            run_at(engine, {place!r}, struck)
        except KeyError:
            print("raised")
        run_at(engine, {place!r}, lambda: threads.append(threading.current_thread()))
        print(threads[0] is threads[1])
        assert_works(engine)
        engine.stop()
        """
    )

    assert ended == Ended(0, "raised\nTrue", "")


def test_an_error_thrown_into_a_device_thread_that_sleeps_fails_what_it_wakes_for():
    """F11: a task that was lost is not waited for, and its cause is told."""
    ended = run_program(
        """
        from tests.faults.striking import StrikingThreads

        system = StrikingThreads()
        engine, threads = new_engine(sync=system), []
        node = Call(lambda: threads.append(threading.get_ident()), device=DEVICES[0])
        run(engine, node)
        system.victim = threads[0]  # what it wakes up for, it has taken out
        try:
            run(engine, node)
        except EngineError as error:
            print(error)
            print(type(error.__cause__).__name__)
        run(engine, node)
        print(threads == [threads[0]] * 2)
        assert_works(engine)
        engine.stop()
        """
    )

    assert (ended.exit_code, ended.errors) == (0, "")
    assert "device 0 was struck by KeyError" in ended.output
    assert ended.output.endswith("\nKeyError\nTrue")


def test_a_device_thread_that_is_struck_fails_the_passes_that_need_it():
    """F11: the one it works for, the one that waits for it, and no other."""
    ended = run_program(
        """
        from tests.engine.nodes import start_thread
        from tests.faults.striking import StrikingThreads

        system = StrikingThreads()
        engine, leaf = new_engine(sync=system), Leaf()
        is_running = threading.Event()

        def hold():
            # Until the other pass waits in the queue.
            is_running.set()
            wait_until(lambda: len(next(iter(engine.queues))))
            system.victim = threading.get_ident()

        def begin(node):
            return start_thread(lambda: run(engine, node))

        passes = [begin(Call(hold, Call(nothing), device=DEVICES[0]))]
        is_running.wait(PATIENCE_SECONDS)
        may_end = calling(lambda: passes[0].exception(PATIENCE_SECONDS))
        passes.append(begin(Call(may_end, AccumulateGrad(leaf), device=DEVICES[1])))
        passes.append(begin(Call(nothing, device=DEVICES[0])))
        for one in passes:
            print(one.exception(PATIENCE_SECONDS))
        print(leaf.grad)
        assert_works(engine)
        engine.stop()
        """
    )

    assert (ended.exit_code, ended.errors) == (0, "")
    first, elsewhere, third, gradient = ended.output.splitlines()
    assert "device 0 was struck by KeyError" in first
    assert elsewhere == "None"
    assert "device 0 was struck by KeyError" in third
    assert gradient == "1"


def test_a_device_thread_that_is_struck_while_it_is_told_to_end_ends():
    """F11, L7."""
    ended = run_program(
        """
        from tests.faults.striking import StrikingThreads

        system = StrikingThreads()
        engine, threads = new_engine(sync=system), []
        run(engine, Call(lambda: threads.append(threading.current_thread()),
                         device=DEVICES[0]))
        system.victim = threads[0].ident  # it has taken out that it is to end
        engine.stop()
        threads[0].join(PATIENCE_SECONDS)
        print(system.victim, threads[0].is_alive())
        """
    )

    assert ended == Ended(0, "None False", "")
