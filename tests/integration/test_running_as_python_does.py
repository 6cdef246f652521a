"""``gradviz run`` beside ``python``: the same output, errors and exit code."""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.warm_python import Ended, run_gradviz

PROGRAMS = {
    "prints": "print('hello')",
    "sees its own arguments": "import sys; print(sys.argv)",
    "is __main__": """
        import sys
        print(__name__, __file__, __package__, __spec__, type(__loader__).__name__)
        print(sys.modules["__main__"].__dict__ is globals())
    """,
    "finds modules beside it": "import neighbor; print(neighbor.NAME)",
    "reads stdin": "import sys; print(sys.stdin.read().upper())",
    "raises": """
        def divide():
            return 1 / 0

        divide()
    """,
    "raises from an exception": """
        try:
            {}["key"]
        except KeyError as error:
            raise RuntimeError("no such key") from error
    """,
    "raises a group": "raise ExceptionGroup('two', [ValueError(1), TypeError(2)])",
    "raises in an imported module": "import failing",
    "imports what is no Python": "import broken",
    "is no Python": "x = 1\ndef f(:\n    pass\n",
    "has its own excepthook": """
        import sys
        sys.excepthook = lambda type, value, traceback: print("hooked", value)
        raise ValueError("seen")
    """,
    "exits with a code": "import sys; sys.exit(7)",
    "exits with a code above 255": "import sys; sys.exit(258)",
    "exits with a text": "import sys; sys.exit('no data')",
    "exits with nothing": "import sys; sys.exit()",
    "exits with False": "import sys; sys.exit(False)",
    "exits at once": "import os; os._exit(9)",
    "is killed": "import os, signal; os.kill(os.getpid(), signal.SIGTERM)",
    "has exit handlers": """
        import atexit
        atexit.register(print, "first")
        atexit.register(print, "second")
    """,
    "leaves threads behind": """
        import threading

        def work():
            threading.main_thread().join()
            print(__name__, "after the last line")

        threading.Thread(target=work).start()
    """,
    "leaves a thread pool behind": """
        from concurrent.futures import ThreadPoolExecutor
        pool = ThreadPoolExecutor(1)
        print(pool.submit(lambda: 3).result())
    """,
    "starts processes": """
        import multiprocessing

        def double(x):
            return 2 * x

        if __name__ == "__main__":
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                print(pool.map(double, [1, 2]))
    """,
    "forks": """
        import os
        import sys
        import warnings
        # From 3.12 on Python warns of a fork beside threads, and the recorder has one.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
        if child == 0:
            sys.exit(3)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """,
    "uses click itself": """
        import click

        @click.command()
        @click.option("--size", default=1)
        @click.argument("rest", nargs=-1)
        def main(size, rest):
            print(size, rest, click.get_current_context().command_path)

        main()
    """,
}


def run(*command: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *map(str, command)],
        cwd=cwd,
        input="from stdin",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def outcome(done: subprocess.CompletedProcess[str]) -> Ended:
    return Ended(done.returncode, done.stdout, done.stderr)


def run_recorded(*command: object, cwd: Path) -> Ended:
    return run_gradviz("run", "-q", *command, cwd=cwd, stdin="from stdin")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "neighbor.py").write_text("NAME = 'next door'")
    (tmp_path / "failing.py").write_text("def f():\n    raise OSError('x')\nf()\n")
    (tmp_path / "broken.py").write_text("def")
    (tmp_path / "scripts").mkdir()
    return tmp_path


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_script_runs_as_under_python(name: str, folder: Path) -> None:
    script = folder / "script.py"
    script.write_text(textwrap.dedent(PROGRAMS[name]))
    args = ["script.py", "-q", "--size", "3", "--", "x y"]

    expected = run(*args, cwd=folder)
    got = run_recorded(*args, cwd=folder)

    assert got == outcome(expected)


def test_a_script_elsewhere_is_found_with_its_neighbors(folder: Path) -> None:
    script = folder / "scripts" / "script.py"
    script.write_text("import sys, os; print(sys.path[0], __file__, os.getcwd())")

    expected = run("scripts/script.py", cwd=folder)
    got = run_recorded("scripts/script.py", cwd=folder)

    assert got == outcome(expected)


