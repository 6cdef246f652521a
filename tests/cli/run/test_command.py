import re
import textwrap
from pathlib import Path

import pytest

from gradviz.trace.reading.reader import load_trace
from tests.warm_python import Ended, run_gradviz

GRAPH = """
    import numpy as np
    from gradviz.engine import Edge, Engine, Node

    class Double(Node):
        def apply(self, grad):
            return (2.0 * grad,)

    class Explode(Node):
        def apply(self, grad):
            raise ValueError("boom")

    def backward(cls=Double):
        Engine().execute([Edge(cls([Edge(None)]))], [np.ones(2)])
"""


@pytest.fixture
def run(tmp_path: Path):
    """Run a program, with `backward` at hand, by ``gradviz run ... script.py``."""

    def run_source(
        source: str, *options: str, name: str = "script.py", cwd: Path = tmp_path
    ) -> Ended:
        program = textwrap.dedent(GRAPH) + textwrap.dedent(source)
        (tmp_path / name).write_text(program)
        return run_gradviz("run", *options, tmp_path / name, cwd=cwd)

    return run_source


def tasks_of(path: Path) -> int:
    return len(load_trace(path).tasks)


def test_every_backward_is_recorded_and_told(run, tmp_path) -> None:
    done = run("for _ in range(3): backward()", "-o", "x.gvt")

    assert (done.exit_code, done.output) == (0, "")
    assert re.fullmatch(
        r"gradviz: recorded 3 backwards, 3 nodes, \d+ events \(0 dropped\) in x\.gvt\n"
        r"gradviz: next: gradviz show order x\.gvt\n",
        done.errors,
    )
    trace = load_trace(tmp_path / "x.gvt")
    assert len(trace.tasks) == 3
    assert trace.losses.is_complete


def test_a_distributed_backward_is_told_once(run, tmp_path) -> None:
    done = run(
        """
        import gradviz as gv
        from gradviz.distributed import autograd, rpc

        @rpc.register
        def double(x):
            return x * 2

        def main(rank):
            rpc.init(f"worker{rank}")
            if rank == 0:
                with autograd.context() as context_id:
                    x = gv.ones(2, requires_grad=True)
                    y = rpc.rpc_sync(1, double, (x,))
                    autograd.backward(context_id, [y.sum()])
            rpc.shutdown()

        gv.distributed.spawn(main, 2, transport="inproc")
        """,
        *("-o", "x.gvt"),
    )

    assert done.exit_code == 0, done.errors
    assert "recorded 1 backward," in done.errors
    assert tasks_of(tmp_path / "x.gvt") == 2


def test_the_trace_is_named_after_the_script_and_the_process(run, tmp_path) -> None:
    done = run("backward()", name="my train.py")

    (path,) = tmp_path.glob("*.gvt")
    assert re.fullmatch(r"gradviz-my_train\.\d+\.gvt", path.name)
    assert path.name in done.errors


def test_quiet_says_nothing_and_records(run, tmp_path) -> None:
    done = run("backward()", "-q", "-o", "x.gvt")

    assert (done.output, done.errors) == ("", "")
    assert tasks_of(tmp_path / "x.gvt") == 1


def test_the_trace_knows_the_programs_line(run, tmp_path) -> None:
    run("backward()", "-q", "-o", "x.gvt")

    (node,) = load_trace(tmp_path / "x.gvt").nodes.values()
    path, line = node.location.rsplit(":", 1)
    assert path == str(tmp_path / "script.py")
    assert "Double" not in path
    assert "Edge(cls(" in Path(path).read_text().splitlines()[int(line) - 1]


def test_a_script_that_raises_leaves_its_trace(run, tmp_path) -> None:
    done = run("backward()\nraise KeyError('gone')", "-o", "x.gvt")

    assert done.exit_code == 1
    assert "KeyError: 'gone'" in done.errors
    assert "recorded 1 backward," in done.errors
    assert tasks_of(tmp_path / "x.gvt") == 1


def test_an_error_in_a_backward_shows_the_programs_frames(run, tmp_path) -> None:
    done = run("backward(Explode)", "-q", "-o", "x.gvt")

    frames = re.findall(r'File "([^"]+)", line \d+, in (\w+|<module>)', done.errors)
    script = str(tmp_path / "script.py")
    assert done.exit_code == 1
    assert frames[0] == (script, "<module>")
    assert frames[-1] == (script, "apply")
    assert not any("cli" in path for path, _ in frames)
    assert done.errors.splitlines()[-1] == "ValueError: boom"
    assert tasks_of(tmp_path / "x.gvt") == 1


