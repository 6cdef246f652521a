"""Targets of ``gradviz run``: scripts, modules, strings and commands."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gradviz.cli.run.program import ProgramNotFoundError
from gradviz.cli.run.target import target_of

HERE = Path(sys.executable).parent


def script(path: Path, first_line: str) -> Path:
    path.write_text(f"{first_line}\nprint('ran')\n")
    path.chmod(0o755)
    return path


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """The user is in a folder of his own, and this Python is on the PATH."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{HERE}{os.pathsep}{tmp_path / 'bin'}")
    (tmp_path / "bin").mkdir()
    return tmp_path


@pytest.mark.parametrize(
    ("words", "flags", "meant", "label"),
    [
        ("train.py -m 3", "", "train.py -m 3", "train"),
        ("python train.py -m 3", "", "train.py -m 3", "train"),
        ("python -m pkg.train x", "", "-m pkg.train x", "pkg.train"),
        ("python -mtrain x", "", "-m train x", "train"),
        ("python -c code x", "", "-c code x", "string"),
        ("python -u -X dev -Wall train.py -u", "-u -X dev -W all", "train.py -u", ""),
        ("python -uBm train -O", "-uB", "-m train -O", ""),
        ("python -uX dev train.py", "-u -X dev", "train.py", ""),
        (f"{sys.executable} train.py", "", "train.py", ""),
        (f"{HERE / 'pytest'} -q", "", f"{HERE / 'pytest'} -q", "pytest"),
        ("pytest -q", "", f"{HERE / 'pytest'} -q", "pytest"),
        ("nothing", "", "nothing", "nothing"),
    ],
)
def test_a_command_of_python_is_what_it_runs(words, flags, meant, label):
    word, *args = words.split()
    found = target_of(word, args)

    assert " ".join(found.words()) == meant
    assert " ".join(found.flags) == flags
    assert found.label == label or not label
    assert found.note == ""


@pytest.mark.parametrize(
    ("words", "is_launcher"),
    [
        ("./bin/torchrun train.py", True),
        ("python -m torch.distributed.run train.py", True),
        ("accelerate launch train.py", True),
        ("python -m accelerate.commands.launch train.py", True),
        ("train.py torchrun", False),
        ("torchrun.py", False),
        ("python -c torchrun", False),
    ],
)
def test_launchers_of_several_processes_are_recognized(words, is_launcher):
    word, *args = words.split()

    assert target_of(word, args).is_launcher == is_launcher


def test_a_file_that_is_called_as_a_command_is_the_file(folder):
    (folder / "pytest").write_text("")

    assert target_of("pytest", []).words() == ("pytest",)


def test_a_folder_that_is_called_as_a_command_is_not(folder):
    (folder / "pytest").mkdir()

    assert target_of("pytest", []).words() == (str(HERE / "pytest"),)


@pytest.mark.parametrize(
    "first_line",
    [
        f"#!{sys.executable}",
        f"#!{sys.executable} -sE",
        "#!/usr/bin/env python3",
        f"#!/bin/sh\n'''exec' \"{sys.executable}\" \"$0\" \"$@\"\n' '''",
    ],
)
def test_scripts_of_this_python_may_be_anywhere_on_the_path(folder, first_line):
    path = script(folder / "bin" / "tool", first_line)

    assert target_of("tool", ["x"]).words() == (str(path), "x")


@pytest.mark.parametrize(
    ("first_line", "told"),
    [
        ("#!/bin/sh", "is no Python program; only Python programs are recorded"),
        ("\x7fELF", "is no Python program; only Python programs are recorded"),
        ("#!/opt/other/bin/python3", "of another Python than gradviz"),
    ],
)
def test_other_commands_are_refused_with_what_to_do(folder, first_line, told):
    script(folder / "bin" / "tool", first_line)

    with pytest.raises(ProgramNotFoundError, match=told):
        target_of("tool", [])


@pytest.mark.parametrize("words", ["python", "python -u", "python -", "python -W x"])
def test_a_python_without_a_program_is_refused(words):
    word, *args = words.split()
    with pytest.raises(ProgramNotFoundError, match="is given no program"):
        target_of(word, args)


@pytest.mark.parametrize("word", ["python2", "python2.7", "/opt/other/bin/python"])
def test_another_python_that_is_named_is_refused(word):
    with pytest.raises(ProgramNotFoundError, match=r"-m gradviz run"):
        target_of(word, ["train.py"])


@pytest.mark.parametrize("is_there", [True, False])
def test_any_python_is_this_one_and_that_is_said(folder, monkeypatch, is_there):
    other = script(folder / "bin" / "python", "#!/bin/sh")
    if not is_there:
        other.unlink()
    monkeypatch.setenv("PATH", str(folder / "bin"))
    found = target_of("python", ["train.py"])

    assert found.words() == ("train.py",)
    assert f"gradviz's Python, {sys.executable}" in found.note
    assert (f"not with {other}" in found.note) == is_there


def test_options_of_python_are_those_of_the_program(folder):
    (folder / "show.py").write_text(
        "import sys\nprint(sys.argv, sys.flags.optimize, sys.warnoptions)"
    )
    command = [sys.executable, "-m", "gradviz", "run", "-q", "-o", "x.gvt"]
    done = subprocess.run(
        [*command, "--", "python", "-O", "-W", "ignore", "show.py", "-q"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert done.stdout == "['show.py', '-q'] 1 ['ignore']\n"
    assert done.stderr == ""
    assert (folder / "x.gvt").exists()
