"""``gradviz run`` with less to record, for longer, and for more processes."""

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import click
import pytest

from gradviz.cli.run import command
from gradviz.trace.events import StepBegun
from gradviz.trace.reader import load_trace

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

    def run_source(source: str, *options: str, **environment: str):
        (tmp_path / "script.py").write_text(
            textwrap.dedent(STEPS) + textwrap.dedent(source)
        )
        return subprocess.run(
            [
                *(sys.executable, "-W", "ignore", "-m", "gradviz", "run"),
                *(*options, "-o", "x.gvt", "script.py"),
            ],
            cwd=tmp_path,
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    return run_source


@pytest.fixture
def trace(tmp_path: Path):
    return lambda name="x.gvt": load_trace(tmp_path / name)


def test_a_step_ends_with_that_of_an_optimizer(run, trace) -> None:
    done = run("train(8)", "--schedule", "wait=1,warmup=1,active=2,repeat=1")

    assert done.returncode == 0
    steps = [one.step for one in trace().events() if isinstance(one, StepBegun)]
    assert steps == [2, 3]
    assert len(trace().tasks) == 2


def test_what_is_kept_can_be_said(run, trace) -> None:
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
        (("--ring", "much"), "'much' is no size in bytes"),
        (("--dump-on", "signal"), "only a ring is dumped"),
        (("--ring", "1MB", "--dump-on", "never"), "dump_on has 'never'"),
        (("--live", "--workers", "2"), "--live shows one trace, and --workers makes"),
    ],
)
def test_what_makes_no_sense_is_a_usage_error(options, told) -> None:
    arguments = [*options, "-c", "raise AssertionError('it ran')"]
    with pytest.raises(click.UsageError, match=re.escape(told)):
        command.main(arguments, standalone_mode=False)


class TestRing:
    def test_a_program_that_raises_leaves_its_end(self, run, trace) -> None:
        done = run("train(300)\nraise ValueError('mine')", "--ring", "10kB")

        assert done.returncode == 1
        assert "x.gvt" in done.stderr
        assert trace().losses.overwritten > 0
        assert len(trace().tasks) > 5

    def test_one_that_ends_well_leaves_none_if_that_is_no_reason(
        self, run, tmp_path
    ) -> None:
        done = run("train(3)", "--ring", "1MB", "--dump-on", "exception,timeout")

        assert done.returncode == 0
        assert "there was no reason to write x.gvt" in done.stderr
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
        assert "0 passes under way" in done.stderr

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
        """How many passes each trace of another process has."""
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
        assert f"another process has left {child}" in done.stderr

    def test_one_that_is_killed_leaves_what_it_did(self, run, tmp_path) -> None:
        source = """
            import os, signal
            if not (pid := os.fork()):
                train(2)
                from gradviz.trace.recorder import _open
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

    told = done.stderr.splitlines()
    assert "no backward pass was recorded" in told[0]
    assert "ends with the step() of an optimizer" in told[1]
