import subprocess
import sys
from types import SimpleNamespace

import click
import pytest
from click.testing import CliRunner, Result

from gradviz.__main__ import main
from gradviz.cli.console.lazy import Entry
from gradviz.cli.main import Root, gradviz
from gradviz.errors import MissingToolError


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch):
    """Run the command line with one more command, ``probe``, that calls a function."""

    def with_command(function, *options: str) -> Result:
        commands = SimpleNamespace(command=click.Command("probe", callback=function))
        monkeypatch.setitem(sys.modules, "probe_command", commands)
        monkeypatch.setattr(Root, "entries", {"probe": Entry("probe_command", "")})
        return CliRunner().invoke(gradviz, [*options, "probe"])

    return with_command


def raising(error: BaseException):
    def function() -> None:
        raise error

    return function


def test_help_imports_nothing_heavy() -> None:
    script = (
        "import sys; from gradviz.cli.main import gradviz\n"
        "try: gradviz(['--help'])\n"
        "finally: print(sorted(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )

    assert "Usage: gradviz" in done.stdout
    for heavy in ("numpy", "rich", "graphviz", "msgspec", "cupy"):
        assert f"'{heavy}'" not in done.stderr


def test_the_modules_that_record_import_the_engine_without_tensors() -> None:
    modules = "gradviz.cli.run.command, gradviz.cli.doctor.surroundings"
    script = f"import {modules}, sys; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )

    modules = done.stdout.split()
    assert "gradviz.engine" in modules
    assert {"gradviz.tensors.tensor", "gradviz.api"}.isdisjoint(modules)


@pytest.mark.parametrize("option", ["-h", "--help"])
def test_help_lists_the_commands(option: str) -> None:
    result = CliRunner().invoke(gradviz, [option])

    assert result.exit_code == 0
    for name in ("run", "show", "render"):
        assert f"\n  {name} " in result.stdout


@pytest.mark.parametrize("option", ["-V", "--version"])
def test_the_version_is_told(option: str) -> None:
    result = CliRunner().invoke(gradviz, [option])

    assert (result.exit_code, result.stdout.split()[0]) == (0, "gradviz")


def test_python_m_gradviz_is_the_command_line() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "gradviz", "--version"],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )

    assert done.stdout.startswith("gradviz ")


def test_ctrl_c_while_the_program_is_imported_is_an_exit_code(monkeypatch) -> None:
    class Interrupted:
        def find_spec(self, *_: object) -> None:
            raise KeyboardInterrupt

    monkeypatch.delitem(sys.modules, "gradviz.cli.main")
    monkeypatch.setattr(sys, "meta_path", [Interrupted()])

    with pytest.raises(SystemExit) as raised:
        main()

    assert raised.value.code == 130


@pytest.mark.parametrize("closed", [">&-", "<&- >&- 2>&-"])
def test_closed_streams_are_no_error(closed: str) -> None:
    command = f'"$0" -m gradviz --version {closed}'
    done = subprocess.run(
        ["sh", "-c", command, sys.executable],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )

    assert (done.stdout, done.stderr) == ("", "")


@pytest.mark.parametrize("group", ["show", "render"])
def test_every_command_of_a_group_is_there(group: str) -> None:
    command = gradviz.get_command(click.Context(gradviz), group)
    assert isinstance(command, click.Group)

    for name in command.list_commands(click.Context(command)):
        result = CliRunner().invoke(gradviz, [group, name, "--help"])
        assert result.exit_code == 0
        assert f"Usage: gradviz {group} {name}" in result.stdout


def test_a_wrong_option_is_one_line_and_exit_code_2() -> None:
    result = CliRunner().invoke(gradviz, ["run", "--frobnicate", "x.py"])

    assert result.exit_code == 2
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1
    assert "--frobnicate" in result.stderr
    assert "gradviz run --help" in result.stderr


def test_an_unknown_command_is_one_line_and_exit_code_2() -> None:
    result = CliRunner().invoke(gradviz, ["paint"])

    assert result.exit_code == 2
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("words", "meant"), [(["rendr"], "render"), (["show", "ordr"], "order")]
)
def test_a_command_with_a_slip_is_told_what_was_meant(words, meant) -> None:
    result = CliRunner().invoke(gradviz, words)

    assert result.exit_code == 2
    assert f"No such command {words[-1]!r}. Did you mean {meant!r}?" in result.stderr


def test_no_command_prints_the_help_and_fails() -> None:
    result = CliRunner().invoke(gradviz, [])

    assert result.exit_code == 2
    assert "Usage: gradviz" in result.stderr


def test_a_users_mistake_is_one_line_and_its_exit_code(call) -> None:
    result = call(raising(MissingToolError("there is no dot")))

    assert (result.exit_code, result.stderr) == (4, "gradviz: there is no dot\n")


def test_a_defect_of_ours_is_one_line_that_says_so(call) -> None:
    result = call(raising(ZeroDivisionError("oops")))

    assert result.exit_code == 1
    assert len(result.stderr.splitlines()) == 1
    assert "internal error: ZeroDivisionError: oops" in result.stderr


def test_a_full_disk_is_no_defect_of_ours(call) -> None:
    result = call(raising(OSError(28, "No space left on device")))

    assert result.exit_code == 1
    assert result.stderr == "gradviz: [Errno 28] No space left on device\n"


@pytest.mark.parametrize("error", [ZeroDivisionError("x"), MissingToolError("x")])
def test_debug_shows_the_traceback(call, error: Exception) -> None:
    result = call(raising(error), "--debug")

    assert "Traceback (most recent call last):" in result.stderr


def test_the_environment_sets_an_option(call, monkeypatch) -> None:
    monkeypatch.setenv("GRADVIZ_DEBUG", "1")

    result = call(raising(ZeroDivisionError()))

    assert "Traceback (most recent call last):" in result.stderr


def test_a_message_stays_one_line_of_printable_characters(call) -> None:
    result = call(raising(MissingToolError("no\x1b[31m\nred\u202e")))

    assert result.stderr == "gradviz: no red\n"


def test_ctrl_c_exits_with_130(call) -> None:
    result = call(raising(KeyboardInterrupt()))

    assert result.exit_code == 130
    assert "Traceback" not in result.stderr


def test_a_command_may_return_an_exit_code(call) -> None:
    assert call(lambda: 17).exit_code == 17