def test_a_script_without_a_backward_is_told_so(run, tmp_path) -> None:
    done = run("import sys; sys.exit(6)", "-o", "x.gvt")

    assert done.exit_code == 6
    assert len(done.errors.splitlines()) == 1
    assert "no backward" in done.errors
    trace = load_trace(tmp_path / "x.gvt")
    assert (trace.tasks, trace.losses.is_complete) == ((), True)


@pytest.mark.parametrize(
    ("torch", "problem"),
    [
        ("__version__ = '2.5.1'", "of PyTorch 2.5.1: expected 2.6 or newer"),
        ("__version__ = '3.0'", "of PyTorch 3.0, which lacks what 2.14 has: "),
        ("", "of PyTorch ?, which lacks what 2.14 has: "),
    ],
)
def test_why_passes_of_pytorch_are_not_there_is_told(run, tmp_path, torch, problem):
    (tmp_path / "torch.py").write_text(torch)

    done = run("import torch", "-o", "x.gvt")

    hint = "no pass of PyTorch's own engine is recorded: cannot watch the backward"
    assert hint in done.errors.splitlines()[1]
    assert problem in done.errors.splitlines()[1]


@pytest.mark.parametrize(
    "source",
    [
        "import os\nif os.fork() == 0: backward(); os._exit(0)\nos.wait()",
        "import subprocess, sys\nsubprocess.run([sys.executable, '-c', ''])",
    ],
    ids=["forked", "spawned"],
)
def test_passes_of_other_processes_are_told_not_to_be_there(run, source) -> None:
    done = run(source, "-o", "x.gvt")

    # Python 3.12 and later warn of the fork in between.
    assert "whose passes are not recorded" in done.errors.splitlines()[-1]


def test_a_program_with_passes_of_its_own_hears_nothing_of_others(run) -> None:
    done = run("import os\nbackward()\nos.system('true')", "-o", "x.gvt")

    assert len(done.errors.splitlines()) == 2


def test_a_trace_that_outgrew_its_limit_says_what_it_holds(run, tmp_path) -> None:
    source = """
        import resource, signal, sys
        from gradviz.trace import probe
        sys.dont_write_bytecode = True  # which would stay, cut short
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        backward()
        (recorder,) = probe.LISTENERS
        recorder.flush()
        size = Path("x.gvt").stat().st_size
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        backward()
    """
    done = run("from pathlib import Path\n" + textwrap.dedent(source), "-o", "x.gvt")

    trace = load_trace(tmp_path / "x.gvt")
    assert done.exit_code == 0
    assert done.errors.splitlines()[-1] == (
        f"gradviz: warning: the trace is incomplete: x.gvt holds 1 backward, 1 node "
        f"and {trace.num_events} events"
    )


def test_exit_handlers_and_late_threads_are_recorded(run, tmp_path) -> None:
    source = """
        import atexit, threading
        atexit.register(backward)
        main = threading.main_thread()
        threading.Thread(target=lambda: (main.join(), backward())).start()
        backward()
    """

    run(source, "-q", "-o", "x.gvt")

    assert tasks_of(tmp_path / "x.gvt") == 3


@pytest.mark.parametrize(
    ("ending", "code"),
    [("os._exit(4)", 4), ("os.kill(os.getpid(), signal.SIGKILL)", -9)],
)
def test_a_sudden_end_leaves_what_was_written(ending, code, run, tmp_path) -> None:
    source = f"""
        import os, signal
        from gradviz.trace.reading.reader import load_trace
        backward()
        while not load_trace("x.gvt").columns["task_completed"]["seq"].size:
            pass  # the writer is at it
        {ending}
    """

    done = run(source, "-o", "x.gvt")

    trace = load_trace(tmp_path / "x.gvt")
    assert done.exit_code == code
    assert (len(trace.tasks), trace.losses.closed) == (1, False)


def test_a_forked_child_leaves_the_trace_to_its_parent(run, tmp_path) -> None:
    source = """
        import os, sys
        if os.fork() == 0:
            sys.exit(0)
        os.wait()
        backward()
    """

    done = run(source, "-o", "x.gvt")

    trace = load_trace(tmp_path / "x.gvt")
    assert done.errors.count("recorded 1 backward") == 1
    assert (len(trace.tasks), trace.losses.is_complete) == (1, True)


def test_a_script_that_changes_folder_leaves_its_trace_where_it_began(
    run, tmp_path
) -> None:
    done = run("import os; os.chdir('/'); backward()", "-o", "x.gvt")

    assert done.exit_code == 0
    assert tasks_of(tmp_path / "x.gvt") == 1


