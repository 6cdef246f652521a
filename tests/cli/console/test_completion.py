import os
import shutil
import subprocess
import sys

import pytest
from click.shell_completion import get_completion_class

from gradviz.cli.main import gradviz


@pytest.fixture
def complete(tmp_path, monkeypatch):
    """Return a shell's offers at the end of some words."""
    monkeypatch.chdir(tmp_path)

    def offered(*words: str, shell: str = "fish") -> list[str]:
        made = get_completion_class(shell)(gradviz, {}, "gradviz", "_GRADVIZ_COMPLETE")
        *before, incomplete = words
        return [one.value for one in made.get_completions(before, incomplete)]

    return offered


def test_commands_are_completed_and_those_of_groups(complete) -> None:
    assert complete("do") == ["doctor"]
    assert {"summary", "order"} <= {*complete("show", "")}
    assert complete("show", "sum") == ["summary"]


def test_options_are_completed(complete) -> None:
    assert complete("show", "order", "--pa") == ["--pass"]
    assert "--debug" in complete("--d")
    assert complete("show", "--h") == ["--help"]


def test_the_words_for_passes_are_completed(complete) -> None:
    words = ["last", "slowest", "failed", "all"]

    assert complete("show", "order", "--pass", "") == words
    assert complete("render", "graph", "--pass", "s") == ["slowest"]


def test_traces_are_completed_and_no_other_files(complete, tmp_path) -> None:
    for name in ("a.gvt", "b.gvt", "b.svg"):
        (tmp_path / name).touch()
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "c.gvt").touch()

    assert complete("show", "order", "") == ["a.gvt", "b.gvt"]
    assert complete("check", "b") == ["b.gvt"]
    assert complete("render", "graph", "runs/") == ["runs/c.gvt"]


def test_a_word_that_begins_no_trace_lets_the_shell_offer_folders(
    complete, tmp_path
) -> None:
    made = get_completion_class("zsh")(gradviz, {}, "gradviz", "_GRADVIZ_COMPLETE")

    (offered,) = made.get_completions(["show", "order"], "ru")

    assert (offered.type, offered.value) == ("dir", "ru")


def test_nodes_are_completed_by_name(complete, trace_path) -> None:
    assert complete("explain", "two.gvt", "D") == ["Double"]
    assert complete("explain", "t") == ["two.gvt"]
    assert complete("explain", "S") == ["Stop"]


@pytest.mark.parametrize("content", [None, b"", b"no trace"])
def test_a_file_that_cannot_be_read_completes_to_nothing(
    content, complete, tmp_path
) -> None:
    if content is not None:
        (tmp_path / "x.gvt").write_bytes(content)

    assert complete("explain", "x.gvt", "D") == []


def test_settings_that_are_wrong_do_not_disturb(complete, tmp_path) -> None:
    (tmp_path / "pyproject.toml").write_text("tool.gradviz = 7")

    assert complete("show", "sum") == ["summary"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_its_script(shell, complete) -> None:
    made = get_completion_class(shell)(gradviz, {}, "gradviz", "_GRADVIZ_COMPLETE")
    items = made.get_completions(["show"], "sum")

    assert f"_GRADVIZ_COMPLETE={shell}_complete" in made.source()
    assert "summary" in made.format_completion(items[0])


@pytest.fixture
def program(tmp_path):
    """A folder with the program ``gradviz`` in it."""
    folder = tmp_path / "bin"
    folder.mkdir()
    script = folder / "gradviz"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m gradviz "$@"\n')
    script.chmod(0o755)
    return folder


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_bash_completes_with_the_script_that_it_is_given(
    program, trace_path, tmp_path
) -> None:
    script = """
        eval "$(_GRADVIZ_COMPLETE=bash_source gradviz)"
        offer() {
            COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
            $(complete -p gradviz | sed 's/.*-F \\([^ ]*\\) .*/\\1/') gradviz
            echo "${COMPREPLY[@]}"
        }
        offer gradviz doc
        offer gradviz show order --js
        offer gradviz show order ''
        offer gradviz show order --pass sl
    """
    done = subprocess.run(
        ["bash", "--norc", "-c", script],
        cwd=tmp_path,
        env={**os.environ, "PATH": f"{program}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )

    assert done.stdout.splitlines() == ["doctor", "--json", "two.gvt", "slowest"]


def test_a_command_is_completed_without_importing_any() -> None:
    script = (
        "import os, sys; from gradviz.cli.main import gradviz\n"
        "try: gradviz([])\n"
        "finally: print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={
            **os.environ,
            "_GRADVIZ_COMPLETE": "bash_complete",
            "COMP_WORDS": "gradviz show s",
            "COMP_CWORD": "2",
        },
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )

    assert "plain,summary" in done.stdout
    assert {"numpy", "rich", "gradviz.cli.show.show_summary"}.isdisjoint(
        done.stderr.split()
    )
