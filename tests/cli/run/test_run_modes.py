"""``gradviz run`` with less to record, for longer, and for more processes."""

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import click
import pytest

from gradviz.cli.run.command import command
from gradviz.trace.events import StepBegun
from gradviz.trace.reading.reader import load_trace
from tests.warm_python import Ended, run_gradviz

STEPS = """
    import gradviz as gv
    x = gv.tensor([1.0, 2.0], requires_grad=True)
    optimizer = gv.optim.SGD([x], lr=0.1)
    def train(steps):
        for _ in range(steps):
            optimizer.zero_grad()
            (x * x).sum().backward()
            optimizer.step()
"""


@pytest.fixture
def run(tmp_path: Path):
    """Run a program, with `train` at hand, by ``gradviz run ... script.py``."""

    def run_source(source: str, *options: str) -> Ended:
        write_script(tmp_path, source)
        return run_gradviz("run", *options, "-o", "x.gvt", "script.py", cwd=tmp_path)

    return run_source


@pytest.fixture
def run_piped(tmp_path: Path):
    """Do as `run`, in a new process with a pipe for stderr: limits of files spare it.

    Returns:
        What the program wrote to stderr.
    """

    def run_source(source: str, *options: str) -> str:
        write_script(tmp_path, source)
        return subprocess.run(
            [
                *(sys.executable, "-W", "ignore", "-m", "gradviz", "run"),
                *(*options, "-o", "x.gvt", "script.py"),
            ],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        ).stderr

    return run_source


def write_script(folder: Path, source: str) -> None:
    script = textwrap.dedent(STEPS) + textwrap.dedent(source)
    (folder / "script.py").write_text(script)


@pytest.fixture
def trace(tmp_path: Path):
    return lambda name="x.gvt": load_trace(tmp_path / name)


def test_a_step_ends_with_that_of_an_optimizer(run, trace) -> None:
    done = run("train(8)", "--schedule", "wait=1,warmup=1,active=2,repeat=1")

    assert done.exit_code == 0
    steps = [one.step for one in trace().events() if isinstance(one, StepBegun)]
    assert steps == [2, 3]
    assert len(trace().tasks) == 2


def test_options_select_the_events_nodes_and_stacks_that_are_kept(run, trace) -> None:
    run("train(2)", "--events", "node_*", "--only", "Mul*,Sum*", "--stacks", "none")

    scope = trace().header.scope
    assert "task_pushed" in scope.left_out
    assert (scope.only, scope.stacks) == (("Mul*", "Sum*"), "none")
    names = {trace().nodes[one.node].name for one in trace().events() if one.node >= 0}
    assert names == {"MulBackward0", "SumBackward0"}


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--schedule", "wait=1"), "does not say how many steps are active"),
        (("--schedule", "active=x"), "'active=x' is no part of a schedule such as"),
        (("--schedule", "active=0"), "active is 0, expected an integer, at least 1"),
        (("--events", "nodes"), "no kind of event is called 'nodes'"),
        (("--ring", "much"), "'much' is not a size in bytes"),
        (("--dump-on", "signal"), "only a ring is dumped"),
        (("--ring", "1MB", "--dump-on", "never"), "dump_on has 'never'"),
        (("--live", "--workers", "2"), "--live shows one trace, and --workers makes"),
    ],
)
def test_options_that_make_no_sense_are_usage_errors(options, told) -> None:
    arguments = [*options, "-c", "raise AssertionError('it ran')"]
    with pytest.raises(click.UsageError, match=re.escape(told)):
        command.main(arguments, standalone_mode=False)


class TestRing:
    def test_a_program_that_raises_leaves_its_end(self, run, trace) -> None:
        done = run("train(300)\nraise ValueError('mine')", "--ring", "10kB")

        assert done.exit_code == 1
        assert "x.gvt" in done.errors
        assert trace().losses.overwritten > 0
        assert len(trace().tasks) > 5

    def test_an_error_outside_of_a_backward_is_a_reason_too(self, run, trace) -> None:
        run("train(3)\nraise KeyError", "--ring", "1MB", "--dump-on", "exception")

        assert len(trace().tasks) == 3

    def test_one_that_ends_well_leaves_none_if_that_is_no_reason(
        self, run, tmp_path
    ) -> None:
        done = run("train(3)", "--ring", "1MB", "--dump-on", "exception,timeout")

        assert done.exit_code == 0
        assert "nothing triggered a dump; x.gvt was not written" in done.errors
        assert not (tmp_path / "x.gvt").exists()

    def test_a_signal_has_it_written_and_reported_where_everything_stands(
        self, run, trace
    ) -> None:
        source = """
            import os, signal
            train(3)
            os.kill(os.getpid(), signal.SIGUSR1)
            train(3)
            os._exit(0)
        """
        done = run(source, "--ring", "1MB")

        assert len(trace().tasks) == 3
        assert "0 passes under way" in done.errors

    def test_a_standstill_has_it_written(self, run, trace) -> None:
        source = """
            import os, time
            train(2)
            class Slow(gv.autograd.Function):
                @staticmethod
                def forward(ctx, x):
                    return x * 1
                @staticmethod
                def backward(ctx, grad):
                    while not os.path.exists("x.gvt"):
                        time.sleep(0.01)
                    os._exit(0)
            Slow.apply(x).sum().backward()
        """
        run(source, "--ring", "1MB", "--watchdog", "0.1", "--dump-on", "timeout")

        assert len(trace().tasks) == 3
        assert "SlowBackward" in {trace().nodes[one].name for one in trace().nodes}


