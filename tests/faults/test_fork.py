"""A process that forks, whatever its threads are doing (F13)."""

import textwrap

import pytest

from tests.faults.programs import Ended, run_program

#: What a child does, and how its parent learns what became of that.
_CHILD = """
import warnings
warnings.simplefilter("ignore", DeprecationWarning)  # of forking with threads

def in_child(function):
    readable, writable = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            function()
            answer = "works"
        except BaseException as error:
            answer = f"{type(error).__name__}: {error}"
        os.write(writable, answer.encode())
        os._exit(0)
    os.close(writable)
    answer = os.read(readable, 10_000).decode()
    os.waitpid(pid, 0)
    return answer

def backward():
    leaf = Leaf()
    run(engine, Call(nothing, AccumulateGrad(leaf)), 2)
    assert leaf.grad == 2

engine = new_engine()
"""

_REFUSED = (
    "RuntimeError: Unable to handle autograd's threading in combination with "
    "fork-based multiprocessing: the parent process had already started engine "
    "threads, which a fork does not copy. Start the child with the 'spawn' method "
    "instead."
)

_SITUATIONS = {
    "before any backward": ("print(in_child(backward))", "works"),
    "before any thread, and after it one": (
        "print(in_child(lambda: assert_works(engine)))",
        "works",
    ),
    "after a backward on the CPU": ("backward(); print(in_child(backward))", "works"),
    "after a device thread has started": (
        "assert_works(engine); print(in_child(backward))",
        _REFUSED,
    ),
    "after a pool thread has started": (
        "run_at(engine, 'pool', nothing); print(in_child(backward))",
        _REFUSED,
    ),
    "after device threads have ended": (
        """
        assert_works(engine)
        engine.stop()
        engine = new_engine()
        print(in_child(backward))
        """,
        "works",
    ),
    "inside a node of the caller": (
        "run_at(engine, 'caller', lambda: print(in_child(backward)))",
        "works",
    ),
    "inside a node of a device": (
        "run_at(engine, 'device', lambda: print(in_child(backward)))",
        _REFUSED,
    ),
    "inside a node of the pool": (
        "run_at(engine, 'pool', lambda: print(in_child(backward)))",
        _REFUSED,
    ),
    "on another thread, while a node runs": (
        """
        running, may_end = threading.Event(), threading.Event()
        def hold():
            running.set()
            may_end.wait(20)
        holder = threading.Thread(
            target=run_at, args=(engine, "caller", hold), daemon=True
        )
        holder.start()
        running.wait(20)
        print(in_child(backward))
        may_end.set()
        holder.join(20)
        """,
        "works",
    ),
}


@pytest.mark.parametrize("situation", _SITUATIONS)
def test_a_forked_child_works_or_is_told_to_spawn(situation: str):
    """F13, L9, G14: never a hang, and the parent does not notice."""
    source, expected = _SITUATIONS[situation]

    ended = run_program(_CHILD + textwrap.dedent(source) + "\nassert_works(engine)\n")

    assert ended == Ended(0, expected, "")


def test_a_child_of_a_forked_child_works_too():
    ended = run_program(
        _CHILD + "print(in_child(lambda: print(in_child(backward), flush=True)))"
    )

    assert ended == Ended(0, "works\nworks", "")


def test_an_engine_of_the_childs_own_works_with_devices():
    """F13: what a fork loses are threads, and a new engine has threads of its own."""
    ended = run_program(
        _CHILD + "assert_works(engine)\n"
        "print(in_child(lambda: assert_works(new_engine())))"
    )

    assert ended == Ended(0, "works", "")


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_processes_that_do_not_fork_this_one_work(method: str):
    """F13: after this one's device threads have started."""
    ended = run_program(
        """
        import multiprocessing
        from tests.faults.children import backward
        assert_works(new_engine())
        with multiprocessing.get_context(sys.argv[1]).Pool(1) as pool:
            print(pool.apply(backward))
        """,
        method,
    )

    assert (ended.exit_code, ended.output) == (0, "works")
