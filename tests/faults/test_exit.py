"""The exit of a program that has used the engine: as if it had not (F14)."""

import signal
import textwrap

import pytest

from tests.faults.exiting import LOOPS, assert_whole, looping
from tests.faults.programs import Ended, run_program

_PROGRAMS = {
    "idle, after a backward on the CPU": "run(engine, Call(nothing))",
    "idle, with all its threads": "assert_works(engine)",
    "as soon as its first thread has started": "run_at(engine, 'device', nothing)",
    "stopped": "assert_works(engine); engine.stop()",
    "watched": "engine.watch(0.01, str); assert_works(engine)",
    "with the default engine": """
        from gradviz.engine import default_engine
        run_at(default_engine(), 'device', nothing)
    """,
    "with many engines": """
        engines = [new_engine() for _ in range(20)]
        for one in engines: run_at(one, 'device', nothing)
    """,
    "while a daemon thread is in a backward of its own": """
        running = threading.Event()
        def hold():
            running.set()
            threading.Event().wait()
        threading.Thread(
            target=run_at, args=(engine, "caller", hold), daemon=True
        ).start()
        running.wait(20)
    """,
    "while a device runs a node that does not end": """
        running = threading.Event()
        def hold():
            running.set()
            threading.Event().wait()
        threading.Thread(
            target=run_at, args=(engine, "device", hold), daemon=True
        ).start()
        running.wait(20)
    """,
    "while a daemon thread and a device are busy with backwards": """
        running = threading.Event()
        def work():
            while True:
                assert_works_here(engine)
                running.set()
        threading.Thread(target=work, daemon=True).start()
        running.wait(20)
    """,
    "in a backward of a thread that is waited for": """
        assert_works(engine)  # Python 3.12 starts no thread any more at that time
        running = threading.Event()
        def work():
            running.wait(20)
            assert_works_here(engine)
        threading.Thread(target=work).start()
        running.set()
    """,
    "with a first backward at exit": """
        import atexit
        atexit.register(lambda: run(engine, Call(nothing)))
    """,
    "with a backward at exit on devices that have run before": """
        import atexit
        assert_works(engine)
        atexit.register(lambda: assert_works_here(engine))
    """,
    "with a node that lives to the end": "kept = Call(nothing, Call(nothing))",
    "in the middle of a recording": """
        from gradviz.capture.session import record
        recording = record()
        assert_works(engine)
    """,
}


@pytest.mark.parametrize("is_recording", [False, True])
def test_daemon_threads_in_backwards_end_in_silence(tmp_path, is_recording):
    """F14: the engine refuses their next pass, which nobody needs to hear of."""
    path = tmp_path / "exit.gvt" if is_recording else None
    waits = "[one.join(20) or one.is_alive() and print('alive') for one in threads]"
    program = looping(*LOOPS.values(), at_exit=waits, path=path)

    assert run_program(program) == Ended(0, "", "")
    if path is not None:
        assert_whole(path)


def test_a_daemon_thread_lets_go_of_the_lock_that_an_exit_handler_wants():
    """F14."""
    program = looping(
        "with lock: run_at(engine, 'device', nothing)",
        at_exit="lock.acquire(timeout=20) or print('the lock is held')",
    )

    assert run_program(program) == Ended(0, "", "")


def test_a_thread_that_is_waited_for_hears_that_the_engine_was_stopped():
    """Only a daemon thread, at exit, is not told."""
    ended = run_program(
        """
        engine = new_engine()
        engine.stop()
        def work():
            threading.main_thread().join()
            try:
                run(engine, Call(nothing))
            except EngineError:
                print("told")
        threading.Thread(target=work).start()
        """
    )

    assert ended == Ended(0, "told", "")


@pytest.mark.parametrize("how", _PROGRAMS)
def test_a_program_ends_well_and_in_silence(how: str):
    """F14: nothing is waited for, and nothing is complained about."""
    source = "engine = new_engine()\n" + textwrap.dedent(_PROGRAMS[how])

    assert run_program(source) == Ended(0, "", "")


def test_a_program_that_exits_right_after_its_threads_have_started():
    """F14: twenty times over, each in a process of its own."""
    ended = run_program(
        """
        faulthandler.cancel_dump_traceback_later()  # a fork would wait for its thread
        for _ in range(20):
            pid = os.fork()
            if pid == 0:
                run_at(new_engine(), "device", nothing)
                sys.exit(7)
            print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
        """
    )

    assert (ended.output.split(), ended.errors) == (["7"] * 20, "")


def test_an_exit_code_is_the_programs_own():
    ended = run_program("engine = new_engine(); assert_works(engine); sys.exit(9)")

    assert ended == Ended(9, "", "")


def test_an_exit_from_inside_a_node_is_the_programs_exit():
    """F06."""
    ended = run_program("run_at(new_engine(), 'device', lambda: sys.exit(9))")

    assert ended == Ended(9, "", "")


def test_an_exit_without_farewell():
    ended = run_program("assert_works(new_engine()); os._exit(9)")

    assert ended == Ended(9, "", "")


def test_an_error_that_nobody_handles_is_shown_and_nothing_else():
    ended = run_program(
        """
        def fail():
            raise ValueError("of the program")
        run_at(new_engine(), "device", fail)
        """
    )

    assert ended.exit_code == 1
    assert ended.errors.startswith("Traceback")
    assert ended.errors.endswith("\nValueError: of the program")


@pytest.mark.parametrize("place", ["caller", "device", "pool"])
def test_a_signal_that_ends_programs_ends_one_in_a_backward(place: str):
    """F14: SIGTERM."""
    ended = run_program(
        f"run_at(new_engine(), {place!r}, lambda: os.kill(os.getpid(), signal.SIGTERM)"
        " or threading.Event().wait())"
    )

    assert ended == Ended(-signal.SIGTERM, "", "")


_LAST = """
class Last:
    def __init__(self):
        self.itself = self  # so that it dies when the interpreter does
    def __del__(self, make=make, run_at=run_at, nothing=nothing, write=os.write):
        try:
            run_at(make(), sys_argv[1], nothing)
            write(1, b"works")
        except Exception as error:
            write(1, type(error).__name__.encode())

sys.modules["last"] = Last()
"""


@pytest.mark.parametrize("place", ["caller", "device", "pool"])
def test_a_backward_while_the_interpreter_shuts_down_is_refused(place: str):
    """F14: the engine has been stopped by then."""
    ended = run_program(
        "engine = new_engine(); make = lambda: engine\n"
        + _LAST.replace("sys_argv[1]", repr(place))
    )

    assert ended == Ended(0, "EngineError", "")


@pytest.mark.parametrize(
    ("place", "output"),
    [("caller", "works"), ("device", "RuntimeError"), ("pool", "RuntimeError")],
)
def test_a_new_engine_starts_no_thread_while_the_interpreter_shuts_down(
    place: str, output: str
):
    """F14: Python 3.11 would wait forever for a thread that never begins."""
    ended = run_program(
        "new_engine(); make = new_engine\n" + _LAST.replace("sys_argv[1]", repr(place))
    )

    assert ended == Ended(0, output, "")