class TestChildren:
    def traces(self, tmp_path) -> list[int]:
        """Return the number of passes in each trace of another process."""
        found = sorted(tmp_path.glob("x.*.gvt"), key=lambda path: path.stat().st_mtime)
        return sorted(len(load_trace(path).tasks) for path in found)

    def test_a_forked_child_has_a_trace_of_its_own(self, run, tmp_path, trace) -> None:
        source = """
            import os, sys
            train(1)
            if not (pid := os.fork()):
                train(2)
                sys.exit(0)
            os.waitpid(pid, 0)
        """
        done = run(source, "--follow-children")

        assert len(trace().tasks) == 1
        assert self.traces(tmp_path) == [2]
        (child,) = tmp_path.glob("x.*.gvt")
        assert load_trace(child).losses.is_complete
        assert f"another process wrote {child}" in done.errors

    def test_one_that_is_killed_leaves_what_it_did(self, run, tmp_path) -> None:
        source = """
            import os, signal
            if not (pid := os.fork()):
                train(2)
                from gradviz.trace.recording.recorder import _open
                for recorder in _open:
                    recorder.flush()
                os.kill(os.getpid(), signal.SIGKILL)
            os.waitpid(pid, 0)
        """
        run(source, "--follow-children")

        assert self.traces(tmp_path) == [2]

    @pytest.mark.parametrize("method", ["fork", "spawn"])
    def test_those_of_multiprocessing_do(self, run, tmp_path, method) -> None:
        source = f"""
            if __name__ == "__main__":
                import multiprocessing
                context = multiprocessing.get_context({method!r})
                child = context.Process(target=train, args=(3,))
                child.start()
                child.join()
        """
        run(source, "--follow-children")

        assert self.traces(tmp_path) == [3]
        (child,) = tmp_path.glob("x.*.gvt")
        assert load_trace(child).losses.is_complete

    def test_programs_that_it_starts_do_with_the_same_options(
        self, run, tmp_path
    ) -> None:
        (tmp_path / "child.py").write_text(textwrap.dedent(STEPS) + "train(4)")
        source = """
            import subprocess, sys
            subprocess.run([sys.executable, "child.py"], check=True)
        """
        run(source, "--follow-children", "--only", "Mul*")

        (child,) = tmp_path.glob("x.*.gvt")
        assert len(load_trace(child).tasks) == 4
        assert load_trace(child).header.scope.only == ("Mul*",)


#: Starts a program twice, as ranks 0 and 1, and fails as the last of them does.
LAUNCHER = """
    #!/usr/bin/env python
    import os, subprocess, sys
    codes = [
        subprocess.run(
            [sys.executable, *sys.argv[1:]], env={**os.environ, "RANK": str(rank)}
        ).returncode
        for rank in range(2)
    ]
    sys.exit(codes[-1])
"""


@pytest.fixture
def launch(tmp_path: Path):
    """Run the program of some ranks as ``torchrun`` would."""

    def run_source(source: str, *options: str) -> Ended:
        (tmp_path / "torchrun").write_text(textwrap.dedent(LAUNCHER).lstrip())
        write_script(tmp_path, source)
        words = ("./torchrun", "script.py", "--lr", "1")
        return run_gradviz("run", *options, "-o", "x.gvt", *words, cwd=tmp_path)

    return run_source


class TestLaunchers:
    def test_the_processes_of_torchrun_are_recorded_into_one_trace(
        self, launch, trace, tmp_path
    ) -> None:
        source = "import sys; print(sys.argv); train(2); sys.exit(3)"
        done = launch(source)

        assert done.exit_code == 3
        assert done.output == "['script.py', '--lr', '1']\n" * 2
        assert sorted(one.rank for one in trace().processes) == [0, 1]
        assert len(trace().tasks) == 4
        assert len(list(tmp_path.glob("x.*.gvt"))) == 2
        assert "4 backwards" in done.errors
        assert "of 2 processes in" in done.errors

    def test_processes_without_a_pass_are_left_out(self, launch, trace) -> None:
        launch("import os; train(int(os.environ['RANK']))")

        assert [one.rank for one in trace().processes] == [1]

    def test_a_launcher_of_nothing_has_a_trace_of_nothing(self, launch, trace) -> None:
        done = launch("")

        assert not trace().tasks
        assert "no backward pass was recorded" in done.errors


