"""The programs and commands of the README run, and print what it says."""

import importlib.util
import json
import re
import shlex
from pathlib import Path

import pytest

from gradviz.cli.main import Root
from gradviz.cli.show import Show
from tests.warm_python import Ended, run_gradviz, run_warm

README = Path(__file__).parents[2] / "README.md"
TEXT = README.read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
TRAIN, *REST = BLOCKS
COMMANDS = re.findall(r"^\$ gradviz (.*)$", TEXT, re.MULTILINE)
ORDER = "show order train.gvt"
#: What a run takes differs from run to run.
TIMES = re.compile(r" *[\d.]+ (?:ns|µs|ms|s)\b")


@pytest.mark.parametrize("block", REST, ids=lambda block: block.splitlines()[0])
def test_the_python_of_the_readme_runs(block: str, tmp_path: Path) -> None:
    done = run_warm("-W", "error", "-c", block, cwd=tmp_path)

    assert (done.exit_code, done.errors) == (0, "")
    expected = re.findall(r"^print\(.*\)  # (.*)$", block, re.MULTILINE)
    assert set(expected) <= set(done.output.splitlines())


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory) -> dict[str, Ended]:
    """Command -> its outcome, after the program of PyTorch at the top was recorded."""
    if importlib.util.find_spec("torch") is None:
        pytest.skip("the program of the README is one of PyTorch")
    folder = tmp_path_factory.mktemp("readme")
    (folder / "train.py").write_text(TRAIN)
    return {
        command: run_gradviz(*shlex.split(command), cwd=folder)
        for command in (*COMMANDS, ORDER, f"{ORDER} --json")
    }


def test_the_commands_of_the_readme_run(outcomes) -> None:
    failed = {
        command: done.errors for command, done in outcomes.items() if done.exit_code
    }

    assert failed == {}


def test_the_order_in_the_readme_is_that_of_its_program(outcomes) -> None:
    (shown,) = re.findall(
        r"^```\n(Backward pass .*?)^```", TEXT, re.DOTALL | re.MULTILINE
    )
    printed = TIMES.sub("", outcomes[ORDER].output).splitlines()
    ran = json.loads(outcomes[f"{ORDER} --json"].output)["order"]

    title, _, *rows, end = TIMES.sub("", shown).splitlines()
    assert (title, end) == (printed[0], "...")
    assert [row.split()[:3] for row in rows] == [
        [str(one["index"]), str(one["node"]), one["name"]] for one in ran[: len(rows)]
    ]


def test_every_command_that_the_readme_names_is_there() -> None:
    named = set(re.findall(r"gradviz (?!run\b)(?:show (\w+)|(\w+))", TEXT))
    views, commands = ({pair[i] for pair in named} - {""} for i in range(2))

    assert views <= {*Show.entries}
    assert {"explain", "diff", "check"} <= commands & {*Root.entries}


def test_links_of_the_readme_point_to_existing_files() -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", TEXT)

    missing = [link for link in links if not (README.parent / link).exists()]
    assert missing == []


def test_every_example_is_in_the_readme() -> None:
    examples = {f"examples/{one.name}" for one in README.parent.glob("examples/[0-9]*")}

    assert examples <= set(re.findall(r"\((examples/[^)]+)\)", TEXT))