def test_a_script_in_another_encoding_is_read_as_it_declares(folder: Path) -> None:
    source = "# -*- coding: latin-1 -*-\nprint(ascii('\xe9'))\n"
    (folder / "script.py").write_bytes(source.encode("latin-1"))

    got = run_recorded("script.py", cwd=folder)

    assert got == Ended(0, "'\\xe9'\n", "")


@pytest.mark.parametrize(
    "source", [b"x = 1\0", b"# -*- coding: klingon -*-\nprint(1)", b"'\xff'"]
)
def test_a_file_that_is_no_text_is_a_syntax_error(source: bytes, folder: Path) -> None:
    (folder / "script.py").write_bytes(source)

    got = run_recorded("script.py", cwd=folder)

    # The words differ between versions of Python.
    assert got.exit_code == 1
    assert f'File "{folder / "script.py"}"' in got.errors
    assert got.errors.splitlines()[-1].startswith("SyntaxError: ")
    assert "Traceback" not in got.errors


@pytest.mark.parametrize("args", [("package",), ("package.part",), ("part",)])
def test_a_module_runs_as_under_python(args: tuple[str, ...], folder: Path) -> None:
    package = folder / "package"
    package.mkdir()
    (package / "__init__.py").write_text("print('imported', __name__)")
    source = """
        import sys
        print(sys.argv, sys.path[0], __name__, __file__, __package__, __spec__.name)
        if __package__:
            from . import other
            print(other.__name__)
        sys.exit(5)
    """
    for path in (package / "__main__.py", package / "part.py", folder / "part.py"):
        path.write_text(textwrap.dedent(source))
    (package / "other.py").write_text("")

    expected = run("-m", *args, "-q", "-m", "x", cwd=folder)
    got = run_recorded("-m", *args, "-q", "-m", "x", cwd=folder)

    assert got == outcome(expected)


def test_the_traceback_of_a_module_begins_in_the_module(folder: Path) -> None:
    got = run_recorded("-m", "failing", cwd=folder)

    failing = folder / "failing.py"
    assert got.exit_code == 1
    assert got.errors.splitlines()[:3] == [
        "Traceback (most recent call last):",
        f'  File "{failing}", line 3, in <module>',
        "    f()",
    ]


def test_the_error_of_a_parent_package_is_the_users(folder: Path) -> None:
    (folder / "package").mkdir()
    (folder / "package" / "__init__.py").write_text("import missing_thing")
    (folder / "package" / "part.py").write_text("")

    got = run_recorded("-m", "package.part", cwd=folder)

    lines = got.errors.splitlines()
    assert got.exit_code == 1
    assert lines[1].endswith('__init__.py", line 1, in <module>')
    assert lines[-1] == "ModuleNotFoundError: No module named 'missing_thing'"


@pytest.mark.parametrize(
    "source",
    [
        "import sys; print(sys.argv, sys.path[0], __name__, '__file__' in globals())",
        "def f(): raise ValueError('é')\nf()",
        "x = (",
    ],
)
def test_a_string_runs_as_under_python(source: str, folder: Path) -> None:
    expected = run("-c", source, "-q", "x", cwd=folder)
    got = run_recorded("-c", source, "-q", "x", cwd=folder)

    assert (got.output, got.exit_code) == (expected.stdout, expected.returncode)
    # The lines between differ: from 3.13 on, Python quotes the string in tracebacks.
    assert got.errors.splitlines()[:1] == expected.stderr.splitlines()[:1]
    assert got.errors.splitlines()[-1:] == expected.stderr.splitlines()[-1:]


def test_ctrl_c_ends_a_script_with_130(folder: Path) -> None:
    source = "import os, signal; os.kill(os.getpid(), signal.SIGINT); input()"

    got = run("-m", "gradviz", "run", "-q", "-c", source, cwd=folder)

    assert got.returncode == 130
    assert got.stderr.splitlines()[0] == "Traceback (most recent call last):"
    assert got.stderr.splitlines()[-1] == "KeyboardInterrupt"