def test_the_variable_that_records_a_program_takes_the_options_of_run(tmp_path) -> None:
    (tmp_path / "script.py").write_text(textwrap.dedent(STEPS) + "train(6)")
    environment = {
        **os.environ,
        "GRADVIZ_TRACE": str(tmp_path / "{pid}.gvt"),
        "GRADVIZ_RUN_SCHEDULE": "wait=1,active=1",
    }
    command = [sys.executable, "script.py"]
    subprocess.run(command, cwd=tmp_path, env=environment, check=True, timeout=60)

    (path,) = tmp_path.glob("*.gvt")
    assert path.stem.isdecimal()
    assert len(load_trace(path).tasks) == 3


def test_a_schedule_none_of_whose_steps_came_is_told_what_ends_a_step(run) -> None:
    done = run("", "--schedule", "wait=1,active=1")

    told = done.errors.splitlines()
    assert "no backward pass was recorded" in told[0]
    assert "ends with the step() of an optimizer" in told[1]


@pytest.mark.parametrize("options", [(), ("--ring", "1MB")])
def test_a_program_may_change_its_folder(options, run, trace, tmp_path) -> None:
    source = """
        import os
        os.mkdir("elsewhere")
        os.chdir("elsewhere")
        train(2)
    """
    done = run(source, *options)

    assert len(trace().tasks) == 2
    assert "x.gvt" in done.errors
    assert "no reason" not in done.errors
    assert not list((tmp_path / "elsewhere").iterdir())


def test_the_message_about_a_ring_matches_its_file(run, trace) -> None:
    done = run("train(300)", "--ring", "10kB")

    held = len(trace().tasks)
    assert held < 300
    assert f"x.gvt holds {held} backward" in done.errors
    assert "of 300 backwards in all" in done.errors


def test_other_processes_are_told_of_beside_passes_of_the_programs_own(run) -> None:
    source = """
        import subprocess, sys
        train(1)
        subprocess.run([sys.executable, "-c", ""], check=True)
    """
    done = run(source)

    assert "recorded 1 backward" in done.errors
    assert "the program started other processes" in done.errors


def test_a_ring_that_cannot_be_written_says_so(run_piped, tmp_path) -> None:
    source = """
        import resource, signal
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))
        train(1)
    """
    errors = run_piped(source, "--ring", "1MB")

    (line,) = errors.splitlines()
    assert line == "gradviz: warning: x.gvt could not be written: File too large"
    assert not (tmp_path / "x.gvt").exists()


def test_a_ring_that_cannot_be_written_keeps_what_was_there(
    run_piped, tmp_path
) -> None:
    source = """
        import resource, signal
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))
        train(1)
    """
    (tmp_path / "x.gvt").write_text("earlier")

    errors = run_piped(source, "--ring", "1MB", "-f")

    (line,) = errors.splitlines()
    assert line.endswith("File too large; the file that was there is kept")
    assert (tmp_path / "x.gvt").read_text() == "earlier"


def test_a_program_that_closes_what_is_not_its_own_keeps_its_files(
    run, trace, tmp_path
) -> None:
    source = """
        import os, warnings
        warnings.simplefilter("ignore")
        train(1)
        os.closerange(3, 200)
        with open("theirs", "w") as theirs:
            train(50)
            theirs.write("theirs")
    """
    done = run(source)

    assert (tmp_path / "theirs").read_text() == "theirs"
    assert done.exit_code == 0
    assert done.errors.count("the trace is incomplete") == 1


def test_odd_steps_are_kept_of_a_program_that_does_not_know_of_it(run, trace) -> None:
    done = run("train(30)", "--keep-odd", "1")

    assert len(trace().tasks) <= 3
    assert trace().header.scope.kept_steps.total == 30
    assert "of 30 backwards in all" in done.errors


def test_check_finite_tells_the_first_value_that_is_not_finite(run):
    overflow = "    x.data.mul_(0)\n    x.sqrt().sum().backward()\n"

    done = run("train(2)\n" + textwrap.dedent(overflow), "--check-finite")

    (told,) = [line for line in done.errors.splitlines() if "not finite" in line]
    assert "infinity in the gradient of input 0 of SqrtBackward0" in told
    assert "script.py" in told


def test_check_finite_says_so_where_all_is_finite(run):
    assert "all checked values are finite" in run("train(2)", "--check-finite").errors


def test_a_live_program_tells_its_steps_and_quiet_ones_do_not(run) -> None:
    told = run("train(4)", "--live", "--no-then").errors

    assert "gradviz: step 0: " in told
    assert ", 3 new nodes" in told
    assert "step" not in run("train(4)", "--live", "--no-then", "-q", "-f").errors
