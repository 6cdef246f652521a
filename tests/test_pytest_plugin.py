import contextlib
import importlib.metadata
import os
import sys
import textwrap
import types

import pytest

from gradviz.capture.recorded_tests import file_name
from gradviz.errors import UserError
from gradviz.pytorch.watching import listeners
from gradviz.trace.reading.reader import load_trace

# A run inside of a test forgets the modules that it imported, and PyTorch cannot be
# imported twice. So it is imported before the first run.
with contextlib.suppress(ImportError):
    import torch  # noqa: F401

pytest_plugins = ["pytester"]

PASS = "gv.ones(2, requires_grad=True).sum().backward()"
#: Two streams write the same memory, and nothing orders them.
RACE = """
    from gradviz.trace import probe
    for kernel, stream in enumerate(("sim:0/0", "sim:0/1")):
        probe.current.kernel_launched(kernel, stream, "mul")
        probe.current.array_accessed(kernel, 1, "0;8;8;8", True)
"""


@pytest.fixture
def run(pytester: pytest.Pytester):
    """Run tests as their author would, with the plugin and some options."""
    installed = importlib.metadata.entry_points(group="pytest11", name="gradviz")
    loaded = [] if installed else ["-p", "gradviz.pytest_plugin"]
    quick = ["-p", "no:randomly", "-p", "no:cacheprovider"]

    def with_options(source: str, *options: str, new: bool = False):
        pytester.makepyfile("import gradviz as gv, pytest\n" + source)
        how = pytester.runpytest_subprocess if new else pytester.runpytest_inprocess
        return how(*loaded, *quick, *options)

    return with_options


def test_each_test_with_a_pass_has_a_file(run, pytester) -> None:
    result = run(
        f"def test_a(): {PASS}; {PASS}\n"
        f"def test_b(): pass\n"
        f"@pytest.mark.parametrize('x', ['a/b'])\n"
        f"def test_c(x): {PASS}\n",
        "--gradviz",
        "--gradviz-dir=kept",
    )

    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(
        ["gradviz: recorded 3 backward passes of 2 tests in *kept, 0 unsound"]
    )
    first, second = sorted((pytester.path / "kept").iterdir())
    assert first.name.endswith(".py.test_a.gvt")
    assert [len(load_trace(one).tasks) for one in (first, second)] == [2, 1]


@pytest.mark.parametrize("where", ["before", "in"])
def test_passes_of_pytorch_are_recorded_too(run, pytester, where) -> None:
    pytest.importorskip("torch")
    lines = "import torch", "torch.ones(2, requires_grad=True).sum().backward()"
    if where == "before":
        source = f"{lines[0]}\ndef test_a(): {lines[1]}"
    else:
        source = f"def test_a():\n    {lines[0]}\n    {lines[1]}"
    # A new process is one in which nothing has imported PyTorch yet.
    result = run(source, "--gradviz", "--gradviz-dir=kept", new=where == "in")

    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["gradviz: recorded 1 backward pass of 1 test in *"])
    (path,) = (pytester.path / "kept").iterdir()
    names = {node.name for node in load_trace(path).nodes.values()}
    assert names == {"SumBackward0", "AccumulateGrad"}


def test_why_passes_of_pytorch_are_not_there_is_told(run, monkeypatch) -> None:
    def cannot(stacks: str, *, checks_finite: bool) -> None:
        del stacks, checks_finite
        raise UserError("it is too old")

    monkeypatch.setitem(sys.modules, "torch", types.ModuleType("torch"))
    monkeypatch.setattr(listeners, "start", cannot)
    result = run("def test_a(): pass\ndef test_b(): pass\n", "--gradviz")

    result.stdout.fnmatch_lines(
        ["gradviz: no pass of PyTorch's own engine is recorded: it is too old"]
    )


def test_passes_of_fixtures_belong_to_the_test_and_none_of_other_tests(run, pytester):
    run(
        f"@pytest.fixture\ndef trained(): {PASS}\n"
        f"def test_a(trained): {PASS}\n"
        f"def test_b(): {PASS}\n",
        "--gradviz",
    )

    traces = sorted((pytester.path / "gradviz-traces").iterdir())
    assert [len(load_trace(one).tasks) for one in traces] == [2, 1]


