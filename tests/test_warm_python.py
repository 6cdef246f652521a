import sys

import pytest

from tests.warm_python import Ended, run_warm


def test_a_program_is_main_with_its_arguments_folder_and_environment(tmp_path):
    program = tmp_path / "program.py"
    program.write_text("import os, sys; print(__name__, sys.argv, *os.environ.items())")

    ended = run_warm(program, "x", cwd=tmp_path, environment={"A": "1"})

    assert ended == Ended(0, f"__main__ {[str(program), 'x']} ('A', '1')\n", "")


def test_it_ends_as_python_does(tmp_path):
    source = "import atexit; atexit.register(print, 'late'); 1 / 0"
    ended = run_warm("-c", source)

    assert (ended.exit_code, ended.output) == (1, "late\n")
    assert ended.errors.endswith("ZeroDivisionError: division by zero\n")


@pytest.mark.parametrize(
    ("source", "exit_code"),
    [("import os; os._exit(3)", 3), ("import os; os.kill(os.getpid(), 9)", -9)],
)
def test_the_way_it_ends_is_told(source, exit_code):
    assert run_warm("-c", source) == Ended(exit_code, "", "")


def test_nothing_that_a_program_does_is_there_in_the_next_one():
    run_warm("-c", "import os, gradviz; gradviz.left = 1; os.environ['LEFT'] = '1'")

    ended = run_warm(
        "-c", "import os, gradviz; print(gradviz.left, os.environ['LEFT'])"
    )
    assert "AttributeError" in ended.errors


def test_one_that_hangs_is_killed():
    with pytest.raises(TimeoutError, match="after 0"):
        run_warm("-c", "import signal; signal.pause()", timeout_s=0)


def test_a_module_runs_as_one(tmp_path):
    (tmp_path / "one.py").write_text("import sys; print(__name__, sys.argv[1:])")

    assert run_warm("-m", "one", "x", cwd=tmp_path).output == "__main__ ['x']\n"
    assert "one" not in sys.modules


def test_a_traceback_begins_with_the_program(tmp_path) -> None:
    program = tmp_path / "program.py"
    program.write_text("def fail():\n    {}[1]\nfail()\n")

    errors = run_warm("program.py", cwd=tmp_path).errors.splitlines()

    assert [one for one in errors if one.startswith("  File")] == [
        f'  File "{program}", line 3, in <module>',
        f'  File "{program}", line 2, in fail',
    ]
    assert errors[-1] == "KeyError: 1"


def test_warnings_may_be_errors_in_it_and_in_what_it_starts() -> None:
    source = "import sys, warnings; print(sys.warnoptions); warnings.warn('no')"

    ended = run_warm("-W", "error", "-c", source)

    assert (ended.exit_code, ended.output) == (1, "['error']\n")
    assert ended.errors.endswith("UserWarning: no\n")