def test_a_trace_that_exists_is_refused_before_anything_runs(run, tmp_path) -> None:
    (tmp_path / "x.gvt").write_text("precious")

    done = run("print('ran')", "-o", "x.gvt")

    assert (done.exit_code, done.output) == (1, "")
    assert len(done.errors.splitlines()) == 1
    assert "x.gvt" in done.errors
    assert "-f" in done.errors
    assert (tmp_path / "x.gvt").read_text() == "precious"


def test_force_replaces_a_trace(run, tmp_path) -> None:
    (tmp_path / "x.gvt").write_text("precious")

    done = run("backward()", "-f", "-o", "x.gvt")

    assert done.exit_code == 0
    assert tasks_of(tmp_path / "x.gvt") == 1


def test_a_folder_that_is_not_there_is_one_line(run) -> None:
    done = run("print('ran')", "-o", "missing/x.gvt")

    assert (done.exit_code, done.output) == (1, "")
    assert len(done.errors.splitlines()) == 1
    assert "missing" in done.errors


@pytest.mark.parametrize(
    ("args", "word"),
    [
        (["missing.py"], "missing.py"),
        (["."], "directory"),
        (["-m", "no_such_module"], "no_such_module"),
        (["-m", "json.no_such_part"], "json.no_such_part"),
        (["-m", "math"], "math"),
        (["-m", "-c", "x"], "-c"),
        ([], "SCRIPT"),
        (["x.gvt"], "is a trace"),
        (["-o", "-", "x.py"], "stdout"),
    ],
    ids=" ".join,
)
def test_a_program_that_cannot_be_is_one_line(args, word, tmp_path) -> None:
    (tmp_path / "x.gvt").write_text("")

    done = run_gradviz("run", "-o", "y.gvt", *args, cwd=tmp_path)

    assert (done.exit_code, done.output) == (2, "")
    assert len(done.errors.splitlines()) == 1
    assert word in done.errors
    assert not (tmp_path / "y.gvt").exists()


def test_a_syntax_error_leaves_no_trace(tmp_path) -> None:
    (tmp_path / "script.py").write_text("def")

    done = run_gradviz("run", "-o", "y.gvt", "script.py", cwd=tmp_path)

    assert done.exit_code == 1
    assert "SyntaxError" in done.errors
    assert not (tmp_path / "y.gvt").exists()


LAUNCH = """
from gradviz.trace import probe

def launch(kernel, stream):
    probe.current.kernel_launched(kernel, stream, "mul")
    probe.current.array_accessed(kernel, 1, "0;8;8;8", True)

launch(0, "sim:0/0")
"""
RACE = (
    LAUNCH
    + """launch(1, "sim:0/1")
"""
)


def test_a_race_is_told_and_exits_with_one(run, tmp_path) -> None:
    done = run(RACE, "--check-streams", "-q", "-o", "x.gvt")

    assert (done.exit_code, done.output) == (1, "")
    assert "gradviz: races between streams: 1\n" in done.errors
    assert "sim:0/1 must wait for sim:0/0" in done.errors
    assert len(load_trace(tmp_path / "x.gvt").columns["kernel_launched"]["seq"]) == 2


def test_a_race_leaves_the_exit_code_of_a_program_that_failed(run) -> None:
    done = run(RACE + "raise SystemExit(7)", "--check-streams")

    assert done.exit_code == 7
    assert "races between streams: 1" in done.errors


def test_a_race_in_a_thread_that_outlives_the_last_line_is_told(run) -> None:
    source = (
        LAUNCH
        + """
import threading

def go_on():
    threading.main_thread().join()
    launch(1, "sim:0/1")

threading.Thread(target=go_on).start()
"""
    )
    done = run(source, "--check-streams")

    assert done.exit_code == 0
    assert "races between streams: 1" in done.errors


def test_a_program_without_races_is_told_of_none(run) -> None:
    done = run(LAUNCH, "--check-streams", "-q")

    assert (done.exit_code, done.errors) == (0, "")


def test_nobody_looks_for_races_unless_asked(run) -> None:
    done = run(RACE, "-q")

    assert (done.exit_code, done.errors) == (0, "")


def test_advice_from_the_trace_follows_the_traceback_of_an_error(run) -> None:
    done = run("""
        import gradviz as gv
        x = gv.ones(3, requires_grad=True)
        loss = (x * x).sum()
        loss.backward()
        loss.backward()
    """)

    assert done.exit_code == 1
    _, error, said = done.errors.partition("after calling backward.\n")
    assert error
    assert "second pass through the same graph" in said