@pytest.mark.races
def test_an_unsound_recording_fails_the_test_and_says_why(run) -> None:
    result = run(f"def test_a():{RACE}\ndef test_b(): {PASS}\n", "--gradviz")

    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        [
            "the recording of this test is unsound (gradviz check *test_a.gvt):",
            "- memory 1 is used by two streams in no order*",
            "gradviz: recorded 1 backward pass of 2 tests in *, 1 unsound",
        ]
    )


@pytest.mark.races
def test_a_test_that_fails_has_its_own_error_and_a_section(run) -> None:
    result = run(f"def test_a():{RACE}\n    assert 1 == 2\n", "--gradviz")

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["*assert 1 == 2", "*Captured gradviz call*", "*is unsound*"]
    )


def test_a_pass_that_fails_as_it_should_is_sound(run) -> None:
    result = run(
        "def boom(grad): raise ValueError('boom')\n"
        "def test_a():\n"
        "    x = gv.ones(2, requires_grad=True)\n"
        "    y = x * 2\n"
        "    y.register_hook(boom)\n"
        "    with pytest.raises(ValueError): y.sum().backward()\n",
        "--gradviz",
    )

    result.assert_outcomes(passed=1)


def test_setups_that_fail_and_skips_leave_no_recording_open(run) -> None:
    result = run(
        f"@pytest.fixture\ndef broken(): {PASS}; raise KeyError\n"
        f"def test_a(broken): pass\n"
        f"def test_b(): pytest.skip()\n"
        f"def test_c(): {PASS}\n",
        "--gradviz",
    )

    result.assert_outcomes(passed=1, errors=1, skipped=1)
    result.stdout.fnmatch_lines(["gradviz: recorded 2 backward passes of 2 tests*"])


def test_it_is_the_same_over_several_processes(run, pytester) -> None:
    result = run(
        f"def test_a(): {PASS}\ndef test_b(): {PASS}\n", "--gradviz", "-n1", new=True
    )

    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["gradviz: recorded 2 backward passes of 2 tests*"])
    assert len([*(pytester.path / "gradviz-traces").iterdir()]) == 2


def test_without_the_option_nothing_is_loaded_or_written(run, pytester) -> None:
    result = run(
        "import sys\n"
        "def test_a(request):\n"
        "    plugins = request.config.pluginmanager\n"
        "    assert not plugins.has_plugin('gradviz-recorded-tests')\n"
        f"    {PASS}\n"
    )

    result.assert_outcomes(passed=1)
    assert "gradviz:" not in result.stdout.str()
    assert not (pytester.path / "gradviz-traces").exists()


def test_a_folder_that_cannot_be_made_is_one_line(run, pytester) -> None:
    (pytester.path / "file").touch()

    result = run(f"def test_a(): {PASS}", "--gradviz", "--gradviz-dir=file/x")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --gradviz-dir: cannot make *file/x: *"])


GOLDEN = f"""
    from gradviz.testing import assert_same_backward
    def test_a():
        with assert_same_backward("golden/a.txt"): {PASS}
"""


@pytest.mark.parametrize("how", ["option", "variable"])
def test_golden_files_are_written_if_asked_for_and_never_without(
    run, pytester, monkeypatch, how
) -> None:
    monkeypatch.delenv("GRADVIZ_UPDATE", raising=False)
    source = textwrap.dedent(GOLDEN)
    missing = run(source)
    missing.assert_outcomes(failed=1)
    missing.stdout.fnmatch_lines(["*no golden record golden/a.txt*--gradviz-update*"])

    if how == "option":
        run(source, "--gradviz-update").assert_outcomes(passed=1)
    else:
        with monkeypatch.context() as patch:
            patch.setenv("GRADVIZ_UPDATE", "1")
            run(source).assert_outcomes(passed=1)

    assert "GRADVIZ_UPDATE" not in os.environ
    assert "SumBackward0" in (pytester.path / "golden" / "a.txt").read_text()
    run(source).assert_outcomes(passed=1)
    changed = run(source.replace(".sum()", ".exp().sum()"))
    changed.assert_outcomes(failed=1)
    changed.stdout.fnmatch_lines(["*+ /ExpBackward0 float32*", "*To accept this: *"])


def test_no_two_tests_share_a_file() -> None:
    names = ["a.py::b", "a.py::b[x/y]", "a.py::b[x y]", "a.py::" + "ж" * 500]

    files = [file_name(name) for name in names]

    assert files[0] == "a.py.b.gvt"
    assert len({*files}) == len(names)
    assert max(len(file.encode()) for file in files) < 200
