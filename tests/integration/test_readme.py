import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).parents[2] / "README.md"
BLOCKS = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.splitlines()[0])
def test_the_python_of_the_readme_runs(block: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", block],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")
    expected = re.findall(r"^print\(.*\)  # (.*)$", block, re.MULTILINE)
    assert set(expected) <= set(done.stdout.splitlines())


TEXT = README.read_text()
#: Those that come to an end: `view` serves until it is stopped.
COMMANDS = re.findall(r"^\$ gradviz (?!view)(.*)$", TEXT, re.MULTILINE)
ORDER = "show order --task last"
#: What a run takes, and how bars show it, differs from run to run.
TIMES = re.compile(r" *[\d.]+ (?:ns|µs|ms|s)\b")


def run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "gradviz", *shlex.split(command)],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory) -> dict[str, subprocess.CompletedProcess[str]]:
    """What each command of the page says."""
    folder = tmp_path_factory.mktemp("readme")
    (folder / "examples").symlink_to(README.parent / "examples")
    program = "run -o devices.gvt examples/02_three_devices/main.py"
    commands = [*COMMANDS, f"{ORDER} --json", program, "show timeline devices.gvt"]
    return {command: run(command, folder) for command in commands}


def shown(begin: str) -> list[str]:
    """The block of the page that begins so, without times."""
    (block,) = (
        block
        for block in re.findall(r"```(?:\w*)\n(.*?)```", TEXT, re.DOTALL)
        if block.startswith(begin)
    )
    return TIMES.sub("", block).splitlines()


def test_the_commands_of_the_readme_run(outcomes) -> None:
    failed = {
        command: done.stderr for command, done in outcomes.items() if done.returncode
    }

    assert failed == {}


def test_the_figures_of_the_readme_are_those_of_its_commands(outcomes) -> None:
    recorded = outcomes[COMMANDS[0]].stderr.splitlines()
    order = json.loads(outcomes[f"{ORDER} --json"].stdout)["order"]
    head = outcomes[ORDER].stdout.splitlines()[0]

    assert recorded == shown("gradviz: recorded")
    title, _, *rows, end = shown(head)
    assert (title, end) == (head, "...")
    assert rows
    # Without times. The table itself has a column more on a busy machine.
    for row, ran in zip(rows, order, strict=False):
        leaf = ran["sequence_nr"] == 2**64 - 1
        shape = tuple(ran["shapes"][0])
        assert row.split() == [
            *(str(ran["index"]), str(ran["node"]), ran["name"], *str(shape).split()),
            *("max" if leaf else str(ran["sequence_nr"]), ran["device"]),
            str(ran["thread"]),
        ]


def test_the_timeline_of_the_readme_has_the_lanes_of_its_command(outcomes) -> None:
    def lanes(lines: list[str]) -> list[str]:
        return [line.split(" ")[0] for line in lines[2:7] if line[0] not in "█·"]

    def threads(lines: list[str]) -> list[str]:
        head = re.sub(r"( \(shown:\))|(, \d streams?)", "", lines[0])
        return [head, *(name for name in lanes(lines) if not name.startswith("sim:"))]

    timeline = TIMES.sub("", outcomes["show timeline devices.gvt"].stdout).splitlines()
    told = shown("Backward pass 0")

    assert threads(timeline) == threads(told)
    # Kernels may run when the pass is over: a stream of which all do has no lane.
    assert set(lanes(timeline)) <= set(lanes(told))


def test_what_the_readme_points_to_is_there() -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", README.read_text())

    missing = [link for link in links if not (README.parent / link).exists()]
    assert missing == []
