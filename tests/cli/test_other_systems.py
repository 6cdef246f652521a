"""Commands on systems that are not POSIX; see `tests.cli.without_posix`."""

import json
import shlex
import subprocess
import sys

import pytest

from tests.cli.conftest import record_backwards

READING = [
    "show summary {trace}",
    "show order {trace} --json",
    "show memory {trace}",
    "render graph -f -o {folder}/graph.svg {trace}",
    "render timeline -f -o {folder}/timeline.svg {trace}",
    "render report -f -o {folder}/page.html {trace}",
    "diff {trace} {trace}",
    "check {trace}",
    "export -f -o {folder}/events.json {trace}",
    "view --help",
    "doctor",
]
REFUSED = ["attach 1", "run --standby {program}"]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory) -> dict[str, tuple[int, str]]:
    """Command -> exit code and output; all of them in one process."""
    folder = tmp_path_factory.mktemp("elsewhere")
    trace = record_backwards(folder / "two.gvt", [2, 3])
    program = folder / "program.py"
    program.write_text(
        "import gradviz as gv; gv.ones(2, requires_grad=True).sum().backward()"
    )
    names = {"trace": shlex.quote(str(trace)), "folder": folder}
    commands = [
        f"run -q -o {folder}/new.gvt {program}",
        *(command.format(**names) for command in READING),
        *(command.format(program=program) for command in REFUSED),
    ]
    result = subprocess.run(
        [sys.executable, "-m", "tests.cli.without_posix", json.dumps(commands)],
        check=True,
        capture_output=True,
        text=True,
    )
    return dict(
        zip(
            ["run", *READING, *REFUSED],
            map(tuple, json.loads(result.stdout)),
            strict=True,
        )
    )


@pytest.mark.parametrize("command", ["run", *READING])
def test_traces_are_recorded_and_read_without_posix(outcomes, command):
    code, output = outcomes[command]

    assert (code, "Traceback" in output) == (0, False), output


@pytest.mark.parametrize("command", REFUSED)
def test_a_command_that_needs_posix_says_so_in_one_line(outcomes, command):
    code, output = outcomes[command]

    assert code > 0
    assert output.count("\n") == 1
    assert "needs a POSIX system such as Linux or macOS" in output


def test_workers_in_processes_say_what_they_need(tmp_path):
    code = (
        "from tests.cli.without_posix import hide; hide()\n"
        "try: import gradviz.distributed.launching.meeting_folder\n"
        "except ImportError as error: print(error)"
    )
    told = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    )

    assert told.stdout.startswith("gradviz.distributed with processes needs a POSIX")
