"""The example in the help of each command is run, and does what it is there for."""

import shlex
import subprocess
import sys

import pytest
from click.testing import CliRunner

from gradviz.capture.session import record
from gradviz.cli.main import gradviz
from tests.cli.test_documentation import COMMANDS

#: What the examples are about, with what they want: a program and two recordings.
PROGRAM = """
import gradviz as gv

model = gv.nn.Sequential(gv.nn.Linear(3, 4), gv.nn.Tanh(), gv.nn.Linear(4, 1))
for _ in range(3):
    model(gv.ones(2, 3)).sum().backward()
"""

#: Commands whose example needs more than is here, and why.
ELSEWHERE: dict[str, str] = {
    "view": "it goes on until Ctrl-C: test_view.py",
    "attach": "it takes a program that runs: test_attach.py",
}


def example_of(name: str) -> str:
    """The line after ``Example:`` in the help of a command."""
    lines = CliRunner().invoke(gradviz, [*name.split(), "--help"]).stdout.splitlines()
    assert "  Example:" in lines, (
        f"the help of 'gradviz {name}' has no Example: section"
    )
    return lines[lines.index("  Example:") + 1].strip()


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory):
    """A folder with ``train.py`` and, of two runs, ``first.gvt`` and ``second.gvt``."""
    folder = tmp_path_factory.mktemp("examples")
    (folder / "train.py").write_text(PROGRAM)
    for name in ("first.gvt", "second.gvt"):
        with record(folder / name):
            exec(PROGRAM, {})
    return folder


@pytest.fixture
def folder(recorded, tmp_path, monkeypatch):
    """Those, in a folder of the test's own."""
    for path in recorded.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", sorted({*COMMANDS} - {*ELSEWHERE}))
def test_the_example_of_a_command_works(name: str, folder) -> None:
    program, *words = shlex.split(example_of(name))
    assert program == "gradviz"
    assert " ".join(words).startswith(name)
    if name == "run":
        (folder / "first.gvt").unlink()
        code, said = in_a_process(words)
    else:
        result = CliRunner().invoke(gradviz, words)
        code, said = result.exit_code, result.stderr

    # As diff(1) has it, a difference is 1.
    assert code in ({0, 1} if name == "diff" else {0}), said
    assert "warning" not in said


def in_a_process(words: list[str]) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "gradviz", *words],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stderr
